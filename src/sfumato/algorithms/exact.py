"""Branch and bound on a lattice: the complete front without an evaluation of every node.

Each objective has an optimistic bound at every node. The bound is known in advance (such as a loss without suppression)
or follows from evaluated nodes (no finer node has a better k than a coarser one). It holds for every release of the
node. A node is excluded if a point of the archive dominates its bounds, or if a bound violates a limit. A node that is
neither evaluated nor excluded is undecided. The search ends when no node is undecided. Until then the certificate
states which part of the front is proven.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.algorithms.dominance import dominated_by, first_non_dominated, non_dominated
from sfumato.algorithms.evaluation import Evaluated, Memory
from sfumato.base.arrays import Codes, Counts64, Flags, Floats

OPEN, EVALUATED, DOMINATED, INFEASIBLE = range(4)
SHARE = 1024  # one in so many undecided nodes is evaluated in a batch
PROMISING = 16


@dataclass(frozen=True)
class Bound:
    """The bounds of an objective, or of a limited figure, over the lattice. All are minimised.

    `known` has the bound of every node if it needs no evaluation. `moves` says whether the bound of an evaluated node
    "falls" or "rises" when the node is generalized further. None means that it implies nothing about other nodes.
    """

    name: str
    moves: str | None
    known: Floats | None = None
    limit: float | None = None


@dataclass(frozen=True, eq=False)
class Certificate:
    """The proof that a front is complete: the state of every node."""

    state: Codes
    names: tuple[str, ...]
    limits: tuple[str, ...]
    releases: int

    @property
    def complete(self) -> bool:
        return not np.any(self.state == OPEN)

    def as_dict(self) -> dict[str, object]:
        """Return the numbers of nodes: evaluated, excluded by dominated bounds, excluded by a limit, not proven."""
        counts = np.bincount(self.state, minlength=4)
        return {
            "nodes": len(self.state),
            "evaluated": int(counts[EVALUATED]),
            "releases": self.releases,
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
    """Evaluate undecided nodes in batches until none is left or `stop(evaluated, undecided)` is true.

    The first `len(values)` bounds are those of the objectives, in order. The others are only limits.
    """
    shape, size = memory.shape, int(np.prod(memory.shape))
    state = np.zeros(size, dtype=np.int32)
    best = np.stack([np.full(size, -np.inf) if bound.known is None else bound.known for bound in bounds])
    grid = np.array(np.unravel_index(np.arange(size), shape), dtype=np.int32).T
    chosen = np.unique(np.array([0, size - 1]))  # the finest and the coarsest node are each on some front
    archive: Floats | None = None
    looked_at = 0
    while True:
        places = memory.ask(grid[chosen])
        state[chosen] = EVALUATED
        result = memory.all
        new = result[np.arange(looked_at, len(result.values))]
        both = new.values[new.feasible] if archive is None else np.vstack([archive, new.values[new.feasible]])
        archive, looked_at = both[first_non_dominated(both)], len(result.values)
        for column, bound in enumerate(bounds):
            if bound.moves is not None and bound.known is None:
                _learn(best[column], result.bounds[places, column], chosen, shape, bound.moves == "rises")
        _exclude(archive, bounds, best, state)
        undecided = np.flatnonzero(state == OPEN)
        if not len(undecided) or stop(memory.count, len(undecided)):
            names = tuple(bound.name for bound in bounds[: result.values.shape[1]])
            limits = tuple(bound.name for bound in bounds if bound.limit is not None)
            return Certificate(state, names, limits, len(result.values))
        number = min(max(batch, len(undecided) // SHARE), len(undecided))
        first = undecided[:0]
        if result.values.shape[1] == 1 and bounds[0].known is not None:
            # With one objective and a known bound, some of the most promising nodes give a point that excludes many.
            first = undecided[np.argsort(best[0, undecided], kind="stable")[:PROMISING]]
        chosen = np.union1d(first, rng.choice(undecided, max(number - len(first), 1), replace=False))


def front_of(evaluated: Evaluated) -> Counts64:
    """Return the indices of the feasible non-dominated releases. Of equal values the first by levels is kept."""
    feasible = np.flatnonzero(evaluated.feasible)
    kept = feasible[non_dominated(evaluated.values[feasible])]
    order = np.lexsort(evaluated.nodes[kept].T[::-1])
    _, first = np.unique(evaluated.values[kept][order], axis=0, return_index=True)
    return np.asarray(np.sort(kept[order][first]))


def _learn(best: Floats, values: Floats, nodes: Counts64, shape: Sequence[int], rises: bool) -> None:
    """Set the bounds of evaluated nodes to their values, and improve the bounds of the nodes above or below them."""
    higher = values > best[nodes]
    best[nodes[higher]] = values[higher]
    if higher.any():  # else the other nodes have these bounds already
        spread(best, shape, rises)


def spread(best: Floats, shape: Sequence[int], rises: bool) -> None:
    """Apply the bound of each node to all finer nodes (to the coarser ones, if a bound rises), in place.

    One pass for each column is enough: level after level, a node takes over the bound of its neighbour.

    >>> best = np.array([0.0, 5.0, 1.0, 2.0, 3.0, 4.0])
    >>> spread(best, (2, 3), rises=False)
    >>> best.tolist()
    [5.0, 5.0, 4.0, 4.0, 4.0, 4.0]
    """
    inner = len(best)
    for levels in shape:
        inner //= levels
        nodes = best.reshape(-1, levels, inner)
        for level in range(1, levels):
            here, next_ = (level, level - 1) if rises else (levels - level - 1, levels - level)
            np.maximum(nodes[:, here], nodes[:, next_], out=nodes[:, here])


def _exclude(archive: Floats, bounds: Sequence[Bound], best: Floats, state: Codes) -> None:
    open_ = np.flatnonzero(state == OPEN)
    for column, bound in enumerate(bounds):
        if bound.limit is not None:
            broken: Flags = best[column, open_] > bound.limit
            state[open_[broken]] = INFEASIBLE
            open_ = open_[~broken]
    dominated = dominated_by(np.ascontiguousarray(best[: archive.shape[1], open_].T), archive)
    state[open_[dominated]] = DOMINATED
