"""The best n×n matrices that can be found: the published column stays in its own domain.

The problem is not convex, so there is no proof; every point is measured against the certified bound. Many starts race
down the central path, the best are followed to its end, neighbours along the front help each other, and matrices that
another engine found are polished from late on the path, so they never get worse.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment

from sfumato.measures.channel import epsilon as epsilon_of
from sfumato.measures.channel import privacy as privacy_of
from sfumato.measures.channel import spread, worst_posterior
from sfumato.runtime.arrays import Floats
from sfumato.runtime.stages import Progress
from sfumato.systems.channel.engines.barrier import Barrier, CellLimit

EARLY, COARSE, LATE = 0.02, 3e-5, 1e-4
RACERS = 2
HOPEFUL = 0.02
ZEROS = (1e-5, 1e-6, 1e-7, 1e-8)  # shares of row and column below which an entry is zero, the boldest first
HAIR = 1e-6
TOLERANCE = 1e-9


@dataclass(frozen=True)
class SquareSettings:
    """How hard to look."""

    starts: int = 8
    sweeps: int = 4
    shakes: int = 3
    seed: int = 1


@dataclass(frozen=True, eq=False)
class _Best:
    """The best matrix for one privacy, as a joint distribution."""

    joint: Floats
    spread: float


class SquareSearch:
    """n×n matrices for one prior and δ at several levels of privacy."""

    def __init__(
        self,
        prior: Floats,
        delta: float,
        levels: Sequence[float] | Floats,
        settings: SquareSettings | None = None,
        epsilon: float | None = None,
        cells: Sequence[CellLimit] = (),
    ) -> None:
        self.prior, self.delta, self.epsilon, self.cells = prior, delta, epsilon, cells
        self.levels = np.sort(np.asarray(levels, dtype=np.float64))
        self.settings = settings or SquareSettings()
        self.rng = np.random.default_rng(self.settings.seed)
        self.best: list[_Best | None] = [None] * len(self.levels)

    def run(
        self, seeds: Sequence[Sequence[Floats]] | None = None, progress: Progress | None = None
    ) -> list[Floats | None]:
        """A matrix for each level; `seeds[i]` are matrices to start from at level i besides our own."""
        total = len(self.levels) * (1 + self.settings.sweeps)
        done = 0
        for level in range(len(self.levels)):
            self._race(level, list(seeds[level]) if seeds is not None else [])
            done += 1
            if progress is not None and progress(done, total):
                return self._matrices()
        still = 0
        for sweep in range(self.settings.sweeps):
            improved = False
            places = range(1, len(self.levels)) if sweep % 2 == 0 else range(len(self.levels) - 2, -1, -1)
            for level in places:
                neighbour = self.best[level - 1 if sweep % 2 == 0 else level + 1]
                if neighbour is not None:
                    improved |= self._follow(level, neighbour.joint, (LATE, EARLY))
                stranger = self.best[int(self.rng.integers(len(self.levels)))]
                if stranger is not None:
                    improved |= self._follow(level, stranger.joint, (LATE,))
                improved |= self._shake(level)
                done += 1
                if progress is not None and progress(done, total):
                    return self._matrices()
            still = 0 if improved else still + 1
            if still == 2:  # once in each direction
                break
        return self._matrices()

    def _race(self, level: int, seeds: list[Floats]) -> None:
        """Many starts go a part of the way; the best go to the end."""
        barrier = self._barrier(level)
        racers = []
        for joint in self._starts():
            inside = barrier.inside(joint, 1e-2)
            if inside is not None:
                coarse = barrier.descend(inside, EARLY, COARSE)
                racers.append((barrier.merit(coarse, 0.0), coarse))
        racers.sort(key=lambda racer: racer[0])
        for _, coarse in racers[:RACERS]:
            self._offer(level, barrier.joint(barrier.descend(coarse, COARSE)))
        for matrix in seeds:
            self._offer(level, matrix * self.prior, given=True)
            self._follow(level, matrix * self.prior, (1e-6, LATE))

    def _starts(self) -> list[Floats]:
        """The truth itself, and the truth with columns at random."""
        n = len(self.prior)
        starts = [np.diag(self.prior)]
        for _ in range(self.settings.starts - 1):
            noise = self.rng.dirichlet(np.full(n, self.rng.uniform(0.1, 0.6)), size=n).T
            share = self.rng.uniform(0.2, 0.8)
            starts.append((share * noise + (1 - share) * np.eye(n)) * self.prior)
        return starts

    def _follow(self, level: int, joint: Floats, weights: Sequence[float]) -> bool:
        """Descend from a joint that is good elsewhere or was given; whether that was an improvement."""
        barrier, before = self._barrier(level), self._value(level)
        for weight in weights:
            inside = barrier.inside(joint, 0.2 * weight)
            if inside is not None:
                self._offer(level, barrier.joint(barrier.descend(inside, weight)))
        return self._value(level) < before * (1 - 1e-6)

    def _shake(self, level: int) -> bool:
        """Descend from the best with some columns at random; what is behind half-way down is given up."""
        held = self.best[level]
        if held is None:
            return False
        barrier, n = self._barrier(level), len(self.prior)
        for _ in range(self.settings.shakes):
            noise = self.rng.dirichlet(np.full(n, 0.3), size=n).T * self.prior
            share = self.rng.uniform(0.02, 0.4) * (self.rng.random(n) < self.rng.uniform(0.2, 1.0))
            inside = barrier.inside((1 - share) * held.joint + share * noise, 1e-3)
            if inside is None:
                continue
            weight = 10 ** self.rng.uniform(-3.5, -1.7)
            coarse = barrier.descend(inside, weight, COARSE)
            if barrier.merit(coarse, 0.0) < np.log(held.spread) + HOPEFUL:
                self._offer(level, barrier.joint(barrier.descend(coarse, COARSE)))
        return self._value(level) < held.spread * (1 - 1e-6)

    def _barrier(self, level: int) -> Barrier:
        limit, commonest = 1.0 - float(self.levels[level]), float(self.prior.max())
        # Slightly inside the true limits, to leave room for the entries that are then set to zero.
        delta = self.delta - HAIR * (self.delta - commonest)
        cells = [CellLimit(cell.ratios, cell.cap * (1.0 - HAIR)) for cell in self.cells]
        return Barrier(self.prior, delta, limit - HAIR * (limit - commonest), self.epsilon, cells)

    def _value(self, level: int) -> float:
        held = self.best[level]
        return np.inf if held is None else held.spread

    def _offer(self, target: int, joint: Floats, given: bool = False) -> None:
        """Keep a joint if it is allowed and better than the one held."""
        for candidate in [joint] if given else [*(self._snapped(joint, zero) for zero in ZEROS), joint]:
            matrix = candidate / self.prior
            level = float(self.levels[target])
            if worst_posterior(matrix, self.prior) > self.delta + TOLERANCE:
                continue
            if privacy_of(matrix, self.prior) < level - TOLERANCE:
                continue
            if self.epsilon is not None and epsilon_of(matrix) > self.epsilon + TOLERANCE:
                continue
            if any(cell.worst(candidate) > cell.cap + TOLERANCE for cell in self.cells):
                continue
            spread_of_matrix = spread(matrix, self.prior)
            if spread_of_matrix < self._value(target) * (1 - 1e-9):
                self.best[target] = _Best(candidate, spread_of_matrix)
            return

    def _snapped(self, joint: Floats, zero: float) -> Floats:
        """What the barrier keeps from zero by a hair becomes zero; the largest entry of each column takes it up."""
        small = joint < zero * np.minimum(self.prior, joint.sum(axis=1, keepdims=True))
        snapped = np.where(small, 0.0, joint)
        # Not an entry that δ or the guesser holds down, if there is another.
        free = (snapped > 0) & (joint < 0.999 * joint.max(axis=1, keepdims=True))
        top = np.argmax(snapped + free, axis=0)
        snapped[top, np.arange(len(top))] += self.prior - snapped.sum(axis=0)
        return snapped

    def _matrices(self) -> list[Floats | None]:
        return [None if held is None else _named(held.joint / self.prior) for held in self.best]


def _named(matrix: Floats) -> Floats:
    """Reports named so that the truth is told as often as possible; names change no figure."""
    rows = linear_sum_assignment(-matrix.T)[1]
    return np.asarray(matrix[rows] / matrix.sum(axis=0))
