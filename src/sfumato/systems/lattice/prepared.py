"""A lattice search made ready: the problem, what is sought, what only limits; and what nodes become on a front."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sfumato.algorithms.dominance import comparable, leave_dominated
from sfumato.algorithms.evaluation import Evaluated
from sfumato.algorithms.exact import Bound
from sfumato.algorithms.pbg_ea import Hints
from sfumato.errors import StudyError, counted, shortened
from sfumato.front import Objective, Point
from sfumato.measures.classes import classify
from sfumato.measures.goal import Goal
from sfumato.measures.planned import thresholds_of
from sfumato.measures.standard import K
from sfumato.measures.suppression import budget
from sfumato.measures.thresholds import MEASURED, SOUGHT, value_at
from sfumato.plans.levels import LevelPlan
from sfumato.plans.recoding import at_level
from sfumato.runtime.arrays import Codes, Flags, Floats
from sfumato.study import Study
from sfumato.systems.goals import check_algorithm, check_weights, demanded_size, goal_of, number
from sfumato.systems.lattice.problem import Figures, LatticeProblem
from sfumato.tables.frequency import FrequencyTable

SLACK = 1e-12  # two ways to the same sum may differ in the last digit


@dataclass(frozen=True)
class Search:
    """A lattice search made ready: the problem, what is sought and what only limits."""

    study: Study
    table: FrequencyTable
    problem: LatticeProblem
    objectives: tuple[Objective, ...]

    @classmethod
    def prepare(cls, study: Study, table: FrequencyTable | None = None) -> Search:
        """Read the table and check that every objective and limit can be measured on it."""
        settings = study.search
        check_algorithm(settings, "lattice")
        table = study.table() if table is None else table
        undeclared = [domain.name for domain in table.domains if not domain.declared]
        if undeclared:
            raise StudyError(
                f"{counted(len(undeclared), 'quasi-identifier')} without a hierarchy: {shortened(undeclared)}",
                expected="a hierarchy for each",
                remedy='hierarchy = { build = "flat" } either keeps or hides a value',
            )
        sought = [goal_of(study, o.name, o.direction) for o in settings.named]
        names = [goal.measure.name for goal in sought]
        if len(set(names)) < len(names):
            raise StudyError("an objective is listed twice", expected="each measure once", remedy="leave one out")
        limits = [goal_of(study, name, None, limit) for name, limit in settings.constraints.items()]
        for domain in table.domains:
            at_level(domain, 0)  # refuses a column whose labels are generalized already
        raw = classify(table)
        for goal in (*sought, *limits):
            goal.measure.value(raw)
        check_weights(settings, table)
        floor = demanded_size(settings)
        maximum = budget(settings.max_suppression, table.persons)
        problem = LatticeProblem(
            table, [*sought, *limits], maximum, floor, settings.weights, settings.threads, len(sought), settings.paper
        )
        return cls(study, table, problem, tuple(_objective(goal, settings.paper) for goal in sought))

    @property
    def sought(self) -> int:
        return len(self.objectives)

    def evaluate(self, nodes: Codes) -> Evaluated:
        """Values of releases and bounds of nodes, minimised and fit to compare."""
        figures = self.problem.figures(nodes)
        signs = np.array([goal.sign for goal in self.problem.goals])
        values = comparable(figures.values[:, : self.sought] * signs[: self.sought])
        bounds = comparable(np.column_stack([figures.bounds * signs, figures.failing.astype(np.float64)]))
        gone = [figures.suppressed, figures.suppressed_rows, figures.losses]
        details = np.column_stack([*gone, figures.worst, figures.values[:, : self.sought]])
        violation = self.problem.violation(figures)
        result = Evaluated(nodes[figures.node], values, bounds[figures.node], violation, details)
        return result[self._useful(figures, result)]

    def _useful(self, figures: Figures, result: Evaluated) -> Flags:
        """Of each node the releases that none of its own beats; where one alone is asked for, the best of them."""
        if self.study.search.method == "best_first":
            order = np.lexsort((result.values[:, 0], result.violation, figures.node))
            kept = np.zeros(len(result.values), dtype=np.bool_)
            kept[order[figures.start[:-1]]] = True
        elif self.sought > 1:
            kept = np.ones(len(result.values), dtype=np.bool_)
            leave_dominated(result.values, figures.start, kept)
            kept[figures.start[:-1]] = True
        else:
            kept = np.ones(len(result.values), dtype=np.bool_)
        return kept

    def demanding(self, k: int) -> Search:
        """The same search where k is demanded: exactly the classes below it are suppressed, and k is sought no more."""
        goals = [goal for goal in self.problem.goals if goal.measure.name != K.name]
        objectives = tuple(objective for objective in self.objectives if objective.name != K.name)
        return replace(self, problem=self.problem.demanding(k, goals, len(objectives)), objectives=objectives)

    def hints(self) -> Hints:
        """What is known of nodes before they are evaluated."""
        goals = self.problem.goals[: self.sought]

        def known(nodes: Codes) -> Floats:
            result = np.full((len(nodes), len(goals)), -np.inf)
            for column, goal in enumerate(goals):
                bound = self.problem.known(goal, nodes)
                if bound is not None:
                    result[:, column] = comparable(bound - np.abs(bound) * SLACK)
            return result

        return Hints(known, tuple(goal.moves for goal in goals))

    def bounds(self, nodes: Codes) -> list[Bound]:
        """The bounds that the exact search may use."""
        result = []
        for position, goal in enumerate(self.problem.goals):
            known = self.problem.known(goal, nodes)
            if known is not None:
                known = comparable(known - np.abs(known) * SLACK)
            limit = None if goal.limit is None or position < self.sought else goal.sign * goal.limit + 1e-12
            result.append(Bound(goal.measure.name, goal.moves, known, limit))
        demanded = any(each.counts and np.isfinite(each.limit) for each in self.problem.thresholds)
        falls = "falls" if demanded else None
        return [*result, Bound("suppression", falls, None, float(self.problem.budget) if falls else None)]

    def points(self, evaluated: Evaluated, objectives: Sequence[Objective]) -> list[Point]:
        """Releases as points of a front, not yet numbered."""
        points = []
        for node, details in zip(evaluated.nodes.tolist(), evaluated.details.tolist(), strict=True):
            suppressed, rows, loss, *rest = details
            worst, own = rest[: len(self.problem.thresholds)], rest[len(self.problem.thresholds) :]
            values = dict(zip((o.name for o in self.objectives), own, strict=True))
            if K.name not in values:
                values[K.name] = worst[0]
            plan = LevelPlan(dict(zip(self.table.columns, node, strict=True)), **self._suppression(worst))
            chosen = {o.name: number(values[o.name]) for o in objectives}
            units = None if self.table.units is None else int(suppressed)
            points.append(Point(0, chosen, loss / self.full, int(rows), plan, suppressed_units=units))
        return points

    @property
    def full(self) -> float:
        """The most general loss that there can be."""
        return float(self.problem.weights.sum()) * self.table.records

    def _suppression(self, worst: Sequence[float]) -> dict[str, Any]:
        """The thresholds of a release: what is demanded as it is demanded, what is sought as it was reached."""
        below: dict[str, float] = {}
        for threshold, level in zip(self.problem.thresholds, worst, strict=True):
            if threshold.mode != MEASURED:
                reached = level if threshold.mode == SOUGHT else threshold.limit
                if np.isfinite(reached):  # below an infinite one there is nothing
                    below[threshold.measure.name] = value_at(threshold.measure, reached)
        return thresholds_of(below)


def _objective(goal: Goal, paper: bool) -> Objective:
    """t, β and δ are sought as they are demanded: against the whole input."""
    per_class = goal.measure.per_class
    whole = not paper and per_class is not None and per_class.whole
    return Objective(goal.measure.name, goal.direction, "input" if whole else "released")
