"""The lattice as a problem: the objectives, limits and bounds of any nodes, all minimised.

Measures that the walk knows are evaluated by it; any other is evaluated on the class table of each node, which is
slower and always right.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sfumato.errors import MeasureError
from sfumato.measures.classes import ClassTable, classify
from sfumato.measures.facts import NodeFigures
from sfumato.measures.goal import Goal
from sfumato.measures.measure import Measure
from sfumato.measures.standard import GENERAL_LOSS
from sfumato.measures.suppression import suppress_below, suppress_within
from sfumato.plans.recoding import at_levels
from sfumato.runtime.arrays import Codes, Counts64, Floats
from sfumato.systems.lattice import walk
from sfumato.systems.lattice.rollup import Indices, RollUp, covered_leaves, full_sums
from sfumato.tables.frequency import FrequencyTable


@dataclass(frozen=True, eq=False)
class Figures:
    """Natural values and bounds of nodes, one column per goal; records suppressed; the least class size kept."""

    values: Floats
    bounds: Floats
    losses: Floats
    suppressed: Counts64
    k: Counts64


class LatticeProblem:
    """A table's lattice with goals, a suppression budget, and attribute weights.

    With `floor` exactly the classes below it are suppressed, which is how a k that is demanded, not sought, is met at
    least loss; without, whole sizes go within the budget (docs/readings.md, 1.1).
    """

    def __init__(
        self,
        table: FrequencyTable,
        goals: Sequence[Goal],
        budget: int,
        floor: int = 0,
        weights: Mapping[str, float] | None = None,
        threads: int | None = None,
    ) -> None:
        self.table, self.goals, self.budget, self.floor, self.threads = table, tuple(goals), budget, floor, threads
        self.weights = np.array([(weights or {}).get(name, 1.0) for name in table.columns])
        self.shape = tuple(domain.hierarchy.height + 1 for domain in table.domains)
        self.walks = all(goal.measure.walked is not None for goal in goals) and self._walkable()

    @property
    def space(self) -> int:
        return int(np.prod([int(size) for size in self.shape], dtype=object))

    def demanding(self, floor: int, goals: Sequence[Goal]) -> LatticeProblem:
        """The same lattice with some of its goals, where exactly the classes below `floor` are suppressed."""
        found = copy(self)
        found.goals, found.floor = tuple(goals), floor
        return found

    @cached_property
    def rollup(self) -> RollUp:
        read = {goal.measure.reads for goal in self.goals}
        sensitive = next(iter(self.table.sensitive)) if "sensitive" in read else None
        return RollUp(self.table, sensitive, label="label" in read)

    def figures(self, nodes: Codes) -> Figures:
        """The figures of nodes, in the order they are given."""
        return self._walked(nodes) if self.walks else self._plain(nodes)

    def known(self, goal: Goal, nodes: Codes) -> Floats | None:
        """The goal's bound at nodes without evaluating them, minimised; None where it is not known."""
        walked = goal.measure.walked
        if walked is None or not walked.from_margins or not goal.bounded:
            return None
        everyone = np.full(len(nodes), self.table.rows)
        sums = full_sums(self._covered, nodes)  # the margins alone: a table may be too wide for the walk
        return np.asarray(goal.sign * walked.value(NodeFigures(self.table, self.weights, nodes, everyone, sums)))

    @cached_property
    def _covered(self) -> list[Counts64]:
        return covered_leaves(self.table)

    def classes(self, node: Sequence[int]) -> ClassTable:
        """The class table of a node after suppression."""
        found = classify(self.table, at_levels(self.table, node), tuple(self.weights.tolist()))
        return suppress_below(found, self.floor) if self.floor else suppress_within(found, self.budget)

    def _walkable(self) -> bool:
        if any(domain.wildcard for domain in self.table.domains):
            return False
        if len(self.table.sensitive) > 1 and any(goal.measure.reads == "sensitive" for goal in self.goals):
            return False
        try:
            return self.rollup is not None
        except MeasureError:
            return False

    def _walked(self, nodes: Codes) -> Figures:
        found = self.rollup.evaluate(nodes, self.budget, self.floor, self.threads)
        released, whole = self._released(found), self._whole(found)
        values, bounds = [], []
        for goal in self.goals:
            value = _walked_value(goal.measure, released)
            values.append(value)
            bounds.append(value if goal.measure.bound == "itself" else _walked_value(goal.measure, whole))
        losses = _walked_value(GENERAL_LOSS, released)
        shape = (len(nodes), len(self.goals))
        return Figures(_columns(values, shape), _columns(bounds, shape), losses, found.suppressed, found.k)

    def _released(self, found: Indices) -> NodeFigures:
        """What the walk counted of the records that are kept."""
        return NodeFigures(
            self.table,
            self.weights,
            found.nodes,
            self.table.records - found.suppressed,
            self.rollup.column_sums(found),
            least_size=found[walk.K],
            size_sum=found[walk.SUM_K],
            least_distinct=found[walk.DISTINCT],
            own_sum=found[walk.SUM_L],
            mislabelled=found[walk.WRONG],
        )

    def _whole(self, found: Indices) -> NodeFigures:
        """The same with nothing suppressed, or at its best within the budget: what bounds are taken from."""
        return NodeFigures(
            self.table,
            self.weights,
            found.nodes,
            np.full(len(found.nodes), self.table.rows),
            self.rollup.full_sums(found.nodes),
            size_sum=found[walk.SUM_K_FULL],
            least_distinct=found[walk.DISTINCT_BOUND],
            own_sum=found[walk.SUM_L_FULL],
            mislabelled=found[walk.WRONG_FULL],
        )

    def _plain(self, nodes: Codes) -> Figures:
        values, bounds, losses, suppressed, least = [], [], [], [], []
        for node in nodes:
            classes = self.classes(node.tolist())
            whole = classify(self.table, at_levels(self.table, node.tolist()), tuple(self.weights.tolist()))
            values.append([goal.measure.value(classes) for goal in self.goals])
            bounds.append([_bound(goal, classes, whole, self.budget) for goal in self.goals])
            losses.append(GENERAL_LOSS.value(classes))
            suppressed.append(classes.suppressed_rows)
            least.append(int(classes.size[classes.kept].min()) if classes.kept.any() else 0)
        return Figures(
            np.array(values, dtype=np.float64),
            np.array(bounds, dtype=np.float64),
            np.array(losses),
            np.array(suppressed, dtype=np.int64),
            np.array(least, dtype=np.int64),
        )

    def violation(self, figures: Figures) -> Floats:
        """By how much nodes break the limits and the budget, as shares of them; 0 where they meet all."""
        broken = np.maximum(figures.suppressed - self.budget, 0) / self.table.records
        for column, goal in enumerate(self.goals):
            if goal.limit is not None:
                excess = goal.sign * (figures.values[:, column] - goal.limit)
                broken = broken + np.where(excess <= 1e-12, 0.0, excess / max(abs(goal.limit), 1.0))
        return np.asarray(np.where(np.isnan(broken), np.inf, broken))


