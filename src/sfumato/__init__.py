"""Sfumato: the whole trade-off between privacy and information loss of a table about people.

>>> import sfumato as sf
>>> study = sf.read(sf.sample("adult"))
>>> audit = sf.audit(study)
>>> audit.rows, audit.figures["k"].value
(30162, 1.0)
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sfumato.data.frequency import FrequencyTable
    from sfumato.data.hierarchies import Hierarchy
    from sfumato.data.roles import Role
    from sfumato.data.sample import sample
    from sfumato.errors import (
        DataError,
        HierarchyError,
        InputError,
        MeasureError,
        SfumatoError,
        StudyError,
        UnreachableError,
    )
    from sfumato.measures.audit import Audit, audit
    from sfumato.measures.classes import ClassTable, classify
    from sfumato.measures.inspection import Inspection, inspect
    from sfumato.measures.registry import known_measures, measure
    from sfumato.study import Study, read

__version__ = "0.1.0"

# Names load when they are first used, so that `sfumato --help` does not wait for compilers and databases.
_HOMES = {
    "Audit": "measures.audit",
    "ClassTable": "measures.classes",
    "DataError": "errors",
    "FrequencyTable": "data.frequency",
    "Hierarchy": "data.hierarchies",
    "HierarchyError": "errors",
    "InputError": "errors",
    "Inspection": "measures.inspection",
    "MeasureError": "errors",
    "Role": "data.roles",
    "SfumatoError": "errors",
    "Study": "study",
    "StudyError": "errors",
    "UnreachableError": "errors",
    "audit": "measures.audit",
    "classify": "measures.classes",
    "known_measures": "measures.registry",
    "inspect": "measures.inspection",
    "measure": "measures.registry",
    "read": "study",
    "sample": "data.sample",
}

__all__ = [
    "Audit",
    "ClassTable",
    "DataError",
    "FrequencyTable",
    "Hierarchy",
    "HierarchyError",
    "InputError",
    "Inspection",
    "MeasureError",
    "Role",
    "SfumatoError",
    "Study",
    "StudyError",
    "UnreachableError",
    "audit",
    "classify",
    "inspect",
    "known_measures",
    "measure",
    "read",
    "sample",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
