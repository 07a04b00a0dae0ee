"""A-optimal design with linear constraints: the convex program behind the certified channel, by an interior point.

Columns v of a matrix V lie in the simplex. Over weights w ≥ 0 with V w = P and heights·w ≤ limit,

    minimise f = tr(D S⁻¹ D),  S = Σ w_v v vᵀ,  D = diag(P).

Since V w = P fixes the row sums of S, S = D − L(s), where s_ij = Σ w_v v_i v_j for i < j and L is the Laplacian of the
graph with the weights s. So f is a convex function of n(n−1)/2 numbers and everything else is linear in w: Newton's
system has n(n+1)/2 + 1 unknowns however many columns there are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from sfumato.runtime.arrays import Floats
from sfumato.systems.channel.engines.thinning import balanced, wall

STEPS = 80
TO_THE_WALL = 0.99
LAG = 1e3  # where the slope is this much further off than the gap, the gap waits: what vanishes too soon is lost
TO_SINGULAR = 0.7  # f grows without bound where S is singular, so the way there is walked with more care


@dataclass(frozen=True, eq=False)
class Design:
    """Weights of the columns, the matrix S, the value f, and the prices that prove how good it is."""

    weights: Floats
    shape: Floats
    value: float
    price: Floats
    charge: float


@dataclass(frozen=True, eq=False)
class Bound:
    """A lower bound on f for every limit at once.

    With Y = S⁻¹D, Cauchy and Schwarz give (tr DY)² ≤ f(w')·Σ w'_v ‖Yᵀv‖² for every w'; a dual feasible (price, charge)
    of the linear program bounds that sum by price·P + charge·limit. A shift makes any pair feasible, because a column
    sums to one.
    """

    trace: float
    constant: float
    charge: float

    @classmethod
    def of(cls, design: Design, prior: Floats, columns: Floats, heights: Floats) -> tuple[Bound, Floats]:
        """The bound a design proves over all columns, and by how much each column is worth more than it is priced."""
        dual = np.linalg.solve(design.shape, np.diag(prior))
        worth = np.einsum("ij,ij->j", dual.T @ columns, dual.T @ columns)
        excess = worth - design.price @ columns - design.charge * heights
        constant = float(design.price @ prior) + float(excess.max())
        return cls(float(prior @ np.diag(dual)), constant, design.charge), excess

    def at(self, limit: float) -> float:
        """The bound at a limit; a hair is taken off for rounding."""
        return self.trace**2 / (self.constant + self.charge * limit) * (1.0 - 1e-11)


def solve(prior: Floats, columns: Floats, heights: Floats, limit: float | None, tolerance: float = 1e-6) -> Design:
    """The best design. `limit` None leaves the constraint on heights out.

    >>> columns = np.array([[0.9, 0.1, 0.5], [0.1, 0.9, 0.5]])
    >>> found = solve(np.array([0.5, 0.5]), columns, columns.max(axis=0), 0.7)
    >>> [round(float(w), 4) + 0.0 for w in found.weights], round(found.value, 4)
    ([0.25, 0.25, 0.5], 2.0625)
    """
    point = _InteriorPoint(prior, columns, heights, limit)
    for _ in range(STEPS):
        if point.done(tolerance):
            break
        try:
            point.step()
        except np.linalg.LinAlgError:  # rounding has the last word; the bound still says how good this is
            break
    return point.design()


class _InteriorPoint:
    """Mehrotra's predictor and corrector. The rows of Ψ: products v_i v_j, the column itself, its height.

    Ψ w = (s, P, limit) with multipliers y; z ≥ 0 are the reduced costs of the weights; the slack of the limit is a
    last column that adds nothing to S.
    """

    def __init__(self, prior: Floats, columns: Floats, heights: Floats, limit: float | None) -> None:
        n, self.count = columns.shape
        self.prior, (first, second) = prior, np.triu_indices(n, 1)
        self.pairs = len(first)
        # Each row is scaled by its natural size: shares of rare categories must not drown.
        self.scale = np.concatenate([1.0 / np.sqrt(prior[first] * prior[second]), 1.0 / np.sqrt(prior)])
        psi = np.concatenate([columns[first] * columns[second], columns]) * self.scale[:, None]
        self.goal = np.concatenate([np.zeros(self.pairs), prior * self.scale[self.pairs :]])
        self.edges = (np.eye(n)[:, first] - np.eye(n)[:, second]) / np.sqrt(self.scale[: self.pairs])
        self.w = balanced(columns, np.full(self.count, 1.0 / self.count), prior)
        self.s = psi[: self.pairs] @ self.w
        self.mode = int(np.argmax(prior))
        if limit is not None:
            # Heights above the commonest category's entry: V w = P makes this the same constraint, but it stays well
            # scaled next to the ceiling, where both sides vanish.
            room = limit - prior[self.mode]
            above = (heights - columns[self.mode]) / room
            psi = np.block([[psi, np.zeros((len(psi), 1))], [above, np.ones(1)]])
            self.goal = np.append(self.goal, 1.0)
            self.scale = np.append(self.scale, 1.0 / room)
            self.w = np.append(self.w, max(1.0 - float(above @ self.w), 0.1))
        self.psi = psi
        self.value, self.slope, self.curvature = self.curve()
        self.y = np.zeros(len(psi))
        self.y[: self.pairs] = -self.slope
        self.z = np.maximum(-(self.y @ psi), 0.1 * self.value)

    def shape(self) -> Floats:
        """S of the current s."""
        return np.asarray(np.diag(self.prior) - (self.edges * self.s) @ self.edges.T)

    def curve(self) -> tuple[float, Floats, Floats]:
        """f, its gradient and its Hessian in s."""
        inverse = np.linalg.inv(self.shape())
        inner = self.edges.T @ inverse @ self.edges
        weighted = (self.prior[:, None] * inverse) @ self.edges
        outer = weighted.T @ weighted
        return float(self.prior**2 @ np.diag(inverse)), np.diag(outer).copy(), 2.0 * inner * outer

    def done(self, tolerance: float) -> bool:
        """Whether the gap is closed; rounding then forbids to ask much more of the constraints."""
        gap = float(self.w @ self.z) / self.value
        off = float(np.abs(self._primal()).max())
        turned = float(np.abs(self.slope + self.y[: self.pairs]).max()) / self.value
        return gap < tolerance and turned < 10 * tolerance and (off < 1e-8 or gap < 1e-3 * tolerance)

    def step(self) -> None:
        """One predictor, one corrector."""
        primal, pairs = self._primal(), self.pairs
        turned = -(self.slope + self.y[:pairs])
        priced = -(self.y @ self.psi) - self.z
        theta, inverse = self.w / self.z, np.linalg.inv(self.curvature)
        normal = (self.psi * theta) @ self.psi.T
        normal[:pairs, :pairs] += inverse
        solved = _factored(normal)

        def direction(target: Floats) -> tuple[Floats, Floats, Floats, Floats]:
            right = primal - self.psi @ (target / self.z - self.w - theta * priced)
            right[:pairs] += inverse @ turned
            dy = solved(right)
            dz = priced - dy @ self.psi
            return target / self.z - self.w - theta * dz, dz, dy, inverse @ (turned - dy[:pairs])

        dw, dz, _, ds = direction(np.zeros_like(self.w))
        ahead, behind = min(1.0, wall(self.w, dw), 0.9 * self._singular(ds)), min(1.0, wall(self.z, dz))
        gap = float(self.w @ self.z)
        centred = (float((self.w + ahead * dw) @ (self.z + behind * dz)) / gap) ** 3 * gap / len(self.w)
        if float(np.abs(turned).max()) > LAG * gap:
            centred = gap / len(self.w)
        dw, dz, dy, ds = direction(centred - dw * dz)
        # One step length for both: f is no linear function, so the prices must move with what they price.
        ahead = min(
            1.0, TO_THE_WALL * wall(self.w, dw), TO_SINGULAR * self._singular(ds), TO_THE_WALL * wall(self.z, dz)
        )
        self.w, self.s = self.w + ahead * dw, self.s + ahead * ds
        self.z, self.y = self.z + ahead * dz, self.y + ahead * dy
        self.value, self.slope, self.curvature = self.curve()

    def design(self) -> Design:
        """The result, with V w = P made true to the last digit."""
        weights = balanced(self.psi[self.pairs :], self.w, self.goal[self.pairs :])[: self.count]
        pairs, n = self.pairs, len(self.prior)
        y, shape = self.y * self.scale, self.shape()
        # For v that sums to one, ‖Yᵀv‖² = Σ ‖Y_i‖² v_i − Σ_{i<j} ‖Y_i − Y_j‖² v_i v_j, and the latter is the slope.
        own = np.sum((np.linalg.inv(shape) * self.prior) ** 2, axis=1)
        price, charge = own - y[pairs : pairs + n], 0.0
        if len(y) > pairs + n:
            charge = max(float(-y[-1]), 0.0)
            price[self.mode] -= charge
        return Design(weights, shape, self.value, price, charge)

    def _primal(self) -> Floats:
        """What is missing to Ψ w = (s, P, limit)."""
        missing = self.goal - self.psi @ self.w
        missing[: self.pairs] += self.s
        return np.asarray(missing)

    def _singular(self, ds: Floats) -> float:
        """How far s can go until S is singular."""
        pull = (self.edges * ds) @ self.edges.T
        largest = scipy.linalg.eigh(pull, self.shape(), eigvals_only=True, check_finite=False)[-1]
        return 1.0 / float(largest) if largest > 0 else np.inf


def _factored(normal: Floats) -> Callable[[Floats], Floats]:
    """Solve with a matrix that is positive definite but for rounding: scaled, then shifted as little as it takes."""
    scale = 1.0 / np.sqrt(np.diag(normal))
    scaled = normal * scale[:, None] * scale
    shift = 1e-15
    while True:
        try:
            factor = scipy.linalg.cho_factor(scaled + shift * np.eye(len(scaled)), check_finite=False)
            break
        except np.linalg.LinAlgError:
            if not shift < 1.0:  # no number is left to work with
                raise
            shift *= 10.0

    def solved(right: Floats) -> Floats:
        solution = scipy.linalg.cho_solve(factor, right * scale, check_finite=False)
        for _ in range(2):  # refinement takes the shift back
            solution = solution + scipy.linalg.cho_solve(factor, right * scale - scaled @ solution, check_finite=False)
        return np.asarray(solution * scale)

    return solved
