"""The systems by name. Everything else that knows all systems asks here."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from sfumato.errors import InputError, nearest
from sfumato.front import Front, read_front
from sfumato.systems.system import System

# Imported when first asked for: no command waits for the solvers of a system that it does not use.
MODULES = {
    "lattice": "sfumato.systems.recodings",
    "cuts": "sfumato.systems.recodings",
    "channel": "sfumato.systems.channel.system",
    "groups": "sfumato.systems.groups.system",
}


def system_named(name: object) -> System:
    """A system by its name."""
    if not isinstance(name, str) or name not in MODULES:
        raise InputError(f'unknown system "{str(name)[:40]}"', expected="a system", remedy=nearest(str(name), MODULES))
    found: Any = importlib.import_module(MODULES[name])
    system: System = found.SYSTEMS[name]
    return system


def load_front(folder: str | Path, run: str | Path | None = None) -> Front:
    """Read a front back from its folder.

    A folder that this user did not make here is data: what it says can be looked at, and the table that it names is
    not opened. `run` is a run file of one's own, which names the table again.
    """
    return read_front(folder, lambda name: system_named(name).plan.from_saved, run)
