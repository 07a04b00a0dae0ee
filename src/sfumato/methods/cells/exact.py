"""Cell suppression as an integer program for small tables: the fewest blank cells, with a proof.

Each tuple and mask has a variable: the number of its records that are released with this mask. In the strict reading a
pattern is used by no record or by at least k. In the (k, k)-anonymity reading (`reading = "agreeing"`) every pattern
agrees with at least k source records, and every tuple agrees with at least k released records.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_array, eye_array, hstack

from sfumato.base.arrays import Codes, Counts64, Flags, Floats
from sfumato.methods.cells.patterns import Blanks, bits_of, mask_costs, masks_by_cost, numbered

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

    The variables are the records of each tuple and mask. In the strict reading, further variables state which patterns
    are used, and how many records of each tuple are suppressed. The tolerances of the solver are absolute, so weights
    are scaled to a largest weight of 1.
    """
    codes, counts = problem.codes, problem.counts
    scale = float(problem.weights.max()) or 1.0
    weights = problem.weights / scale
    masks = masks_by_cost(codes.shape[1], weights, problem.allowed)
    keys = [numbered(codes, mask) for mask in masks.tolist()]
    enough = [np.flatnonzero(np.bincount(own, weights=counts)[own] >= problem.k) for own in keys]
    tuple_of, mask_of = np.concatenate(enough), np.repeat(np.arange(len(masks)), [len(some) for some in enough])
    if not len(tuple_of):  # no pattern has k source records
        return None, None
    mask = masks[mask_of]
    prices, upper = mask_costs(mask, weights), counts[tuple_of].astype(np.float64)
    if problem.strict:
        first = np.cumsum([0, *(own.max() + 1 for own in keys)])[mask_of]
        pattern_of = first + np.concatenate([own[some] for own, some in zip(keys, enough, strict=True)])
        pattern = np.unique(pattern_of, return_inverse=True)[1].reshape(-1)
        used = int(pattern.max()) + 1
        prices = np.concatenate([prices, np.zeros(used), np.full(len(counts), weights.sum())])
        upper = np.concatenate([upper, np.ones(used), counts])
        constraints = _strict(problem, tuple_of, mask, pattern)
    else:
        constraints = _agreeing(problem, tuple_of, mask, _agreement(keys, enough))
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
    records = np.rint(result.x[: len(mask)]).astype(np.int64)
    kept = records > 0
    blanks = Blanks(codes, counts, tuple_of[kept], mask[kept], records[kept]).merged()
    return blanks, None if bound is None else min(bound, cost_of(blanks, problem.weights))


def _limits(low: float | Counts64, high: float | Counts64, *blocks: coo_array, width: int = 0) -> LinearConstraint:
    """Return constraints from blocks of coefficients, side by side; further variables up to `width` have none."""
    matrix = hstack(blocks, format="coo")
    matrix.resize(matrix.shape[0], max(matrix.shape[1], width))
    return LinearConstraint(matrix, *(np.full(matrix.shape[0], end, dtype=np.float64) for end in (low, high)))


def _strict(problem: Program, tuple_of: Counts64, mask: Counts64, pattern: Counts64) -> list[LinearConstraint]:
    """Return the constraints of the strict reading: every used pattern has k records."""
    counts, (size, columns) = problem.counts, problem.codes.shape
    x, y = len(mask), int(pattern.max()) + 1
    every, one, width = np.arange(x), np.ones(x), x + y + size
    in_tuple = coo_array((one, (tuple_of, every)), shape=(size, x))
    in_pattern = coo_array((one, (pattern, every)), shape=(y, x))
    if_used = coo_array((-counts[tuple_of].astype(np.float64), (every, pattern)), shape=(x, y))
    return [
        _limits(counts, counts, in_tuple, coo_array((size, y)), eye_array(size, format="coo")),
        _limits(-np.inf, problem.caps, coo_array(bits_of(mask, columns).T.astype(np.float64)), width=width),
        _limits(0.0, np.inf, in_pattern, -float(problem.k) * eye_array(y, format="coo"), width=width),
        _limits(-np.inf, 0.0, eye_array(x, format="coo"), if_used, width=width),
        _limits(0.0, problem.budget, coo_array((1, x + y)), coo_array(np.ones((1, size)))),
    ]


def _agreeing(problem: Program, tuple_of: Counts64, mask: Counts64, agrees: coo_array) -> list[LinearConstraint]:
    """Return the constraints of (k, k)-anonymity: every tuple agrees with k released records."""
    size, columns = problem.codes.shape
    in_tuple = coo_array((np.ones(len(mask)), (tuple_of, np.arange(len(mask)))), shape=(size, len(mask)))
    full = mask[None, :] == (1 << columns) - 1
    return [
        _limits(problem.counts, problem.counts, in_tuple),
        _limits(-np.inf, problem.caps, coo_array(bits_of(mask, columns).T.astype(np.float64))),
        _limits(problem.k, np.inf, agrees),
        _limits(0.0, problem.budget, coo_array(full.astype(np.float64))),
    ]


def _agreement(keys: list[Counts64], enough: list[Counts64]) -> coo_array:
    """Return by tuple and variable whether the pattern of the variable agrees with the tuple."""
    pairs = zip(keys, enough, strict=True)
    return hstack([coo_array((own[:, None] == own[some]).astype(np.float64)) for own, some in pairs])
