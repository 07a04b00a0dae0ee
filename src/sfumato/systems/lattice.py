"""The lattice system: every non-dominated generalization of a table."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sfumato.algorithms.dominance import comparable
from sfumato.algorithms.evaluation import Evaluated, Memory
from sfumato.algorithms.exact import Bound, exact, front_of
from sfumato.algorithms.pbg_ea import Hints, pbg_ea
from sfumato.data.arrays import Codes, Counts64, Floats
from sfumato.data.frequency import FrequencyTable
from sfumato.errors import StudyError, UnreachableError, shortened
from sfumato.front import Front, Objective, Point, numbered
from sfumato.measures.classes import classify
from sfumato.measures.lattice import LatticeProblem
from sfumato.measures.suppression import budget
from sfumato.plans.levels import LevelPlan
from sfumato.plans.recoding import at_level
from sfumato.study import SearchSettings, Study
from sfumato.systems.goals import check_algorithm, check_weights, goal_of

EXHAUSTIVE_LIMIT = 5_000_000
EXACT_LIMIT = 20_000_000
SLACK = 1e-12  # two ways to the same sum may differ in the last digit
POPULATION = 25
OTHERS = 1500  # dominated points kept for pictures

Progress = Callable[[int, int], bool | None]  # told what is done and what there is; True asks to stop
Live = Callable[[Callable[[], Front]], None]  # handed a way to have the best so far, which costs only if it is used


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
                f"{len(undeclared)} quasi-identifiers have no hierarchy: {shortened(undeclared)}",
                expected="a hierarchy for each",
                remedy='hierarchy = { build = "flat" } keeps a value or hides it',
            )
        sought = [goal_of(study, o.name, o.direction) for o in settings.named]
        names = [goal.measure.name for goal in sought]
        if len(set(names)) < len(names):
            raise StudyError("an objective stands twice", expected="each measure once", remedy="leave one out")
        limits = [goal_of(study, name, None, limit) for name, limit in settings.constraints.items()]
        for domain in table.domains:
            at_level(domain, 0)  # refuses a column whose labels are generalized already
        raw = classify(table)
        for goal in (*sought, *limits):
            goal.measure.value(raw)
        check_weights(settings, table)
        floor = 0
        if "k" in settings.constraints and "k" not in names:
            floor = math.ceil(settings.constraints["k"])
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
        return Evaluated(nodes, values, bounds, self.problem.feasible(figures))

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
                known = comparable(
                    known - np.abs(known) * 1e-12
                )  # two ways to the same sum may differ in the last digit
            limit = None if goal.limit is None or place < self.sought else goal.sign * goal.limit + 1e-12
            found.append(Bound(goal.measure.name, goal.moves, known, limit))
        falls = "falls" if self.problem.floor else None
        return [*found, Bound("suppression", falls, None, float(self.problem.budget) if falls else None)]


def search_lattice(
    study: Study,
    table: FrequencyTable | None = None,
    progress: Progress | None = None,
    live: Live | None = None,
) -> Front:
    """Find the front of a study's lattice. Stopped early it is the best found, and `exact` says what is proven."""
    began = time.perf_counter()
    ready = Search.prepare(study, table)
    settings = study.search
    memory = Memory(ready.evaluate, ready.problem.shape)
    rng = np.random.default_rng(settings.seed)

    def so_far() -> Front:
        seconds = time.perf_counter() - began
        return _front(ready, memory, front_of(memory.all), settings.method, False, {}, seconds, pictures=False)

    def tell(done: int, total: int) -> bool | None:
        if live is not None:
            live(so_far)
        return progress(done, total) if progress is not None else None

    certificate: dict[str, object] = {}
    complete = True
    if settings.method == "exhaustive":
        _refuse_space(ready.problem.space, EXHAUSTIVE_LIMIT, "exact or pbg_ea")
        nodes = _all_nodes(ready.problem.shape)
        for chunk in np.array_split(nodes, max(len(nodes) // 4096, 1)):
            memory.ask(chunk)
            if tell(memory.count, len(nodes)):
                break
        complete = memory.count == len(nodes)
        places = front_of(memory.all)
    elif settings.method == "exact":
        _refuse_space(ready.problem.space, EXACT_LIMIT, "pbg_ea")
        proof = exact(
            memory, ready.bounds(_all_nodes(ready.problem.shape)), rng, lambda done, left: bool(tell(done, done + left))
        )
        certificate, complete = proof.as_dict(), proof.complete
        places = front_of(memory.all)
    else:
        archive = pbg_ea(
            memory,
            _epsilon(settings),
            rng,
            settings.population or POPULATION,
            settings.iterations,
            None if settings.reproduction else ready.hints(),
            lambda done: bool(tell(done, ready.problem.space)),
        )
        complete = False
        places = np.array(sorted(archive.members), dtype=np.int64)
    if not len(places):
        raise _unreachable(ready, memory)
    return _front(ready, memory, places, settings.method, complete, certificate, time.perf_counter() - began)


def _all_nodes(shape: tuple[int, ...]) -> Codes:
    return np.indices(shape, dtype=np.int32).reshape(len(shape), -1).T.copy()


def _refuse_space(space: int, limit: int, instead: str) -> None:
    if space > limit:
        raise StudyError(
            f"the lattice has {space:,} nodes",
            expected=f"at most {limit:,} for this algorithm",
            remedy=f"algorithm = {instead}",
        )


def _epsilon(settings: SearchSettings) -> Floats:
    given = settings.epsilon or (1.0,) * len(settings.objectives)
    if len(given) != len(settings.objectives) or min(given) <= 0:
        raise StudyError(
            f"epsilon = {list(given)}", expected="a number above 0 for each objective", remedy="epsilon = [1, 1]"
        )
    return np.array(given, dtype=np.float64)


def _unreachable(ready: Search, memory: Memory) -> UnreachableError:
    """No node meets the limits: say the nearest that one does."""
    figures = ready.problem.figures(memory.all.nodes)
    fits = figures.suppressed <= ready.problem.budget
    said = []
    for place, goal in enumerate(ready.problem.goals):
        if goal.limit is not None:
            reached = figures.values[fits, place] if fits.any() else figures.values[:, place]
            best = reached[np.argmin(goal.sign * reached)]
            said.append(f"{goal.measure.name} = {best:g} instead of {goal.limit:g}")
    return UnreachableError(
        "no generalization meets the limits" + ("" if fits.any() else " within the suppression limit"),
        expected="limits that some node meets",
        remedy="the nearest that can be had, each on its own: " + "; ".join(said) if said else "raise max_suppression",
    )


def _front(
    ready: Search,
    memory: Memory,
    places: Counts64,
    algorithm: str,
    complete: bool,
    certificate: dict[str, object],
    seconds: float,
    pictures: bool = True,
) -> Front:
    table, problem = ready.table, ready.problem
    found = memory.all
    figures = problem.figures(found.nodes[places])
    full = float(problem.weights.sum()) * table.records
    # Where missing values match anything a class may be smaller than the crowd it hides in, and none is suppressed.
    loose = any(domain.wildcard for domain in table.domains)
    points = []
    for row, place in enumerate(places.tolist()):
        levels = dict(zip(table.columns, found.nodes[place].tolist(), strict=True))
        values = {o.name: _number(figures.values[row, j]) for j, o in enumerate(ready.objectives)}
        below = 0 if loose else problem.floor or int(figures.k[row])
        plan = LevelPlan(levels, below)
        points.append(Point(0, values, float(figures.losses[row] / full), int(figures.suppressed[row]), plan))
    front = Front(
        study=ready.study,
        objectives=ready.objectives,
        points=numbered(points, ready.objectives[0]),
        algorithm=algorithm,
        exact=complete and algorithm != "pbg_ea",
        evaluations=memory.count,
        space=problem.space,
        seconds=round(seconds, 3),
        fingerprint=table.fingerprint,
        rows=table.records,
        certificate=certificate,
        others=_others(ready, found, places) if pictures else (),
    )
    return front.with_classes(table) if pictures else front


def _number(value: float) -> float:
    return int(value) if value == int(value) and abs(value) < 1e15 else float(value)


def _others(ready: Search, found: Evaluated, places: Counts64) -> tuple[dict[str, float], ...]:
    """Some dominated points that were evaluated, evenly drawn, for pictures."""
    rest = np.setdiff1d(np.flatnonzero(found.feasible), places)
    rest = rest[:: max(len(rest) // OTHERS, 1)][:OTHERS]
    if not len(rest):
        return ()
    figures = ready.problem.figures(found.nodes[rest])
    full = float(ready.problem.weights.sum()) * ready.table.records
    return tuple(
        {o.name: _number(figures.values[row, j]) for j, o in enumerate(ready.objectives)}
        | {"loss": float(figures.losses[row] / full)}
        for row in range(len(rest))
    )
