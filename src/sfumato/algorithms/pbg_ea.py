"""PBG-EA (Dewri, Ray, Ray, Whitley 2010, algorithm 2), and a variant that also visits the archive's neighbours."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sfumato.algorithms.dominance import BoxArchive, comparable, first_dominator, non_dominated
from sfumato.algorithms.evaluation import Memory, neighbours
from sfumato.base.arrays import Codes, Counts64, Flags, Floats

CROSSOVER = 0.8
PATIENCE = 8
TRIES = 8


@dataclass(frozen=True)
class Hints:
    """Bounds of nodes that were not evaluated.

    `known(nodes)` are optimistic values, minus infinity if nothing is known. `moves` says for each objective how a
    bound moves when a node is generalized, so that evaluated nodes bound those below or above them.
    """

    known: Callable[[Codes], Floats]
    moves: tuple[str | None, ...]

    def hopeless(self, memory: Memory, archive: BoxArchive, nodes: Codes) -> Flags:
        """Return which nodes cannot improve the archive, by their bounds."""
        if not len(nodes):
            return np.zeros(0, dtype=np.bool_)
        bounds = self.known(nodes)
        evaluated = memory.all
        above = np.all(evaluated.nodes[None, :, :] >= nodes[:, None, :], axis=2)
        below = np.all(evaluated.nodes[None, :, :] <= nodes[:, None, :], axis=2)
        for column, moves in enumerate(self.moves):
            if moves is not None:
                side = below if moves == "rises" else above
                spread = np.where(side, evaluated.bounds[None, :, column], -np.inf).max(axis=1)
                bounds[:, column] = np.maximum(bounds[:, column], spread)
        return np.asarray(first_dominator(bounds, np.ascontiguousarray(archive.values)) >= 0)


def pbg_ea(
    memory: Memory,
    epsilon: Floats,
    rng: np.random.Generator,
    population: int = 25,
    iterations: int = 100,
    hints: Hints | None = None,
    stop: Callable[[int], bool] = lambda evaluated: False,
) -> BoxArchive:
    """Search the lattice, and return an archive whose members are indices in the memory.

    Without hints this is the paper's algorithm. With hints an iteration first visits neighbours of archive members that
    could improve the archive, then those of the second-best nodes. It breeds only if there are none, and it ends when
    several generations have changed nothing. That finds more points with fewer evaluations.
    """
    archive = BoxArchive(epsilon)
    top = np.array(memory.shape, dtype=np.int32) - 1
    current = rng.integers(0, top + 1, size=(population, len(top)), dtype=np.int32)
    current[0], current[1] = 0, top  # the fully specialized and the fully generalized node
    places = _offer(memory, archive, current)
    idle, second = 0, True
    for _ in range(iterations):
        if stop(memory.count) or idle >= PATIENCE:
            break
        if hints is not None:
            if _visit(memory, archive, archive.members, population, hints, rng):
                continue
            if second and _visit(memory, archive, _runners_up(memory, archive), population, hints, rng):
                second = False
                continue
        second = True
        before = list(archive.members)
        # A node that is both a parent and a member of the archive is drawn with twice the probability.
        pool = np.concatenate([places, np.array(archive.members, dtype=np.int64)])
        parents = _selected(memory, pool, population, rng)
        current = _recombined(memory.all.nodes[parents], top, rng)
        if hints is not None:
            current = _renewed(memory, archive, current, top, rng, hints)
        places = _offer(memory, archive, current)
        idle = idle + 1 if hints is not None and archive.members == before else 0
    return archive


def _offer(memory: Memory, archive: BoxArchive, nodes: Codes) -> Counts64:
    """Evaluate nodes and add the feasible ones to the archive."""
    places = memory.ask(nodes)
    evaluated = memory.all
    for number in places.tolist():
        if evaluated.feasible[number] and number not in archive.members:
            archive.add(evaluated.values[number], number)
    return places


def _runners_up(memory: Memory, archive: BoxArchive) -> list[int]:
    """Return the evaluated nodes that would be non-dominated without the archive."""
    evaluated = memory.all
    rest = np.setdiff1d(np.flatnonzero(evaluated.feasible), np.array(archive.members, dtype=np.int64))
    return [int(number) for number in rest[non_dominated(evaluated.values[rest])]]


def _visit(
    memory: Memory, archive: BoxArchive, members: list[int], limit: int, hints: Hints, rng: np.random.Generator
) -> bool:
    """Evaluate at most `limit` promising unvisited neighbours of some nodes, and return whether there were any."""
    if not members:
        return False
    around = neighbours(memory.all.nodes[members], memory.shape)
    new = around[~memory.seen(around)]
    new = new[~hints.hopeless(memory, archive, new)]
    if not len(new):
        return False
    _offer(memory, archive, new if len(new) <= limit else new[rng.choice(len(new), limit, replace=False)])
    return True


def _selected(memory: Memory, pool: Counts64, number: int, rng: np.random.Generator) -> Counts64:
    """Select by binary tournaments. The fitness of a node sums, over its dominators, how many nodes they dominate."""
    values = comparable(memory.all.values[pool])
    no_worse = np.all(values[:, None, :] <= values[None, :, :], axis=2)
    better = np.any(values[:, None, :] < values[None, :, :], axis=2)
    beats = no_worse & better
    fitness = beats.sum(axis=1) @ beats
    pairs = rng.integers(0, len(pool), size=(number, 2))
    winners = np.where(fitness[pairs[:, 0]] <= fitness[pairs[:, 1]], pairs[:, 0], pairs[:, 1])
    return np.asarray(pool[winners])


def _recombined(parents: Codes, top: Codes, rng: np.random.Generator) -> Codes:
    """Return offspring by single-point crossover of pairs drawn without replacement, and by mutation."""
    children = parents[rng.permutation(len(parents))].copy()
    columns = children.shape[1]
    for first in range(0, len(children) - 1, 2):
        if columns > 1 and rng.random() < CROSSOVER:
            cut = int(rng.integers(1, columns))
            left, right = children[first, cut:].copy(), children[first + 1, cut:].copy()
            children[first, cut:], children[first + 1, cut:] = right, left
    return _mutated(children, top, rng)


def _mutated(nodes: Codes, top: Codes, rng: np.random.Generator) -> Codes:
    """Mutate nodes by a step up or down, in each column with a probability of one over the number of columns."""
    chosen = rng.random(nodes.shape) < 1.0 / nodes.shape[1]
    steps = rng.choice(np.array([-1, 1], dtype=np.int32), size=nodes.shape)
    return np.asarray(np.clip(nodes + chosen * steps, 0, top), dtype=np.int32)


def _renewed(
    memory: Memory, archive: BoxArchive, nodes: Codes, top: Codes, rng: np.random.Generator, hints: Hints
) -> Codes:
    """Replace nodes that were visited or cannot improve the archive, by further random steps.

    Late in a search most offspring are such nodes. Those for which no replacement is found are dropped.
    """
    for tries in range(TRIES + 1):
        known = memory.seen(nodes) | hints.hopeless(memory, archive, nodes)
        if tries == TRIES or not known.any():
            break
        nodes[known] = _mutated(nodes[known], top, rng)
    return nodes[~known] if not known.all() else nodes[:1]
