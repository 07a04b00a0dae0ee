"""The lattice as an optimisation problem: the releases of nodes with their objectives and limits, and bounds of nodes.

Measures that the compiled walk computes are evaluated by it. All others are evaluated on the class table of each
release, which is slower and always correct.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from sfumato.base.arrays import Codes, Counts64, Floats
from sfumato.errors import MeasureError
from sfumato.measures.classes import ClassTable, classify
from sfumato.measures.criteria import Criterion
from sfumato.measures.fast_paths import NodeFigures
from sfumato.measures.measure import Goal, Measure
from sfumato.measures.registry import DISTINCT_L, GENERAL_LOSS, WEIGHTED_K, K
from sfumato.measures.suppression import refuse_wildcards, suppress_below
from sfumato.measures.thresholds import (
    CONSTRAINT,
    HALF,
    MEASURED,
    OBJECTIVE,
    Threshold,
    class_levels,
    is_criterion,
    level_of,
    quantised,
    releases,
    values_at,
)
from sfumato.measures.units import releases_of
from sfumato.methods.lattice.rollup import Reads, RollUp, covered_leaves, full_sums
from sfumato.methods.lattice.rule import FAILING, GONE, RECORDS, SUM_K, SUM_L, WRONG, Rule
from sfumato.plans.recodings import at_levels
from sfumato.tables.frequency import FrequencyTable

# Criteria of shares of the records of units. They need sums of fractions, and the walk has whole numbers only.
BY_SHARES = (Criterion.ENTROPY, Criterion.RECURSIVE_L, Criterion.RECURSIVE_C, Criterion.CLOSENESS)


@dataclass(frozen=True, eq=False)
class Figures:
    """The releases of nodes. Node i has the releases `start[i]:start[i + 1]`, the one with most suppression first.

    Each release has the value of every goal, the general loss, the suppressed units and records, and the worst level of
    every criterion. Each node has the bounds of the goals, and the number of units that are suppressed at every finer
    node too. Values and bounds are in the units of the measures, not negated for maximisation.
    """

    start: Counts64
    values: Floats
    losses: Floats
    suppressed: Counts64
    suppressed_rows: Counts64
    worst: Floats
    bounds: Floats
    failing: Counts64

    @property
    def node(self) -> Counts64:
        """Return the index of the node of each release."""
        return np.repeat(np.arange(len(self.start) - 1), np.diff(self.start))


class LatticeProblem:
    """The lattice of a table with goals, a suppression budget, and weights of columns.

    The first `objective_count` goals are objectives, the others limits. By default a release is a node with a threshold
    for each class criterion that is an objective. A criterion that is only a limit has this limit as its threshold
    (docs/lattice.md). With `least_size`, classes below a size are suppressed without a goal for the size. With `paper`
    the rule of the paper is used: all classes of the smallest sizes are suppressed within the budget, and no other
    criterion suppresses classes (docs/readings.md, 1.1).
    """

    def __init__(
        self,
        table: FrequencyTable,
        goals: Sequence[Goal],
        budget: int,
        least_size: int = 0,
        weights: Mapping[str, float] | None = None,
        threads: int | None = None,
        objective_count: int | None = None,
        paper: bool = False,
    ) -> None:
        goals = [replace(goal, measure=goal.measure.for_table(table, budget > table.removed)) for goal in goals]
        self.table, self.goals, self.budget = table, tuple(goals), budget
        self.least_size, self.threads, self.paper = least_size, threads, paper
        self.objective_count = len(self.goals) if objective_count is None else objective_count
        self.weights = np.array([(weights or {}).get(name, 1.0) for name in table.columns])
        self.shape = tuple(domain.hierarchy.height + 1 for domain in table.domains)
        self.thresholds = self._thresholds()
        self.walks = self._walkable()
        self.counts_units = not self.walks and self._sizes_in_units()

    @property
    def space(self) -> int:
        return int(np.prod([int(size) for size in self.shape], dtype=object))

    def demanding(self, least_size: int, goals: Sequence[Goal], objective_count: int) -> LatticeProblem:
        """Return the lattice with some of its goals, in which exactly the classes below `least_size` are suppressed."""
        result = copy(self)
        result.goals, result.least_size, result.objective_count = tuple(goals), least_size, objective_count
        result.thresholds = result._thresholds()
        return result

    def _thresholds(self) -> tuple[Threshold, ...]:
        """Return the class criteria, size first, with the mode of each: objective, limit, or only measured."""
        size = Threshold(K, CONSTRAINT, float(self.least_size)) if self.least_size else Threshold(K, MEASURED)
        result: dict[tuple[object, ...], Threshold] = {_kind(K): size}
        loose = False
        for position, goal in enumerate(self.goals):
            if not is_criterion(goal.measure, goal.direction):
                # A mean over records may improve by suppression. A measure that cannot needs no threshold.
                loose = loose or not (goal.bounded and goal.measure.bound == "unsuppressed")
                continue
            known = result.get(_kind(goal.measure), Threshold(goal.measure, MEASURED))
            mode = OBJECTIVE if position < self.objective_count else max(known.mode, CONSTRAINT)
            least = known.limit if goal.limit is None else max(known.limit, level_of(goal.measure, goal.limit))
            result[_kind(goal.measure)] = replace(known, mode=max(mode, known.mode), limit=least)
        size = result[_kind(K)]
        if self.paper:
            result = {kind: Threshold(threshold.measure, MEASURED) for kind, threshold in result.items()}
            result[_kind(K)] = size if size.mode == CONSTRAINT else Threshold(K, OBJECTIVE)
        elif loose and size.mode == MEASURED:
            result[_kind(K)] = replace(size, mode=OBJECTIVE)
        return tuple(result.values())

    @property
    def _sensitive(self) -> set[object]:
        """Return the criteria of sensitive columns among the goals, and None for other measures of these columns."""
        return {
            _kind(goal.measure)[0] if is_criterion(goal.measure, goal.direction) else None
            for goal in self.goals
            if goal.measure.reads == "sensitive"
        }

    @property
    def _reads_counts(self) -> bool:
        """Return whether the walk counts how often sensitive values occur, not only which values occur."""
        return bool(self._sensitive - {Criterion.DISTINCT}) or self.table.units is not None

    @cached_property
    def rollup(self) -> RollUp:
        reads = {goal.measure.reads for goal in self.goals}
        return RollUp(
            self.table,
            Reads(
                counts=bool(self._sensitive - {Criterion.DISTINCT}),
                sets=bool(self._sensitive),
                label="label" in reads,
                people="population" in reads,
            ),
        )

    def figures(self, nodes: Codes) -> Figures:
        """Return the figures of nodes in the given order."""
        if self.walks:
            return self._walked(nodes)
        return self._in_units(nodes) if self.counts_units else self._plain(nodes)

    def known(self, goal: Goal, nodes: Codes) -> Floats | None:
        """Return the minimised bound of a goal at nodes without their evaluation, or None if it is unknown."""
        if not goal.measure.fast.margins or not goal.bounded:
            return None
        # The sums are from the margins, because a table may have too many columns for the walk.
        everyone, sums = np.full(len(nodes), self.table.rows), full_sums(self._covered, nodes)
        return goal.sign * _walked_value(goal.measure, NodeFigures(self.table, self.weights, nodes, everyone, sums))

    @cached_property
    def _covered(self) -> list[Counts64]:
        return covered_leaves(self.table)

    def classes(self, node: Sequence[int]) -> ClassTable:
        """Return the class table of a node before suppression."""
        result = classify(self.table, at_levels(self.table, node), tuple(self.weights.tolist()))
        return result if self.paper else replace(result, reference="input")

    def _walkable(self) -> bool:
        if any(domain.wildcard for domain in self.table.domains):
            return False
        several = len(self.table.sensitive) > 1
        if not self._walkable_in_units():
            return False
        for goal in self.goals:
            measure = goal.measure
            if is_criterion(measure, goal.direction) and measure.fast.criterion is not None:
                if self.paper and measure.fast.whole:  # the paper's rule compares with the kept records
                    return False
                if self.table.special and measure.reads == "sensitive" and self._reads_counts:
                    return False  # compiled loops distinguish harmless and missing values only in sets of values
            elif measure.fast.walk is None or (several and measure.reads == "sensitive"):
                return False
        try:
            return self.rollup is not None
        except MeasureError:
            return False

    def _walkable_in_units(self) -> bool:
        """Return whether all counts are sums over tuples, so that the walk can derive them from a finer node."""
        units = self.table.units
        if units is None:
            return all(self.table.units_for(name) is None for name in self._measured)
        if not units.constant or any(self.table.units_for(name) is not units for name in self._measured):
            return False
        for goal in self.goals:
            measure = goal.measure
            if is_criterion(measure, goal.direction):
                if measure.fast.criterion is None or measure.fast.criterion in BY_SHARES:
                    return False
            elif not (measure.fast.margins or measure.name == WEIGHTED_K.name):
                return False
        return True

    def _sizes_in_units(self) -> bool:
        """Return whether only class sizes in units decide about suppression, and other values follow from margins."""
        if self.table.units is None or any(domain.wildcard for domain in self.table.domains):
            return False
        if any(len(domain.labels) != len(domain.hierarchy.leaves) for domain in self.table.domains):
            return False
        if self.table.removed or len(self.thresholds) != 1:
            return False
        if self.thresholds[0].mode == OBJECTIVE and self.thresholds[0].limit > -np.inf:
            return False
        sizes = [goal for goal in self.goals if is_criterion(goal.measure, goal.direction)]
        others = [goal for goal in self.goals if goal not in sizes]
        return all(_kind(goal.measure) == _kind(K) for goal in sizes) and all(
            goal.measure.fast.margins for goal in others
        )

    def _in_units(self, nodes: Codes) -> Figures:
        """Return the figures of nodes if units have records in several tuples."""
        size = self.thresholds[0]
        least = int(np.ceil(size.limit - HALF)) if np.isfinite(size.limit) else 0
        parts = [
            releases_of(self.table, at_levels(self.table, node), size.mode, least, self.budget, not self.paper)
            for node in nodes.tolist()
        ]
        start = np.concatenate([[0], np.cumsum([len(rows) for rows, _, _ in parts])]).astype(np.int64)
        node = np.repeat(np.arange(len(nodes)), np.diff(start))
        found = np.concatenate([np.empty((0, 3 + len(self.shape)), np.int64), *(rows for rows, _, _ in parts)])
        best = np.array([highest for _, highest, _ in parts], dtype=np.float64)
        units, records, hidden = found[:, 1], found[:, 2], found[:, 3:]
        sums = full_sums(self._covered, nodes)
        released = NodeFigures(self.table, self.weights, nodes[node], self.table.records - records, sums[node] - hidden)
        whole = NodeFigures(self.table, self.weights, nodes, np.full(len(nodes), self.table.rows), sums)
        worst, best = found[:, :1].astype(np.float64), best[:, None]
        short = np.array([failing for _, _, failing in parts], dtype=np.int64)
        return self._figures(start, released, whole, worst, best, units, records, short)

    def _figures(
        self,
        start: Counts64,
        released: NodeFigures,
        whole: NodeFigures,
        worst: Floats,
        best: Floats,
        suppressed: Counts64,
        suppressed_rows: Counts64,
        failing: Counts64,
    ) -> Figures:
        """Return the figures of nodes from the counts of releases and the worst and best levels of each criterion."""
        column = {_kind(threshold.measure): position for position, threshold in enumerate(self.thresholds)}
        values, bounds = np.empty((len(worst), len(self.goals))), np.empty((len(best), len(self.goals)))
        for number, goal in enumerate(self.goals):
            if is_criterion(goal.measure, goal.direction):
                position = column[_kind(goal.measure)]
                values[:, number] = values_at(goal.measure, worst[:, position])
                bounds[:, number] = values_at(goal.measure, best[:, position])
            else:
                values[:, number] = _walked_value(goal.measure, released)
                bounds[:, number] = _walked_value(goal.measure, whole)
        losses = _walked_value(GENERAL_LOSS, released)
        return Figures(start, values, losses, suppressed, suppressed_rows, worst, bounds, failing)

    @property
    def _measured(self) -> list[str]:
        """Return the sensitive columns that some goal reads."""
        reads = any(goal.measure.reads == "sensitive" for goal in self.goals)
        return list(self.table.sensitive) if reads else []

    @cached_property
    def rule(self) -> Rule:
        """Return the thresholds in the form that compiled loops read."""
        several = self.thresholds
        return Rule(
            kinds=np.array([_criterion(threshold.measure) for threshold in several], dtype=np.int64),
            parameters=np.array([threshold.parameter() for threshold in several]),
            modes=np.array([threshold.mode for threshold in several], dtype=np.int64),
            limits=np.array([threshold.limit for threshold in several]) - HALF,
            counts=np.array([threshold.counts for threshold in several], dtype=np.bool_),
            budget=max(self.budget - self.table.removed, 0),
            every=not self.paper,
            mass=self.rollup.tallies.mass,
            people=self.rollup.tallies.people,
            own=int(any(goal.measure.reads == "sensitive" and goal.measure.fast.walk for goal in self.goals)),
            label=self.rollup.tallies.label,
            sizes=len(several) == 1
            and self.rollup.tallies.width == (0 if self.table.units is None else 1)
            and (several[0].mode == CONSTRAINT or several[0].limit == -np.inf),
        )

    def _walked(self, nodes: Codes) -> Figures:
        result = self.rollup.evaluate(nodes, self.rule, self.threads)
        node = np.repeat(np.arange(len(nodes)), np.diff(result.start))
        units, records = (result.figures[:, counted] + self.table.removed for counted in (GONE, RECORDS))
        sums, everyone = full_sums(self._covered, nodes), np.full(len(nodes), self.table.rows)
        return self._figures(
            result.start,
            self._counts(nodes[node], self.table.records - records, sums[node] - result.hidden, result.figures),
            self._counts(nodes, everyone, sums, result.whole),
            result.worst,
            result.best,
            units,
            records,
            result.whole[:, FAILING] + self.table.removed,
        )

    def _counts(self, nodes: Codes, kept: Counts64, sums: Counts64, walked: Counts64) -> NodeFigures:
        """Return the counts of the walk for releases, or for nodes before suppression."""
        counted = walked[:, SUM_K], walked[:, SUM_L], walked[:, WRONG]
        return NodeFigures(self.table, self.weights, nodes, kept, sums, *counted)

    def _plain(self, nodes: Codes) -> Figures:
        counts, values, losses, suppressed, rows, worst, bounds, failing = [], [], [], [], [], [], [], []
        for node in nodes.tolist():
            whole = self.classes(node)
            _ = whole.groups, whole.covers  # computed once for all releases of the node
            levels = [class_levels(threshold.measure, whole) for threshold in self.thresholds]
            made = 0
            for classes in self._releases(whole, levels):
                values.append([goal.measure.value(classes) for goal in self.goals])
                losses.append(GENERAL_LOSS.value(classes))
                suppressed.append(classes.suppressed_units)
                rows.append(classes.suppressed_rows)
                worst.append(self._worst(classes, levels))
                made += 1
            counts.append(made)
            bounds.append([_bound(goal, whole, self.budget) for goal in self.goals])
            certain = np.zeros(len(whole.rows), dtype=np.bool_)
            for threshold, level in zip(self.thresholds, levels, strict=True):
                if threshold.counts:
                    certain |= quantised(level) < threshold.limit - HALF
            failing.append(whole.counted(certain) + self.table.removed)
        start = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        return Figures(
            start,
            np.array(values, dtype=np.float64).reshape(len(losses), len(self.goals)),
            np.array(losses),
            np.array(suppressed, dtype=np.int64),
            np.array(rows, dtype=np.int64),
            np.array(worst, dtype=np.float64).reshape(len(losses), len(self.thresholds)),
            np.array(bounds, dtype=np.float64).reshape(len(nodes), len(self.goals)),
            np.array(failing, dtype=np.int64),
        )

    def _worst(self, classes: ClassTable, levels: Sequence[Floats]) -> list[float]:
        if classes.pairs is not None and classes.kept.any():
            levels = [class_levels(threshold.measure, classes, whole=False) for threshold in self.thresholds]
        return [float(level[classes.kept].min(initial=np.inf)) for level in levels]

    def _releases(self, whole: ClassTable, levels: Sequence[Floats]) -> list[ClassTable]:
        """Return the class tables of the releases of a node, the one with most suppression first."""
        if whole.pairs is not None and self.budget > whole.suppressed_units:
            return self._crowds(whole)
        result = [
            whole.with_suppressed(gone)
            for gone in releases(self.thresholds, levels, whole, self.budget, not self.paper)
        ]
        return sorted(result, key=lambda classes: -classes.suppressed_rows)

    def _crowds(self, whole: ClassTable) -> list[ClassTable]:
        """Return these class tables if missing values match anything: for each k the largest set of classes with it."""
        least = {threshold.measure.name: threshold for threshold in self.thresholds if threshold.mode != MEASURED}
        if self.paper or any(not threshold.counts for threshold in least.values()):
            refuse_wildcards(whole)
        size, diverse = (least.get(result.name, Threshold(result, MEASURED)) for result in (K, DISTINCT_L))
        if diverse.mode == OBJECTIVE:
            refuse_wildcards(whole)
        below = [0 if each.limit == -np.inf else int(np.ceil(each.limit - HALF)) for each in (size, diverse)]
        result = [suppress_below(whole, *below)]
        while size.mode == OBJECTIVE and result[-1].kept.any():
            reached = result[-1]
            more = suppress_below(reached, int(reached.size[reached.kept].min()) + 1, below[1])
            if more.suppressed_units > self.budget or not more.kept.any():
                break
            result.append(more)
        return result[::-1]

    def violation(self, figures: Figures) -> Floats:
        """Return how much releases violate the limits and the budget, as shares of these, or 0 if they violate none."""
        broken = np.maximum(figures.suppressed - self.budget, 0) / self.table.persons
        for column, goal in enumerate(self.goals):
            if goal.limit is not None:
                excess = goal.sign * (figures.values[:, column] - goal.limit)
                broken = broken + np.where(excess <= 2 * HALF, 0.0, excess / max(abs(goal.limit), 1.0))
        return np.asarray(np.where(np.isnan(broken), np.inf, broken))


def _kind(measure: Measure) -> tuple[object, ...]:
    """Return the kind of a criterion. k and prosecutor risk have the same kind, because both depend on sizes."""
    fast = measure.fast
    return (measure.name,) if fast.criterion is None else (fast.criterion, measure.parameters.get(fast.parameter))


def _criterion(measure: Measure) -> int:
    return -1 if measure.fast.criterion is None else int(measure.fast.criterion)


def _walked_value(measure: Measure, nodes: NodeFigures) -> Floats:
    if measure.fast.walk is None:
        raise MeasureError(f"{measure.name} by the walk", expected="a measure that the walk computes")
    return np.asarray(measure.fast.walk(nodes), dtype=np.float64)


def _bound(goal: Goal, whole: ClassTable, budget: int) -> float:
    """Return the bound of a goal at a node from its class table."""
    if not goal.bounded:
        return float("nan")
    if goal.measure.bound == "unsuppressed":
        return goal.measure.value(whole)
    levels = class_levels(goal.measure, whole)  # the best value if the worst classes are suppressed first
    order = np.argsort(levels, kind="stable")
    gone = whole.upto(order)
    position = min(int(np.searchsorted(gone, budget - whole.table.removed, side="right")), len(order) - 1)
    return float(values_at(goal.measure, levels[order][position : position + 1])[0])
