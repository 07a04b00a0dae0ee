"""Downcoding: an attack on local recodings by an attacker who knows that the search prefers small boxes (Cohen 2022).

A class with more than k records could have moved one of them to another class. So a record inside the box of a cheaper
class would have been moved to that class. The attacker therefore removes the cells of a box that cheaper boxes cover,
and then the values of a column without any remaining cell. For a class of exactly k records no record could be moved,
and the conclusion is a guess. The claims are compared with the true values, which the attacker does not have. Boxes
with very many cells and files with very many classes are not attacked.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.base.arrays import Counts64, Floats
from sfumato.base.compiled import compiled
from sfumato.release.classes_rows import Assigned

CELLS = 200_000  # larger boxes are not attacked
CLASSES = 20_000  # with more classes there is no attack, because it compares every pair of them


@dataclass(frozen=True)
class Downcoded:
    """The claims of the attack: records with a narrower label, and records with one value left in a column.

    `right` counts the records of each for which the claim is true, `sure` those in classes with more than k records,
    and `attacked` all records whose boxes are small enough to be attacked.
    """

    records: int
    narrowed: int
    narrowed_right: int
    pinned: int
    pinned_right: int
    sure: int
    attacked: int

    def as_dict(self) -> dict[str, int]:
        return asdict(self)


def downcode(plan: Assigned, weights: Floats, k: int) -> Downcoded:
    """Attack the classes of a release. `weights` are the weights of the columns in the loss."""
    if plan.classes > CLASSES:
        return Downcoded(plan.records - plan.suppressed, 0, 0, 0, 0, 0, 0)
    widths = np.array([max(len(column.values) - 1, 1) for column in plan.columns])
    costs = ((plan.high - plan.low - 1) / widths) @ weights
    inside = plan.owner >= 0
    first = np.concatenate([[0], np.cumsum([len(column.values) for column in plan.columns])]).astype(np.int64)
    left, attacked = values_left(plan.low, plan.high, costs, first, CELLS)
    before, after = plan.high - plan.low, np.add.reduceat(left, first[:-1], axis=1).astype(np.int64)
    tighter = np.any(after < before, axis=1)
    single = np.any((after == 1) & (before > 1), axis=1)
    owner, count = plan.owner[inside], plan.count[inside]
    codes = plan.codes[:, plan.of[inside]].T
    true = np.all(left[owner[:, None], first[:-1] + codes] == 1, axis=1)

    def counted(some: Any) -> int:
        return int(count[some].sum())

    return Downcoded(
        records=counted(slice(None)),
        narrowed=counted(tighter[owner]),
        narrowed_right=counted(tighter[owner] & true),
        pinned=counted(single[owner]),
        pinned_right=counted(single[owner] & true),
        sure=counted(tighter[owner] & (plan.rows[owner] > k)),
        attacked=counted(attacked[owner] == 1),
    )


@compiled
def values_left(
    low: Counts64, high: Counts64, costs: Floats, first: Counts64, limit: int
) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.int8]]:
    """Return the remaining values of each class, column by column, and whether its box is small enough to attack.

    A box that cheaper boxes cover completely is left unchanged, because the conclusion does not hold for it.
    """
    classes, columns = low.shape
    left = np.zeros((classes, first[-1]), np.int8)
    attacked = np.zeros(classes, np.int8)
    step, at = np.empty(columns, np.int64), np.empty(columns, np.int64)
    covered = np.zeros(limit, np.int8)
    for c in range(classes):
        for j in range(columns):
            left[c, first[j] + low[c, j] : first[j] + high[c, j]] = 1
        cells = 1
        for j in range(columns):
            step[j] = cells
            cells *= high[c, j] - low[c, j]
            if cells > limit:
                break
        if cells > limit:
            continue
        attacked[c] = 1
        covered[:cells] = 0
        total = 0
        for d in range(classes):
            if costs[d] >= costs[c]:
                continue
            meets = True
            for j in range(columns):
                if low[d, j] >= high[c, j] or high[d, j] <= low[c, j]:
                    meets = False
                    break
            if not meets:
                continue
            for j in range(columns):
                at[j] = max(low[c, j], low[d, j])
            while True:  # every cell in both boxes
                cell = 0
                for j in range(columns):
                    cell += (at[j] - low[c, j]) * step[j]
                total += 1 - covered[cell]
                covered[cell] = 1
                j = 0
                while j < columns:
                    at[j] += 1
                    if at[j] < min(high[c, j], high[d, j]):
                        break
                    at[j] = max(low[c, j], low[d, j])
                    j += 1
                if j == columns:
                    break
        if total == 0 or total == cells:
            continue
        for j in range(columns):
            left[c, first[j] + low[c, j] : first[j] + high[c, j]] = 0
        for cell in range(cells):
            if covered[cell] == 0:
                for j in range(columns):
                    left[c, first[j] + low[c, j] + cell // step[j] % (high[c, j] - low[c, j])] = 1
    return left, attacked