def _columns(parts: Sequence[Floats | Counts64], shape: tuple[int, int]) -> Floats:
    return np.stack([np.asarray(part, dtype=np.float64) for part in parts], axis=1) if parts else np.empty(shape)


def _walked_value(measure: Measure, nodes: NodeFigures) -> Floats:
    if measure.walked is None:
        raise MeasureError(f"{measure.name} by the walk", expected="a measure that the walk computes")
    return np.asarray(measure.walked.value(nodes), dtype=np.float64)


def _bound(goal: Goal, classes: ClassTable, whole: ClassTable, budget: int) -> float:
    """A goal's bound at one node from its class tables."""
    if not goal.bounded:
        return float("nan")
    if goal.measure.bound == "itself":
        return goal.measure.value(classes)
    if goal.measure.bound == "unsuppressed":
        return goal.measure.value(whole)
    found = []
    for column in goal.measure.columns(whole):  # the best that suppressing the worst classes first can reach
        values = goal.measure.property(whole, column).values[: len(whole.rows)]
        order = np.argsort(goal.sign * -values, kind="stable")
        gone = np.cumsum(whole.rows[order])
        found.append(float(values[order][min(int(np.searchsorted(gone, budget, side="right")), len(order) - 1)]))
    return min(found) if goal.direction == "max" else max(found)
