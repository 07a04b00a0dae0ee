"""The study, which is the checked and frozen content of a run file."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sfumato.study.methods import ALGORITHMS as ALGORITHMS
    from sfumato.study.sections import ChannelSettings as ChannelSettings
    from sfumato.study.sections import ColumnSettings as ColumnSettings
    from sfumato.study.sections import SearchSettings as SearchSettings
    from sfumato.study.study import Study as Study
    from sfumato.study.study import read as read
    from sfumato.study.study import read_kept as read_kept
    from sfumato.study.study import without_trees as without_trees
    from sfumato.study.study import write_run_file as write_run_file

# Names load when they are first used, so that pages of help can have the table of methods without the sections.
_NAMES = {
    "methods": "ALGORITHMS",
    "sections": "ChannelSettings ColumnSettings SearchSettings",
    "study": "Study read read_kept without_trees write_run_file",
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
