"""The three methods together: what one table loses at each k, and the box bound beside it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from sfumato.runtime.arrays import Codes, Counts64, Floats
from sfumato.runtime.compiled import compiled
from sfumato.systems.local.anneal import anneal, luck_of
from sfumato.systems.local.boxes import Pool, Work, box_costs, sorted_pool, sorting, work_of
from sfumato.systems.local.greedy import WIDER, best_boxes, box_cost
from sfumato.systems.local.improve import State, classes_of, held_of, improve, stretched
from sfumato.systems.local.model import Cells, Classes, Labels
from sfumato.systems.local.orders import Candidate, Orders, search_orders
from sfumato.systems.local.records import Numbers, classes_from, near_cells, records_of, sizes_of

ROOM = 4096  # cells that a step of the improvement may free
STEPS = 20  # a round of annealing has so many for each record
WARM = 0.06  # the first temperature, in mean costs of a record
COOLED = 0.1  # the last one, in first ones
NEIGHBOURS = 32  # cells near each cell, among which a step of annealing looks for a class
ROUND = 1600  # a round of rebuilding looks at so many cells for each cell of the table
RUNS_ONLY = 200_000  # beyond so many cells only order and runs are tried
Tell = Callable[[int, int], bool]


@dataclass(frozen=True, eq=False)
class Solution:
    """The best classes for one k, how they came about, and what no recoding with these labels can go below."""

    k: int
    classes: Classes
    method: str
    floor: float | None


class Solver:
    """One table, its cells sorted for all methods."""

    def __init__(self, labels: Labels, cells: Cells, budget: int, seed: int) -> None:
        order = sorting(labels, cells.codes)
        self.back = order  # the cell of the caller for each of ours
        self.given = cells
        self.labels, self.budget, self.seed = labels, budget, seed
        rows = None if cells.rows is None else cells.rows[order]
        self.cells = Cells(np.ascontiguousarray(cells.codes[order]), cells.counts[order], rows)
        self.orders = Orders(labels, self.cells)
        self.bounds: dict[int, Floats] = {}

    def bound(self, k: int) -> Floats:
        """For each cell the cost of its cheapest box."""
        if k not in self.bounds:
            self.bounds[k] = box_costs(self.labels, self.pool, k, self.work())[0]
        return self.bounds[k]

    def floor(self, k: int) -> float:
        """The box bound: no recoding with these labels loses less, whatever it suppresses."""
        lost = self.cells.lost
        return float((np.minimum(self.bound(k), 1.0) * lost).sum()) / float(lost.sum())

    def by_boxes(self, k: int, tolerances: Sequence[float] = WIDER) -> Classes:
        """Method 2, with each of a few tolerances: the best of them. There are at least k records."""
        codes, counts = self.cells.codes, self.cells.counts
        tried = []
        for wider in tolerances:
            owner = best_boxes(self.labels, codes, counts, self.bound(k).copy(), k, wider)
            owner = attach(self.labels, codes, counts, owner, int(owner.max()) + 1)
            tried.append(Classes.of(self.labels, self.cells, np.arange(len(counts)), owner, counts))
        return min(tried, key=lambda classes: classes.loss)

    def improved(self, classes: Classes, k: int, effort: int, tell: Tell) -> Classes:
        """Method 3: so many rounds, first of annealing, then of rebuilding; the same classes and effort give the same.

        Never worse than the classes that it begins with, also when it is stopped.
        """
        state = np.array([self.seed * 1_000_003 + k], np.uint64)
        annealed = self.annealed(classes, k, effort, state, tell)
        better = min(annealed, classes, key=lambda one: one.loss)
        held = held_of(better, k)
        work = self.work()
        spend = ROUND * len(self.cells.counts)
        for number in range(effort):
            if tell(effort + number, 2 * effort):
                break
            improve(self.labels, self.cells.codes, self.bound(k), k, held, state, spend, work, ROOM)
        return classes_of(held, self.labels, self.cells)

    def annealed(self, classes: Classes, k: int, effort: int, state: State, tell: Tell) -> Classes:
        """Classes after so many rounds in which the temperature falls."""
        labels, codes, warm = self.labels, self.cells.codes, WARM * classes.loss
        if warm <= 0:
            return classes
        sizes = sizes_of(labels)
        records = records_of(classes, sizes, self.near, k)
        for number in range(effort):
            if tell(number, 2 * effort):
                break
            first, last = (warm * COOLED ** (part / effort) for part in (number, number + 1))
            anneal(labels, sizes, codes, records, k, STEPS * len(records.cell), first, last, luck_of(), state)
        return classes_from(records, classes)

    @cached_property
    def near(self) -> Numbers:
        """The cells near each cell."""
        return near_cells(self.labels, self.pool, NEIGHBOURS, self.work())

    @cached_property
    def pool(self) -> Pool:
        """All cells, to look among."""
        return sorted_pool(self.labels, self.cells.codes, self.cells.counts)

    def work(self) -> Work:
        """Arrays for a search among all cells."""
        return work_of(self.labels, max(len(self.cells.counts), ROOM))

    def ours(self, classes: Classes) -> Classes:
        """Classes over the cells of the caller."""
        return Classes.of(self.labels, self.given, self.back[classes.cell], classes.owner, classes.count)

    def candidates(self, ks: Sequence[int], tries: int, tell: Tell) -> dict[int, Candidate]:
        """The best order of the columns for each k."""
        return search_orders(self.orders, ks, tries, np.random.default_rng(self.seed), tell)

    def solve(self, k: int, candidate: Candidate, *, boxes: bool, effort: int, tell: Tell) -> Solution | None:
        """The best of the methods for one k; None where the suppression allowed leaves no class."""
        if k < 2:
            return Solution(1, self.ours(each_alone(self.labels, self.cells)), "as it is", 0.0)
        best, method = self.orders.within(k, candidate, self.budget), "order and runs"
        if self.cells.records < k:
            return None if best is None else Solution(k, self.ours(best), method, None)
        few = len(self.cells.counts) <= RUNS_ONLY
        if boxes and few:
            other, rounds = self.by_boxes(k), 0

            def asked(done: int, total: int) -> bool:
                nonlocal rounds
                stop = tell(done, total)
                rounds += not stop
                return stop

            if effort > 0:
                other = self.improved(other, k, effort, asked)
            if best is None or other.loss < best.loss:
                best, method = other, "best boxes, improved" if rounds else "best boxes"
        floor = self.floor(k) if boxes and few else None
        return None if best is None else Solution(k, self.ours(best), method, floor)


def each_alone(labels: Labels, cells: Cells) -> Classes:
    """Every cell as a class of its own: nothing is recoded."""
    every = np.arange(len(cells.counts))
    return Classes.of(labels, cells, every, every, cells.counts)


def smallest_class(classes: Classes) -> int:
    """The k of classes where every row is a person."""
    return int(classes.rows.min())


def front_of(solutions: Sequence[Solution], k_of: Callable[[Classes], int] = smallest_class) -> list[Solution]:
    """Without those that lose no less than one of a higher k; each with the k that its classes have."""
    reached = [replace(one, k=k_of(one.classes)) for one in solutions]
    kept: list[Solution] = []
    for one in sorted(reached, key=lambda s: (-s.k, s.classes.loss)):
        if not kept or one.classes.loss < kept[-1].classes.loss - 1e-12:
            kept.append(one)
    return kept[::-1]


@compiled
def attach(labels: Any, codes: Codes, counts: Counts64, owner: Counts64, classes: int) -> Counts64:
    """Every cell without a class joins the one where it costs least."""
    size, columns = codes.shape
    low, high = np.empty((classes, columns), np.int64), np.empty((classes, columns), np.int64)
    cost, rows = np.zeros(classes), np.zeros(classes, np.int64)
    for i in range(classes):
        low[i, :], high[i, :] = 1 << 40, -1
    for c in range(size):
        if owner[c] >= 0:
            rows[owner[c]] += counts[c]
            for j in range(columns):
                low[owner[c], j] = min(low[owner[c], j], codes[c, j])
                high[owner[c], j] = max(high[owner[c], j], codes[c, j])
    for i in range(classes):
        cost[i] = box_cost(labels, low[i], high[i])
    for c in range(size):
        if owner[c] < 0:
            best, least = 0, np.inf
            for i in range(classes):
                new = stretched(labels, codes, c, low[i], high[i])
                more = new * (rows[i] + counts[c]) - cost[i] * rows[i]
                if more < least:
                    best, least = i, more
            owner[c] = best
            rows[best] += counts[c]
            for j in range(columns):
                low[best, j] = min(low[best, j], codes[c, j])
                high[best, j] = max(high[best, j], codes[c, j])
            cost[best] = box_cost(labels, low[best], high[best])
    return owner
