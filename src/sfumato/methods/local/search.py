"""Local recoding of a study: a front over k and loss with a lower bound for each point.

`Solver` runs the three methods on one table for each k and computes the box bound.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from sfumato.base.arrays import Counts64, Floats
from sfumato.errors import UnreachableError
from sfumato.front import PRICE_UNIT, Front, Point, numbered
from sfumato.measures.registry import GENERAL_LOSS, K
from sfumato.measures.suppression import budget
from sfumato.methods.local import anneal
from sfumato.methods.local.boxes import TOLERANCES, Pool, Work, best_boxes, box_costs, sorted_pool, sorting, work_of
from sfumato.methods.local.criteria import feasible, limits_of, measured, merged_equal, suppressed_units, units_of
from sfumato.methods.local.floor import LowerBound, dual_bound, lower_bound, recoding_bound
from sfumato.methods.local.improve import State, classes_of, editable_classes, improve
from sfumato.methods.local.model import Cells, Classes, Column, Labels, labels_of
from sfumato.methods.local.orders import Candidate, Orders, Tell, search_orders
from sfumato.methods.run import Parts, Run
from sfumato.methods.shared import K_AND_LOSS, KeptState, best_for_each_k, reachable_ks
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

    def by_boxes(self, k: int) -> Classes:
        """Run method 2 with each tolerance and return the best classes of a table with at least k records."""
        codes, counts = self.cells.codes, self.cells.counts
        tried = []
        for tolerance in TOLERANCES:
            owner = best_boxes(self.labels, codes, counts, self.cheapest_costs(k).copy(), k, tolerance)
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
        sizes = anneal.sizes_of(labels)
        records = anneal.records_of(classes, sizes, self.near, k)
        increases, steps = anneal.increase_table(), STEPS * len(records.cell)
        for number in range(effort):
            if tell(number, 2 * effort):
                break
            first, last = (warm * COOLED ** (part / effort) for part in (number, number + 1))
            anneal.anneal(labels, sizes, codes, records, k, steps, first, last, increases, state)
        return anneal.classes_from(records, classes)

    @cached_property
    def near(self) -> anneal.Numbers:
        """The nearest cells of each cell."""
        return anneal.near_cells(self.labels, self.pool, NEIGHBOURS, self.work())

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
            every, counts = np.arange(len(self.original.counts)), self.original.counts
            return Solution(1, Classes.of(self.labels, self.original, every, every, counts), "as it is", 0.0)
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


def search_local(study: Study, table: FrequencyTable, run: Run) -> Front:
    """Return the front of local recodings for each k of the study, with lower bounds.

    The same study, data and seed give the same front. Every point satisfies the criteria that the study requires of
    classes. The lower bound ignores these criteria and remains valid with them.
    """
    started = time.perf_counter()
    settings, units = study.local, table.units
    search = LocalSearch(study, table)
    solutions, tried = search.solutions(reachable_ks(settings.k or KS, study, table), run)
    if not solutions:
        what = "no class has as many records within the suppression allowed"
        if search.limits:
            what = "not even the whole table as one class meets the constraints"
        raise UnreachableError(what, expected="a smaller k" if not search.limits else "weaker constraints")
    reached = [replace(one, k=int(units_of(one.classes, table).min())) for one in solutions]
    chosen = best_for_each_k(reached, lambda one: one.k, lambda one: one.classes.loss)[::-1]
    proven = {one.k: search.proven_bound(one) for one in chosen}
    points = [search.point(one, proven[one.k]) for one in chosen]
    what, most = ("records", table.rows) if units is None else ("persons", units.number)
    beyond = sorted({k for k in settings.k or () if k > most})
    left_out = f"; k {', '.join(map(str, beyond))} left out, there are {most} {what}" if beyond else ""
    return Front(
        study,
        K_AND_LOSS,
        numbered(points, K_AND_LOSS[0]),
        "best boxes" if settings.method == "boxes" else "order and runs",
        False,
        tried,
        0,
        time.perf_counter() - started,
        table.fingerprint,
        table.records,
        system="local",
        found_how=f"best found with seed {study.search.seed}, {tried} orders of columns tried{left_out}",
        units=None if units is None else units.number,
        prices={k: _rounded_down(bound.prices) for k, bound in proven.items() if bound is not None},
    )


class LocalSearch:
    """The search for local recodings of a study: the table as cells, the criteria of classes, and the solver."""

    def __init__(self, study: Study, table: FrequencyTable) -> None:
        check_weights(study.search, table)
        self.study, self.table = study, table
        self.segments, self.labels, self.cells = model_of(study, table)
        self.limits = limits_of(study)
        self.allowed = budget(study.search.max_suppression, table.persons) - table.removed
        atoms, units = self.cells, table.units  # the search counts persons where rows belong to persons
        if units is not None:
            atoms = Cells(atoms.codes, units.per_tuple, atoms.counts)
        self.solver = Solver(self.labels, atoms, self.allowed, study.search.seed)

    def solutions(self, ks: Sequence[int], run: Run) -> tuple[list[Solution], int]:
        """Return the best solution for each k, and the number of orders tried; a search may be resumed or stopped."""
        kept = KeptState(run, self.study, self.table)
        saved = kept.load()
        known, tried = self._restored(saved), int(saved.get(TRIED, 0))
        solutions, ended = list(known.values()), list(known.values())
        orders: dict[int, Candidate] = {}

        def asked(done: int, *_: int) -> bool:
            return run.tell(done, len(ks) + 1) or run.stopped

        for number, k in enumerate(ks, start=1):
            if k not in known:
                if not orders:
                    tries = min(ORDERS, max(FEWEST, SORTED // len(self.cells.counts)))
                    wanted = sorted({size for each in ks for size in self._sizes(each) if size > 1})
                    orders = self.solver.candidates(wanted or [2], tries, partial(asked, len(known)))
                    tried = len(self.solver.orders.values)
                solutions += self._best(k, orders, partial(asked, number - 1))
                if not run.stopped:  # an interrupted solution is in the front, but computed anew when resumed
                    ended = list(solutions)
                kept.save(partial(_state_of, ended, tried))
            if asked(number):
                break
        kept.end(partial(_state_of, ended, tried), run.stopped)
        return solutions, tried

    def _sizes(self, k: int) -> list[int]:
        """Return the class sizes that are tried for one k; the best classes are kept.

        Criteria may need larger classes. A person with different rows is counted in each tuple, so a class of k persons
        may need more rows as well.
        """
        units = self.table.units
        sizes = [k, max(k, 2) if self.limits else k]
        if units is not None and not units.constant:
            sizes += [max(k, 2), round(k * len(units.unit) / units.number)]
        return list(dict.fromkeys(sizes))

    def _best(self, k: int, orders: Mapping[int, Candidate], tell: Tell) -> list[Solution]:
        """Return the best solution for one k as its file will show it; none if no classes satisfy the criteria."""
        settings, solved = self.study.local, []
        for size in self._sizes(k):
            order, boxes = orders[max(size, 2)], settings.method == "boxes"
            one = self.solver.solve(size, order, boxes=boxes, effort=settings.effort, tell=tell)
            classes = None if one is None else self._satisfying(one.classes, k)
            if one is not None and classes is not None:
                solved.append(replace(one, k=k, classes=classes))
        return sorted(solved, key=lambda one: one.classes.loss)[:1]

    def _satisfying(self, classes: Classes, k: int) -> Classes | None:
        """Return classes that satisfy the criteria, in which equal boxes are one class."""
        if not self.limits and not self.table.counts_units:
            return merged_equal(classes)
        return feasible(classes, self.table, k, self.limits, self.allowed)

    def _restored(self, parts: Parts) -> dict[int, Solution]:
        """Return the solutions that were found before a search was interrupted."""
        solutions = {}
        for k in parts[SIZES].tolist() if SIZES in parts else ():
            bound = float(parts[f"floor{k}"])
            classes = Classes.of(self.labels, self.cells, *parts[f"entries{k}"])
            solutions[k] = Solution(k, classes, str(parts[f"method{k}"]), None if math.isnan(bound) else bound)
        return solutions

    def proven_bound(self, one: Solution) -> LowerBound | None:
        """Return the saved prices that prove the lower bound of a solution, in the order of the caller's cells."""
        solver, passes = self.solver, self.study.local.passes
        if one.bound is None:
            return None
        costs = np.minimum(solver.cheapest_costs(one.k), 1.0) if one.k > 1 else np.zeros(len(solver.order))
        bound = lower_bound(one.k, costs, solver.cells.lost)
        if one.k > 1:
            if passes > 0:
                bound = recoding_bound(solver.labels, solver.cells, bound, one.classes.paid[solver.order], BOUND_BUDGET)
            bound = dual_bound(solver.labels, solver.cells, bound, passes, BOUND_BUDGET)
        prices = np.empty(len(solver.order))
        prices[solver.order] = bound.prices
        return lower_bound(one.k, _rounded_down(prices) / PRICE_UNIT, solver.original.lost)

    def point(self, one: Solution, proven: LowerBound | None) -> Point:
        """Return a solution as a point of the front: its figures, its lower bound and its plan."""
        table, classes = self.table, one.classes
        weights = self.study.weights_for(table)
        full = sum(weights) * table.records
        loss = (classes.loss * classes.cells.records + table.removed) / table.records
        details: dict[str, object] = {"method": one.method}
        if proven is not None:
            details |= {"floor": proven.loss} | ({"ratio": loss / proven.loss} if proven.loss > 0 else {})
        values = {K.name: float(one.k), GENERAL_LOSS.name: loss * full}
        if self.limits:
            released = measured(classes, table, weights)
            values |= {chosen.name: float(chosen.value(released)) for chosen, _ in self.limits}
        bound = None if proven is None else proven.loss * full
        persons = None if table.units is None else suppressed_units(classes, table)
        plan = plan_of(self.segments, classes)
        return Point(0, values, loss, classes.suppressed + table.removed, plan, bound, details, persons)


def _state_of(solutions: Sequence[Solution], tried: int) -> dict[str, object]:
    """Return the solutions found so far and the number of orders tried, as arrays."""
    parts: dict[str, object] = {SIZES: np.array([one.k for one in solutions], np.int64), TRIED: np.array(tried)}
    for one in solutions:
        classes = one.classes
        parts[f"entries{one.k}"] = np.stack([classes.cell, classes.owner, classes.count])
        parts[f"floor{one.k}"] = np.array(np.nan if one.bound is None else one.bound)
        parts[f"method{one.k}"] = np.array(one.method)
    return parts


def _rounded_down(prices: Floats) -> Counts64:
    """Return prices in their unit, rounded down: lower prices prove a slightly lower bound and stay feasible."""
    return np.floor(prices * PRICE_UNIT).astype(np.int64)
