"""Best-first search: descents from many starts, for lattices that are too large for an exact search.

A step goes to the best neighbour: a level up or down in one column or, if none is better, up in one column and down in
another. A node is not evaluated if its bound shows that it is no better. The result is the best node found, without a
proof that it is optimal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from sfumato.algorithms.evaluation import Memory
from sfumato.base.arrays import Codes, Counts64, Flags, Floats

PATIENCE = 12  # the search ends after so many starts without a better node
AT_ONCE = 32
PENALTY = 2.0  # for the largest violation: the path to a better node may lead through one that violates a limit
SHAKES = (3, 7)  # steps that turn the best node into a start

Bound = Callable[[Codes], Floats]


def best_first(
    memory: Memory,
    bound: Bound,
    rng: np.random.Generator,
    starts: Sequence[Codes] = (),
    patience: int = PATIENCE,
    stop: Callable[[int], bool] = lambda evaluated: False,
) -> int | None:
    """Return the index in the memory of the best feasible node for one objective, or None if no node is feasible.

    `bound(nodes)` are lower bounds of the values of nodes. The descents begin at `starts`, then alternately at a random
    node and at the best node after some random steps.
    """
    top = np.array(memory.shape, dtype=np.int32) - 1
    descent = _Descent(memory, bound, stop)
    queue = [np.zeros_like(top), top, *starts]
    idle = number = 0
    while idle < patience and not descent.stopped:
        before = descent.best
        descent.run(queue[number] if number < len(queue) else _start(descent, top, rng, drawn=number % 2 == 0))
        number += 1
        idle = 0 if descent.best != before or number < len(queue) else idle + 1
    return descent.best


def _start(descent: _Descent, top: Codes, rng: np.random.Generator, drawn: bool) -> Codes:
    if drawn or descent.best is None:
        return rng.integers(0, top + 1, dtype=np.int32)
    node: Codes = descent.memory.all.nodes[descent.best].copy()
    for _ in range(int(rng.integers(*SHAKES))):
        column = int(rng.integers(len(top)))
        node[column] = np.clip(node[column] + rng.choice((-1, 1)), 0, top[column])
    return node


class _Descent:
    """The state that all descents share: the memory, the best node so far, and the condition to stop."""

    def __init__(self, memory: Memory, bound: Bound, stop: Callable[[int], bool]) -> None:
        self.memory, self.bound, self.stop = memory, bound, stop
        self.best: int | None = None
        self.stopped = False
        ends = np.stack([np.zeros(len(memory.shape), np.int32), np.array(memory.shape, np.int32) - 1])
        places = memory.ask(ends)
        self.scale = max(float(np.abs(memory.all.values[places, 0]).max()), 1e-300)
        self._note(places)  # a search that is stopped early can then return the coarsest node, if it is feasible

    def run(self, node: Codes) -> None:
        """Descend from a node until no neighbour is better."""
        best = float(self._scores(node[None])[0])
        while not self.stopped:
            for some in _near(node, self.memory.shape):
                # A score is never below its bound, so a node whose bound is no better need not be evaluated.
                hopeful = some[self.bound(some) / self.scale < best]
                scores = self._scores(hopeful)
                if len(scores) and scores.min() < best - 1e-12:
                    node, best = hopeful[int(scores.argmin())], float(scores.min())
                    break
                if self.stopped:
                    return
            else:
                return

    def _scores(self, nodes: Codes) -> Floats:
        if not len(nodes):
            return np.empty(0)
        places = self.memory.ask(nodes)
        self._note(places)
        self.stopped = self.stopped or self.stop(self.memory.count)
        evaluated = self.memory.all[places]
        return np.asarray(evaluated.values[:, 0] / self.scale + PENALTY * evaluated.violation)

    def _note(self, places: Counts64) -> None:
        """Keep the best of some evaluated nodes if it is feasible and better than the best so far."""
        evaluated = self.memory.all[places]
        meets: Flags = evaluated.feasible
        if meets.any():
            least = int(np.where(meets, evaluated.values[:, 0], np.inf).argmin())
            if self.best is None or evaluated.values[least, 0] < self.memory.all.values[self.best, 0]:
                self.best = int(places[least])


def _near(node: Codes, shape: tuple[int, ...]) -> Iterator[Codes]:
    """Return the neighbours of a node in batches: first those one step away, then exchanges of two levels."""
    step = np.eye(len(shape), dtype=np.int32)
    up, down = step[node + 1 < np.array(shape)], step[node > 0]
    yield np.concatenate([node + up, node - down])
    exchanges = (node + up[:, None, :] - down[None, :, :]).reshape(-1, len(shape))
    exchanges = exchanges[(exchanges != node).any(axis=1)]
    for begin in range(0, len(exchanges), AT_ONCE):
        yield exchanges[begin : begin + AT_ONCE]
