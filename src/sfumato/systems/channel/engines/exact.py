"""The certified optimum: channels with any number of outputs, and a lower bound that no channel can beat.

Written over posteriors the problem is convex (docs/readings.md, 3.9). All corners are known, so a column generation
over them ends with a proof: the bound is checked against every corner, not only against those in use.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.errors import InputError, UnreachableError
from sfumato.measures.channel import attainable, require_room
from sfumato.runtime.arrays import Counts64, Flags, Floats
from sfumato.systems.channel.engines.design import Bound, Design, solve
from sfumato.systems.channel.engines.thinning import balanced, thin
from sfumato.systems.channel.posteriors import corners

MOST_CATEGORIES = 16
AT_ONCE = 2500  # corners that are all used from the start; more are generated as they are needed
ADDED = 400
ROUNDS = 30
CLOSED = 2e-6  # a gap at which no more corners are looked for
DUST = 1e-7  # reports rarer than this are traces of the method, and would set the worst posterior
TOUCHING = 1e-6  # privacy this close to the ceiling is the ceiling: tables print six digits


@dataclass(frozen=True, eq=False)
class Optimum:
    """A channel as matrix and posteriors (rows), and the spread that no channel of its privacy goes below."""

    matrix: Floats
    posteriors: Floats
    lower_bound: float


class ExactSearch:
    """Optimal channels for one prior and δ. Every point adds corners and bounds that the next ones use."""

    def __init__(self, prior: Floats, delta: float, candidates: Floats | None = None) -> None:
        """`candidates` are other posteriors than all corners; what is then found is proven among them only."""
        self.prior, self.delta = prior, delta
        self.range = attainable(prior, delta)
        require_room(prior, delta)
        if len(prior) > MOST_CATEGORIES:
            raise InputError(
                f"{len(prior)} categories are too many for the exact engine",
                expected=f"at most {MOST_CATEGORIES}: their {2 ** len(prior):,} sets are all looked at",
                remedy='engine = "square" or engine = "optrr" under [channel], or join rare categories into groups',
            )
        self.columns = corners(len(prior), delta) if candidates is None else candidates
        self.heights = self.columns.max(axis=0)
        self.bounds: list[Bound] = []
        self.used = self._first_columns()

    def ceiling_is_finite(self) -> bool:
        """Whether the most private channels still tell all categories apart: only if one category is the commonest."""
        return int(np.sum(self.prior > self.prior.max() - TOUCHING)) == 1

    def at(self, privacy: float) -> Optimum:
        """The best channel with at least this privacy."""
        low, high = self.range
        if not low - TOUCHING <= privacy <= high + TOUCHING:
            raise UnreachableError(
                f"no channel has a privacy of {privacy:g} with posteriors of at most {self.delta:g}",
                expected=f"privacy from {low:.6g} to {high:.6g}",
                remedy=f"privacy = [{min(max(privacy, low), high):.6g}] under [channel]",
            )
        ceiling = privacy > high - TOUCHING
        if ceiling and not self.ceiling_is_finite():
            raise UnreachableError(
                f"at a privacy of {high:.6g} two categories that are equally common cannot be told apart",
                expected=f"privacy below {high:.6g}",
                remedy=f"privacy = [{high - 0.002 * (high - low):.6g}] under [channel]",
            )
        limit = None if ceiling else 1.0 - privacy
        allowed = np.ones(len(self.heights), dtype=np.bool_)
        if ceiling:  # only reports under which the commonest category stays the best guess
            allowed = self.heights <= self.columns[np.argmax(self.prior)] + 1e-12
        design, chosen, bound = self._generated(limit, allowed)
        if not ceiling:
            self.bounds.append(bound)
        best = bound.at(1.0 - high if limit is None else limit)
        return self._optimum(design, chosen, best)

    def lower_bound(self, privacy: float) -> float:
        """The best proven spread at any privacy, from the bounds of all points solved so far."""
        return max((bound.at(1.0 - privacy) for bound in self.bounds), default=0.0)

    def _first_columns(self) -> Flags:
        """All corners if they are few; else those that the lowest privacy, the ceiling and feasibility ask for."""
        count = len(self.heights)
        if count <= AT_ONCE:
            return np.ones(count, dtype=np.bool_)
        sizes = (self.columns > 0).sum(axis=0)
        used = (
            (self.heights >= self.delta - 1e-12) | (sizes <= max(3, int(sizes.min()))) | (sizes >= len(self.prior) - 1)
        )
        if used.sum() > AT_ONCE:
            used = (sizes <= int(sizes.min()) + 1) | (sizes >= len(self.prior) - 1)
        order = np.argsort(-self.prior)
        for size in range(1, len(order) + 1):  # the sets of the commonest keep the best guess as it is
            for last in range(size - 1, len(order)):
                named = np.zeros(len(order))
                named[[*order[: size - 1], order[last]]] = 1.0 / size
                used |= np.abs(self.columns - named[:, None]).max(axis=0) < 1e-9
        return np.asarray(used)

    def _generated(self, limit: float | None, allowed: Flags) -> tuple[Design, Counts64, Bound]:
        """Solve over the columns in use, add those that are worth more than they are priced, until none are left."""
        best: tuple[Design, Counts64, Bound] | None = None
        for _ in range(ROUNDS):
            chosen = np.flatnonzero(self.used & allowed)
            design = solve(self.prior, self.columns[:, chosen], self.heights[chosen], limit)
            bound, excess = Bound.of(design, self.prior, self.columns[:, allowed], self.heights[allowed])
            reached = limit if limit is not None else 1.0 - self.range[1]
            best = (design, chosen, bound) if best is None or bound.at(reached) >= best[2].at(reached) else best
            if design.value - bound.at(reached) <= CLOSED * design.value:
                break
            places = np.flatnonzero(allowed)
            fresh = np.flatnonzero((excess > 0) & ~self.used[places])
            if not len(fresh):
                break
            self.used[places[fresh[np.argsort(-excess[fresh], kind="stable")[:ADDED]]]] = True
        if best is None:
            raise AssertionError("there is at least one round")
        return design, chosen, best[2]

    def _optimum(self, design: Design, chosen: Counts64, lower_bound: float) -> Optimum:
        """The design as a matrix with few outputs, in the order of their sets."""
        columns, heights = self.columns[:, chosen], self.heights[chosen]
        first, second = np.triu_indices(len(self.prior), 1)
        moments = np.concatenate([columns[first] * columns[second], columns, heights[None, :]])
        weights = _swept(np.vstack([columns, heights]), thin(moments, design.weights))
        kept = np.flatnonzero(weights)
        # The last digits: what the columns add up to is the prior itself.
        weights, columns = balanced(columns[:, kept], weights[kept], self.prior), columns[:, kept]
        order = np.lexsort([*columns[::-1], -heights[kept]])
        rows = (columns * weights).T[order]
        matrix = rows / self.prior
        return Optimum(matrix / matrix.sum(axis=0), columns.T[order], lower_bound)


def _swept(rows: Floats, weights: Floats) -> Floats:
    """Weights with negligible ones set to zero, if the rest can be adjusted to the same totals."""
    goal, kept = rows @ weights, np.flatnonzero(weights > DUST)
    rest = balanced(rows[:, kept], weights[kept], goal)
    if np.abs(rows[:, kept] @ rest - goal).max() > 1e-13 or rest.min() <= 0:
        return weights
    swept = np.zeros(len(weights))
    swept[kept] = rest
    return swept
