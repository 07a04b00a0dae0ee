"""Points of a front of blanked cells: what each costs, its k in every reading, and its plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from sfumato.front import Objective, Point
from sfumato.measures.owned import class_table
from sfumato.measures.standard import GENERAL_LOSS, K
from sfumato.plans.boxes import BoxPlan
from sfumato.release.policy import MATCHING_K
from sfumato.runtime.arrays import Floats
from sfumato.study import Study
from sfumato.systems.cells.bases import Base, Span
from sfumato.systems.cells.matching import counted_by_matching
from sfumato.systems.cells.patterns import Blanks
from sfumato.tables.frequency import FrequencyTable

AGREEING = "agreeing"
MATCHED = Objective(MATCHING_K, "max", title="rows possible for each person (matching k)", privacy=True, scale="log")
PAIRWISE = Objective(AGREEING, "max", title="records that agree pair by pair (k, k)", privacy=True, scale="log")
# Limits that a bound may hold within, by their names in a saved point
ON_COLUMNS, ON_SUPPRESSED, ON_BLANK = "columns", "suppressed records", "blank records"


@dataclass(frozen=True, eq=False)
class Solution:
    """Blanks for one k after a recoding, how they were found, and a bound on their cost where there is one.

    `within` are the limits that the bound takes for granted: beyond them there may be ways that cost less.
    """

    k: int
    base: Base
    blanks: Blanks
    method: str
    bound: float | None
    within: tuple[str, ...] = ()


def _lost(base: Base, blanks: Blanks, weights: Floats) -> float:
    """What the released records lose: a blank all of its cell, a group its share."""
    bits = (blanks.mask[:, None] >> np.arange(blanks.columns)) & 1
    total = 0.0
    for j, weight in enumerate(weights):
        lost = np.where(bits[:, j] == 1, 1.0, base.losses[j][blanks.codes[blanks.of, j]])
        total += float(weight) * float((lost * blanks.count).sum())
    return total


def point_of(study: Study, table: FrequencyTable, one: Solution, weights: Floats) -> Point:
    blanks = one.blanks
    gone = table.rows - int(blanks.count.sum()) + table.removed
    cost = _lost(one.base, blanks, weights) + gone * float(weights.sum())
    full = float(weights.sum()) * table.records
    plan, persons = plan_of(table, one.base, blanks), None
    figures: dict[str, int | None]
    if table.units is None:
        source, released = blanks.agreeing()
        agreed = int(min(source.min(), released.min()))
        figures = {K.name: int(blanks.sizes().min()), AGREEING: agreed, "matching": blanks.matching()}
    else:
        k, persons = persons_in(table, plan)
        figures = {K.name: k}
    if study.cells.reading == AGREEING:
        figures |= counted_by_matching(blanks)
    details = {
        "method": one.method,
        "cells": int(blanks.blanked().sum()),
        "blanked": dict(zip(table.columns, blanks.blanked().tolist(), strict=True)),
        "blank_records": blanks.whole,
        "readings": figures,
    }
    details |= {"after": one.base.name} if one.base.name else {}
    bound = None if one.bound is None else min(one.bound, cost)  # sums may be added up in another order
    if bound is not None and bound > 0:
        details["floor"], details["ratio"] = bound / full, cost / bound
        details |= {"within": list(one.within)} if one.within else {}
    values = {name: float(v) for name in (MATCHING_K, AGREEING, K.name) if (v := figures.get(name)) is not None}
    values[GENERAL_LOSS.name] = cost
    return Point(0, values, cost / full, gone, plan, bound, details, persons)


def persons_in(table: FrequencyTable, plan: BoxPlan) -> tuple[int, int]:
    """The fewest persons of a class of a plan that divides no tuple, and how many persons have a suppressed row."""
    owner = np.full(table.tuples, -1, dtype=np.int64)
    of, classes, _ = np.array(plan.members, dtype=np.int64).reshape(-1, 3).T
    owner[of] = classes
    measured = class_table(table, owner, len(plan.labels), ())
    return int(measured.size[measured.kept].min()), measured.suppressed_units


def privacy_of(reading: str, points: Sequence[Point]) -> Objective:
    """What a front of a reading maximises: what is possible by matching, pair by pair where that was not computed."""
    if reading != AGREEING:
        return Objective(K.name, "max")
    return MATCHED if all(MATCHING_K in point.values for point in points) else PAIRWISE


def front_points(points: Sequence[Point], privacy: Objective) -> list[Point]:
    """Without those that cost no less than one of a higher k; of the values only those that are objectives are kept."""
    names = (privacy.name, GENERAL_LOSS.name)
    points = [replace(point, values={name: point.values[name] for name in names}) for point in points]
    kept: list[Point] = []
    for point in sorted(points, key=lambda p: (-p.values[privacy.name], p.loss)):
        if not kept or point.loss < kept[-1].loss - 1e-12:
            kept.append(point)
    return kept


def plan_of(table: FrequencyTable, base: Base, blanks: Blanks) -> BoxPlan:
    """Blanks as a plan of boxes: patterns are classes, a blank is the label of all values."""
    ends = [(d.hierarchy.leaves[d.order[0]], d.hierarchy.leaves[d.order[-1]]) for d in table.domains]
    names: dict[tuple[Span, ...], int] = {}
    owner = []
    for t, mask in zip(blanks.of.tolist(), blanks.mask.tolist(), strict=True):
        groups = blanks.codes[t]
        spans = (ends[j] if mask >> j & 1 else base.spans[j][groups[j]] for j in range(blanks.columns))
        owner.append(names.setdefault(tuple(spans), len(names)))
    left = blanks.counts - np.bincount(blanks.of, weights=blanks.count, minlength=len(blanks.counts)).astype(np.int64)
    merged: dict[tuple[int, int], int] = {}
    for t, own, count in zip(blanks.of.tolist(), owner, blanks.count.tolist(), strict=True):
        merged[t, own] = merged.get((t, own), 0) + count
    members = [(t, own, count) for (t, own), count in merged.items()]
    members += [(t, -1, int(left[t])) for t in np.flatnonzero(left > 0).tolist()]
    return BoxPlan(table.columns, tuple(names), tuple(sorted(members)))
