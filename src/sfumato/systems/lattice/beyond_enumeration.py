"""Lattices far beyond enumeration: best first, for one objective or for k and another one, demanded k by demanded k."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sfumato.algorithms.best_first import PATIENCE, best_first
from sfumato.algorithms.dominance import comparable, first_non_dominated
from sfumato.algorithms.evaluation import Memory
from sfumato.errors import StudyError
from sfumato.front import Point
from sfumato.measures.standard import K
from sfumato.runtime.arrays import Codes, Floats
from sfumato.systems.lattice.prepared import Search

LADDER = (1, 1.5, 2, 3, 5, 7)  # times powers of ten: the k that are demanded one after another
PATIENCE_EACH = 4  # starts without a better node for each k; the next k begins where the last one ended

Tell = Callable[[int, int, Callable[[], list[Point]]], bool]


def search_large(ready: Search, remember: Callable[[Search], Memory], tell: Tell) -> tuple[list[Point], int]:
    """The best nodes found, and how many evaluations they took. `remember` gives the memory of a search.

    With k as an objective each k of a ladder is demanded in turn, and the other objective sought.
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
    """The k to demand: from the least that is asked for, in steps of about a half, to all records in one class."""
    asked = [goal.limit for goal in ready.problem.goals if goal.measure.name == K.name and goal.limit is not None]
    least, limit = int(max(asked, default=2)), ready.table.records
    steps = {round(step * 10**power) for power in range(len(str(limit))) for step in LADDER}
    return sorted({least} | {k for k in steps if least <= k <= limit})


def bound_of(search: Search) -> Callable[[Codes], Floats]:
    """What the objective of nodes cannot be below, by the margins of the table alone."""
    known = search.hints().known
    return lambda nodes: known(nodes)[:, 0]


def _leading(ready: Search, search: Search, memory: Memory) -> list[Point]:
    """The best node of a search that is under way, if one meets the limits."""
    values = np.where(memory.all.feasible, memory.all.values[:, 0], np.inf)
    position = int(values.argmin())
    return search.points(memory.all[np.array([position])], ready.objectives) if np.isfinite(values[position]) else []


def _best(ready: Search, points: list[Point]) -> list[Point]:
    """Those that no other one dominates."""
    values = [[o.sign * p.values[o.name] for o in ready.objectives] for p in points]
    table = comparable(np.array(values, dtype=np.float64).reshape(-1, len(ready.objectives)))
    return [point for point, best in zip(points, first_non_dominated(table), strict=True) if best]
