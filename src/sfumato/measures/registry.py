"""Every measure there is. A new one is a new file in `privacy/` or `loss/` that defines MEASURE (or MEASURES)."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from types import ModuleType

from sfumato.errors import MeasureError, nearest
from sfumato.measures import loss, privacy
from sfumato.measures.measure import Measure


@cache
def modules() -> tuple[ModuleType, ...]:
    """The modules that define measures, in name order, privacy first."""
    found = []
    for package in (privacy, loss):
        for info in sorted(pkgutil.iter_modules(package.__path__), key=lambda info: info.name):
            found.append(importlib.import_module(f"{package.__name__}.{info.name}"))
    return tuple(found)


@cache
def known_measures() -> dict[str, Measure]:
    """All measures by name: who looks like whom first, then what a class tells, then what is lost.

    >>> known_measures()["k"].direction
    'max'
    """
    found: list[Measure] = []
    for module in modules():
        found.extend(getattr(module, "MEASURES", None) or (module.MEASURE,))
    found.sort(key=lambda measure: (measure.kind != "privacy", measure.reads == "sensitive"))
    return {measure.name: measure for measure in found}


def measure(name: str) -> Measure:
    """One measure by name.

    >>> measure("distinct_l").title
    'distinct ℓ-diversity'
    """
    if name not in known_measures():
        raise MeasureError(f'unknown measure "{name}"', expected="a measure", remedy=nearest(name, known_measures()))
    return known_measures()[name]
