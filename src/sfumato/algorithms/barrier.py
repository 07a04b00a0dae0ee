"""Newton on a logarithmic barrier for square channels: a local optimum over n×n matrices from a given one.

The joint distribution J (reports × truths) has column sums P. Over J ≥ 0 and heights t,

    minimise log f(J),  f = tr(D S⁻¹ D) = Σ_y r_y ‖D J⁻¹ e_y‖²,  r = J·1,
    with  J_yx ≤ t_y ≤ δ·r_y  and  Σ t ≤ limit.

All constraints are linear, f is not convex: where the Hessian is not positive it is shifted until it is.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg

from sfumato.data.arrays import Floats

LAST = 2e-10
SHRINK = 0.12
SINGULAR = 1e13
STEPS = 12  # Newton steps for one barrier weight, at most


class Barrier:
    """The problem for one prior, δ and limit on the accuracy."""

    def __init__(self, prior: Floats, delta: float, limit: float) -> None:
        self.prior, self.delta, self.limit = prior, delta, limit
        n = self.n = len(prior)
        turn = scipy.linalg.null_space(np.ones((1, n)))
        self.basis = scipy.linalg.block_diag(np.kron(turn, np.eye(n)), np.eye(n))  # steps that keep the column sums

    def inside(self, joint: Floats, margin: float = 1e-3) -> tuple[Floats, Floats] | None:
        """The joint mixed with one that tells nothing, just so much that every constraint holds with room to spare.

        With room to spare for t as well. None if even that one does not fit: there is no room at all.
        """
        blank = np.outer(np.maximum(joint.sum(axis=1), 0.02 / self.n), self.prior)
        blank *= self.prior / blank.sum(axis=0)
        low, high = 0.0, 1.0
        for _ in range(40):
            share = 0.5 * (low + high)
            low, high = (low, share) if self._fits((1 - share) * joint + share * blank, 0.0) else (share, high)
        share = min(high + margin * (1.0 - high), 1.0)
        mixed = (1 - share) * joint + share * blank
        if not self._fits(mixed, 0.0):
            return None
        top, cap = mixed.max(axis=1), self.delta * mixed.sum(axis=1)
        room = min(0.5, 0.5 * (self.limit - top.sum()) / max(float((cap - top).sum()), 1e-300))
        heights = top + room * (cap - top)
        return (mixed, heights) if (heights > top).all() and heights.sum() < self.limit else None

    def _fits(self, joint: Floats, slack: float) -> bool:
        top = joint.max(axis=1)
        return bool(top.sum() < self.limit - slack and (top < self.delta * joint.sum(axis=1) - slack).all())

    def descend(self, joint: Floats, heights: Floats, weight: float, last: float = LAST) -> tuple[Floats, Floats]:
        """Follow the central path from a barrier weight down to a last one. Start late to stay near a good point."""
        while weight > last:
            for _ in range(STEPS):
                step = self._newton(joint, heights, weight)
                if step is None:
                    break
                joint, heights, progress = step
                if progress < 0.1 * weight:
                    break
            weight *= SHRINK
        return joint, heights

    def merit(self, joint: Floats, heights: Floats, weight: float) -> float:
        """log f with the barrier, infinite outside."""
        slacks = self._slacks(joint, heights)
        if min(float(s.min()) for s in slacks) <= 0:
            return np.inf
        try:
            inverse = np.linalg.inv(joint)
        except np.linalg.LinAlgError:
            return np.inf
        value = float(joint.sum(axis=1) @ np.sum((self.prior[:, None] * inverse) ** 2, axis=0))
        return float(np.log(value) - weight * sum(np.log(s).sum() for s in slacks))

    def _slacks(self, joint: Floats, heights: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        caps = self.delta * joint.sum(axis=1) - heights
        return joint, heights[:, None] - joint, caps, np.array([self.limit - heights.sum()])

    def _newton(self, joint: Floats, heights: Floats, weight: float) -> tuple[Floats, Floats, float] | None:
        """One damped step: the new point and how much the merit fell, or None where none helps."""
        if np.linalg.cond(joint) > SINGULAR:
            return None
        slope, curvature = self._curve(joint, heights, weight)
        reduced, turned = self.basis.T @ curvature @ self.basis, self.basis.T @ slope
        step = self.basis @ _descent(reduced, turned)
        n = self.n
        change, rise = step[: n * n].reshape(n, n), step[n * n :]
        longest = 1.0
        for slack, moved in zip(
            self._slacks(joint, heights),
            (change, rise[:, None] - change, self.delta * change.sum(axis=1) - rise, np.array([-rise.sum()])),
            strict=True,
        ):
            falling = moved < 0
            if falling.any():
                longest = min(longest, 0.98 * float(np.min(-slack[falling] / moved[falling])))
        before, expected = self.merit(joint, heights, weight), float(slope @ step)
        while longest > 1e-12:
            after = self.merit(joint + longest * change, heights + longest * rise, weight)
            if after <= before + 1e-4 * longest * expected:
                return joint + longest * change, heights + longest * rise, before - after
            longest *= 0.4
        return None

    def _curve(self, joint: Floats, heights: Floats, weight: float) -> tuple[Floats, Floats]:
        """Gradient and Hessian of the merit in (J, t)."""
        n, size = self.n, self.n * self.n
        inverse = np.linalg.inv(joint)
        spread = (inverse * joint.sum(axis=1)) @ inverse.T  # S⁻¹
        gram = inverse.T @ (self.prior[:, None] ** 2 * inverse)
        mixed = (spread * self.prior**2) @ inverse
        value = float(self.prior**2 @ np.diag(spread))
        slope = (np.diag(gram)[:, None] - 2.0 * mixed.T).ravel() / value
        # Second order in dJ: tr D²(X A Xᵀ) + 2 tr D²(X² A) − 2 tr D²(X C dR Cᵀ), with X = C dJ, A = S⁻¹, C = J⁻¹.
        twice = np.einsum("zy,xw->yxwz", mixed, inverse).reshape(size, size)
        third = np.repeat((inverse[None] * gram[:, None]).reshape(size, n), n, axis=1)
        bent = np.kron(gram, spread) + twice + twice.T - third - third.T
        curvature = np.zeros((size + n, size + n))
        curvature[:size, :size] = 2.0 * bent / value - np.outer(slope, slope)
        return self._barrier(joint, heights, weight, slope, curvature)

    def _barrier(
        self, joint: Floats, heights: Floats, weight: float, slope: Floats, curvature: Floats
    ) -> tuple[Floats, Floats]:
        n, size = self.n, self.n * self.n
        above, caps, room = heights[:, None] - joint, self.delta * joint.sum(axis=1) - heights, self.limit - heights.sum()
        in_joint = -1.0 / joint + 1.0 / above - self.delta / caps[:, None]
        in_heights = 1.0 / caps + 1.0 / room - np.sum(1.0 / above, axis=1)
        total = np.concatenate([slope + weight * in_joint.ravel(), weight * in_heights])
        own = np.arange(size)
        curvature[own, own] += weight * (1.0 / joint**2 + 1.0 / above**2).ravel()
        tall = size + np.repeat(np.arange(n), n)
        for y in range(n):
            block = slice(y * n, (y + 1) * n)
            curvature[block, block] += weight * self.delta**2 / caps[y] ** 2
        cross = weight * (-1.0 / above**2 - self.delta / caps[:, None] ** 2).ravel()
        curvature[own, tall] += cross
        curvature[tall, own] += cross
        curvature[size:, size:] += weight * (np.diag(np.sum(1.0 / above**2, axis=1) + 1.0 / caps**2) + 1.0 / room**2)
        return total, curvature


def _descent(curvature: Floats, slope: Floats) -> Floats:
    """Minus the inverse of the Hessian times the slope, shifted until it is a descent."""
    scale = 1.0 / np.sqrt(np.abs(np.diag(curvature)) + 1e-300)
    scaled = curvature * scale[:, None] * scale
    shift = 0.0
    while True:
        try:
            factor = scipy.linalg.cho_factor(scaled + shift * np.eye(len(scaled)), check_finite=False)
            return np.asarray(-scale * scipy.linalg.cho_solve(factor, scale * slope, check_finite=False))
        except np.linalg.LinAlgError:
            shift = max(4.0 * shift, 1e-3)
