"""The lattice system: every non-dominated generalization of a table."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from sfumato.algorithms.evaluation import Evaluated, Memory
from sfumato.algorithms.exact import exact, front_of
from sfumato.algorithms.pbg_ea import pbg_ea
from sfumato.errors import StudyError, UnreachableError, counted
from sfumato.front import Front, Point, numbered
from sfumato.measures.classes import classify
from sfumato.plans.levels import all_nodes
from sfumato.plans.recoding import at_levels
from sfumato.runtime.arrays import Codes, Counts64, Floats
from sfumato.study import SearchSettings, Study
from sfumato.systems.lattice.beyond_enumeration import search_large
from sfumato.systems.lattice.prepared import Search
from sfumato.systems.lattice.state import recalled, remembered
from sfumato.systems.run import Run
from sfumato.tables.frequency import FrequencyTable

LIMITS = {"exhaustive": 5_000_000, "exact": 20_000_000}  # nodes of a lattice that is searched completely
POPULATION = 25
OTHERS = 1500  # dominated points kept for pictures


def search_lattice(
    study: Study,
    table: FrequencyTable,
    run: Run,
) -> Front:
    """Find the front of a study's lattice. Stopped early it is the best found, and `exact` says what is proven.

    The study of a front that was stopped says after how many evaluations: searching it again gives the same front.
    """
    began = time.perf_counter()
    ready = Search.prepare(study, table)
    settings = study.search
    kept = run.kept(study, ready.table.fingerprint)
    parts = kept.load() if kept is not None and run.resume else None
    memories: dict[str, Memory] = {}

    def remember(search: Search) -> Memory:
        name = str(search.problem.floor)
        memories[name] = Memory(search.evaluate, search.problem.shape, recalled(parts, name))
        return memories[name]

    def tell(done: int, total: int, so_far: Callable[[], list[Point]]) -> bool:
        run.show(lambda: _front(ready, so_far(), done, time.perf_counter() - began))
        if kept is not None:
            kept.save(lambda: remembered(memories))
        enough = settings.evaluations is not None and done >= settings.evaluations
        return enough or run.tell(done, total)

    def ended(evaluations: int) -> Search:
        """The search as it must be asked for again to end here."""
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


Tell = Callable[[int], bool]  # told how many evaluations there are at most; True asks to stop
Outcome = tuple[Counts64, bool, dict[str, object]]  # places of the front, whether all was decided, the certificate


def _exhaustive(ready: Search, memory: Memory, tell: Tell) -> Outcome:
    _refuse_space(ready.problem.space, LIMITS["exhaustive"], "exact or pbg_ea")
    nodes = all_nodes(ready.problem.shape)
    for chunk in np.array_split(nodes, max(len(nodes) // 4096, 1)):
        memory.ask(chunk)
        if tell(len(nodes)):
            break
    return front_of(memory.all), memory.count == len(nodes), {}


def _exact(ready: Search, memory: Memory, tell: Tell) -> Outcome:
    _refuse_space(ready.problem.space, LIMITS["exact"], "pbg_ea or best_first")
    rng = np.random.default_rng(ready.study.search.seed)
    bounds = ready.bounds(all_nodes(ready.problem.shape))
    proof = exact(memory, bounds, rng, lambda done, left: tell(done + left))
    return front_of(memory.all), proof.complete, proof.as_dict()


def _pbg_ea(ready: Search, memory: Memory, tell: Tell) -> Outcome:
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
    if len(result.values) > memory.count:  # nodes have several releases: the archive was offered the first of each
        for position in np.setdiff1d(np.flatnonzero(result.feasible), memory.first).tolist():
            archive.add(result.values[position], position)
    return np.array(sorted(archive.members), dtype=np.int64), False, {}


METHODS: dict[str, Callable[[Search, Memory, Tell], Outcome]] = {
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
    """No node meets the limits: say the nearest that one does."""
    figures, table = ready.problem.figures(nodes), ready.problem.table
    fits = figures.suppressed <= ready.problem.budget
    said = []
    for position, goal in enumerate(ready.problem.goals):
        if goal.limit is not None:
            reached = figures.values[fits, position] if fits.any() else figures.values[:, position]
            best = reached[np.argmin(goal.sign * reached)]
            if goal.measure.kind == "privacy":  # best where nothing is told; a node whose classes all go says nothing
                best = goal.measure.value(
                    classify(table, at_levels(table, [d.hierarchy.height for d in table.domains]))
                )
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
    """The front of some points; with `others`, dominated points for pictures, also with its class histograms."""
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
    """Some dominated points that were evaluated, evenly drawn, for pictures."""
    rest = np.setdiff1d(np.flatnonzero(result.feasible), places)
    rest = rest[:: max(len(rest) // OTHERS, 1)][:OTHERS]
    if not len(rest):
        return ()
    return tuple(dict(point.values) | {"loss": point.loss} for point in ready.points(result[rest], ready.objectives))
