"""A lattice search made ready: the problem, what is sought, what only limits; and what nodes become on a front."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from sfumato.algorithms.dominance import comparable
from sfumato.algorithms.evaluation import Evaluated
from sfumato.algorithms.exact import Bound
from sfumato.algorithms.pbg_ea import Hints
from sfumato.errors import StudyError, counted, shortened
from sfumato.front import Objective, Point
from sfumato.measures.classes import classify
from sfumato.measures.standard import K
from sfumato.measures.suppression import budget
from sfumato.plans.levels import LevelPlan
from sfumato.plans.recoding import at_level
from sfumato.runtime.arrays import Codes, Floats
from sfumato.study import Study
from sfumato.systems.goals import check_algorithm, check_weights, demanded_size, goal_of, number
from sfumato.systems.lattice.problem import LatticeProblem
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
        most = budget(settings.max_suppression, table.records)
        problem = LatticeProblem(table, [*sought, *limits], most, floor, settings.weights, settings.threads)
        return cls(study, table, problem, tuple(Objective(g.measure.name, g.direction) for g in sought))

    @property
    def sought(self) -> int:
        return len(self.objectives)

    def evaluate(self, nodes: Codes) -> Evaluated:
        """Values and bounds of nodes, minimised and fit to compare."""
        figures = self.problem.figures(nodes)
        signs = np.array([goal.sign for goal in self.problem.goals])
        values = comparable(figures.values[:, : self.sought] * signs[: self.sought])
        bounds = comparable(np.column_stack([figures.bounds * signs, figures.suppressed.astype(np.float64)]))
        return Evaluated(nodes, values, bounds, self.problem.violation(figures))

    def demanding(self, k: int) -> Search:
        """The same search where k is demanded: exactly the classes below it are suppressed, and k is sought no more."""
        goals = [goal for goal in self.problem.goals if goal.measure.name != K.name]
        return replace(
            self,
            problem=self.problem.demanding(k, goals),
            objectives=tuple(objective for objective in self.objectives if objective.name != K.name),
        )

    def hints(self) -> Hints:
        """What is known of nodes before they are evaluated."""
        goals = self.problem.goals[: self.sought]

        def known(nodes: Codes) -> Floats:
            found = np.full((len(nodes), len(goals)), -np.inf)
            for column, goal in enumerate(goals):
                bound = self.problem.known(goal, nodes)
                if bound is not None:
                    found[:, column] = comparable(bound - np.abs(bound) * SLACK)
            return found

        return Hints(known, tuple(goal.moves for goal in goals))

    def bounds(self, nodes: Codes) -> list[Bound]:
        """The bounds that the exact search may use."""
        found = []
        for place, goal in enumerate(self.problem.goals):
            known = self.problem.known(goal, nodes)
            if known is not None:
                known = comparable(known - np.abs(known) * SLACK)
            limit = None if goal.limit is None or place < self.sought else goal.sign * goal.limit + 1e-12
            found.append(Bound(goal.measure.name, goal.moves, known, limit))
        falls = "falls" if self.problem.floor else None
        return [*found, Bound("suppression", falls, None, float(self.problem.budget) if falls else None)]

    def points(self, nodes: Codes, objectives: Sequence[Objective]) -> list[Point]:
        """Nodes as points of a front, not yet numbered."""
        figures = self.problem.figures(nodes)
        column = {goal.measure.name: place for place, goal in enumerate(self.problem.goals)}
        full = float(self.problem.weights.sum()) * self.table.records
        # Where missing values match anything a class may be smaller than the crowd it hides in, and none is suppressed.
        loose = any(domain.wildcard for domain in self.table.domains)
        points = []
        for row, node in enumerate(nodes.tolist()):
            values = {
                o.name: number(figures.values[row, column[o.name]] if o.name in column else float(figures.k[row]))
                for o in objectives
            }
            below = 0 if loose else self.problem.floor or int(figures.k[row])
            plan = LevelPlan(dict(zip(self.table.columns, node, strict=True)), below)
            points.append(Point(0, values, float(figures.losses[row] / full), int(figures.suppressed[row]), plan))
        return points
