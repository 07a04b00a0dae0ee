"""The best n×n matrices that can be found: the published column keeps its own domain.

The problem is not convex, so there is no proof. Every point is compared with the certified lower bound. Many starts
follow the central path for some time, and the best follow it to its end. Points of the front are then started from
their neighbours. Matrices that another engine found are started late on the path, so they never become worse.

Newton's method on a logarithmic barrier finds a local optimum from a given matrix. The joint distribution J (reports ×
true values) has column sums P. Over J, heights t and lower limits u,

    minimise log f(J),  f = tr(D S⁻¹ D) = Σ_y r_y ‖D J⁻¹ e_y‖²,  r = J·1,
    with  0 ≤ J_yx ≤ t_y ≤ δ·r_y,  Σ t ≤ limit,  and where ε is limited  u_y ≤ J_yx/P_x ≤ e^ε·u_y.

For each cell of other columns with the likelihood ratios ρ = P(x|z)/P(x) the constraint is
ρ_x·J_yx ≤ cap·Σ ρ_x'·J_yx'.

All constraints are linear, A x + b ≥ 0. The function f is not convex: a Hessian that is not positive is shifted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg
from scipy.optimize import linear_sum_assignment

from sfumato.base.arrays import Floats
from sfumato.base.progress import Progress
from sfumato.measures.channel import epsilon as epsilon_of
from sfumato.measures.channel import privacy as privacy_of
from sfumato.measures.channel import spread, worst_posterior

LAST = 2e-10
SHRINK = 0.12
SINGULAR = 1e13
STEPS = 12  # largest number of Newton steps for one barrier weight


@dataclass(frozen=True, eq=False)
class CellLimit:
    """The limit for records with some values of other columns: P(x|z)/P(x) by category, and the largest posterior."""

    ratios: Floats
    cap: float

    def worst(self, joint: Floats) -> float:
        """Return the largest posterior in the cell, given any report of a joint distribution."""
        here = joint * self.ratios
        reported = here.sum(axis=1)
        return float((here.max(axis=1)[reported > 0] / reported[reported > 0]).max())

    def rows(self) -> Floats:
        """Return the constraint for one report: a matrix that maps its row of J to slacks."""
        held = self.ratios > 0
        return np.asarray((self.cap * self.ratios[None, :] - np.diag(self.ratios))[held])


class Barrier:
    """The problem for one prior, δ, limit on the accuracy, optional limit on ε, and cells. A point is x = (J, t, u)."""

    def __init__(
        self,
        prior: Floats,
        delta: float,
        limit: float,
        epsilon: float | None = None,
        cells: Sequence[CellLimit] = (),
    ) -> None:
        self.prior, self.delta, self.limit, self.epsilon, self.cells = prior, delta, limit, epsilon, cells
        n = self.n = len(prior)
        identity: Floats = np.eye(n * n)
        rows = np.repeat(np.eye(n), n, axis=0)  # the row of each cell
        none = np.zeros((n * n, n))
        blocks: list[list[Floats]] = [
            [identity, none],
            [-identity, rows],
            [delta * rows.T, -np.eye(n)],
            [np.zeros((1, n * n)), -np.ones((1, n))],
        ]
        for cell in self.cells:
            held = np.asarray(np.kron(np.eye(n), cell.rows()), dtype=np.float64)
            blocks.append([held, np.zeros((len(held), n))])
        if epsilon is not None:
            likely = identity / np.tile(prior, n)[:, None]
            blocks = [[*block, np.zeros((len(block[0]), n))] for block in blocks]
            blocks += [[likely, none, -rows], [-likely, none, np.exp(epsilon) * rows]]
        self.matrix = np.block(blocks)
        self.offset = np.zeros(len(self.matrix))
        self.offset[2 * n * n + n] = limit
        turn = scipy.linalg.null_space(np.ones((1, n)))
        rest = np.eye(self.matrix.shape[1] - n * n)
        self.basis = scipy.linalg.block_diag(np.kron(turn, np.eye(n)), rest)  # steps that keep the column sums

    def joint(self, point: Floats) -> Floats:
        """Return J of a point."""
        return point[: self.n * self.n].reshape(self.n, self.n)

    def inside(self, joint: Floats, margin: float) -> Floats | None:
        """Return a strictly feasible point near a joint distribution; None if there is none.

        The joint distribution is mixed with one that reveals nothing, as little as needed.
        """
        blank = np.outer(np.maximum(joint.sum(axis=1), 0.02 / self.n), self.prior)
        blank *= self.prior / blank.sum(axis=0)
        low, high = 0.0, 1.0
        for _ in range(40):
            share = 0.5 * (low + high)
            low, high = (low, share) if self._fits((1 - share) * joint + share * blank) else (share, high)
        share = min(high + margin * (1.0 - high), 1.0)
        mixed = (1 - share) * joint + share * blank
        top, cap = mixed.max(axis=1), self.delta * mixed.sum(axis=1)
        room = min(0.5, 0.5 * (self.limit - float(top.sum())) / max(float((cap - top).sum()), 1e-300))
        parts = [mixed.ravel(), top + room * (cap - top)]
        if self.epsilon is not None:
            likely = mixed / self.prior
            parts.append(np.sqrt(likely.min(axis=1) * likely.max(axis=1) * np.exp(-self.epsilon)))
        point = np.concatenate(parts)
        return point if float((self.matrix @ point + self.offset).min()) > 0 else None

    def _fits(self, joint: Floats) -> bool:
        top = joint.max(axis=1)
        if top.sum() >= self.limit or (top >= self.delta * joint.sum(axis=1)).any() or joint.min() <= 0:
            return False
        if any(cell.worst(joint) >= cell.cap for cell in self.cells):
            return False
        likely = joint / self.prior
        return self.epsilon is None or bool((likely.max(axis=1) < np.exp(self.epsilon) * likely.min(axis=1)).all())

    def descend(self, point: Floats, weight: float, last: float = LAST) -> Floats:
        """Follow the central path from a barrier weight to a last one; a small first weight stays near the point."""
        while weight > last:
            for _ in range(STEPS):
                step = self._newton(point, weight)
                if step is None:
                    break
                point, progress = step
                if progress < 0.1 * weight:
                    break
            weight *= SHRINK
        return point

    def merit(self, point: Floats, weight: float) -> float:
        """Return log f with the barrier; infinite outside of the constraints."""
        slacks, joint = self.matrix @ point + self.offset, self.joint(point)
        if slacks.min() <= 0:
            return np.inf
        try:
            inverse = np.linalg.inv(joint)
        except np.linalg.LinAlgError:
            return np.inf
        value = float(joint.sum(axis=1) @ np.sum((self.prior[:, None] * inverse) ** 2, axis=0))
        return float(np.log(value) - weight * np.log(slacks).sum())

    def _newton(self, point: Floats, weight: float) -> tuple[Floats, float] | None:
        """Make one damped Newton step; return the new point and the decrease of the merit, or None if no step helps."""
        if np.linalg.cond(self.joint(point)) > SINGULAR:
            return None
        slope, curvature = self.curve(point, weight)
        step = self.basis @ _descent(self.basis.T @ curvature @ self.basis, self.basis.T @ slope)
        moved, slacks = self.matrix @ step, self.matrix @ point + self.offset
        falling = moved < 0
        longest = min(1.0, 0.98 * float(np.min(-slacks[falling] / moved[falling], initial=np.inf)))
        before, expected = self.merit(point, weight), float(slope @ step)
        while longest > 1e-12:
            after = self.merit(point + longest * step, weight)
            if after <= before + 1e-4 * longest * expected:
                return point + longest * step, before - after
            longest *= 0.4
        return None

    def curve(self, point: Floats, weight: float) -> tuple[Floats, Floats]:
        """Return the gradient and the Hessian of the merit."""
        n, size, joint = self.n, self.n * self.n, self.joint(point)
        inverse = np.linalg.inv(joint)
        spread = (inverse * joint.sum(axis=1)) @ inverse.T  # S⁻¹
        gram = inverse.T @ (self.prior[:, None] ** 2 * inverse)
        mixed = (spread * self.prior**2) @ inverse
        value = float(self.prior**2 @ np.diag(spread))
        own = (np.diag(gram)[:, None] - 2.0 * mixed.T).ravel() / value
        # Second order in dJ: tr D²(X A Xᵀ) + 2 tr D²(X² A) − 2 tr D²(X C dR Cᵀ), with X = C dJ, A = S⁻¹, C = J⁻¹.
        twice = np.einsum("zy,xw->yxwz", mixed, inverse).reshape(size, size)
        third = np.repeat((inverse[None] * gram[:, None]).reshape(size, n), n, axis=1)
        bent = np.kron(gram, spread) + twice + twice.T - third - third.T
        pull = 1.0 / (self.matrix @ point + self.offset)
        slope = -weight * (self.matrix.T @ pull)
        curvature = (self.matrix.T * (weight * pull**2)) @ self.matrix
        slope[:size] += own
        curvature[:size, :size] += 2.0 * bent / value - np.outer(own, own)
        return slope, curvature


def _descent(curvature: Floats, slope: Floats) -> Floats:
    """Return minus the inverse of the Hessian times the gradient, shifted until it is a descent direction."""
    scale = 1.0 / np.sqrt(np.abs(np.diag(curvature)) + 1e-300)
    scaled = curvature * scale[:, None] * scale
    shift = 0.0
    while True:
        try:
            factor = scipy.linalg.cho_factor(scaled + shift * np.eye(len(scaled)), check_finite=False)
            return np.asarray(-scale * scipy.linalg.cho_solve(factor, scale * slope, check_finite=False))
        except np.linalg.LinAlgError:
            if not shift < 1e6:  # the matrix holds no finite number
                return np.zeros(len(slope))
            shift = max(4.0 * shift, 1e-3)


EARLY, COARSE, LATE = 0.02, 3e-5, 1e-4
RACERS = 2
HOPEFUL = 0.02
ZEROS = (1e-5, 1e-6, 1e-7, 1e-8)  # shares of row and column below which an entry is set to zero, largest first
HAIR = 1e-6
TOLERANCE = 1e-9


@dataclass(frozen=True)
class SquareSettings:
    """The effort of the search."""

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
        """Return a matrix for each level; `seeds[i]` are further matrices to start from at level i."""
        total = len(self.levels) * (1 + self.settings.sweeps)
        done = 0
        for level in range(len(self.levels)):
            self._multi_start(level, list(seeds[level]) if seeds is not None else [])
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
                    improved |= self._descend_from(level, neighbour.joint, (LATE, EARLY))
                other = self.best[int(self.rng.integers(len(self.levels)))]
                if other is not None:
                    improved |= self._descend_from(level, other.joint, (LATE,))
                improved |= self._perturb(level)
                done += 1
                if progress is not None and progress(done, total):
                    return self._matrices()
            still = 0 if improved else still + 1
            if still == 2:  # neither direction of a sweep over the levels improved a point
                break
        return self._matrices()

    def _multi_start(self, level: int, seeds: list[Floats]) -> None:
        """Follow the path from many starts for some time, and from the best ones to the end."""
        barrier = self._barrier(level)
        started = []
        for joint in self._starts():
            inside = barrier.inside(joint, 1e-2)
            if inside is not None:
                coarse = barrier.descend(inside, EARLY, COARSE)
                started.append((barrier.merit(coarse, 0.0), coarse))
        started.sort(key=lambda racer: racer[0])
        for _, coarse in started[:RACERS]:
            self._keep_if_better(level, barrier.joint(barrier.descend(coarse, COARSE)))
        for matrix in seeds:
            self._keep_if_better(level, matrix * self.prior, given=True)
            self._descend_from(level, matrix * self.prior, (1e-6, LATE))

    def _starts(self) -> list[Floats]:
        """Return the identity, and copies with random columns."""
        n = len(self.prior)
        starts = [np.diag(self.prior)]
        for _ in range(self.settings.starts - 1):
            noise = self.rng.dirichlet(np.full(n, self.rng.uniform(0.1, 0.6)), size=n).T
            share = self.rng.uniform(0.2, 0.8)
            starts.append((share * noise + (1 - share) * np.eye(n)) * self.prior)
        return starts

    def _descend_from(self, level: int, joint: Floats, weights: Sequence[float]) -> bool:
        """Descend from a given joint distribution; return whether that improved the best of the level."""
        barrier, before = self._barrier(level), self._value(level)
        for weight in weights:
            inside = barrier.inside(joint, 0.2 * weight)
            if inside is not None:
                self._keep_if_better(level, barrier.joint(barrier.descend(inside, weight)))
        return self._value(level) < before * (1 - 1e-6)

    def _perturb(self, level: int) -> bool:
        """Descend from the best with some random columns; stop half-way if it is behind."""
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
                self._keep_if_better(level, barrier.joint(barrier.descend(coarse, COARSE)))
        return self._value(level) < held.spread * (1 - 1e-6)

    def _barrier(self, level: int) -> Barrier:
        limit, commonest = 1.0 - float(self.levels[level]), float(self.prior.max())
        # Slightly inside the true limits, because entries are set to zero afterwards.
        delta = self.delta - HAIR * (self.delta - commonest)
        cells = [CellLimit(cell.ratios, cell.cap * (1.0 - HAIR)) for cell in self.cells]
        return Barrier(self.prior, delta, limit - HAIR * (limit - commonest), self.epsilon, cells)

    def _value(self, level: int) -> float:
        held = self.best[level]
        return np.inf if held is None else held.spread

    def _keep_if_better(self, target: int, joint: Floats, given: bool = False) -> None:
        """Keep a joint distribution if it is feasible and better than the best so far."""
        for candidate in [joint] if given else [*(self._with_zeros(joint, zero) for zero in ZEROS), joint]:
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

    def _with_zeros(self, joint: Floats, zero: float) -> Floats:
        """Return a joint distribution with small entries set to zero; the largest of each column takes the sum."""
        small = joint < zero * np.minimum(self.prior, joint.sum(axis=1, keepdims=True))
        snapped = np.where(small, 0.0, joint)
        # Not an entry that is at the limit of δ or of the accuracy, if there is another.
        free = (snapped > 0) & (joint < 0.999 * joint.max(axis=1, keepdims=True))
        top = np.argmax(snapped + free, axis=0)
        snapped[top, np.arange(len(top))] += self.prior - snapped.sum(axis=0)
        return snapped

    def _matrices(self) -> list[Floats | None]:
        return [None if held is None else _relabelled(held.joint / self.prior) for held in self.best]


def _relabelled(matrix: Floats) -> Floats:
    """Return the reports renamed so that the true value is reported as often as possible; names change no figure."""
    rows = linear_sum_assignment(-matrix.T)[1]
    return np.asarray(matrix[rows] / matrix.sum(axis=0))
