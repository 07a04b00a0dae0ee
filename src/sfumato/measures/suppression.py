"""Suppression of classes: by a budget, below a size or a diversity, by the limit of a criterion, or by a plan."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal

import numpy as np

from sfumato.errors import StudyError
from sfumato.measures.classes import ClassTable
from sfumato.measures.known_values import alternatives
from sfumato.measures.privacy.risk import PROSECUTOR_RISK
from sfumato.measures.registry import DISTINCT_L, K, measure
from sfumato.measures.thresholds import is_criterion, suppress_failing
from sfumato.plans.recodings import LevelPlan, RecodingPlan


def budget(share: float | str | Decimal, records: int) -> int:
    """Return η, the most records that may be suppressed: floor(share · N), with the share as an exact decimal.

    >>> budget(0.29, 100), budget(0.01, 30162)
    (29, 301)
    """
    exact = Decimal(str(share))
    if not 0 <= exact < 1:
        raise StudyError(f"a suppression limit of {share}", expected="a share from 0 up to but not including 1")
    return int(exact * records)


def suppress_within(classes: ClassTable, allowed: int) -> ClassTable:
    """Suppress all classes of the smallest sizes, with at most `allowed` records (docs/readings.md, 1.1)."""
    if allowed - classes.suppressed_units <= 0:
        return classes
    refuse_wildcards(classes)
    free = classes.kept
    sizes = np.unique(classes.size[free])
    if classes.table.units is None:
        rows = np.bincount(np.searchsorted(sizes, classes.size[free]), weights=classes.rows[free]).astype(np.int64)
        gone = np.cumsum(rows) + classes.suppressed_units
    else:  # a unit may have rows in several classes: it is suppressed with the smallest of them
        rank = np.where(free, np.searchsorted(sizes, classes.size) + 1, 0)
        first = classes.table.units.first_gone(classes.index, rank)
        gone = np.cumsum(np.bincount(first, minlength=len(sizes) + 1))[1:] + classes.table.removed
    goes = int(np.searchsorted(gone, allowed, side="right"))
    limit = sizes[goes] if goes < len(sizes) else sizes[-1]  # the largest classes are always kept
    return classes.with_suppressed(classes.suppressed | (classes.size < limit))


def suppress_below(classes: ClassTable, size: int, diversity: int = 0) -> ClassTable:
    """Suppress every class that is smaller than a size or has fewer values of a sensitive column than `diversity`.

    If missing values match anything, a suppressed record no longer matches others, so the step is repeated until every
    class left meets both numbers with the records left. There is one largest set of such classes. A class that fails in
    any step is never in that set, so the result does not depend on the order.
    """
    while True:
        short = classes.size < size
        for column in classes.table.sensitive if diversity > 1 else ():
            short |= alternatives(classes, column) < diversity
        if not np.any(short & classes.kept):
            return classes
        classes = classes.with_suppressed(classes.suppressed | short)


def refuse_wildcards(classes: ClassTable) -> None:
    """Raise if missing values match anything: sizes then change with suppression and cannot be listed in advance."""
    if classes.pairs is not None:
        raise StudyError(
            "this suppression is not defined where missing values match anything",
            expected='thresholds on k and distinct_l, or missing = "drop" or "category"',
            remedy='leave suppression out, or set missing = "category" under [data]',
        )


def suppress_by_plan(
    classes: ClassTable, plan: RecodingPlan, settings: Mapping[str, Mapping[str, float | str]] | None = None
) -> ClassTable:
    """Suppress the classes that a plan suppresses, with the parameters of measures in `settings` of the run file."""
    limits = plan.limits if isinstance(plan, LevelPlan) else {}
    known = {name: measure(name).with_settings(settings or {}) for name in limits}
    strange = [name for name, result in known.items() if not is_criterion(result)]
    if strange:
        raise StudyError(f"a threshold on {strange[0]}", expected="a measure that each class has on its own")
    result = suppress_below(classes, plan.suppress_below, plan.diversity_below)
    return suppress_failing(result, limits, known)


def level_plan(levels: Mapping[str, int], limits: Mapping[str, float]) -> LevelPlan:
    """Return the plan that generalizes columns to levels and suppresses the classes that violate limits of criteria.

    >>> level_plan({}, {"k": 5.0, "distinct_l": 2, "t_closeness": 0.4})
    LevelPlan(levels={}, suppress_below=5, diversity_below=2, limits={'t_closeness': 0.4})
    """
    rest = dict(limits)
    size, risk = rest.pop(K.name, 0.0), rest.pop(PROSECUTOR_RISK.name, 0.0)
    below = max(size, 1.0 / risk if risk else 0.0)
    diverse = math.ceil(rest.pop(DISTINCT_L.name, 0.0) - 1e-9)
    return LevelPlan(levels, math.ceil(below - 1e-9), diverse, rest)
