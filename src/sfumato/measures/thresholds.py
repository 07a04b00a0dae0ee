"""Suppression by thresholds: which classes fall short of a criterion, and every choice of thresholds within a budget.

A class criterion is a privacy measure that is the worst of the released classes. Whether a class falls short is decided
on the table before suppression, with the whole input as the reference of t, β and δ: what one class has does not depend
on which others go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from sfumato.base.arrays import Flags, Floats
from sfumato.errors import StudyError
from sfumato.measures.classes import ClassTable
from sfumato.measures.criteria import GRID
from sfumato.measures.measure import Measure

HALF = 0.5 / GRID
MEASURED, DEMANDED, SOUGHT = range(3)


def is_criterion(measure: Measure, direction: str | None = None) -> bool:
    """Whether a measure is the worst of the classes, and better in its own direction: a class can fall short of it.

    >>> from sfumato.measures.registry import measure
    >>> is_criterion(measure("entropy_l")), is_criterion(measure("marketer_risk"))
    (True, False)
    """
    return measure.kind == "privacy" and measure.fold == "worst" and direction in (None, measure.direction)


def level_of(measure: Measure, value: float) -> float:
    """A value of a criterion as a level, of which more is better."""
    if measure.per_class is not None and measure.per_class.risk:
        return 1.0 / value if value > 0 else np.inf
    return value if measure.direction == "max" else -value


def value_at(measure: Measure, level: float) -> float:
    """The value of a criterion at a level."""
    if measure.per_class is not None and measure.per_class.risk:
        return 1.0 / level if level > 0 else np.inf
    return level if measure.direction == "max" else -level


def quantised(levels: Floats) -> Floats:
    """Levels on the grid on which thresholds are told apart: rounding noise must not decide who is suppressed."""
    levels = np.asarray(levels, dtype=np.float64)
    near = np.abs(levels) <= 1e6
    return np.where(near, np.floor(np.where(near, levels, 0.0) * GRID + 0.5) / GRID, levels)


def class_levels(measure: Measure, classes: ClassTable, whole: bool = True) -> Floats:
    """What each class has of a criterion: larger is better, the worst of several columns.

    It is what it has before suppression, unless `whole` is False.
    """
    table = replace(classes, suppressed=np.zeros_like(classes.suppressed), reference="input") if whole else classes
    worst: Floats | None = None
    for column in measure.columns(table):
        values = measure.property(table, column).values[: len(table.rows)]
        if measure.per_class is not None and measure.per_class.risk:
            with np.errstate(divide="ignore"):  # a suppressed class has no risk
                levels = np.round(1.0 / values)
        else:
            levels = values if measure.direction == "max" else -values
        worst = levels if worst is None else np.minimum(worst, levels)
    if worst is None:
        raise StudyError(f"{measure.name} without a sensitive column", expected="a sensitive column")
    return np.asarray(worst)


def failing(measure: Measure, limit: float, classes: ClassTable) -> Flags:
    """Which classes fall short of a limit."""
    return np.asarray(quantised(class_levels(measure, classes)) < level_of(measure, limit) - HALF)


def suppress_failing(classes: ClassTable, limits: Mapping[str, float], known: Mapping[str, Measure]) -> ClassTable:
    """Suppress every class that falls short of one of some limits, by the name of the criterion."""
    gone = classes.suppressed
    for name, limit in limits.items():
        gone = gone | failing(known[name], limit, classes)
    return classes.with_suppressed(gone) if limits else classes


@dataclass(frozen=True)
class Threshold:
    """A criterion of a search: sought (any threshold, from `limit` on), demanded (that limit), or only measured."""

    measure: Measure
    mode: int
    limit: float = -np.inf  # as a level

    @property
    def counts(self) -> bool:
        """Whether joining classes never lowers it: what the bounds of a search rest on."""
        per_class = self.measure.per_class
        return per_class is not None and per_class.criterion.counts and self.measure.monotone is not None

    def parameter(self) -> float:
        """The number that compiled loops read."""
        per_class = self.measure.per_class
        given: Any = self.measure.parameters.get(per_class.parameter, 0.0) if per_class is not None else 0.0
        return float(given == "infinite") if isinstance(given, str) else float(given)


def releases(
    thresholds: Sequence[Threshold], levels: Sequence[Floats], classes: ClassTable, budget: int, every: bool = True
) -> Iterator[Flags]:
    """The classes that go, for every choice of thresholds within the budget; each set of classes once.

    The plain twin of the compiled loops of a lattice. Without `every`, the highest thresholds alone.
    """
    grid = [quantised(each) for each in levels]
    gone = classes.suppressed.copy()
    for threshold, level in zip(thresholds, grid, strict=True):
        gone |= level < threshold.limit - HALF
    left = budget - classes.table.removed
    spent = classes.counted

    sought = [level for threshold, level in zip(thresholds, grid, strict=True) if threshold.mode == SOUGHT]
    if spent(gone) > left or not sought:
        yield gone
        return
    steps = [
        [step for step in np.unique(level[~gone]) if spent(gone | (level < step)) <= left] if left > 0 else [-np.inf]
        for level in sought
    ]
    if not every:
        steps = [some[-1:] for some in steps]
    known = set()
    for chosen in product(*steps):
        out = gone.copy()
        for level, step in zip(sought, chosen, strict=True):
            out |= level < step
        if spent(out) <= left and out.tobytes() not in known:
            known.add(out.tobytes())
            yield out
