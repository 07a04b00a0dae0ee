"""The systems by name. Every other module that needs all systems uses this one."""

from __future__ import annotations

import importlib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.errors import InputError, nearest
from sfumato.front import Front, read_front

if TYPE_CHECKING:
    from sfumato.methods.system import System
    from sfumato.release.draft import Verifier
    from sfumato.release.manifest import Content


# Modules are imported on first use, so no command waits for the solvers of a system that it does not need.
MODULES = {
    "lattice": "sfumato.methods.recodings",
    "cuts": "sfumato.methods.recodings",
    "channel": "sfumato.methods.channel.system",
    "groups": "sfumato.methods.groups.system",
    "local": "sfumato.methods.local.system",
    "cells": "sfumato.methods.cells.system",
}


def system_named(name: object) -> System:
    """Return a system by its name."""
    if not isinstance(name, str) or name not in MODULES:
        raise InputError(f'unknown system "{str(name)[:40]}"', expected="a system", remedy=nearest(str(name), MODULES))
    module: Any = importlib.import_module(MODULES[name])
    system: System = module.SYSTEMS[name]
    return system


def verifier_of(manifest: Content) -> Verifier:
    """Return the verifier of the method that made a release; only that method is imported."""
    if str(manifest["system"]) not in MODULES:
        raise InputError("the manifest does not name a known system", expected=" or ".join(MODULES))
    return system_named(manifest["system"]).verifier


def load_front(folder: str | Path, run: str | Path | None = None, *, source: Any = None) -> Front:
    """Read a front from its folder.

    A folder that this user did not make here is untrusted: its contents are shown, and the table that it names is not
    opened. The run file `run` is the caller's and names the table. The table itself is `source` if it is in memory.

    Args:
        folder: the folder that `sfumato search` or `Front.save` wrote.
        run: a run file of the caller, for a folder that was made elsewhere.
        source: the table, if it is in memory.

    Returns:
        The front.
    """
    front = read_front(folder, lambda name: system_named(name).plan.from_saved, run)
    return front if source is None else replace(front, study=front.study.with_table(source))
