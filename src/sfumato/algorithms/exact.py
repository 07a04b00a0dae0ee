"""The complete front without visiting every node: bounds that are monotone along the lattice discard whole regions.

Each objective gives an optimistic bound at every node: known beforehand (a loss with nothing suppressed is), or taken
from evaluated nodes (no finer node has a better k than a coarser one). A node is excluded when a point of the archive
dominates its bounds, or when a bound breaks a limit. What is neither evaluated nor excluded is undecided; the search
ends when nothing is, and until then it can say which part is proven.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.algorithms.dominance import first_dominator, non_dominated
from sfumato.algorithms.evaluation import Evaluated, Memory
from sfumato.runtime.arrays import Codes, Counts64, Flags, Floats

OPEN, EVALUATED, DOMINATED, INFEASIBLE = range(4)


@dataclass(frozen=True)
class Bound:
    """How an objective (or a limited figure) is bounded over the lattice; all minimised.

    `known` has the bound of every node, if it needs no evaluation. `moves` says how the bound of an evaluated node
    moves when it is generalized further: "falls", "rises", or None when it tells nothing about others.
    """

    name: str
    moves: str | None
    known: Floats | None = None
    limit: float | None = None


@dataclass(frozen=True, eq=False)
class Certificate:
    """Why the front is complete: the state of every node, and for excluded ones the bounds they were excluded by."""

    state: Codes
    bounds: Floats
    names: tuple[str, ...]
    limits: tuple[str, ...]

    @property
    def complete(self) -> bool:
        return not np.any(self.state == OPEN)

    def as_dict(self) -> dict[str, object]:
        """The counts: evaluated, excluded by dominated bounds, excluded by a limit, and what is not proven."""
        counts = np.bincount(self.state, minlength=4)
        return {
            "nodes": len(self.state),
            "evaluated": int(counts[EVALUATED]),
            "excluded": {
                "by a point that dominates the bounds of " + ", ".join(self.names): int(counts[DOMINATED]),
                "by a bound beyond the limit of " + (", ".join(self.limits) or "nothing"): int(counts[INFEASIBLE]),
            },
            "undecided": int(counts[OPEN]),
            "proven": round(1.0 - float(counts[OPEN]) / len(self.state), 6),
        }


def exact(
    memory: Memory,
    bounds: Sequence[Bound],
    rng: np.random.Generator,
    stop: Callable[[int, int], bool] = lambda evaluated, undecided: False,
    batch: int = 128,
) -> Certificate:
    """Evaluate undecided nodes in batches until none is left, or `stop(evaluated, undecided)` says so.

    The first `len(values)` bounds are those of the objectives, in order; further ones are limits only.
    """
    shape, size = memory.shape, int(np.prod(memory.shape))
    state = np.zeros(size, dtype=np.int32)
    best = np.full((size, len(bounds)), -np.inf)
    for column, bound in enumerate(bounds):
        if bound.known is not None:
            best[:, column] = bound.known
    grid = np.array(np.unravel_index(np.arange(size), shape), dtype=np.int32).T
    _evaluate(memory, grid, state, np.array([0, size - 1]))  # both ends are always on some front
    while True:
        _tighten(memory, bounds, best, shape)
        _exclude(memory, bounds, best, state)
        undecided = np.flatnonzero(state == OPEN)
        if not len(undecided) or stop(memory.count, len(undecided)):
            objectives = tuple(bound.name for bound in bounds[: memory.all.values.shape[1]])
            return Certificate(
                state, best, objectives, tuple(bound.name for bound in bounds if bound.limit is not None)
            )
        chosen = rng.choice(undecided, min(max(batch, len(undecided) // 64), len(undecided)), replace=False)
        _evaluate(memory, grid, state, np.sort(chosen))


def front_of(found: Evaluated) -> Counts64:
    """The places of the feasible non-dominated nodes; of nodes with equal values, the first in the order of levels."""
    feasible = np.flatnonzero(found.feasible)
    kept = feasible[non_dominated(found.values[feasible])]
    order = np.lexsort(found.nodes[kept].T[::-1])
    _, first = np.unique(found.values[kept][order], axis=0, return_index=True)
    return np.asarray(np.sort(kept[order][first]))


def _evaluate(memory: Memory, grid: Codes, state: Codes, chosen: Counts64) -> None:
    memory.ask(grid[chosen])
    state[chosen] = EVALUATED


def _tighten(memory: Memory, bounds: Sequence[Bound], best: Floats, shape: tuple[int, ...]) -> None:
    """Spread the bounds of evaluated nodes: along each column in turn, the largest so far."""
    found = memory.all
    places = memory.number(found.nodes)
    for column, bound in enumerate(bounds):
        if bound.moves is None or bound.known is not None:
            continue
        spread = np.full(len(best), -np.inf)
        spread[places] = found.bounds[:, column]
        spread = spread.reshape(shape)
        for axis in range(len(shape)):
            if bound.moves == "rises":  # what a finer node has, a coarser one has at least
                spread = np.maximum.accumulate(spread, axis=axis)
            else:
                spread = np.flip(np.maximum.accumulate(np.flip(spread, axis), axis=axis), axis)
        best[:, column] = spread.reshape(-1)


def _exclude(memory: Memory, bounds: Sequence[Bound], best: Floats, state: Codes) -> None:
    found = memory.all
    archive = found.values[front_of(found)]
    open_ = np.flatnonzero(state == OPEN)
    for column, bound in enumerate(bounds):
        if bound.limit is not None:
            broken: Flags = best[open_, column] > bound.limit
            state[open_[broken]] = INFEASIBLE
            open_ = open_[~broken]
    objectives = found.values.shape[1]
    dominated = first_dominator(np.ascontiguousarray(best[open_, :objectives]), np.ascontiguousarray(archive)) >= 0
    state[open_[dominated]] = DOMINATED
