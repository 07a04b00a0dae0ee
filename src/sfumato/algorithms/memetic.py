"""NSGA-II (Deb et al. 2002) and a memetic form of it, with an archive of all non-dominated points.

A generation breeds and evaluates offspring, improves members of the archive by local search, and selects. Selection
uses non-dominated ranks, crowding distances and binary tournaments. Candidates are rows of bits, and the problem is a
few functions. The state has everything that the loop needs, so an interrupted run that is resumed has the same result
as an uninterrupted one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from sfumato.algorithms.dominance import first_non_dominated, ranks
from sfumato.algorithms.evaluation import Hashes, Seen
from sfumato.base.arrays import Counts64, Flags, Floats
from sfumato.plans.segments import Bits

WORST = 1e300  # replaces infinity, so that distances stay finite


def crowding(values: Floats, rank: Counts64) -> Floats:
    """Return the crowding distance of each point within its rank. It is infinite at the ends of a rank.

    All ranks are computed together: after sorting by rank and value, neighbours are in consecutive rows.
    """
    count = len(values)
    distance = np.zeros(count)
    fronts = int(rank.max()) + 1
    for column in np.minimum(values, WORST).T:
        order = np.lexsort((column, rank))
        value, level = column[order], rank[order]
        first = np.ones(count, dtype=np.bool_)
        first[1:] = level[1:] != level[:-1]
        last = np.ones(count, dtype=np.bool_)
        last[:-1] = first[1:]
        span = np.empty(fronts)
        span[level[first]] = value[last] - value[first]
        gain = np.zeros(count)
        gain[1:-1] = value[2:] - value[:-2]
        width = span[level]
        with np.errstate(divide="ignore", invalid="ignore"):
            gain = np.where(width > 0, gain / width, 0.0)
        gain[first | last] = np.inf
        distance[order] += gain
    return distance


def survivors(values: Floats, count: int) -> tuple[Counts64, Counts64, Floats]:
    """Return the best points by rank and crowding distance: their indices, ranks and distances."""
    rank = ranks(values)
    crowd = crowding(values, rank)
    best = np.lexsort((-crowd, rank))[:count]
    return best, rank[best], crowd[best]


def tournament(rank: Counts64, crowd: Floats, count: int, rng: np.random.Generator) -> Counts64:
    """Return the winners of binary tournaments: the lower rank, then the larger distance, then the first drawn."""
    one, two = rng.integers(0, len(rank), (2, count))
    second = (rank[two] < rank[one]) | ((rank[two] == rank[one]) & (crowd[two] > crowd[one]))
    return np.asarray(np.where(second, two, one))


class Archive:
    """An archive of non-dominated points. Of equal points it keeps the first. `members` are the caller's numbers.

    An objective with a `grid` above 0 is rounded to its steps for comparisons. Without it, an objective with real
    values would have too many non-dominated points.

    >>> archive = Archive(np.zeros(2))
    >>> archive.add(np.array([[1.0, 2.0], [2.0, 1.0], [2.0, 2.0], [1.0, 2.0]]), np.arange(4)).tolist()
    [0, 1]
    >>> archive.add(np.array([[1.0, 1.0]]), np.array([9])).tolist(), archive.members.tolist()
    ([0], [9])
    """

    def __init__(self, grid: Floats) -> None:
        self.grid = grid
        self.values: Floats = np.empty((0, len(grid)))
        self.members: Counts64 = np.empty(0, dtype=np.int64)

    def __len__(self) -> int:
        return len(self.members)

    def better(self, values: Floats) -> Counts64:
        """Return the indices of points that would be accepted: no member or earlier point is as good in all."""
        return np.flatnonzero(self._non_dominated(values)[len(self) :])

    def add(self, values: Floats, members: Counts64) -> Counts64:
        """Add the points that are non-dominated, and return their indices."""
        undominated = self._non_dominated(values)
        kept, taken = undominated[: len(self)], np.flatnonzero(undominated[len(self) :])
        if len(taken):
            self.values = np.vstack([self.values[kept], values[taken]])
            self.members = np.concatenate([self.members[kept], members[taken]])
        return taken

    def _non_dominated(self, values: Floats) -> Flags:
        """Return which of the members, followed by new points, are non-dominated, the first of equal ones."""
        finite = np.isfinite(values).all(axis=1)
        both = np.vstack([self.values, values[finite]])
        step = np.where(self.grid > 0, self.grid, 1.0)
        both = np.where(self.grid > 0, np.ceil(both / step - 1e-9), both)
        undominated = np.zeros(len(self) + len(values), dtype=np.bool_)
        places = np.concatenate([np.arange(len(self)), len(self) + np.flatnonzero(finite)])
        undominated[places] = first_non_dominated(both)
        return undominated


# Most steps along the front from the target to the member that is rebuilt, and to its mate.
NEARBY, FARTHER = 3, 12


class Neighbours(Protocol):
    """The neighbours of one candidate that were not seen before."""

    def __len__(self) -> int: ...

    def made(self, chosen: Counts64) -> Bits: ...


class Problem(Protocol):
    """The interface of a problem. Values are minimised. A candidate may have several variants, each a point."""

    @property
    def objectives(self) -> int: ...

    @property
    def grid(self) -> Floats: ...

    def sampled(self, rng: np.random.Generator, count: int) -> Bits: ...

    def offspring(self, parents: Bits, rng: np.random.Generator) -> Bits: ...

    def jolted(self, parents: Bits, rng: np.random.Generator) -> Bits: ...

    def mixed(self, parents: Bits, mates: Bits, rng: np.random.Generator) -> Bits:
        """Return each parent with some columns of its mate. It is called only if there are `rebuilds`."""
        ...

    def hashes(self, bits: Bits) -> Hashes: ...

    def values(self, bits: Bits) -> Floats:
        """Return values by candidate, variant and objective. They are infinite for variants that do not exist."""
        ...

    def fitness(self, values: Floats) -> Floats:
        """Return values by candidate and objective, of the variant by which a candidate is selected."""
        ...

    def neighbours(self, parents: Bits, seen: Seen) -> list[tuple[Neighbours, Floats]]: ...

    def rebuilt(self, parents: Bits, disturbed: Bits, targets: Floats, rng: np.random.Generator) -> tuple[Bits, int]:
        """Return candidates with their columns optimised one after the other, and the number of columns optimised.

        The first objective is kept at the value of the target. Columns that were changed in the parent come last. It is
        called only if there are `rebuilds`.
        """
        ...


@dataclass
class Settings:
    """The size of the population, the number of generations, and the extent of local search in each.

    `sweeps` is the number of candidates whose neighbours are all evaluated, `rebuilds` the number of those whose
    columns are optimised. If both are 0, the algorithm is NSGA-II.
    """

    population: int = 100
    generations: int = 250
    sweeps: int = 16
    rebuilds: int = 0
    steps: int = 5
    stretches: int = 400


@dataclass
class Walker:
    """A candidate that returns to the front by local search, after a random change of an archive member."""

    bits: Bits
    target: Floats
    steps: int


@dataclass
class State:
    """The state of a run, from which it can be resumed."""

    generation: int
    rng: np.random.Generator
    population: Bits
    fitness: Floats
    archive: Archive
    bits: dict[int, Bits] = field(default_factory=dict)
    variants: dict[int, int] = field(default_factory=dict)
    explored: set[int] = field(default_factory=set)
    seen: Seen = field(default_factory=Seen)
    evaluations: int = 0
    number: int = 0
    walkers: list[Walker] = field(default_factory=list)

    def forget(self) -> None:
        """Delete the candidates that are no longer in the archive."""
        live = set(self.archive.members.tolist())
        self.bits = {member: bits for member, bits in self.bits.items() if member in live}
        self.variants = {member: variant for member, variant in self.variants.items() if member in live}
        self.explored &= live


def start(problem: Problem, settings: Settings, seeds: Bits, rng: np.random.Generator) -> State:
    """Create and evaluate a population of the seeds and random candidates."""
    fresh = problem.sampled(rng, settings.population)
    candidates = np.vstack([seeds, fresh]).astype(np.uint8)
    width = candidates.shape[1]
    empty = np.empty((0, width), dtype=np.uint8)
    state = State(0, rng, empty, np.empty((0, problem.objectives)), Archive(problem.grid))
    bits, fitness = evaluate(problem, state, candidates)
    best, _, _ = survivors(fitness, settings.population)
    state.population, state.fitness = bits[best], fitness[best]
    return state


def evaluate(problem: Problem, state: State, candidates: Bits) -> tuple[Bits, Floats]:
    """Evaluate the candidates that were not seen before, and add them to the archive."""
    fresh = candidates[state.seen.new(problem.hashes(candidates))]
    if not len(fresh):
        return fresh, np.empty((0, problem.objectives))
    return fresh, keep(problem, state, fresh)


def keep(problem: Problem, state: State, fresh: Bits) -> Floats:
    """Evaluate candidates, add every variant to the archive, and return the fitness."""
    values = problem.values(fresh)
    state.evaluations += len(fresh)
    flat = values.reshape(-1, values.shape[2])
    taken = state.archive.better(flat)
    number = np.zeros(len(flat), dtype=np.int64)
    number[taken] = state.number + np.arange(len(taken))
    state.number += len(taken)
    state.archive.add(flat, number)
    for position in taken.tolist():
        candidate, state.variants[int(number[position])] = divmod(position, values.shape[1])
        state.bits[int(number[position])] = fresh[candidate].copy()
    return problem.fitness(values)


def step(problem: Problem, settings: Settings, state: State) -> None:
    """Run one generation."""
    rng = state.rng
    order, rank, crowd = survivors(state.fitness, len(state.fitness))
    chosen = order[tournament(rank, crowd, settings.population, rng)]
    children, fitness = evaluate(problem, state, problem.offspring(state.population[chosen], rng))
    pool, values = [state.population, children], [state.fitness, fitness]
    for wanted, local_search in ((settings.sweeps, improve), (settings.rebuilds, rebuild)):
        if wanted and len(state.archive):
            bits, fitness = local_search(problem, settings, state)
            pool.append(bits)
            values.append(fitness)
    everyone, fitness = np.vstack(pool), np.vstack(values)
    best, _, _ = survivors(fitness, settings.population)
    state.population, state.fitness = everyone[best], fitness[best]
    state.forget()
    state.generation += 1


def improve(problem: Problem, settings: Settings, state: State) -> tuple[Bits, Floats]:
    """Evaluate all neighbours of some candidates: archive members not yet explored, then the walkers."""
    members = _unexplored(settings, state)
    state.explored.update(members)
    parents = [state.bits[member] for member in members]
    state.walkers = state.walkers[: settings.sweeps - len(parents)]
    fresh = settings.sweeps - len(parents) - len(state.walkers)
    improved = [np.empty((0, state.population.shape[1]), np.uint8)]
    if fresh:
        starts = state.rng.integers(0, len(state.archive), fresh)
        jolted = problem.jolted(np.stack([state.bits[m] for m in state.archive.members[starts].tolist()]), state.rng)
        for bits, number in zip(jolted, starts.tolist(), strict=True):
            state.walkers.append(Walker(bits, state.archive.values[number].copy(), settings.steps))
        improved.append(jolted[state.seen.new(problem.hashes(jolted))])
    known = len(improved[-1])
    parents.extend(walker.bits for walker in state.walkers)
    swept = problem.neighbours(np.stack(parents), state.seen)
    owner = np.repeat(np.arange(len(swept)), [len(moves) for moves, _ in swept])
    change = np.concatenate([np.arange(len(moves)) for moves, _ in swept])
    every = np.concatenate([values for _, values in swept])
    state.evaluations += len(every)
    better = np.unique(state.archive.better(every.reshape(-1, every.shape[2])) // every.shape[1])
    for number in np.unique(owner[better]).tolist():
        improved.append(swept[number][0].made(change[better[owner[better] == number]]))
    for walker, (moves, values) in zip(state.walkers, swept[len(members) :], strict=True):
        _walk(walker, moves, values, state.archive)
    state.walkers = [walker for walker in state.walkers if walker.steps > 0]
    bits = np.vstack(improved)
    state.evaluations -= len(bits) - known  # neighbours were counted when they were found
    return bits, keep(problem, state, bits) if len(bits) else np.empty((0, problem.objectives))


def rebuild(problem: Problem, settings: Settings, state: State) -> tuple[Bits, Floats]:
    """Change archive members at random and optimise their columns again, aiming at a nearby member of the front.

    The change is a small one, or columns of a nearby member, or random columns. Targets are drawn uniformly over the
    logarithm of the first objective, so that small values are drawn more often. There are few members with small
    values, they are the hardest to improve, and they are the ones that are published.
    """
    rng, archive = state.rng, state.archive
    order = np.argsort(np.abs(archive.values[:, 0]), kind="stable")
    scale = np.log1p(np.abs(archive.values[order, 0]))
    drawn = scale[0] + rng.random(settings.rebuilds) ** 2 * (scale[-1] - scale[0])
    places = np.minimum(np.searchsorted(scale, drawn), len(order) - 1)

    def near(reach: int) -> Bits:
        chosen = np.clip(places + rng.integers(-reach, reach + 1, settings.rebuilds), 0, len(order) - 1)
        return np.stack([state.bits[member] for member in archive.members[order[chosen]].tolist()])

    parents = near(NEARBY)
    some, more = len(parents) // 3, 2 * len(parents) // 3
    disturbed = problem.jolted(parents, rng)
    disturbed[some:more] = problem.mixed(parents[some:more], near(FARTHER)[some:more], rng)
    disturbed[more:] = problem.mixed(parents[more:], problem.sampled(rng, len(parents) - more), rng)
    made, work = problem.rebuilt(parents, disturbed, archive.values[order[places]], rng)
    state.evaluations += work
    return evaluate(problem, state, made)


def _unexplored(settings: Settings, state: State) -> list[int]:
    """Return archive members whose neighbours were not evaluated yet, the newest of random parts of the front."""
    order = state.archive.members[np.argsort(state.archive.values[:, 0], kind="stable")]
    chunks = np.array_split(order, min(len(order), settings.stretches))
    newest = [max((m for m in chunk.tolist() if m not in state.explored), default=-1) for chunk in chunks]
    open_ = sorted({member for member in newest if member >= 0})
    if len(open_) <= settings.sweeps:
        return open_
    return [open_[i] for i in sorted(state.rng.choice(len(open_), settings.sweeps, replace=False).tolist())]


def _walk(walker: Walker, moves: Neighbours, values: Floats, archive: Archive) -> None:
    """Move a walker to the neighbour that is nearest to the point where the walker began."""
    walker.steps -= 1
    if not len(moves):
        walker.steps = 0
        return
    span = np.maximum(np.ptp(archive.values, axis=0), 1e-300)
    with np.errstate(invalid="ignore"):
        short = ((values - walker.target) / span).max(axis=2).min(axis=1)
    walker.bits = moves.made(np.array([np.argmin(short)]))[0]


def run(problem: Problem, settings: Settings, state: State, tell: Callable[[State], bool] | None = None) -> State:
    """Run all generations, or until `tell` returns that the run is to stop."""
    while state.generation < settings.generations:
        step(problem, settings, state)
        if tell is not None and tell(state):
            break
    return state
