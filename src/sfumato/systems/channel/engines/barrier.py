"""Newton on a logarithmic barrier for square channels: a local optimum over n×n matrices from a given one.

The joint distribution J (reports × truths) has column sums P. Over J, heights t and floors u,

    minimise log f(J),  f = tr(D S⁻¹ D) = Σ_y r_y ‖D J⁻¹ e_y‖²,  r = J·1,
    with  0 ≤ J_yx ≤ t_y ≤ δ·r_y,  Σ t ≤ limit,  and where ε is capped  u_y ≤ J_yx/P_x ≤ e^ε·u_y.

and for each cell of other columns with the likelihood ratios ρ = P(x|z)/P(x)  ρ_x·J_yx ≤ cap·Σ ρ_x'·J_yx' .

All constraints are linear, A x + b ≥ 0; f is not convex: where the Hessian is not positive it is shifted until it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from sfumato.runtime.arrays import Floats

LAST = 2e-10
SHRINK = 0.12
SINGULAR = 1e13
STEPS = 12  # Newton steps for one barrier weight, at most


@dataclass(frozen=True, eq=False)
class CellLimit:
    """For records with some values of other columns: P(x|z)/P(x) by category, and the largest posterior allowed."""

    ratios: Floats
    cap: float

    def worst(self, joint: Floats) -> float:
        """The largest posterior there, given any report of a joint distribution."""
        here = joint * self.ratios
        reported = here.sum(axis=1)
        return float((here.max(axis=1)[reported > 0] / reported[reported > 0]).max())

    def rows(self) -> Floats:
        """The constraint for one report: a matrix that makes its row of J into slacks."""
        held = self.ratios > 0
        return np.asarray((self.cap * self.ratios[None, :] - np.diag(self.ratios))[held])


class Barrier:
    """The problem for one prior, δ, limit on the accuracy, maybe a cap on ε, and cells. A point is x = (J, t, u)."""

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
        """J of a point."""
        return point[: self.n * self.n].reshape(self.n, self.n)

    def inside(self, joint: Floats, margin: float) -> Floats | None:
        """A point near a joint with room on all sides: mixed with one that tells nothing, as little as it takes.

        None if there is no room at all.
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
        """Follow the central path from a barrier weight down to a last one. Start late to stay near a good point."""
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
        """log f with the barrier, infinite outside."""
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
        """One damped step: the new point and how much the merit fell, or None where none helps."""
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
        """Gradient and Hessian of the merit."""
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
    """Minus the inverse of the Hessian times the slope, shifted until it is a descent."""
    scale = 1.0 / np.sqrt(np.abs(np.diag(curvature)) + 1e-300)
    scaled = curvature * scale[:, None] * scale
    shift = 0.0
    while True:
        try:
            factor = scipy.linalg.cho_factor(scaled + shift * np.eye(len(scaled)), check_finite=False)
            return np.asarray(-scale * scipy.linalg.cho_solve(factor, scale * slope, check_finite=False))
        except np.linalg.LinAlgError:
            if not shift < 1e6:  # no number is left to work with
                return np.zeros(len(slope))
            shift = max(4.0 * shift, 1e-3)
