"""Every measure there is. A new one is a new file in `privacy/` or `loss/` that defines MEASURE (or MEASURES)."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from functools import cache
from types import ModuleType
from typing import Any

from sfumato.errors import MeasureError, nearest
from sfumato.measures import loss, privacy
from sfumato.measures.measure import Measure


@cache
def modules() -> tuple[ModuleType, ...]:
    """The modules that define measures, in name order, privacy first."""
    result = []
    for package in (privacy, loss):
        for info in sorted(pkgutil.iter_modules(package.__path__), key=lambda info: info.name):
            result.append(importlib.import_module(f"{package.__name__}.{info.name}"))
    return tuple(result)


@cache
def known_measures() -> dict[str, Measure]:
    """All measures by name: who looks like whom first, then what a class tells, then what is lost.

    Returns:
        The measures by name.

    >>> known_measures()["k"].direction
    'max'
    """
    result: list[Measure] = []
    for module in modules():
        result.extend(getattr(module, "MEASURES", None) or (module.MEASURE,))
    result.sort(key=lambda measure: (measure.kind != "privacy", measure.reads == "sensitive"))
    return {measure.name: measure for measure in result}


@cache
def names() -> dict[str, str]:
    """Every name that a measure may be asked for by, aliases included, and the name that it has.

    >>> names()["p_sensitive"]
    'distinct_l'
    """
    return {name: result.name for result in known_measures().values() for name in result.names}


def measure(name: str) -> Measure:
    """One measure by its name or an alias.

    Args:
        name: a name or an alias.

    Returns:
        The measure.

    >>> measure("distinct_l").title
    'distinct ℓ-diversity'
    >>> measure("below_2").name
    'uniques'
    """
    if name not in names():
        raise MeasureError(f'unknown measure "{name}"', expected="a measure", remedy=nearest(name, names()))
    return known_measures()[names()[name]]


def with_settings(given: Mapping[str, Mapping[str, Any]]) -> dict[str, Measure]:
    """Every measure with the parameters that a run file gives it. Raises where it names what is no measure."""
    for name in given:
        if name not in names():
            what = f'unknown measure "{name}" in [measures]'
            raise MeasureError(what, expected="a measure", remedy=nearest(name, names()))
    return {name: result.with_settings(given) for name, result in known_measures().items()}


def headlines() -> list[Measure]:
    """The measures that an audit shows first, in their order."""
    result = [measure for measure in known_measures().values() if measure.headline is not None]
    return sorted(result, key=lambda measure: measure.headline or ())


def attackers() -> list[Measure]:
    """The measures that say how far an attacker gets."""
    return [measure for measure in known_measures().values() if measure.attacker]


def documented() -> dict[str, list[str]]:
    """The rows of docs/measures.md for each kind of measure, the heads first."""
    heads = ["| name | measure | better | moves | what it says | source |", "|---|---|---|---|---|---|"]
    rows: dict[str, list[str]] = {"privacy": [*heads], "loss": [*heads]}
    for result in known_measures().values():
        called = ", ".join(f"`{name}`" for name in result.names)
        better = "more" if result.direction == "max" else "less"
        cells = [called, result.title, better, result.monotone or "either way", result.sentence, result.citation]
        rows[result.kind].append(f"| {' | '.join(cells)} |")
    return rows
