"""The certified optimum: channels with any number of outputs, and a lower bound on the error of every channel.

Written over posteriors the problem is convex (docs/readings.md, 3.9). All extreme points (corners) are known, so column
generation over them ends with a proof: the bound is checked against every corner, not only against those in use.

The convex program is an A-optimal design with linear constraints, solved by an interior point method. Columns v of a
matrix V lie in the simplex. Over weights w ≥ 0 with V w = P and heights·w ≤ limit,

    minimise f = tr(D S⁻¹ D),  S = Σ w_v v vᵀ,  D = diag(P).

Since V w = P fixes the row sums of S, S = D − L(s), where s_ij = Σ w_v v_i v_j for i < j and L is the Laplacian of the
graph with the weights s. So f is a convex function of n(n−1)/2 numbers and everything else is linear in w. Newton's
system has n(n+1)/2 + 1 unknowns however many columns there are.

`balanced` corrects a mixture of columns so that it adds up to a goal, and `thin` reduces it to few columns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.linalg
import scipy.optimize

from sfumato.base.arrays import Counts64, Flags, Floats
from sfumato.errors import InputError, UnreachableError
from sfumato.measures.channel import attainable, caps_of, require_room
from sfumato.methods.channel.prior import corners, rays

INDEPENDENT = 1e-8
REFRESH = 64
SAME = 1e-9  # tolerance for the sum of a thinned mixture, relative to the largest sum


def max_step(values: Floats, step: Floats) -> float:
    """Return the largest step length before a value becomes negative."""
    falling = step < 0
    return float(np.min(-values[falling] / step[falling])) if falling.any() else np.inf


def balanced(columns: Floats, weights: Floats, goal: Floats) -> Floats:
    """Adjust weights, each in proportion to its size, until the columns add up to the goal."""
    for _ in range(50):
        off = goal - columns @ weights
        if np.abs(off).max() < 1e-15:
            break
        push = columns * weights**2
        change = push.T @ np.linalg.lstsq(push @ columns.T, off, rcond=None)[0]
        weights = weights + min(1.0, 0.9 * max_step(weights, change)) * change
    return weights


def thin(columns: Floats, weights: Floats) -> Floats:
    """Return the same sum of weighted columns from no more columns than they have rows (Carathéodory).

    Columns are added in turn, the heaviest first. A column that is independent of the basis joins it. The weight of any
    other column is moved to the basis, until it is used up or the weight of a basis member is. The column then replaces
    that member.

    >>> left = thin(np.ones((1, 4)), np.array([0.1, 0.2, 0.3, 0.4]))
    >>> int((left > 0).sum()), round(float(left.sum()), 12)
    (1, 1.0)

    If columns are dependent up to rounding, an exchange can change the sum. All columns are kept then.
    """
    try:
        thinned = _last_basis(columns, weights)
    except np.linalg.LinAlgError:
        return weights
    total = columns @ weights
    return thinned if np.abs(columns @ thinned - total).max() <= SAME * np.abs(total).max() else weights


def _last_basis(columns: Floats, weights: Floats) -> Floats:
    """Return the weights of the last basis of `thin`."""
    rows = len(columns)
    size = np.linalg.norm(columns, axis=1, keepdims=True)
    columns = columns / np.where(size > 0, size, 1.0) * np.sqrt(columns.shape[1])
    inverse, members, held = np.eye(rows), np.full(rows, -1), np.zeros(rows)
    pivots = 0
    for j in np.argsort(-weights, kind="stable"):
        left = float(weights[j])
        if left <= 0:
            break
        mix = inverse @ columns[:, j]
        open_ = np.where(members < 0, np.abs(mix), 0.0)
        position = int(np.argmax(open_))
        if open_[position] > INDEPENDENT:
            held[position] = left
        else:
            falling = (mix < 0) & (members >= 0)
            ratio = np.where(falling, held / np.where(falling, -mix, 1.0), np.inf)
            position = int(np.argmin(ratio))
            moved = min(left, float(ratio[position]))
            held = np.where(members >= 0, np.maximum(held + moved * mix, 0.0), 0.0)
            if moved == left:
                continue
            held[position] = left - moved
        members[position] = j
        pivots += 1
        if pivots % REFRESH == 0:  # rounding adds up over many exchanges
            inverse = np.linalg.inv(np.where(members >= 0, columns[:, members], np.eye(rows)))
            continue
        inverse[position] /= mix[position]
        mix[position] = 0.0
        inverse -= np.outer(mix, inverse[position])
    thinned = np.zeros(len(weights))
    thinned[members[members >= 0]] = held[members >= 0]
    return thinned


STEPS = 80
TO_THE_WALL = 0.99
LAG = 1e3  # the gap is not reduced if the gradient lags by this factor: a weight that vanishes too soon is lost
TO_SINGULAR = 0.7  # shorter steps towards a singular S, because f grows without bound there


@dataclass(frozen=True, eq=False)
class Design:
    """Weights of the columns, the matrix S, the value f, and the dual prices that bound it."""

    weights: Floats
    shape: Floats
    value: float
    price: Floats
    charge: float


@dataclass(frozen=True, eq=False)
class Bound:
    """A lower bound on f for every limit at once.

    With Y = S⁻¹D, the Cauchy-Schwarz inequality states (tr DY)² ≤ f(w')·Σ w'_v ‖Yᵀv‖² for every w'. A dual feasible
    pair (price, charge) of the linear program bounds that sum by price·P + charge·limit. A shift makes any pair
    feasible, because a column sums to one.
    """

    trace: float
    constant: float
    charge: float

    @classmethod
    def of(cls, design: Design, prior: Floats, columns: Floats, heights: Floats) -> tuple[Bound, Floats]:
        """Return the bound that a design proves over all columns, and how far each violates its dual constraint."""
        dual = np.linalg.solve(design.shape, np.diag(prior))
        worth = np.einsum("ij,ij->j", dual.T @ columns, dual.T @ columns)
        excess = worth - design.price @ columns - design.charge * heights
        constant = float(design.price @ prior) + float(excess.max())
        return cls(float(prior @ np.diag(dual)), constant, design.charge), excess

    def at(self, limit: float) -> float:
        """Return the bound at a limit, slightly reduced for rounding errors."""
        return self.trace**2 / (self.constant + self.charge * limit) * (1.0 - 1e-11)


def solve(prior: Floats, columns: Floats, heights: Floats, limit: float | None, tolerance: float = 1e-6) -> Design:
    """Return the best design; without a `limit` the constraint on heights is left out.

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
        except np.linalg.LinAlgError:  # rounding prevents further steps; the bound states how good the result is
            break
    return point.design()


class _InteriorPoint:
    """Mehrotra's predictor-corrector method. The rows of Ψ are the products v_i v_j, the column itself, and its height.

    Ψ w = (s, P, limit) has the multipliers y, and z ≥ 0 are the reduced costs of the weights. The slack of the limit is
    a last column that adds nothing to S.
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
        """Return S at the current s."""
        return np.asarray(np.diag(self.prior) - (self.edges * self.s) @ self.edges.T)

    def curve(self) -> tuple[float, Floats, Floats]:
        """Return f, its gradient and its Hessian in s."""
        inverse = np.linalg.inv(self.shape())
        inner = self.edges.T @ inverse @ self.edges
        weighted = (self.prior[:, None] * inverse) @ self.edges
        outer = weighted.T @ weighted
        return float(self.prior**2 @ np.diag(inverse)), np.diag(outer).copy(), 2.0 * inner * outer

    def done(self, tolerance: float) -> bool:
        """Return whether the gap is closed; rounding then prevents a much higher accuracy of the constraints."""
        gap = float(self.w @ self.z) / self.value
        off = float(np.abs(self._primal()).max())
        turned = float(np.abs(self.slope + self.y[: self.pairs]).max()) / self.value
        return gap < tolerance and turned < 10 * tolerance and (off < 1e-8 or gap < 1e-3 * tolerance)

    def step(self) -> None:
        """Make one predictor step and one corrector step."""
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
        primal_step = min(1.0, max_step(self.w, dw), 0.9 * self._singular(ds))
        dual_step = min(1.0, max_step(self.z, dz))
        gap = float(self.w @ self.z)
        centred = (float((self.w + primal_step * dw) @ (self.z + dual_step * dz)) / gap) ** 3 * gap / len(self.w)
        if float(np.abs(turned).max()) > LAG * gap:
            centred = gap / len(self.w)
        dw, dz, dy, ds = direction(centred - dw * dz)
        # One step length for both: f is not linear, so primal and dual variables must move together.
        to_walls = TO_THE_WALL * min(max_step(self.w, dw), max_step(self.z, dz))
        primal_step = min(1.0, to_walls, TO_SINGULAR * self._singular(ds))
        self.w, self.s = self.w + primal_step * dw, self.s + primal_step * ds
        self.z, self.y = self.z + primal_step * dz, self.y + primal_step * dy
        self.value, self.slope, self.curvature = self.curve()

    def design(self) -> Design:
        """Return the result, with V w = P corrected to machine precision."""
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
        """Return the residual of Ψ w = (s, P, limit)."""
        missing = self.goal - self.psi @ self.w
        missing[: self.pairs] += self.s
        return np.asarray(missing)

    def _singular(self, ds: Floats) -> float:
        """Return the largest step length of s before S becomes singular."""
        pull = (self.edges * ds) @ self.edges.T
        largest = scipy.linalg.eigh(pull, self.shape(), eigvals_only=True, check_finite=False)[-1]
        return 1.0 / float(largest) if largest > 0 else np.inf


def shifted_cholesky(scaled: Floats, shift: float, least: float, growth: float, most: float) -> tuple[Floats, bool]:
    """Return the Cholesky factor of a symmetric matrix that is shifted until it is positive definite."""
    while True:
        try:
            return scipy.linalg.cho_factor(scaled + shift * np.eye(len(scaled)), check_finite=False)
        except np.linalg.LinAlgError:
            if not shift < most:  # the matrix holds no finite number
                raise
            shift = max(growth * shift, least)


def _factored(normal: Floats) -> Callable[[Floats], Floats]:
    """Return a solver for a matrix that is positive definite up to rounding: scaled, then slightly shifted."""
    scale = 1.0 / np.sqrt(np.diag(normal))
    scaled = normal * scale[:, None] * scale
    factor = shifted_cholesky(scaled, 1e-15, 1e-15, 10.0, 1.0)

    def solved(right: Floats) -> Floats:
        solution = scipy.linalg.cho_solve(factor, right * scale, check_finite=False)
        for _ in range(2):  # iterative refinement removes the effect of the shift
            solution = solution + scipy.linalg.cho_solve(factor, right * scale - scaled @ solution, check_finite=False)
        return np.asarray(solution * scale)

    return solved


MOST_CATEGORIES = 16
AT_ONCE = 2500  # up to this number all posteriors are used from the start; more are generated when needed
ADDED = 400
ROUNDS = 30
CLOSED = 2e-6  # relative gap at which column generation stops
DUST = 1e-7  # rarer reports are numerical noise, and would determine the worst posterior


@dataclass(frozen=True, eq=False)
class Optimum:
    """A channel as matrix and posteriors (rows), and a lower bound on the spread within the same limits."""

    matrix: Floats
    posteriors: Floats
    lower_bound: float


def refuse_too_many(prior: Floats) -> None:
    """Raise if there are more categories than subsets can be enumerated for."""
    if len(prior) > MOST_CATEGORIES:
        raise InputError(
            f"{len(prior)} categories are too many for the exact engine",
            expected=f"at most {MOST_CATEGORIES}: their {2 ** len(prior):,} sets are all looked at",
            remedy='engine = "square" or engine = "optrr" under [channel], or join rare categories into groups',
        )


def refuse_privacy(privacy: float, span: tuple[float, float], delta: float, tolerance: float) -> None:
    """Raise unless a privacy lies in the range of those that channels can have."""
    low, high = span
    if not low - tolerance <= privacy <= high + tolerance:
        raise UnreachableError(
            f"no channel has a privacy of {privacy:g} with posteriors of at most {delta:g}",
            expected=f"privacy from {low:.6g} to {high:.6g}",
            remedy=f"privacy = [{min(max(privacy, low), high):.6g}] under [channel]",
        )


class ColumnGeneration:
    """Column generation: mixtures of posteriors (columns) that add up to a prior.

    Columns in use are kept for the next mixture.
    """

    def __init__(self, prior: Floats, columns: Floats, used: Flags) -> None:
        self.prior, self.columns, self.used = prior, columns, used
        self.heights = columns.max(axis=0)

    def solve(self, limit: float | None, allowed: Flags, reached: float) -> tuple[Optimum, Bound]:
        """Return the best mixture of the allowed columns; `limit` caps its accuracy, `reached` is for the bound.

        Solve over the columns in use, add those that violate their dual constraint, and repeat until none does.
        """
        bounds: list[Bound] = []
        places = np.flatnonzero(allowed)
        for _ in range(ROUNDS):
            chosen = np.flatnonzero(self.used & allowed)
            design = solve(self.prior, self.columns[:, chosen], self.heights[chosen], limit)
            bound, excess = Bound.of(design, self.prior, self.columns[:, allowed], self.heights[allowed])
            bounds.append(bound)
            fresh = np.flatnonzero((excess > 0) & ~self.used[places])
            if design.value - bound.at(reached) <= CLOSED * design.value or not len(fresh):
                break
            self.used[places[fresh[np.argsort(-excess[fresh], kind="stable")[:ADDED]]]] = True
        best = max(reversed(bounds), key=lambda bound: bound.at(reached))
        return self._optimum(design, chosen, best.at(reached)), best

    def _optimum(self, design: Design, chosen: Counts64, lower_bound: float) -> Optimum:
        """Return the design as a matrix with few outputs, in the order of their sets."""
        columns, heights = self.columns[:, chosen], self.heights[chosen]
        first, second = np.triu_indices(len(self.prior), 1)
        moments = np.concatenate([columns[first] * columns[second], columns, heights[None, :]])
        weights = _without_negligible(np.vstack([columns, heights]), thin(moments, design.weights))
        kept = np.flatnonzero(weights)
        # A correction in the last digits, so that the columns add up to the prior exactly.
        weights, columns = balanced(columns[:, kept], weights[kept], self.prior), columns[:, kept]
        order = np.lexsort([*columns[::-1], -heights[kept]])
        rows = (columns * weights).T[order]
        matrix = rows / self.prior
        return Optimum(matrix / matrix.sum(axis=0), columns.T[order], lower_bound)


def _without_negligible(rows: Floats, weights: Floats) -> Floats:
    """Return weights with negligible ones set to zero, if the rest can be adjusted to the same totals."""
    goal, kept = rows @ weights, np.flatnonzero(weights > DUST)
    rest = balanced(rows[:, kept], weights[kept], goal)
    if np.abs(rows[:, kept] @ rest - goal).max() > 1e-13 or rest.min() <= 0:
        return weights
    swept = np.zeros(len(weights))
    swept[kept] = rest
    return swept


TOUCHING = 1e-6  # privacy this close to the ceiling counts as the ceiling, because tables print six digits


class ExactSearch:
    """Optimal channels for one prior, δ and limit on the gain; corners and bounds are kept for the next point."""

    def __init__(
        self, prior: Floats, delta: float, gain: float | None = None, candidates: Floats | None = None
    ) -> None:
        """Set up the search; with `candidates` in place of all corners, optima are proven among these only."""
        low, high = attainable(prior, delta)
        require_room(prior, delta)
        refuse_too_many(prior)
        self.prior, self.delta, self.gain = prior, delta, gain
        self.columns = corners(caps_of(prior, delta, gain)) if candidates is None else candidates
        self.heights = self.columns.max(axis=0)
        self.bounds: list[Bound] = []
        if gain is not None:  # the least privacy is that of a linear program
            low = min(max(low, 1.0 - float(self.heights @ self._mixture(self.heights))), high)
        self.range = low, high
        self.generation = ColumnGeneration(prior, self.columns, self._first_columns())

    def at(self, privacy: float) -> Optimum:
        """Return the best channel with at least this privacy."""
        low, high = self.range
        refuse_privacy(privacy, self.range, self.delta, TOUCHING)
        ceiling = privacy > high - TOUCHING
        # The most private channels distinguish all categories only if one is the commonest.
        if ceiling and int(np.sum(self.prior > self.prior.max() - TOUCHING)) > 1:
            raise UnreachableError(
                f"at a privacy of {high:.6g} two categories that are equally common cannot be distinguished",
                expected=f"privacy below {high:.6g}",
                remedy=f"privacy = [{high - 0.002 * (high - low):.6g}] under [channel]",
            )
        limit = None if ceiling else 1.0 - privacy
        allowed = np.ones(len(self.heights), dtype=np.bool_)
        if ceiling:  # only reports that leave the commonest category as the best guess
            allowed = self.heights <= self.columns[np.argmax(self.prior)] + 1e-12
        optimum, bound = self.generation.solve(limit, allowed, 1.0 - high if limit is None else limit)
        if not ceiling:
            self.bounds.append(bound)
        return optimum

    def lower_bound(self, privacy: float) -> float:
        """Return the best proven lower bound on the spread at any privacy, from all points solved so far."""
        return max((bound.at(1.0 - privacy) for bound in self.bounds), default=0.0)

    def _first_columns(self) -> Flags:
        """Return all corners if they are few, else those of the lowest privacy, of the ceiling and of feasibility."""
        count = len(self.heights)
        if count <= AT_ONCE:
            return np.ones(count, dtype=np.bool_)
        sizes = (self.columns > 0).sum(axis=0)
        least = int(sizes.min())
        used = (self.heights >= self.delta - 1e-12) | (sizes <= max(3, least)) | (sizes >= len(self.prior) - 1)
        if used.sum() > AT_ONCE:
            used = (sizes <= least + 1) | (sizes >= len(self.prior) - 1)
        order = np.argsort(-self.prior)
        for size in range(1, len(order) + 1):  # sets of the commonest categories leave the best guess unchanged
            for last in range(size - 1, len(order)):
                named = np.zeros(len(order))
                named[[*order[: size - 1], order[last]]] = 1.0 / size
                used |= np.abs(self.columns - named[:, None]).max(axis=0) < 1e-9
        if self.gain is not None:
            used |= np.arange(count) % max(count // AT_ONCE, 1) == 0
            for worth in (self.heights, -self.heights, -((self.columns / self.prior[:, None]) ** 2).sum(axis=0)):
                used |= self._mixture(worth) > 0  # makes the prior reachable near both ends of the range
        return np.asarray(used)

    def _mixture(self, worth: Floats) -> Floats:
        """Return weights that add up to the prior and have the greatest total worth."""
        program = scipy.optimize.linprog(-worth, A_eq=self.columns, b_eq=self.prior, method="highs")
        if program.x is None:
            raise AssertionError("the prior lies between the corners")
        return np.asarray(program.x)


class LocalSearch:
    """Optimal channels for one prior and any ε. The sets in use at one ε are the start for the next.

    Where only ε limits a report, its likelihoods lie in a cone whose extreme rays have two values, 1 and e^ε. A mixture
    of rays is at least as informative as the report itself. So the best channel is a mixture of rays, and the bound
    over all of them holds for every channel (docs/readings.md, 3.12).
    """

    def __init__(self, prior: Floats) -> None:
        refuse_too_many(prior)
        self.prior = prior
        sets = np.arange(1, 2 ** len(prior) - 1)
        self.used = np.ones(len(sets), dtype=np.bool_)
        if len(sets) > AT_ONCE:  # the small and the large ones, and an even choice of the rest
            sizes = np.bitwise_count(sets)
            self.used = (sizes <= 2) | (sizes == len(prior) - 1) | (sets % (len(sets) // 1500) == 0)

    def at(self, epsilon: float) -> Optimum:
        """Return the best channel whose reports are at most e^ε times as likely under one true value as under another.

        >>> round(float(LocalSearch(np.array([0.5, 0.5])).at(np.log(3)).matrix.max()), 6)
        0.75
        """
        generation = ColumnGeneration(self.prior, rays(self.prior, epsilon), self.used)
        return generation.solve(None, np.ones(len(self.used), dtype=np.bool_), 1.0)[0]
