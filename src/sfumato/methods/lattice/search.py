"""Searches of a lattice: exhaustive, exact, PBG-EA, and best-first for lattices that are too large for the others.

The evaluated nodes are saved, so that an interrupted search can be resumed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from sfumato.algorithms.best_first import PATIENCE, best_first
from sfumato.algorithms.dominance import comparable, first_non_dominated, leave_dominated
from sfumato.algorithms.evaluation import PARTS, Evaluated, Memory
from sfumato.algorithms.exact import Bound, exact, front_of
from sfumato.algorithms.pbg_ea import Hints, pbg_ea
from sfumato.base.arrays import Codes, Counts64, Flags, Floats
from sfumato.errors import StudyError, UnreachableError, counted, shortened
from sfumato.front import Front, Objective, Point, numbered
from sfumato.measures.classes import classify
from sfumato.measures.measure import Goal
from sfumato.measures.registry import K
from sfumato.measures.suppression import budget, level_plan
from sfumato.measures.thresholds import MEASURED, OBJECTIVE, values_at
from sfumato.methods.lattice.problem import Figures, LatticeProblem
from sfumato.methods.run import Parts, Run
from sfumato.methods.system import check_algorithm, check_weights, demanded_size, goal_of, number
from sfumato.plans.recodings import all_nodes, at_level, at_levels
from sfumato.study import SearchSettings, Study
from sfumato.tables.frequency import FrequencyTable


def remembered(memories: Mapping[str, Memory]) -> Parts:
    """Return the evaluated nodes of searches as arrays. A search is deterministic, so it needs no other state."""
    parts = [(name, part, memory.all) for name, memory in memories.items() if memory.count for part in PARTS]
    return {f"{name}/{part}": getattr(found, part) for name, part, found in parts}


def recalled(parts: Parts | None, name: str) -> Evaluated | None:
    """Return the evaluated nodes of an earlier search, or None if there are none."""
    if parts is None or f"{name}/nodes" not in parts:
        return None
    return Evaluated(*(parts[f"{name}/{part}"] for part in PARTS))


SLACK = 1e-12  # two computations of the same sum may differ in the last digit


@dataclass(frozen=True)
class Search:
    """The setup of a lattice search: the problem, its objectives and its limits."""

    study: Study
    table: FrequencyTable
    problem: LatticeProblem
    objectives: tuple[Objective, ...]

    @classmethod
    def prepare(cls, study: Study, table: FrequencyTable | None = None) -> Search:
        """Read the table, and check that every objective and limit can be measured on it."""
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
        objective_goals = [goal_of(study, o.name, o.direction) for o in settings.named]
        names = [goal.measure.name for goal in objective_goals]
        if len(set(names)) < len(names):
            raise StudyError("an objective is listed twice", expected="each measure once", remedy="leave one out")
        limits = [goal_of(study, name, None, limit) for name, limit in settings.constraints.items()]
        for domain in table.domains:
            at_level(domain, 0)  # raises for a column whose labels are generalized already
        raw = classify(table)
        for goal in (*objective_goals, *limits):
            goal.measure.value(raw)
        check_weights(settings, table)
        problem = LatticeProblem(
            table,
            [*objective_goals, *limits],
            budget(settings.max_suppression, table.persons),
            demanded_size(settings),
            settings.weights,
            settings.threads,
            len(objective_goals),
            settings.paper,
        )
        return cls(study, table, problem, tuple(_objective(goal, settings.paper) for goal in objective_goals))

    @property
    def objective_count(self) -> int:
        return len(self.objectives)

    def evaluate(self, nodes: Codes) -> Evaluated:
        """Return the values of releases and the bounds of nodes, minimised and rounded for comparisons."""
        figures = self.problem.figures(nodes)
        signs = np.array([goal.sign for goal in self.problem.goals])
        values = comparable(figures.values[:, : self.objective_count] * signs[: self.objective_count])
        bounds = comparable(np.column_stack([figures.bounds * signs, figures.failing.astype(np.float64)]))
        gone = [figures.suppressed, figures.suppressed_rows, figures.losses]
        details = np.column_stack([*gone, figures.worst, figures.values[:, : self.objective_count]])
        violation = self.problem.violation(figures)
        result = Evaluated(nodes[figures.node], values, bounds[figures.node], violation, details)
        return result[self._useful(figures, result)]

    def _useful(self, figures: Figures, result: Evaluated) -> Flags:
        """Return the non-dominated releases of each node, or its best release for a single objective."""
        kept, first = np.ones(len(result.values), dtype=np.bool_), figures.start[:-1]
        if self.study.search.method == "best_first":
            kept[:] = False
            kept[np.lexsort((result.values[:, 0], result.violation, figures.node))[first]] = True
        elif self.objective_count > 1:
            leave_dominated(result.values, figures.start, kept)
            kept[first] = True
        return kept

    def demanding(self, k: int) -> Search:
        """Return the search with k as a constraint: exactly the classes below k are suppressed."""
        goals = [goal for goal in self.problem.goals if goal.measure.name != K.name]
        objectives = tuple(objective for objective in self.objectives if objective.name != K.name)
        return replace(self, problem=self.problem.demanding(k, goals, len(objectives)), objectives=objectives)

    def hints(self) -> Hints:
        """Return the bounds of nodes that are known before an evaluation."""
        goals = self.problem.goals[: self.objective_count]

        def known(nodes: Codes) -> Floats:
            result = np.full((len(nodes), len(goals)), -np.inf)
            for column, goal in enumerate(goals):
                bound = self._known(goal, nodes)
                if bound is not None:
                    result[:, column] = bound
            return result

        return Hints(known, tuple(goal.moves for goal in goals))

    def _known(self, goal: Goal, nodes: Codes) -> Floats | None:
        """Return the bound of a goal at nodes that needs no evaluation, as it is compared with values."""
        bound = self.problem.known(goal, nodes)
        return None if bound is None else comparable(bound - np.abs(bound) * SLACK)

    def bounds(self, nodes: Codes) -> list[Bound]:
        """Return the bounds that the exact search may use."""
        result = []
        for position, goal in enumerate(self.problem.goals):
            known = self._known(goal, nodes)
            limit = None if goal.limit is None or position < self.objective_count else goal.sign * goal.limit + 1e-12
            result.append(Bound(goal.measure.name, goal.moves, known, limit))
        demanded = any(each.counts and np.isfinite(each.limit) for each in self.problem.thresholds)
        falls = "falls" if demanded else None
        return [*result, Bound("suppression", falls, None, float(self.problem.budget) if falls else None)]

    def points(self, evaluated: Evaluated, objectives: Sequence[Objective]) -> list[Point]:
        """Return releases as points of a front, without numbers."""
        points = []
        for node, details in zip(evaluated.nodes.tolist(), evaluated.details.tolist(), strict=True):
            suppressed, rows, loss, *rest = details
            worst, own = rest[: len(self.problem.thresholds)], rest[len(self.problem.thresholds) :]
            values = dict(zip((o.name for o in self.objectives), own, strict=True))
            if K.name not in values:
                values[K.name] = worst[0]
            plan = level_plan(dict(zip(self.table.columns, node, strict=True)), self._limits(worst))
            chosen = {o.name: number(values[o.name]) for o in objectives}
            units = None if self.table.units is None else int(suppressed)
            points.append(Point(0, chosen, loss / self.full, int(rows), plan, suppressed_units=units))
        return points

    @property
    def full(self) -> float:
        """Return the highest possible general loss."""
        return float(self.problem.weights.sum()) * self.table.records

    def _limits(self, worst: Sequence[float]) -> dict[str, float]:
        """Return the thresholds of a release: the limit of a constraint, and the level reached by an objective."""
        below: dict[str, float] = {}
        for threshold, level in zip(self.problem.thresholds, worst, strict=True):
            if threshold.mode != MEASURED:
                reached = level if threshold.mode == OBJECTIVE else threshold.limit
                if np.isfinite(reached):  # an infinite threshold would suppress all classes
                    below[threshold.measure.name] = float(values_at(threshold.measure, np.array([reached]))[0])
        return below


def _objective(goal: Goal, paper: bool) -> Objective:
    """Return a goal as an objective of a front. t, β and δ are relative to the input, as in constraints."""
    return Objective(
        goal.measure.name, goal.direction, "input" if goal.measure.fast.whole and not paper else "released"
    )


LADDER = (1, 1.5, 2, 3, 5, 7)  # times powers of ten: the constraints on k, one after the other
PATIENCE_EACH = 4  # starts without a better node for each k; the search for the next k begins at the last result

StopWithPoints = Callable[[int, int, Callable[[], list[Point]]], bool]


def search_large(ready: Search, remember: Callable[[Search], Memory], tell: StopWithPoints) -> tuple[list[Point], int]:
    """Return the best nodes found and the number of evaluations. `remember` returns the memory of a search.

    With k as an objective, each k of a ladder is a constraint in turn (the ε-constraint method).
    """
    names = [objective.name for objective in ready.objectives]
    if len(names) > 2 or (len(names) == 2 and K.name not in names):
        raise StudyError(
            f"best_first with {', '.join(names)}",
            expected="one objective, or k and one more",
            remedy='algorithm = "pbg_ea", or give the others a limit under constraints',
        )
    rng = np.random.default_rng(ready.study.search.seed)
    result: list[Point] = []
    evaluated = 0
    starts: list[Codes] = []

    def so_far(search: Search, memory: Memory) -> Callable[[], list[Point]]:
        return lambda: _best(ready, [*result, *_leading(ready, search, memory)])

    for search in [ready] if len(names) == 1 else map(ready.demanding, ladder(ready)):
        memory = remember(search)

        best = so_far(search, memory)

        def stop(count: int, before: int = evaluated, now: Callable[[], list[Point]] = best) -> bool:
            return tell(before + count, ready.problem.space, now)

        patience = PATIENCE if len(names) == 1 else PATIENCE_EACH
        position = best_first(memory, bound_of(search), rng, starts, patience, stop)
        evaluated += memory.count
        if position is None:
            break
        starts = [memory.all.nodes[position]]
        result += search.points(memory.all[np.array([position])], ready.objectives)
        if stop(0, evaluated):
            break
    return _best(ready, result), evaluated


def ladder(ready: Search) -> list[int]:
    """Return the constraints on k: from the least permitted k, each about half larger, to the number of records."""
    asked = [goal.limit for goal in ready.problem.goals if goal.measure.name == K.name and goal.limit is not None]
    least, limit = int(max(asked, default=2)), ready.table.records
    steps = {round(step * 10**power) for power in range(len(str(limit))) for step in LADDER}
    return sorted({least} | {k for k in steps if least <= k <= limit})


def bound_of(search: Search) -> Callable[[Codes], Floats]:
    """Return a lower bound of the objective at nodes, from the margins of the table alone."""
    known = search.hints().known
    return lambda nodes: known(nodes)[:, 0]


def _leading(ready: Search, search: Search, memory: Memory) -> list[Point]:
    """Return the best node of a running search, if a node is feasible."""
    values = np.where(memory.all.feasible, memory.all.values[:, 0], np.inf)
    position = int(values.argmin())
    return search.points(memory.all[np.array([position])], ready.objectives) if np.isfinite(values[position]) else []


def _best(ready: Search, points: list[Point]) -> list[Point]:
    """Return the non-dominated points."""
    values = [[o.sign * p.values[o.name] for o in ready.objectives] for p in points]
    table = comparable(np.array(values, dtype=np.float64).reshape(-1, len(ready.objectives)))
    return [point for point, best in zip(points, first_non_dominated(table), strict=True) if best]


LIMITS = {"exhaustive": 5_000_000, "exact": 20_000_000}  # most nodes of a lattice for each algorithm
POPULATION = 25
OTHERS = 1500  # most dominated points that are kept for figures


def search_lattice(study: Study, table: FrequencyTable, run: Run) -> Front:
    """Find the front of a study's lattice. If the search is stopped, the front has the best points found.

    The certificate of an exact search states what is proven. The study of a front that was stopped has the number of
    evaluations, so that the same search again gives the same front.
    """
    began = time.perf_counter()
    ready = Search.prepare(study, table)
    settings = study.search
    kept = run.kept(study, ready.table.fingerprint)
    parts = kept.load() if kept is not None and run.resume else None
    memories: dict[str, Memory] = {}

    def remember(search: Search) -> Memory:
        name = str(search.problem.least_size)
        memories[name] = Memory(search.evaluate, search.problem.shape, recalled(parts, name))
        return memories[name]

    def tell(done: int, total: int, so_far: Callable[[], list[Point]]) -> bool:
        run.show(lambda: _front(ready, so_far(), done, time.perf_counter() - began))
        if kept is not None:
            kept.save(lambda: remembered(memories))
        enough = settings.evaluations is not None and done >= settings.evaluations
        return enough or run.tell(done, total)

    def ended(evaluations: int) -> Search:
        """Return the settings with which a new search ends at the same point."""
        if kept is not None and run.stopped:
            kept.save(lambda: remembered(memories), now=True)
        elif kept is not None:
            kept.remove()
        return replace(ready, study=study.with_search(evaluations=evaluations)) if run.stopped else ready

    if settings.method == "best_first":
        points, evaluated = search_large(ready, remember, tell)
        last = ended(evaluated)
        if not points:
            raise _unreachable(ready, np.array([ready.problem.shape], dtype=np.int32) - 1)
        return _front(last, points, evaluated, time.perf_counter() - began, others=())
    memory = remember(ready)

    def now() -> list[Point]:
        return ready.points(memory.all[front_of(memory.all)], ready.objectives)

    places, complete, certificate = METHODS[settings.method](
        ready, memory, lambda total: tell(memory.count, total, now)
    )
    last = ended(memory.count)
    if not len(places):
        raise _unreachable(ready, memory.all.nodes[memory.first])
    points = ready.points(memory.all[places], ready.objectives)
    others = _others(ready, memory.all, places)
    return _front(last, points, memory.count, time.perf_counter() - began, complete, certificate, others)


Stop = Callable[[int], bool]  # called with the most evaluations there can be; True stops the search
Outcome = tuple[Counts64, bool, dict[str, object]]  # indices of the front, whether it is complete, the certificate


def _exhaustive(ready: Search, memory: Memory, tell: Stop) -> Outcome:
    _refuse_space(ready.problem.space, LIMITS["exhaustive"], "exact or pbg_ea")
    nodes = all_nodes(ready.problem.shape)
    for chunk in np.array_split(nodes, max(len(nodes) // 4096, 1)):
        memory.ask(chunk)
        if tell(len(nodes)):
            break
    return front_of(memory.all), memory.count == len(nodes), {}


def _exact(ready: Search, memory: Memory, tell: Stop) -> Outcome:
    _refuse_space(ready.problem.space, LIMITS["exact"], "pbg_ea or best_first")
    rng = np.random.default_rng(ready.study.search.seed)
    bounds = ready.bounds(all_nodes(ready.problem.shape))
    proof = exact(memory, bounds, rng, lambda done, left: tell(done + left))
    return front_of(memory.all), proof.complete, proof.as_dict()


def _pbg_ea(ready: Search, memory: Memory, tell: Stop) -> Outcome:
    settings = ready.study.search
    archive = pbg_ea(
        memory,
        _epsilon(settings),
        np.random.default_rng(settings.seed),
        settings.population or POPULATION,
        settings.iterations,
        None if settings.reproduction else ready.hints(),
        lambda done: tell(ready.problem.space),
    )
    result = memory.all
    if len(result.values) > memory.count:  # nodes have several releases, and the archive has only the first of each
        for position in np.setdiff1d(np.flatnonzero(result.feasible), memory.first).tolist():
            archive.add(result.values[position], position)
    return np.array(sorted(archive.members), dtype=np.int64), False, {}


METHODS: dict[str, Callable[[Search, Memory, Stop], Outcome]] = {
    "exhaustive": _exhaustive,
    "exact": _exact,
    "pbg_ea": _pbg_ea,
}
PROVING = ("exhaustive", "exact")


def _refuse_space(space: int, limit: int, instead: str) -> None:
    if space > limit:
        raise StudyError(
            f"the lattice has {counted(space, 'node')}",
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


def _unreachable(ready: Search, nodes: Codes) -> UnreachableError:
    """Return the error that no node meets the limits, with the nearest value that a node reaches."""
    figures, table = ready.problem.figures(nodes), ready.problem.table
    fits = figures.suppressed <= ready.problem.budget
    said = []
    for position, goal in enumerate(ready.problem.goals):
        if goal.limit is not None:
            reached = figures.values[fits, position] if fits.any() else figures.values[:, position]
            best = reached[np.argmin(goal.sign * reached)]
            if goal.measure.kind == "privacy":
                # A node with all classes suppressed is best in privacy and is no help to the reader.
                coarsest = at_levels(table, [domain.hierarchy.height for domain in table.domains])
                best = goal.measure.value(classify(table, coarsest))
            said.append(f"{goal.measure.name} = {best:g} instead of {goal.limit:g}")
    return UnreachableError(
        "no generalization meets the limits" + ("" if fits.any() else " within the suppression limit"),
        expected="limits that some node meets",
        remedy="the best value for each limit on its own: " + "; ".join(said) if said else "raise max_suppression",
    )


def _front(
    ready: Search,
    points: list[Point],
    evaluations: int,
    seconds: float,
    complete: bool = False,
    certificate: dict[str, object] | None = None,
    others: tuple[dict[str, float], ...] | None = None,
) -> Front:
    """Return the front of some points. With `others` (dominated points for figures) it has class histograms too."""
    front = Front(
        study=ready.study,
        objectives=ready.objectives,
        points=numbered(points, ready.objectives[0]),
        algorithm=ready.study.search.method,
        exact=complete and ready.study.search.method in PROVING,
        evaluations=evaluations,
        space=ready.problem.space,
        seconds=round(seconds, 3),
        fingerprint=ready.table.fingerprint,
        rows=ready.table.records,
        units=None if ready.table.units is None else ready.table.units.number,
        certificate=certificate or {},
        others=others or (),
    )
    return front if others is None else front.with_classes(ready.table)


def _others(ready: Search, result: Evaluated, places: Counts64) -> tuple[dict[str, float], ...]:
    """Return some dominated points that were evaluated, evenly spaced, for figures."""
    rest = np.setdiff1d(np.flatnonzero(result.feasible), places)
    rest = rest[:: max(len(rest) // OTHERS, 1)][:OTHERS]
    if not len(rest):
        return ()
    return tuple(dict(point.values) | {"loss": point.loss} for point in ready.points(result[rest], ready.objectives))
