"""Released patterns: tuples with some blank cells, and the records that agree with them.

A pattern agrees with a record if all its cells that are not blank have the record's values. A mask states which cells
are blank, with bit j for column j. Patterns with the same mask agree with a record exactly if their other cells are
equal, so agreement is counted mask by mask.

`Kept` computes what columns without blanks rule out: records of rare values in them can only be suppressed.

`solve` finds the fewest blank cells of a small table by an integer program, with a proof. Each tuple and mask has a
variable: the number of its records that are released with this mask. In the strict reading a pattern is used by no
record or by at least k. In the (k, k)-anonymity reading (`reading = "agreeing"`) every pattern agrees with at least k
source records, and every tuple agrees with at least k released records.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_array, eye_array, hstack

from sfumato.base.arrays import Codes, Counts64, Flags, Floats
from sfumato.base.text import number
from sfumato.errors import UnreachableError, counted, shortened

MANY_MASKS = 128  # with more masks, matches under "a blank matches anything" are not counted, in quadratic time


@dataclass(frozen=True, eq=False)
class Blanks:
    """Blank cells: `count[e]` records of tuple `of[e]` are released with the cells of `mask[e]` blank.

    `codes[t, j]` is the value of tuple t in column j, and `counts[t]` its number of records. Records in no entry are
    suppressed.
    """

    codes: Codes
    counts: Counts64
    of: Counts64
    mask: Counts64
    count: Counts64

    @property
    def columns(self) -> int:
        return int(self.codes.shape[1])

    @property
    def released(self) -> Counts64:
        """The number of records of each tuple that are not suppressed."""
        return np.bincount(self.of, weights=self.count, minlength=len(self.counts)).astype(np.int64)

    def cost(self, weights: Floats) -> float:
        """Return the number of blank cells, each multiplied by the weight of its column."""
        return float((mask_costs(self.mask, weights) * self.count).sum())

    def blanked(self) -> Counts64:
        """Return the number of blank cells of each column."""
        return np.asarray((bits_of(self.mask, self.columns) * self.count[:, None]).sum(axis=0))

    @property
    def whole(self) -> int:
        """The number of records that are blank in every column."""
        return int(self.count[self.mask == (1 << self.columns) - 1].sum())

    def by_mask(self) -> Iterator[tuple[Flags, Counts64]]:
        """Yield for each mask its entries, and a number for each tuple by the cells that are not blank."""
        for mask in np.unique(self.mask).tolist():
            yield self.mask == mask, numbered(self.codes, mask)

    def sizes(self) -> Counts64:
        """Return for each entry the number of records with the same pattern: k in the strict reading."""
        sizes = np.zeros(len(self.of), dtype=np.int64)
        for some, keys in self.by_mask():
            own = keys[self.of[some]]
            sizes[some] = np.bincount(own, weights=self.count[some]).astype(np.int64)[own]
        return sizes

    def agreeing(self) -> tuple[Counts64, Counts64]:
        """Return for each entry the source records that agree, and for each tuple the released records that agree."""
        source = np.zeros(len(self.of), dtype=np.int64)
        released = np.zeros(len(self.counts), dtype=np.int64)
        for some, keys in self.by_mask():
            own = keys[self.of[some]]
            source[some] = np.bincount(keys, weights=self.counts).astype(np.int64)[own]
            rows = np.bincount(own, weights=self.count[some], minlength=int(keys.max()) + 1).astype(np.int64)
            released += rows[keys]
        return source, released

    @property
    def agreeing_k(self) -> int:
        """The k of (k, k)-anonymity, pair by pair."""
        source, released = self.agreeing()
        return int(min(source.min(), released.min()))

    def details(self, names: Sequence[str]) -> dict[str, object]:
        """Return the details of a point: the blank cells, those of each column, and records without a value."""
        blanked = self.blanked().tolist()
        each = dict(zip(names, blanked, strict=True))
        return {"cells": sum(blanked), "blanked": each, "blank_records": self.whole}

    def matching(self) -> int | None:
        """Return the least number of released records that match one of them if a blank matches anything.

        None if there are too many masks. sdcMicro counts in this way. The figure alone is no protection: blanking k - 1
        complete records satisfies it.
        """
        masks = np.unique(self.mask).tolist()
        if len(masks) > MANY_MASKS:
            return None
        matching = np.zeros(len(self.of), dtype=np.int64)
        for one in masks:
            some = self.mask == one
            for two in masks:
                other = self.mask == two
                keys = numbered(self.codes, one | two)
                theirs = keys[self.of[other]]
                rows = np.bincount(theirs, weights=self.count[other], minlength=int(keys.max()) + 1)
                matching[some] += rows[keys[self.of[some]]].astype(np.int64)
        return int(matching.min()) if len(matching) else 0

    def merged(self) -> Blanks:
        """Return the same blanks with the entries of one tuple and mask merged."""
        pairs, number = np.unique(np.stack([self.of, self.mask], axis=1), axis=0, return_inverse=True)
        count = np.bincount(number.reshape(-1), weights=self.count).astype(np.int64)
        return Blanks(self.codes, self.counts, pairs[:, 0].copy(), pairs[:, 1].copy(), count)


def bits_of(masks: Counts64, columns: int) -> Counts64:
    """Return for each mask and column whether the cell is blank, as 0 or 1."""
    return np.asarray((masks[:, None] >> np.arange(columns)) & 1)


def mask_costs(masks: Counts64, weights: Floats) -> Floats:
    """Return the cost per record of each mask."""
    return np.asarray(bits_of(masks, len(weights)) @ weights, dtype=np.float64)


def numbered(codes: Codes, mask: int) -> Counts64:
    """Return a number for each tuple; equal numbers mean equal values in all cells that are not blank."""
    keys = np.zeros(len(codes), dtype=np.int64)
    largest = 1
    for j in range(codes.shape[1]):
        if mask >> j & 1:
            continue
        width = int(codes[:, j].max(initial=0)) + 1
        if largest > 2**62 // width:  # before the product overflows, the keys are renumbered
            keys = np.unique(keys, return_inverse=True)[1].reshape(-1)
            largest = len(codes)
        keys = keys * width + codes[:, j]
        largest *= width
    return np.unique(keys, return_inverse=True)[1].reshape(-1)


def masks_by_cost(columns: int, weights: Floats, allowed: Flags) -> Counts64:
    """Return every mask over the columns that may have blanks, cheapest first."""
    masks = np.arange(1 << columns, dtype=np.int64)
    never = sum(1 << j for j in range(columns) if not allowed[j])
    masks = masks[(masks & never) == 0]
    return np.asarray(masks[np.lexsort((masks, mask_costs(masks, weights)))])


@dataclass(frozen=True, eq=False)
class Kept:
    """The columns of a table without blanks, its records that may be suppressed, and those suppressed before."""

    names: tuple[str, ...]
    codes: Codes
    counts: Counts64
    keeps: Flags
    budget: int
    removed: int = 0

    def enough(self, k: int) -> Flags:
        """Return the tuples whose values here occur in k records; no class of k can have any other tuple."""
        return np.asarray(self._sizes() >= k)

    def short(self, k: int) -> int:
        """Return the number of records of the other tuples."""
        return int(self.counts[~self.enough(k)].sum())

    def reaches(self, k: int) -> bool:
        return self.short(k) <= self.budget

    @property
    def largest(self) -> int:
        """The largest k that needs no more suppressed records than allowed."""
        return max((int(size) for size in np.unique(self._sizes()) if self.reaches(int(size))), default=0)

    def without(self, name: str) -> Kept:
        """Return the same with one more column that may have blanks."""
        keeps = self.keeps & np.array([own != name for own in self.names])
        return Kept(self.names, self.codes, self.counts, keeps, self.budget, self.removed)

    @property
    def columns(self) -> list[str]:
        return [name for name, keeps in zip(self.names, self.keeps, strict=True) if keeps]

    def _sizes(self) -> Counts64:
        mask = int(sum(1 << j for j, keeps in enumerate(self.keeps) if not keeps))
        keys = numbered(self.codes, mask)
        return np.asarray(np.bincount(keys, weights=self.counts).astype(np.int64)[keys])


def refused(tables: Sequence[Kept], k: int, *, suppresses: bool) -> UnreachableError:
    """Return the error if columns without blanks rule out k, with the nearest possible request in one of the tables.

    `suppresses` states whether the reading can suppress records at all.
    """
    best = max(tables, key=lambda one: one.largest)
    columns, records, short = best.columns, int(best.counts.sum()), best.short(k)
    nearer = [f"k = {number(best.largest)}"] if best.largest > 1 else []
    enough = [name for name in columns if best.without(name).reaches(k)]
    nearer += [f"blanks allowed in {' or '.join(enough[:3])}"] if enough else []
    if suppresses and short < records:
        least = (short + best.removed) / (records + best.removed)
        nearer.append(f"max_suppression from {np.ceil(least * 1000 - 1e-9) / 1000:g} on")  # so that the records fit
    keep = "keeps its cells" if len(columns) == 1 else "keep their cells"
    return UnreachableError(
        f"{shortened(columns)} {keep}, and {short:,} of {counted(records, 'record')} have values there that fewer than "
        f"{k:,} records share",
        expected="cells that may be blanked until k records agree",
        remedy="; or ".join(nearer) or "fewer columns that keep their cells",
    )


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


def comparable(weights: Floats) -> bool:
    """Return whether the solver, whose tolerance is relative to the largest weight, sees the smallest above zero."""
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

    The variables are the records of each tuple and mask, in the strict reading also used patterns and suppressed
    records. The tolerances of the solver are absolute, so weights are scaled to a largest weight of 1.
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
        own = np.concatenate([each[some] for each, some in zip(keys, enough, strict=True)])
        pattern = np.unique(np.stack([mask_of, own]), axis=1, return_inverse=True)[1].reshape(-1)
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
    stated = np.inf if result.mip_dual_bound is None else float(result.mip_dual_bound)
    bound = max(stated, 0.0) * scale if np.isfinite(stated) else None
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
