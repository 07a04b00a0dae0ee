"""Suppression by thresholds: the classes that violate a criterion, and all choices of thresholds within a budget.

A class criterion is a privacy measure that is the worst of the released classes. Classes are compared with a threshold
before suppression, with the distribution of the input as the reference of t, β and δ. The result for one class then
does not depend on which other classes are suppressed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from sfumato.base.arrays import Flags, Floats
from sfumato.errors import StudyError
from sfumato.measures.classes import ClassTable
from sfumato.measures.criteria import GRID
from sfumato.measures.measure import Measure

HALF = 0.5 / GRID
MEASURED, CONSTRAINT, OBJECTIVE = range(3)


def is_criterion(measure: Measure, direction: str | None = None) -> bool:
    """Return whether a measure is the worst of the classes in its own direction, so that a class can violate it.

    >>> from sfumato.measures.registry import measure
    >>> is_criterion(measure("entropy_l")), is_criterion(measure("marketer_risk"))
    (True, False)
    """
    return measure.kind == "privacy" and measure.fold == "worst" and direction in (None, measure.direction)


def level_of(measure: Measure, value: float) -> float:
    """Return a value of a criterion as a level, of which more is better."""
    if measure.fast.risk:
        return 1.0 / value if value > 0 else np.inf
    return value if measure.direction == "max" else -value


def values_at(measure: Measure, levels: Floats) -> Floats:
    """Return the values of a criterion at some levels."""
    if measure.fast.risk:
        return np.asarray(np.divide(1.0, levels, out=np.full(len(levels), np.inf), where=levels > 0))
    return levels if measure.direction == "max" else -levels


def quantised(levels: Floats) -> Floats:
    """Round levels to the grid of thresholds, because rounding errors must not decide about suppression."""
    levels = np.asarray(levels, dtype=np.float64)
    near = np.abs(levels) <= 1e6
    return np.where(near, np.floor(np.where(near, levels, 0.0) * GRID + 0.5) / GRID, levels)


def class_levels(measure: Measure, classes: ClassTable, whole: bool = True) -> Floats:
    """Return the level of each class for a criterion: larger is better. Of several columns it is the worst.

    The level is the one before suppression, unless `whole` is False.
    """
    table = replace(classes, suppressed=np.zeros_like(classes.suppressed), reference="input") if whole else classes
    worst: Floats | None = None
    for column in measure.columns(table):
        values = measure.property(table, column).values[: len(table.rows)]
        if measure.fast.risk:
            with np.errstate(divide="ignore"):  # a suppressed class has no risk
                levels = np.round(1.0 / values)
        else:
            levels = values if measure.direction == "max" else -values
        worst = levels if worst is None else np.minimum(worst, levels)
    if worst is None:
        raise StudyError(f"{measure.name} without a sensitive column", expected="a sensitive column")
    return np.asarray(worst)


def failing(measure: Measure, limit: float, classes: ClassTable) -> Flags:
    """Return which classes violate a limit."""
    return np.asarray(quantised(class_levels(measure, classes)) < level_of(measure, limit) - HALF)


def suppress_failing(classes: ClassTable, limits: Mapping[str, float], known: Mapping[str, Measure]) -> ClassTable:
    """Suppress every class that violates a limit. The limits are by the name of the criterion."""
    gone = classes.suppressed
    for name, limit in limits.items():
        gone = gone | failing(known[name], limit, classes)
    return classes.with_suppressed(gone) if limits else classes


@dataclass(frozen=True)
class Threshold:
    """A criterion of a search: an objective (any threshold from `limit` on), a constraint, or only measured."""

    measure: Measure
    mode: int
    limit: float = -np.inf  # as a level

    @property
    def counts(self) -> bool:
        """Return whether joining classes never lowers the criterion, which the bounds of a search need."""
        criterion = self.measure.fast.criterion
        return criterion is not None and criterion.counts and self.measure.monotone is not None

    def parameter(self) -> float:
        """Return the parameter that compiled loops read."""
        given = self.measure.parameters.get(self.measure.fast.parameter, 0.0)
        return float(given == "infinite") if isinstance(given, str) else float(given)


def releases(
    thresholds: Sequence[Threshold], levels: Sequence[Floats], classes: ClassTable, budget: int, every: bool = True
) -> Iterator[Flags]:
    """Return the suppressed classes for every choice of thresholds within the budget, each set of classes once.

    This is the plain version of the compiled loops of a lattice. Without `every`, only the highest thresholds are used.
    """
    grid = [quantised(each) for each in levels]
    gone = classes.suppressed.copy()
    for threshold, level in zip(thresholds, grid, strict=True):
        gone |= level < threshold.limit - HALF
    left = budget - classes.table.removed
    spent = classes.counted

    sought = [level for threshold, level in zip(thresholds, grid, strict=True) if threshold.mode == OBJECTIVE]
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
