"""The best n×n matrices that can be found (the published column keeps its own domain), and the best invariant ones.

For any n×n matrix the problem is not convex, so there is no proof. Every point is compared with the certified lower
bound. Many starts follow the central path for some time, and the best follow it to its end. Points of the front are
then started from their neighbours. Matrices that another engine found are started late on the path, so they never
become worse.

Newton's method on a logarithmic barrier finds a local optimum from a given matrix. The joint distribution J (reports ×
true values) has column sums P. Over J, heights t and lower limits u,

    minimise log f(J),  f = tr(D S⁻¹ D) = Σ_y r_y ‖D J⁻¹ e_y‖²,  r = J·1,
    with  0 ≤ J_yx ≤ t_y ≤ δ·r_y,  Σ t ≤ limit,  and where ε is limited  u_y ≤ J_yx/P_x ≤ e^ε·u_y.

For each cell of other columns with the likelihood ratios ρ = P(x|z)/P(x) the constraint is
ρ_x·J_yx ≤ cap·Σ ρ_x'·J_yx'.

All constraints are linear, A x + b ≥ 0. The function f is not convex: a Hessian that is not positive is shifted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg
from scipy.optimize import linear_sum_assignment

from sfumato.base.arrays import Floats
from sfumato.base.progress import Progress
from sfumato.errors import UnreachableError
from sfumato.measures import channel
from sfumato.methods.channel.exact import max_step, shifted_cholesky

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


def damped_step(
    merit: Callable[[Floats], float], point: Floats, step: Floats, slope: Floats, moved: Floats, slacks: Floats
) -> tuple[Floats, float]:
    """Return the point after a damped Newton step, and the decrease of the merit. The slacks change by `moved`."""
    longest = min(1.0, 0.98 * max_step(slacks, moved))
    before, expected = merit(point), float(slope @ step)
    while longest > 1e-12:
        after = merit(point + longest * step)
        if after <= before + 1e-4 * longest * expected:
            return point + longest * step, before - after
        longest *= 0.4
    return point, 0.0


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
                point, progress = self._newton(point, weight)
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

    def _newton(self, point: Floats, weight: float) -> tuple[Floats, float]:
        """Make one Newton step, and return the new point and the decrease of the merit, which is 0 if no step helps."""
        if np.linalg.cond(self.joint(point)) > SINGULAR:
            return point, 0.0
        slope, curvature = self.curve(point, weight)
        step = self.basis @ _descent(self.basis.T @ curvature @ self.basis, self.basis.T @ slope)
        moved, slacks = self.matrix @ step, self.matrix @ point + self.offset
        return damped_step(lambda there: self.merit(there, weight), point, step, slope, moved, slacks)

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
    try:
        factor = shifted_cholesky(scaled, 0.0, 1e-3, 4.0, 1e6)
    except np.linalg.LinAlgError:
        return np.zeros(len(slope))
    return np.asarray(-scale * scipy.linalg.cho_solve(factor, scale * slope, check_finite=False))


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


class SquareSearch:
    """n×n matrices for one prior and δ at several levels of privacy, and the spread of the best of each."""

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
        self.best: list[Floats | None] = [None] * len(self.levels)  # joint distributions
        self.spreads = [np.inf] * len(self.levels)

    def run(
        self, seeds: Sequence[Sequence[Floats]] | None = None, progress: Progress | None = None
    ) -> list[Floats | None]:
        """Return a matrix for each level; `seeds[i]` are further matrices to start from at level i."""
        total = len(self.levels) * (1 + self.settings.sweeps)
        for done, _ in enumerate(self._steps(seeds), 1):
            if progress is not None and progress(done, total):
                break
        return [None if held is None else _relabelled(held / self.prior) for held in self.best]

    def _steps(self, seeds: Sequence[Sequence[Floats]] | None) -> Iterator[None]:
        for level in range(len(self.levels)):
            self._multi_start(level, seeds[level] if seeds is not None else [])
            yield
        still = 0
        for sweep in range(self.settings.sweeps):
            improved = False
            places = range(1, len(self.levels)) if sweep % 2 == 0 else range(len(self.levels) - 2, -1, -1)
            for level in places:
                neighbour = self.best[level - 1 if sweep % 2 == 0 else level + 1]
                if neighbour is not None:
                    improved |= self._descend_from(level, neighbour, (LATE, EARLY))
                other = self.best[int(self.rng.integers(len(self.levels)))]
                if other is not None:
                    improved |= self._descend_from(level, other, (LATE,))
                improved |= self._perturb(level)
                yield
            still = 0 if improved else still + 1
            if still == 2:  # neither direction of a sweep over the levels improved a point
                return

    def _multi_start(self, level: int, seeds: Sequence[Floats]) -> None:
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
        barrier, before = self._barrier(level), self.spreads[level]
        for weight in weights:
            inside = barrier.inside(joint, 0.2 * weight)
            if inside is not None:
                self._keep_if_better(level, barrier.joint(barrier.descend(inside, weight)))
        return self.spreads[level] < before * (1 - 1e-6)

    def _perturb(self, level: int) -> bool:
        """Descend from the best with some random columns; stop half-way if it is behind."""
        held, before = self.best[level], self.spreads[level]
        if held is None:
            return False
        barrier, n = self._barrier(level), len(self.prior)
        for _ in range(self.settings.shakes):
            noise = self.rng.dirichlet(np.full(n, 0.3), size=n).T * self.prior
            share = self.rng.uniform(0.02, 0.4) * (self.rng.random(n) < self.rng.uniform(0.2, 1.0))
            inside = barrier.inside((1 - share) * held + share * noise, 1e-3)
            if inside is None:
                continue
            weight = 10 ** self.rng.uniform(-3.5, -1.7)
            coarse = barrier.descend(inside, weight, COARSE)
            if barrier.merit(coarse, 0.0) < np.log(before) + HOPEFUL:
                self._keep_if_better(level, barrier.joint(barrier.descend(coarse, COARSE)))
        return self.spreads[level] < before * (1 - 1e-6)

    def _barrier(self, level: int) -> Barrier:
        limit, commonest = 1.0 - float(self.levels[level]), float(self.prior.max())
        # Slightly inside the true limits, because entries are set to zero afterwards.
        delta = self.delta - HAIR * (self.delta - commonest)
        cells = [CellLimit(cell.ratios, cell.cap * (1.0 - HAIR)) for cell in self.cells]
        return Barrier(self.prior, delta, limit - HAIR * (limit - commonest), self.epsilon, cells)

    def _keep_if_better(self, target: int, joint: Floats, given: bool = False) -> None:
        """Keep a joint distribution if it is feasible and better than the best so far."""
        for candidate in [joint] if given else [*(self._with_zeros(joint, zero) for zero in ZEROS), joint]:
            matrix = candidate / self.prior
            if (
                channel.worst_posterior(matrix, self.prior) > self.delta + TOLERANCE
                or channel.privacy(matrix, self.prior) < float(self.levels[target]) - TOLERANCE
                or (self.epsilon is not None and channel.epsilon(matrix) > self.epsilon + TOLERANCE)
                or any(cell.worst(candidate) > cell.cap + TOLERANCE for cell in self.cells)
            ):
                continue
            spread_of_matrix = channel.spread(matrix, self.prior)
            if spread_of_matrix < self.spreads[target] * (1 - 1e-9):
                self.best[target], self.spreads[target] = candidate, spread_of_matrix
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


def _relabelled(matrix: Floats) -> Floats:
    """Return the reports renamed so that the true value is reported as often as possible; names change no figure."""
    rows = linear_sum_assignment(-matrix.T)[1]
    return np.asarray(matrix[rows] / matrix.sum(axis=0))


FIRST, LOWEST, SHRINKING = 1e-2, 1e-10, 0.2  # barrier weights of a search for invariant channels
MOST_STEPS = 60


class InvariantSearch:
    """Invariant channels for one prior, limits on the posteriors and optionally on ε.

    Invariant means M P = P, so the expected counts of the disguised file are those of the source. The search is among
    reversible channels: J = M·diag(P) is symmetric and positive definite, as for every channel that is followed by its
    own Bayes inverse. With J = diag(P) − L(s), L the Laplacian of the weights s ≥ 0, the error

        g = Σ_k P_k² (J⁻¹ diag(P) J⁻¹)_kk

    is convex in s, and the limits on posteriors, gain, accuracy and ε are linear in s and the heights t of the rows. So
    a barrier method ends at the optimum among these channels (docs/readings.md, 3.14).
    """

    def __init__(self, prior: Floats, caps: Floats, epsilon: float | None = None) -> None:
        self.prior, self.caps, self.epsilon = prior, caps, epsilon
        n = self.n = len(prior)
        self.first, self.second = np.triu_indices(n, 1)
        self.pairs = len(self.first)
        self.edges = np.eye(n)[:, self.first] - np.eye(n)[:, self.second]

    def at(self, privacy: float) -> Floats:
        """Return the best matrix with at least this privacy."""
        self.matrix, self.offset = self._constraints(1.0 - privacy)
        point = self._inside()
        if point is None:
            raise UnreachableError(
                f"no invariant channel has a privacy of {privacy:g} within the limits",
                expected=f"privacy below {1.0 - self.prior.max():.6g}",
                remedy="less privacy, or a higher delta",
            )
        weight, scale = FIRST, self._curve(point)[0]
        while weight > LOWEST:
            for _ in range(MOST_STEPS):
                point, progress = self._newton(point, weight, scale)
                if progress < 0.01 * weight:
                    break
            weight *= SHRINKING
        joint = self._joint(point)
        return np.asarray(joint / joint.sum(axis=0))

    def _joint(self, point: Floats) -> Floats:
        return np.asarray(np.diag(self.prior) - (self.edges * point[: self.pairs]) @ self.edges.T)

    def _constraints(self, limit: float) -> tuple[Floats, Floats]:
        """Return all limits as A·(s, t) + b ≥ 0: entries from zero to t and the caps, Σ t within the limit, ε."""
        n, each = self.n, np.arange(self.n)
        entries = np.zeros((n, n, self.pairs))  # of J, as linear functions of s
        entries[self.first, self.second, np.arange(self.pairs)] = 1.0
        entries[self.second, self.first, np.arange(self.pairs)] = 1.0
        entries[each, each] = -np.abs(self.edges)
        slope, constant = entries.reshape(n * n, self.pairs), np.diag(self.prior).ravel()
        rows, none = np.repeat(np.eye(n), n, axis=0), np.zeros((n * n, n))
        caps = np.outer(self.prior, self.caps).ravel()
        blocks = [
            (np.hstack([slope, none]), constant),
            (np.hstack([-slope, rows]), -constant),
            (np.hstack([-slope, none]), caps - constant),
            (np.hstack([np.zeros((1, self.pairs)), -np.ones((1, n))]), np.array([limit])),
        ]
        if self.epsilon is not None:
            likely, held = slope / np.tile(self.prior, n)[:, None], constant / np.tile(self.prior, n)
            for x in range(n):
                above, below = np.repeat(each * n + x, n), np.arange(n * n)  # the same row under truth x, and all
                keep = above != below
                factor = np.exp(self.epsilon)
                a = factor * likely[above[keep]] - likely[below[keep]]
                b = factor * held[above[keep]] - held[below[keep]]
                blocks.append((np.hstack([a, np.zeros((len(a), n))]), b))
        return np.vstack([a for a, _ in blocks]), np.concatenate([b for _, b in blocks])

    def _inside(self) -> Floats | None:
        """Return a strictly feasible point: independent reports mixed with the true values; None if there is none."""
        apart = self.prior[self.first] * self.prior[self.second]
        for truth in 0.5 ** np.arange(1, 25):
            s = (1.0 - truth) * apart
            top = self._joint(s).max(axis=1)
            left = float(self.offset[3 * self.n * self.n] - top.sum())  # slack of the limit on Σ t
            point = np.concatenate([s, top + 0.5 * max(left, 0.0) / self.n])
            if float((self.matrix @ point + self.offset).min()) > 0:
                return point
        return None

    def _curve(self, point: Floats) -> tuple[float, Floats, Floats]:
        """Return g, its gradient and its Hessian in s."""
        prior = self.prior
        inverse = np.linalg.inv(self._joint(point))
        once = inverse * prior  # J⁻¹ D
        twice = inverse * prior**2
        chain = twice @ inverse @ (prior[:, None] * inverse)  # J⁻¹ D² J⁻¹ D J⁻¹
        e = self.edges
        a, b = e.T @ inverse @ e, e.T @ chain @ e
        c, f = e.T @ (twice @ inverse) @ e, e.T @ (once @ inverse) @ e
        value = float(np.sum(np.diag(once @ inverse) * prior**2))
        return value, 2.0 * np.diag(b), 2.0 * (a * (b + b.T) + c * f)

    def _merit(self, point: Floats, weight: float, scale: float) -> float:
        slacks = self.matrix @ point + self.offset
        if slacks.min() <= 0:
            return np.inf
        try:
            factor = scipy.linalg.cho_factor(self._joint(point), check_finite=False)
        except np.linalg.LinAlgError:
            return np.inf
        inverse = scipy.linalg.cho_solve(factor, np.eye(self.n), check_finite=False)
        value = float(np.sum(((inverse * self.prior) @ inverse).diagonal() * self.prior**2))
        return value / scale - weight * float(np.log(slacks).sum())

    def _newton(self, point: Floats, weight: float, scale: float) -> tuple[Floats, float]:
        """Make one damped Newton step, and return the new point and the decrease of the merit."""
        matrix, slacks = self.matrix, self.matrix @ point + self.offset
        _, slope, curvature = self._curve(point)
        gradient = -weight * (matrix.T @ (1.0 / slacks))
        hessian = weight * (matrix.T / slacks**2) @ matrix
        gradient[: self.pairs] += slope / scale
        hessian[: self.pairs, : self.pairs] += curvature / scale
        size = 1.0 / np.sqrt(np.diag(hessian))
        scaled = hessian * size[:, None] * size
        step = -size * np.linalg.solve(scaled + 1e-14 * np.eye(len(scaled)), size * gradient)
        moved = matrix @ step
        return damped_step(lambda there: self._merit(there, weight, scale), point, step, gradient, moved, slacks)
