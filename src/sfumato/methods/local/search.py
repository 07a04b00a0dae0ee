"""Local recoding of a study: a front over k and loss with a lower bound for each point.

`Solver` runs the three methods on one table for each k and computes the box bound.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from sfumato.base.arrays import Codes, Counts64, Floats
from sfumato.base.compiled import compiled
from sfumato.errors import InputError, UnreachableError, counted
from sfumato.front import PRICE_UNIT, Front, Objective, Point, numbered
from sfumato.measures.registry import GENERAL_LOSS, K
from sfumato.measures.suppression import budget
from sfumato.methods.local.anneal import (
    Numbers,
    anneal,
    classes_from,
    increase_table,
    near_cells,
    records_of,
    sizes_of,
)
from sfumato.methods.local.boxes import (
    TOLERANCES,
    Pool,
    Work,
    best_boxes,
    box_cost,
    box_costs,
    joined_cost,
    sorted_pool,
    sorting,
    work_of,
)
from sfumato.methods.local.criteria import (
    Limits,
    criterion_values,
    feasible,
    limits_of,
    merged_equal,
    suppressed_units,
    units_of,
)
from sfumato.methods.local.floor import LowerBound, dual_bound, lower_bound, recoding_bound
from sfumato.methods.local.improve import State, classes_of, editable_classes, improve
from sfumato.methods.local.model import Cells, Classes, Column, Labels, labels_of
from sfumato.methods.local.orders import Candidate, Orders, search_orders
from sfumato.methods.run import Run
from sfumato.methods.system import check_weights
from sfumato.plans.boxes import BoxPlan
from sfumato.plans.segments import Segment, segments_of
from sfumato.study import Study
from sfumato.tables.frequency import FrequencyTable

MOST_FREED = 4096  # cells that a step of the rebuilding may free
STEPS = 20  # steps per record in a round of annealing
WARM = 0.06  # first temperature, relative to the mean cost per record
COOLED = 0.1  # last temperature, relative to the first
NEIGHBOURS = 32  # nearest cells of each cell that annealing draws from
ROUND = 1600  # visited cells per cell of the table in a round of rebuilding
RUNS_ONLY = 200_000  # with more cells only method 1 is used
Tell = Callable[[int, int], bool]


@dataclass(frozen=True, eq=False)
class Solution:
    """The best classes for one k, the method that found them, and a lower bound on the loss of every recoding."""

    k: int
    classes: Classes
    method: str
    bound: float | None


class Solver:
    """One table with its cells sorted for all methods."""

    def __init__(self, labels: Labels, cells: Cells, budget: int, seed: int) -> None:
        order = sorting(labels, cells.codes)
        self.order = order  # the number that each sorted cell has for the caller
        self.original = cells
        self.labels, self.budget, self.seed = labels, budget, seed
        rows = None if cells.rows is None else cells.rows[order]
        self.cells = Cells(np.ascontiguousarray(cells.codes[order]), cells.counts[order], rows)
        self.orders = Orders(labels, self.cells)
        self.bounds: dict[int, Floats] = {}

    def cheapest_costs(self, k: int) -> Floats:
        """Return the cost of the cheapest box of each cell."""
        if k not in self.bounds:
            self.bounds[k] = box_costs(self.labels, self.pool, k, self.work())[0]
        return self.bounds[k]

    def box_bound(self, k: int) -> float:
        """Return the box bound: no recoding with these labels loses less, whatever it suppresses."""
        lost = self.cells.lost
        return float((np.minimum(self.cheapest_costs(k), 1.0) * lost).sum()) / float(lost.sum())

    def by_boxes(self, k: int, tolerances: Sequence[float] = TOLERANCES) -> Classes:
        """Run method 2 with each tolerance and return the best classes; the table has at least k records."""
        codes, counts = self.cells.codes, self.cells.counts
        tried = []
        for tolerance in tolerances:
            owner = best_boxes(self.labels, codes, counts, self.cheapest_costs(k).copy(), k, tolerance)
            owner = attach(self.labels, codes, counts, owner, int(owner.max()) + 1)
            tried.append(Classes.of(self.labels, self.cells, np.arange(len(counts)), owner, counts))
        return min(tried, key=lambda classes: classes.loss)

    def improved(self, classes: Classes, k: int, effort: int, tell: Tell) -> Classes:
        """Run method 3: rounds of annealing, then as many rounds of rebuilding.

        The result is never worse than the classes given, even if the search is stopped. It depends only on the classes,
        the effort and the seed.
        """
        state = np.array([self.seed * 1_000_003 + k], np.uint64)
        annealed = self.annealed(classes, k, effort, state, tell)
        better = min(annealed, classes, key=lambda one: one.loss)
        held = editable_classes(better, k)
        work = self.work()
        spend = ROUND * len(self.cells.counts)
        for number in range(effort):
            if tell(effort + number, 2 * effort):
                break
            improve(self.labels, self.cells.codes, self.cheapest_costs(k), k, held, state, spend, work, MOST_FREED)
        return classes_of(held, self.labels, self.cells)

    def annealed(self, classes: Classes, k: int, effort: int, state: State, tell: Tell) -> Classes:
        """Return the classes after rounds of annealing, in which the temperature falls."""
        labels, codes, warm = self.labels, self.cells.codes, WARM * classes.loss
        if warm <= 0:
            return classes
        sizes = sizes_of(labels)
        records = records_of(classes, sizes, self.near, k)
        for number in range(effort):
            if tell(number, 2 * effort):
                break
            first, last = (warm * COOLED ** (part / effort) for part in (number, number + 1))
            anneal(labels, sizes, codes, records, k, STEPS * len(records.cell), first, last, increase_table(), state)
        return classes_from(records, classes)

    @cached_property
    def near(self) -> Numbers:
        """The nearest cells of each cell."""
        return near_cells(self.labels, self.pool, NEIGHBOURS, self.work())

    @cached_property
    def pool(self) -> Pool:
        """All cells as a pool."""
        return sorted_pool(self.labels, self.cells.codes, self.cells.counts)

    def work(self) -> Work:
        """Allocate the arrays for a search among all cells."""
        return work_of(self.labels, max(len(self.cells.counts), MOST_FREED))

    def in_original_order(self, classes: Classes) -> Classes:
        """Return classes over the cells in the order of the caller."""
        return Classes.of(self.labels, self.original, self.order[classes.cell], classes.owner, classes.count)

    def candidates(self, ks: Sequence[int], tries: int, tell: Tell) -> dict[int, Candidate]:
        """Return the best order of the columns for each k."""
        return search_orders(self.orders, ks, tries, np.random.default_rng(self.seed), tell)

    def solve(self, k: int, candidate: Candidate, *, boxes: bool, effort: int, tell: Tell) -> Solution | None:
        """Return the best solution of the methods for one k; None if the allowed suppression leaves no class."""
        if k < 2:
            return Solution(1, self.in_original_order(each_alone(self.labels, self.cells)), "as it is", 0.0)
        best, method = self.orders.within(k, candidate, self.budget), "order and runs"
        if self.cells.records < k:
            return None if best is None else Solution(k, self.in_original_order(best), method, None)
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
        bound = self.box_bound(k) if boxes and few else None
        return None if best is None else Solution(k, self.in_original_order(best), method, bound)


def each_alone(labels: Labels, cells: Cells) -> Classes:
    """Return every cell as its own class: nothing is recoded."""
    every = np.arange(len(cells.counts))
    return Classes.of(labels, cells, every, every, cells.counts)


def smallest_class(classes: Classes) -> int:
    """Return the k of classes where every row is a person."""
    return int(classes.rows.min())


def non_dominated(solutions: Sequence[Solution], k_of: Callable[[Classes], int] = smallest_class) -> list[Solution]:
    """Return the solutions without those that lose no less than one of a higher k; each has the k of its classes."""
    reached = [replace(one, k=k_of(one.classes)) for one in solutions]
    kept: list[Solution] = []
    for one in sorted(reached, key=lambda s: (-s.k, s.classes.loss)):
        if not kept or one.classes.loss < kept[-1].classes.loss - 1e-12:
            kept.append(one)
    return kept[::-1]


@compiled
def attach(labels: Labels, codes: Codes, counts: Counts64, owner: Counts64, classes: int) -> Counts64:
    """Add every cell without a class to the class where it costs least."""
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
                new = joined_cost(labels, codes, low[i], high[i], c)
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


KS = (2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100)
ORDERS = 100  # orders of the columns that are tried; fewer in tables with very many cells
FEWEST = 10
SORTED = 20_000_000  # budget of sorted cells over all orders
SIZES, TRIED = "sizes", "tried"  # keys of a saved state: finished values of k, number of orders tried
BOUND_BUDGET = 10**9  # cells that a pass over all boxes may visit


def model_of(study: Study, table: FrequencyTable) -> tuple[list[Segment], Labels, Cells]:
    """Return the label model of a study, and its tuples as cells in the same order."""
    segments = segments_of(study, table)
    columns = [Column(s.leaves.tolist(), [(node.low, node.high) for node in s.nodes], s.guarded) for s in segments]
    codes = np.stack([s.unit_of[c] for s, c in zip(segments, table.codes, strict=True)], axis=1)
    cells = Cells(np.ascontiguousarray(codes, dtype=np.int32), table.counts)
    return segments, labels_of(columns, study.weights_for(table)), cells


def atoms_of(cells: Cells, table: FrequencyTable) -> Cells:
    """Return what the search counts: records, or the persons of each tuple where rows belong to persons."""
    return cells if table.units is None else Cells(cells.codes, table.units.per_tuple, cells.counts)


def plan_of(segments: Sequence[Segment], classes: Classes) -> BoxPlan:
    """Return classes as a plan: labels by their first and last values, members by tuple."""
    firsts = [segment.starts for segment in segments]
    lasts = [_last_values(segment) for segment in segments]
    labels = tuple(
        tuple((firsts[j][a], lasts[j][b - 1]) for j, (a, b) in enumerate(zip(low, high, strict=True)))
        for low, high in zip(classes.low.tolist(), classes.high.tolist(), strict=True)
    )
    members = zip(classes.cell.tolist(), classes.owner.tolist(), classes.count.tolist(), strict=True)
    return BoxPlan(tuple(segment.name for segment in segments), labels, tuple(members))


def _last_values(segment: Segment) -> list[str]:
    """Return the last value of each unit."""
    leaves = segment.domain.hierarchy.leaves
    last = {int(segment.unit_of[leaf]): leaves[leaf] for leaf in segment.domain.order}
    return [last[unit] for unit in range(segment.units)]


def search_local(
    study: Study,
    table: FrequencyTable,
    run: Run,
    *,
    ks: Sequence[int] = KS,
    effort: int = 0,
    passes: int = 0,
    boxes: bool = True,
) -> Front:
    """Return the front of local recodings for some k, with lower bounds.

    `effort` is the number of rounds of improvement for each k, and `passes` the number that raise its lower bound.
    Without `boxes` only the first method is used. The same study, data and seed give the same front. Every point
    satisfies the criteria that the study requires of classes. The lower bound ignores these criteria and remains valid
    with them.
    """
    if not ks or min(ks) < 1:
        raise InputError("no k is asked for", expected="whole numbers of at least 1")
    started = time.perf_counter()
    check_weights(study.search, table)
    segments, labels, cells = model_of(study, table)
    allowed = budget(study.search.max_suppression, table.persons) - table.removed
    atoms, persons = atoms_of(cells, table), int(table.rows if table.units is None else table.units.number)
    limits = limits_of(study)
    least = math.ceil(study.search.constraints.get(K.name, 1.0) - 1e-9)
    reachable = sorted({max(k, least) for k in ks if max(k, least) <= persons})
    if not reachable:
        raise UnreachableError(
            f"the table has {counted(persons, 'record' if table.units is None else 'person')}, fewer than "
            f"k = {max(min(ks), least)}",
            expected=f"k up to {persons}",
        )
    solver = Solver(labels, atoms, allowed, study.search.seed)
    total = len(reachable) + 1
    checkpoint = run.kept(study, table.fingerprint)
    saved: Mapping[str, Any] = {} if checkpoint is None or not run.resume else checkpoint.load() or {}
    known, tried = solutions_from(saved, labels, cells), int(saved.get(TRIED, 0))
    solutions, ended = list(known.values()), list(known.values())
    orders: dict[int, Candidate] = {}

    def asked(done: int, *_: int) -> bool:
        return run.tell(done, total) or run.stopped

    for number, k in enumerate(reachable, start=1):
        if k not in known:
            if not orders:
                tries = min(ORDERS, max(FEWEST, SORTED // len(cells.counts)))
                wanted = sorted({size for each in reachable for size in sizes_for(each, table, limits) if size > 1})
                orders = solver.candidates(wanted or [2], tries, partial(asked, len(known)))
                tried = len(solver.orders.values)
            tell = partial(asked, number - 1)
            sizes = sizes_for(k, table, limits)
            made = [solver.solve(size, orders[max(size, 2)], boxes=boxes, effort=effort, tell=tell) for size in sizes]
            met = [m for one in made if one is not None for m in _satisfying(replace(one, k=k), table, limits, allowed)]
            solutions += sorted(met, key=lambda one: one.classes.loss)[:1]
            if not run.stopped:  # an interrupted solution is in the front, but computed anew when the search is resumed
                ended = list(solutions)
            if checkpoint is not None:
                checkpoint.save(partial(state_of, ended, tried))
        if asked(number):
            break
    if checkpoint is not None:
        if run.stopped:
            checkpoint.save(partial(state_of, ended, tried), now=True)
        else:
            checkpoint.remove()
    if not solutions:
        what = "no class has as many records within the suppression allowed"
        if limits:
            what = "not even the whole table as one class meets the constraints"
        raise UnreachableError(what, expected="a smaller k" if not limits else "weaker constraints")
    chosen = non_dominated(solutions, lambda classes: int(units_of(classes, table).min()))
    proven = {one.k: _proven_bound(solver, one, passes) for one in chosen}
    points = [_point(study, table, segments, one, proven[one.k], limits) for one in chosen]
    objectives = (Objective(K.name, "max"), Objective(GENERAL_LOSS.name, "min"))
    return Front(
        study,
        objectives,
        numbered(points, objectives[0]),
        "best boxes" if boxes else "order and runs",
        False,
        tried,
        0,
        time.perf_counter() - started,
        table.fingerprint,
        table.records,
        system="local",
        found_how=f"best found with seed {study.search.seed}, {tried} orders of columns tried"
        + _left_out(ks, table, persons),
        tuples=table.tuples,
        units=None if table.units is None else table.units.number,
        prices={k: _rounded_down(bound.prices) for k, bound in proven.items() if bound is not None},
    )


def sizes_for(k: int, table: FrequencyTable, limits: Limits) -> list[int]:
    """Return the class sizes that are tried for one k; the best classes are kept.

    Criteria may need larger classes. A person with different rows is counted in each tuple, so a class of k persons may
    need more rows as well.
    """
    units = table.units
    sizes = [k, max(k, 2) if limits else k]
    if units is not None and not units.constant:
        sizes += [max(k, 2), round(k * len(units.unit) / units.number)]
    return list(dict.fromkeys(sizes))


def _left_out(ks: Sequence[int], table: FrequencyTable, persons: int) -> str:
    """Return a sentence about the requested values of k that no class reaches; the default values are not mentioned."""
    beyond = sorted({k for k in ks if k > persons and ks is not KS})
    what = "records" if table.units is None else "persons"
    return f"; k {', '.join(map(str, beyond))} left out, there are {persons} {what}" if beyond else ""


def _satisfying(solution: Solution, table: FrequencyTable, limits: Limits, allowed: int) -> list[Solution]:
    """Return a solution as its file will show it: equal boxes are one class, and the criteria hold."""
    if not limits and table.units is None and table.households is None:
        return [replace(solution, classes=merged_equal(solution.classes))]
    classes = feasible(solution.classes, table, solution.k, limits, allowed)
    return [] if classes is None else [replace(solution, classes=classes)]


def state_of(solutions: Sequence[Solution], tried: int) -> dict[str, Any]:
    """Return the solutions found so far and the number of orders tried, as arrays."""
    parts: dict[str, Any] = {SIZES: np.array([one.k for one in solutions], np.int64), TRIED: np.array(tried)}
    for one in solutions:
        classes = one.classes
        parts[f"entries{one.k}"] = np.stack([classes.cell, classes.owner, classes.count])
        parts[f"floor{one.k}"] = np.array(np.nan if one.bound is None else one.bound)
        parts[f"method{one.k}"] = np.array(one.method)
    return parts


def solutions_from(parts: Mapping[str, Any], labels: Labels, cells: Cells) -> dict[int, Solution]:
    """Return the solutions that were found before a search was interrupted."""
    solutions = {}
    for k in parts[SIZES].tolist() if SIZES in parts else ():
        bound = float(parts[f"floor{k}"])
        classes = Classes.of(labels, cells, *parts[f"entries{k}"])
        method = str(parts[f"method{k}"])
        solutions[k] = Solution(k, classes, method, None if math.isnan(bound) else bound)
    return solutions


def _proven_bound(solver: Solver, one: Solution, passes: int) -> LowerBound | None:
    """Return the saved prices that prove the lower bound of a solution, in the order of the caller's cells."""
    if one.bound is None:
        return None
    bound = lower_bound(one.k, np.zeros(len(solver.order)), solver.cells.lost)
    if one.k > 1:
        bound = lower_bound(one.k, np.minimum(solver.cheapest_costs(one.k), 1.0), solver.cells.lost)
        if passes > 0:
            bound = recoding_bound(solver.labels, solver.cells, bound, one.classes.paid[solver.order], BOUND_BUDGET)
        bound = dual_bound(solver.labels, solver.cells, bound, passes, BOUND_BUDGET)
    prices = np.empty(len(solver.order))
    prices[solver.order] = bound.prices
    return lower_bound(one.k, _rounded_down(prices) / PRICE_UNIT, solver.original.lost)


def _rounded_down(prices: Floats) -> Counts64:
    """Return prices in their unit, rounded down: lower prices prove a slightly lower bound and stay feasible."""
    return np.floor(prices * PRICE_UNIT).astype(np.int64)


def _point(
    study: Study,
    table: FrequencyTable,
    segments: Sequence[Segment],
    one: Solution,
    proven: LowerBound | None,
    limits: Limits,
) -> Point:
    weights = study.weights_for(table)
    full = sum(weights) * table.records
    suppressed = one.classes.suppressed + table.removed
    loss = (one.classes.loss * one.classes.cells.records + table.removed) / table.records
    details: dict[str, Any] = {"method": one.method}
    if proven is not None:
        details |= {"floor": proven.loss} | ({"ratio": loss / proven.loss} if proven.loss > 0 else {})
    bound = None if proven is None else proven.loss * full
    values = {K.name: float(one.k), GENERAL_LOSS.name: loss * full}
    values |= criterion_values(table, one.classes, limits, weights) if limits else {}
    persons = None if table.units is None else suppressed_units(one.classes, table)
    return Point(0, values, loss, suppressed, plan_of(segments, one.classes), bound, details, persons)
