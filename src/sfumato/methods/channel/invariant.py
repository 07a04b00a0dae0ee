"""The best invariant channels: M P = P, so the expected counts of the disguised file are those of the source.

The search is among reversible channels: J = M·diag(P) is symmetric and positive definite, as for every channel that is
followed by its own Bayes inverse. With J = diag(P) − L(s), L the Laplacian of the weights s ≥ 0, the error

    g = Σ_k P_k² (J⁻¹ diag(P) J⁻¹)_kk

is convex in s, and the limits on posteriors, gain, accuracy and ε are linear in s and the heights t of the rows. So
a barrier method ends at the optimum among these channels (docs/readings.md, 3.14).
"""

from __future__ import annotations

import numpy as np
import scipy.linalg

from sfumato.base.arrays import Floats
from sfumato.errors import UnreachableError

FIRST, LAST, SHRINK = 1e-2, 1e-10, 0.2
STEPS = 60


class InvariantSearch:
    """Invariant channels for one prior, limits on the posteriors and optionally on ε."""

    def __init__(self, prior: Floats, caps: Floats, epsilon: float | None = None) -> None:
        self.prior, self.caps, self.epsilon = prior, caps, epsilon
        n = self.n = len(prior)
        self.first, self.second = np.triu_indices(n, 1)
        self.pairs = len(self.first)
        self.edges = np.eye(n)[:, self.first] - np.eye(n)[:, self.second]
        self.cells = self._cells()

    def at(self, privacy: float) -> Floats:
        """Return the best matrix with at least this privacy."""
        matrix, offset = self._constraints(1.0 - privacy)
        point = self._inside(matrix, offset)
        if point is None:
            raise UnreachableError(
                f"no invariant channel has a privacy of {privacy:g} within the limits",
                expected=f"privacy below {1.0 - self.prior.max():.6g}",
                remedy="less privacy, or a higher delta",
            )
        weight, scale = FIRST, self._curve(point)[0]
        while weight > LAST:
            for _ in range(STEPS):
                point, progress = self._newton(point, weight, scale, matrix, offset)
                if progress < 0.01 * weight:
                    break
            weight *= SHRINK
        joint = self._joint(point)
        return np.asarray(joint / joint.sum(axis=0))

    def _joint(self, point: Floats) -> Floats:
        return np.asarray(np.diag(self.prior) - (self.edges * point[: self.pairs]) @ self.edges.T)

    def _cells(self) -> tuple[Floats, Floats]:
        """Return the n² entries of J as linear functions of s: coefficients and constants."""
        n, pairs = self.n, self.pairs
        slope = np.zeros((n, n, pairs))
        slope[self.first, self.second, np.arange(pairs)] = 1.0
        slope[self.second, self.first, np.arange(pairs)] = 1.0
        slope[np.arange(n), np.arange(n)] = -np.abs(self.edges)
        return slope.reshape(n * n, pairs), np.diag(self.prior).ravel()

    def _constraints(self, limit: float) -> tuple[Floats, Floats]:
        """Return all limits as A·(s, t) + b ≥ 0: entries from zero to t and the caps, Σ t within the limit, ε."""
        n, (slope, constant) = self.n, self.cells
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
                other = np.arange(n) * n + x  # the cell of the same row under truth x
                above, below = np.repeat(other, n), np.arange(n * n)
                keep = above != below
                factor = np.exp(self.epsilon)
                a = factor * likely[above[keep]] - likely[below[keep]]
                b = factor * held[above[keep]] - held[below[keep]]
                blocks.append((np.hstack([a, np.zeros((len(a), n))]), b))
        return np.vstack([a for a, _ in blocks]), np.concatenate([b for _, b in blocks])

    def _inside(self, matrix: Floats, offset: Floats) -> Floats | None:
        """Return a strictly feasible point: independent reports mixed with the true values; None if there is none."""
        apart = self.prior[self.first] * self.prior[self.second]
        for truth in 0.5 ** np.arange(1, 25):
            s = (1.0 - truth) * apart
            top = self._joint(s).max(axis=1)
            left = float(offset[3 * self.n * self.n] - top.sum())  # slack of the limit on Σ t
            point = np.concatenate([s, top + 0.5 * max(left, 0.0) / self.n])
            if float((matrix @ point + offset).min()) > 0:
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

    def _merit(self, point: Floats, weight: float, scale: float, matrix: Floats, offset: Floats) -> float:
        slacks = matrix @ point + offset
        if slacks.min() <= 0:
            return np.inf
        try:
            factor = scipy.linalg.cho_factor(self._joint(point), check_finite=False)
        except np.linalg.LinAlgError:
            return np.inf
        inverse = scipy.linalg.cho_solve(factor, np.eye(self.n), check_finite=False)
        value = float(np.sum(((inverse * self.prior) @ inverse).diagonal() * self.prior**2))
        return value / scale - weight * float(np.log(slacks).sum())

    def _newton(
        self, point: Floats, weight: float, scale: float, matrix: Floats, offset: Floats
    ) -> tuple[Floats, float]:
        """Make one damped Newton step; return the new point and the decrease of the merit."""
        slacks = matrix @ point + offset
        _, slope, curvature = self._curve(point)
        gradient = -weight * (matrix.T @ (1.0 / slacks))
        hessian = weight * (matrix.T / slacks**2) @ matrix
        gradient[: self.pairs] += slope / scale
        hessian[: self.pairs, : self.pairs] += curvature / scale
        size = 1.0 / np.sqrt(np.diag(hessian))
        scaled = hessian * size[:, None] * size
        step = -size * np.linalg.solve(scaled + 1e-14 * np.eye(len(scaled)), size * gradient)
        moved = matrix @ step
        falling = moved < 0
        longest = min(1.0, 0.98 * float(np.min(-slacks[falling] / moved[falling], initial=np.inf)))
        before, expected = self._merit(point, weight, scale, matrix, offset), float(gradient @ step)
        while longest > 1e-12:
            after = self._merit(point + longest * step, weight, scale, matrix, offset)
            if after <= before + 1e-4 * longest * expected:
                return point + longest * step, before - after
            longest *= 0.4
        return point, 0.0
