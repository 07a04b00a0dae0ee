"""Cell suppression as an integer program for small tables: the fewest blank cells, with a proof.

Each tuple and mask has a variable: the number of its records that are released with this mask. In the strict reading a
pattern is used by no record or by at least k. In the (k, k)-anonymity reading (`reading = "agreeing"`) every pattern
agrees with at least k source records, and every tuple agrees with at least k released records.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_array

from sfumato.base.arrays import Codes, Counts64, Flags, Floats
from sfumato.methods.cells.patterns import Blanks, mask_costs, masks_by_cost, numbered

NODES = 20_000  # limit of the branch and bound; unlike a time limit it is the same on every machine
TOLERANCE = 1e-6  # of the solver, where the most expensive cell costs 1
APART = 1e-4  # smallest ratio of two weights that the solver can distinguish


@dataclass(frozen=True, eq=False)
class Program:
    """A problem: tuples and counts, k, the cost of a blank in each column, and the limits.

    `allowed` are the columns that may have blanks, `caps` the largest number of blanks in each. `budget` is the number
    of records that may be suppressed (strict) or blank in every column ((k, k)-anonymity).
    """

    codes: Codes
    counts: Counts64
    k: int
    weights: Floats
    allowed: Flags
    caps: Counts64
    budget: int
    strict: bool


def variables(columns: int, tuples: int) -> int:
    """Return the number of variables of a problem."""
    return tuples << columns


def comparable(weights: Floats) -> bool:
    """Return whether the solver can distinguish the smallest weight from zero.

    Its tolerance is relative to the largest weight.
    """
    return float(weights[weights > 0].min(initial=np.inf)) >= APART * float(weights.max())


def cost_of(blanks: Blanks, weights: Floats) -> float:
    """Return the cost of blanks: their cells, and all cells of suppressed records."""
    gone = int(blanks.counts.sum()) - int(blanks.count.sum())
    return blanks.cost(weights) + gone * float(weights.sum())


def proven(blanks: Blanks, bound: float, weights: Floats) -> bool:
    """Return whether blanks cost no more than their lower bound, to the tolerance of the solver."""
    return cost_of(blanks, weights) <= bound + TOLERANCE * float(weights.max())


def solve(problem: Program) -> tuple[Blanks | None, float | None]:
    """Return the cheapest blanks and a lower bound; None for what does not exist or was not found within the budget.

    The tolerances of the solver are absolute, so weights are scaled to a largest weight of 1.
    """
    codes, counts, k = problem.codes, problem.counts, problem.k
    size, columns = codes.shape
    scale = float(problem.weights.max()) or 1.0
    weights = problem.weights / scale
    masks = masks_by_cost(columns, weights, problem.allowed)
    held = [numbered(codes, int(mask)) for mask in masks]
    of, which, pattern, total = [], [], [], 0
    for mask_number, keys in enumerate(held):
        enough = np.flatnonzero(np.bincount(keys, weights=counts)[keys] >= k)
        of.append(enough)
        which.append(np.full(len(enough), mask_number))
        pattern.append(keys[enough] + total)
        total += int(keys.max()) + 1
    tuple_of, mask_of, pattern_of = (np.concatenate(part) for part in (of, which, pattern))
    if not len(tuple_of):  # no pattern has k source records
        return None, None
    used, number = np.unique(pattern_of, return_inverse=True)
    number = number.reshape(-1)
    cost = mask_costs(masks, weights)[mask_of]
    x, y = len(tuple_of), len(used) if problem.strict else 0
    gone = size if problem.strict else 0
    rows: list[coo_array] = []
    low: list[Floats] = []
    high: list[Floats] = []

    def add(row: Counts64, column: Counts64, value: Floats, least: Floats, largest: Floats) -> None:
        rows.append(coo_array((value, (row, column)), shape=(len(least), x + y + gone)))
        low.append(least)
        high.append(largest)

    every = np.arange(x)
    one = np.ones(x)
    counted = counts.astype(np.float64)
    add(
        np.concatenate([tuple_of, np.arange(gone)]),
        np.concatenate([every, x + y + np.arange(gone)]),
        np.ones(x + gone),
        counted,
        counted,
    )
    bits = ((masks[mask_of][:, None] >> np.arange(columns)) & 1).astype(np.float64)
    at, column = np.nonzero(bits)
    add(column, at, np.ones(len(at)), np.full(columns, -np.inf), problem.caps.astype(np.float64))
    if problem.strict:
        add(
            np.concatenate([number, np.arange(y)]),
            np.concatenate([every, x + np.arange(y)]),
            np.concatenate([one, np.full(y, -float(k))]),
            np.zeros(y),
            np.full(y, np.inf),
        )
        add(
            np.concatenate([every, every]),
            np.concatenate([every, x + number]),
            np.concatenate([one, -counted[tuple_of]]),
            np.full(x, -np.inf),
            np.zeros(x),
        )
        add(np.zeros(gone, np.int64), x + y + np.arange(gone), np.ones(gone), np.zeros(1), np.array([problem.budget]))
    else:
        agree_row, agree_column = _agreement(held, tuple_of, mask_of)
        add(agree_row, agree_column, np.ones(len(agree_row)), np.full(size, float(k)), np.full(size, np.inf))
        full = np.flatnonzero(masks[mask_of] == (1 << columns) - 1)
        add(np.zeros(len(full), np.int64), full, np.ones(len(full)), np.zeros(1), np.array([float(problem.budget)]))
    prices = np.concatenate([cost, np.zeros(y), np.full(gone, weights.sum())])
    upper = np.concatenate([counted[tuple_of], np.ones(y), counted[:gone] if gone else np.zeros(0)])
    constraints = [LinearConstraint(part, least, largest) for part, least, largest in zip(rows, low, high, strict=True)]
    result = milp(
        prices,
        integrality=np.ones(len(prices), dtype=np.int64),
        bounds=Bounds(np.zeros(len(prices)), upper),
        constraints=constraints,
        options={"node_limit": NODES, "mip_rel_gap": 0.0},
    )
    stated = result.mip_dual_bound
    bound = None if stated is None or not np.isfinite(stated) else max(float(stated), 0.0) * scale
    if result.x is None:
        return None, bound
    records = np.rint(result.x[:x]).astype(np.int64)
    kept = records > 0
    blanks = Blanks(codes, counts, tuple_of[kept], masks[mask_of[kept]], records[kept]).merged()
    return blanks, None if bound is None else min(bound, cost_of(blanks, problem.weights))


def _agreement(held: list[Counts64], tuple_of: Counts64, mask_of: Counts64) -> tuple[Counts64, Counts64]:
    """Return the pairs of a tuple and a variable whose pattern agrees with it."""
    rows, columns = [], []
    for number, keys in enumerate(held):
        some = np.flatnonzero(mask_of == number)
        if len(some):
            tuples, which = np.nonzero(keys[:, None] == keys[tuple_of[some]][None, :])
            rows.append(tuples)
            columns.append(some[which])
    return np.concatenate(rows), np.concatenate(columns)
