"""Method 1: which order of the columns gives the cheapest runs, by a small memetic search; one search serves every k.

A candidate is an order of the columns and a first direction for each. The search is made for one k, the middle of
those that are asked for; its best candidates are then tried for the others. Its budget are evaluations, not seconds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from sfumato.runtime.arrays import Counts64
from sfumato.systems.local.model import Cells, Classes, Labels
from sfumato.systems.local.runs import divide, reflected

POPULATION = 6
TRIED = 6  # candidates of the search that are tried for the other k
FEES = 12  # fees for a suppressed record that are tried
Candidate = tuple[tuple[int, ...], tuple[int, ...]]  # columns in order, first directions by column
Tell = Callable[[int, int], bool]


class Orders:
    """Orders of the columns of one table, each evaluated once for a k."""

    def __init__(self, labels: Labels, cells: Cells) -> None:
        self.labels, self.cells = labels, cells
        self.units = np.diff(labels.unit)
        self.values: dict[tuple[int, Candidate], float] = {}

    def cells_in(self, candidate: Candidate) -> Counts64:
        order, turned = candidate
        return reflected(self.cells.codes, self.units, np.array(order, np.int64), np.array(turned, np.int32))

    def value(self, k: int, candidate: Candidate) -> float:
        """The loss with nothing suppressed."""
        key = k, candidate
        if key not in self.values:
            total, _, _ = self._divided(k, candidate, np.inf)
            self.values[key] = total / self.cells.records
        return self.values[key]

    def _divided(self, k: int, candidate: Candidate, fee: float) -> tuple[float, Counts64, Counts64]:
        counts = np.minimum(self.cells.counts, 4 * k)  # what exceeds this lies in a class of its cell alone
        return divide(self.labels, self.cells.codes, counts, self.cells_in(candidate), k, fee)

    def classes(self, k: int, candidate: Candidate, fee: float = np.inf) -> Classes:
        """The cheapest runs of an order as classes."""
        cells = self.cells
        _, ends, kept = self._divided(k, candidate, fee)
        order = self.cells_in(candidate)
        counts = np.minimum(cells.counts, 4 * k)[order]
        position = np.concatenate([[0], np.cumsum(counts)])
        bounds = np.unique(np.concatenate([position, ends]))
        at = bounds[:-1]
        cell = order[np.searchsorted(position, at, side="right") - 1]
        run = np.searchsorted(ends, at, side="right")
        owner = np.where(kept[run] == 1, run, -1)
        count = np.diff(bounds)
        starts = np.concatenate([[0], ends[:-1]])
        inside = np.flatnonzero((starts[run] == at) & (ends[run] == bounds[1:]) & (owner >= 0))
        own = dict(zip(cell[inside].tolist(), owner[inside].tolist(), strict=True))
        large = np.flatnonzero(cells.counts > 4 * k)
        more = np.array([own[c] for c in large.tolist()], dtype=np.int64)
        return Classes.of(
            self.labels,
            cells,
            np.concatenate([cell, large]),
            np.concatenate([owner, more]),
            np.concatenate([count, cells.counts[large] - 4 * k]),
        )

    def within(self, k: int, candidate: Candidate, budget: int) -> Classes | None:
        """The cheapest runs with at most `budget` records suppressed; None where that leaves no class.

        Suppressing a record costs 1; a higher fee keeps their number within the budget.
        """
        tried = [self.classes(k, candidate, 1.0)] if budget > 0 else []
        low, high = 1.0, 2.0 * k  # no record is worth more: it lets at most 2k - 1 others off
        for _ in range(FEES if tried and tried[0].suppressed > budget else 0):
            middle = (low + high) / 2
            tried.append(self.classes(k, candidate, middle))
            low, high = (middle, high) if tried[-1].suppressed > budget else (low, middle)
        if self.cells.records >= k:
            tried.append(self.classes(k, candidate))
        fit = [classes for classes in tried if classes.suppressed <= budget and len(classes.rows)]
        return min(fit, key=lambda classes: classes.loss, default=None)


def search_orders(
    orders: Orders, ks: Sequence[int], budget: int, rng: np.random.Generator, tell: Tell
) -> dict[int, Candidate]:
    """For each k the best order that was tried; `budget` is how many are tried for the middle k, or all."""
    middle = sorted(ks)[len(ks) // 2]
    columns = orders.labels.columns
    budget = min(budget, math.factorial(columns) << columns)
    people: list[Candidate] = []
    done = 0

    def enter(candidate: Candidate) -> bool:
        nonlocal done, people
        fresh = (middle, candidate) not in orders.values
        orders.value(middle, candidate)
        done += fresh
        people = sorted({*people, candidate}, key=lambda c: (orders.value(middle, c), c))[:POPULATION]
        return tell(min(done, budget), budget)

    stopped = False
    for candidate in starts(orders.labels, orders.cells):
        stopped = stopped or enter(candidate)
    tries = 0
    while done < budget and not stopped and tries < 20 * budget and columns > 1:
        tries += 1
        one, two = (people[int(rng.integers(len(people)))] for _ in range(2))
        stopped = enter(changed(crossed(one, two, rng), rng))
    chosen = {}
    for k in ks:
        near = people[:1] if stopped else people[:TRIED]
        chosen[k] = min(near, key=lambda c: (orders.value(k, c), c))
    return chosen


def starts(labels: Labels, cells: Cells) -> list[Candidate]:
    """Orders to begin with: columns whose one step is dear first; and those whose values differ dearly first."""
    columns = labels.columns
    step = -labels.price
    spread = np.zeros(columns)
    for j in range(columns):
        held = np.bincount(cells.codes[:, j], weights=cells.counts)
        share = np.cumsum(held) / held.sum()
        spread[j] = -2.0 * float((share * (1 - share)).sum()) * labels.price[j]
    straight = (0,) * columns
    orders = dict.fromkeys(tuple(np.argsort(key, kind="stable").tolist()) for key in (step, spread))
    return [(order, straight) for order in orders]


def crossed(one: Candidate, two: Candidate, rng: np.random.Generator) -> Candidate:
    """The first columns of one, the others as they stand in the other; directions from either."""
    cut = int(rng.integers(1, len(one[0])))
    first = one[0][:cut]
    order = (*first, *(j for j in two[0] if j not in first))
    which = rng.random(len(one[1])) < 0.5
    return order, tuple(int(a if w else b) for a, b, w in zip(one[1], two[1], which, strict=True))


def changed(candidate: Candidate, rng: np.random.Generator) -> Candidate:
    """One column moved elsewhere, two exchanged, or a direction turned."""
    order, turned = list(candidate[0]), list(candidate[1])
    a, b = rng.choice(len(order), 2, replace=False).tolist()
    kind = rng.random()
    if kind < 0.45:
        order.insert(b, order.pop(a))
    elif kind < 0.8:
        order[a], order[b] = order[b], order[a]
    else:
        turned[a] = 1 - turned[a]
    return tuple(order), tuple(turned)
