"""The systems by name. Everything else that knows all systems asks here."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.errors import InputError, nearest
from sfumato.front import Front, read_front

if TYPE_CHECKING:
    from sfumato.methods.system import System
    from sfumato.release.verify import Verifier


# Imported when first asked for: no command waits for the solvers of a system that it does not use.
MODULES = {
    "lattice": "sfumato.methods.recodings",
    "cuts": "sfumato.methods.recodings",
    "channel": "sfumato.methods.channel.system",
    "groups": "sfumato.methods.groups.system",
    "local": "sfumato.methods.local.system",
    "cells": "sfumato.methods.cells.system",
}


def system_named(name: object) -> System:
    """A system by its name."""
    if not isinstance(name, str) or name not in MODULES:
        raise InputError(f'unknown system "{str(name)[:40]}"', expected="a system", remedy=nearest(str(name), MODULES))
    module: Any = importlib.import_module(MODULES[name])
    system: System = module.SYSTEMS[name]
    return system


class Verifiers(Mapping[str, "Verifier"]):
    """How releases are verified, by the system that made them; a system is loaded when it is asked for."""

    def __getitem__(self, name: str) -> Verifier:
        if name not in MODULES:
            raise KeyError(name)
        return system_named(name).verifier

    def __iter__(self) -> Iterator[str]:
        return iter(MODULES)

    def __len__(self) -> int:
        return len(MODULES)


VERIFIERS = Verifiers()


def load_front(folder: str | Path, run: str | Path | None = None, *, source: Any = None) -> Front:
    """Read a front back from its folder.

    A folder that this user did not make here is data: what it says can be looked at, and the table that it names is
    not opened. `run` is a run file of one's own, which names the table again; `source` the table itself, where it was
    in memory.

    Args:
        folder: the folder that `sfumato search` or `Front.save` wrote.
        run: a run file of one's own, for a folder that was made elsewhere.
        source: the table, where it was in memory.

    Returns:
        The front.
    """
    front = read_front(folder, lambda name: system_named(name).plan.from_saved, run)
    return front if source is None else replace(front, study=front.study.with_table(source))
