"""Method 1: the cheapest runs of records in a reflected order of the cells, over many orders of the columns.

A candidate is an order of the columns and a first direction for each. A small memetic search is made for one k, the
middle of those requested. Its best candidates are then tried for the other values. The budget counts evaluations.

In a reflected order the cells are sorted by the first column, then within equal values by the second, and so on. The
direction of a column alternates from group to group, so neighbours differ little. A class is a run of k to 2k - 1
records in this order, because a longer run can be divided without cost. The records of a cell may be in several
classes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from sfumato.base.arrays import Codes, Counts64
from sfumato.base.compiled import compiled
from sfumato.methods.local.model import Cells, Classes, Labels, cell_cost


@compiled
def reflected(codes: Codes, units: Counts64, order: Counts64, turned: Codes) -> Counts64:
    """Return the cells in reflected order by the columns of `order`.

    The first group of column j is in falling order if turned[j] is 1.
    """
    size = len(codes)
    cells, other = np.arange(size), np.empty(size, np.int64)
    ends, next_ends = np.empty(size + 1, np.int64), np.empty(size + 1, np.int64)
    groups = 1
    ends[0], ends[1] = 0, size
    tally = np.zeros(np.max(units) + 1, np.int64)
    for j in order:
        made = 0
        next_ends[0] = 0
        for g in range(groups):
            start, end = ends[g], ends[g + 1]
            if end - start == 1:
                other[start] = cells[start]
                made += 1
                next_ends[made] = end
                continue
            low, high = np.int64(codes[cells[start], j]), np.int64(codes[cells[start], j])
            for i in range(start, end):
                u = codes[cells[i], j]
                tally[u] += 1
                low, high = min(low, u), max(high, u)
            # A counting sort per group: stable, and linear in the cells whatever the number of groups.
            at = start
            down = (g + turned[j]) % 2 == 1
            for step in range(high - low + 1):
                u = high - step if down else low + step
                held = tally[u]
                if held > 0:
                    tally[u] = at
                    at += held
                    made += 1
                    next_ends[made] = at
            for i in range(start, end):
                u = codes[cells[i], j]
                other[tally[u]] = cells[i]
                tally[u] += 1
            for i in range(start, end):
                tally[codes[cells[i], j]] = 0
        cells, other = other, cells
        ends, next_ends = next_ends, ends
        groups = made
    return cells


@compiled
def divide(
    labels: Labels, codes: Codes, counts: Counts64, order: Counts64, k: int, fee: float
) -> tuple[float, Counts64, Counts64]:
    """Find the cheapest partition of ordered records into runs of k to 2k - 1; a record may be suppressed for `fee`.

    Return the total cost, the end of each run, and 1 for each run that is a class (0: one suppressed record). With an
    infinite fee nothing is suppressed. k is at least 2, and there are at least k records or the fee is finite.
    """
    size, columns = len(order), codes.shape[1]
    start = np.zeros(size + 1, np.int64)
    for i in range(size):
        start[i + 1] = start[i] + counts[order[i]]
    records = start[size]
    best, back = np.full(records + 1, np.inf), np.full(records + 1, -1, np.int64)
    best[0] = 0.0
    low, high = np.empty(columns, np.int64), np.empty(columns, np.int64)
    part = np.empty(columns)
    for t in range(size):
        cost = 0.0
        for j in range(columns):
            low[j] = high[j] = codes[order[t], j]
            part[j] = cell_cost(labels, j, low[j], high[j])
            cost += part[j]
        lowest = np.inf
        for s in range(max(start[t] + 2 - 2 * k, 0), start[t] + 1):
            lowest = min(lowest, best[s])
        # All runs that end in cell t, by their first cell u. The labels only widen as u falls, so the cost only grows.
        u = t
        while True:
            worst = 0.0
            for e in range(start[t] + 1, start[t + 1] + 1):
                worst = max(worst, best[e])
            if lowest + max(k, start[t] + 2 - start[u + 1]) * cost >= worst:
                break  # no run that begins at this cell or an earlier one can be better
            for e in range(max(start[t] + 1, start[u] + k), start[t + 1] + 1):
                least, at = best[e], back[e]
                for s in range(max(start[u], e - 2 * k + 1), min(start[u + 1] - 1, e - k) + 1):
                    value = best[s] + (e - s) * cost
                    if value < least:
                        least, at = value, s
                best[e], back[e] = least, at
            u -= 1
            if u < 0 or start[u + 1] - 1 < start[t] + 2 - 2 * k:
                break
            cell = order[u]
            for j in range(columns):
                value = codes[cell, j]
                if value < low[j]:
                    low[j] = value
                elif value > high[j]:
                    high[j] = value
                else:
                    continue
                new = cell_cost(labels, j, low[j], high[j])
                cost += new - part[j]
                part[j] = new
        own = 0.0
        for j in range(columns):
            own += cell_cost(labels, j, codes[order[t], j], codes[order[t], j])
        # Runs inside the cell come last, because they continue runs that end in this cell.
        for e in range(start[t] + 1, start[t + 1] + 1):
            if best[e - 1] + fee < best[e]:
                best[e], back[e] = best[e - 1] + fee, e - 1
            for s in range(max(start[t], e - 2 * k + 1), e - k + 1):
                if best[s] + (e - s) * own < best[e]:
                    best[e], back[e] = best[s] + (e - s) * own, s
    ends, kept = np.empty(records, np.int64), np.empty(records, np.int64)
    made, e = 0, records
    while e > 0 and back[e] >= 0:
        ends[made], kept[made] = e, 1 if e - back[e] > 1 else 0
        made += 1
        e = back[e]
    return best[records], ends[:made][::-1].copy(), kept[:made][::-1].copy()


POPULATION = 6  # best candidates of the search, which are tried for each other k
FEES = 12  # steps of the bisection for the fee of a suppressed record
Candidate = tuple[tuple[int, ...], tuple[int, ...]]  # order of the columns, first direction of each column
Tell = Callable[[int, int], bool]


class Orders:
    """Orders of the columns of a table, each evaluated once for a k."""

    def __init__(self, labels: Labels, cells: Cells) -> None:
        self.labels, self.cells = labels, cells
        self.units = np.diff(labels.unit)
        self.values: dict[tuple[int, Candidate], float] = {}

    def cells_in(self, candidate: Candidate) -> Counts64:
        order, turned = candidate
        return reflected(self.cells.codes, self.units, np.array(order, np.int64), np.array(turned, np.int32))

    def value(self, k: int, candidate: Candidate) -> float:
        """Return the loss without suppression."""
        key = k, candidate
        if key not in self.values:
            total, _, _ = self._divided(k, candidate, np.inf)
            self.values[key] = total / self.cells.records
        return self.values[key]

    def _divided(self, k: int, candidate: Candidate, fee: float) -> tuple[float, Counts64, Counts64]:
        counts = np.minimum(self.cells.counts, 4 * k)  # further records join a class of their cell alone
        return divide(self.labels, self.cells.codes, counts, self.cells_in(candidate), k, fee)

    def classes(self, k: int, candidate: Candidate, fee: float = np.inf) -> Classes:
        """Return the cheapest runs of an order as classes."""
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
        further = large, more, cells.counts[large] - 4 * k
        return Classes.joined(self.labels, cells, (cell, owner, count), further)

    def within(self, k: int, candidate: Candidate, budget: int) -> Classes | None:
        """Return the cheapest runs with at most `budget` suppressed records; None if no class is left.

        The suppression of a record costs 1. A higher fee is its Lagrange multiplier and keeps the number within the
        budget.
        """
        tried = [self.classes(k, candidate, 1.0)] if budget > 0 else []
        low, high = 1.0, 2.0 * k  # a higher fee changes nothing: suppression saves at most 2k - 1 records their cost
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
    """Return the best order tried for each k, where `budget` orders are tried for the middle k."""
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
    near = people[:1] if stopped else people
    return {k: min((orders.value(k, candidate), candidate) for candidate in near)[1] for k in ks}


def starts(labels: Labels, cells: Cells) -> list[Candidate]:
    """Return initial orders: by the cost of one step, and by the mean cost of the difference of two values."""
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
    """Cross two candidates: the first columns of one, the others in the order of the other, directions from either."""
    cut = int(rng.integers(1, len(one[0])))
    first = one[0][:cut]
    order = (*first, *(j for j in two[0] if j not in first))
    which = rng.random(len(one[1])) < 0.5
    return order, tuple(int(a if w else b) for a, b, w in zip(one[1], two[1], which, strict=True))


def changed(candidate: Candidate, rng: np.random.Generator) -> Candidate:
    """Mutate a candidate: move a column, exchange two, or reverse a direction."""
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
