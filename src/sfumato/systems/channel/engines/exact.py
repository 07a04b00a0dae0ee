"""The certified optimum: channels with any number of outputs, and a lower bound that no channel can beat.

Written over posteriors the problem is convex (docs/readings.md, 3.9). All corners are known, so a column generation
over them ends with a proof: the bound is checked against every corner, not only against those in use.
"""

from __future__ import annotations

import numpy as np
import scipy.optimize

from sfumato.errors import UnreachableError
from sfumato.measures.channel import attainable, caps_of, require_room
from sfumato.runtime.arrays import Flags, Floats
from sfumato.systems.channel.engines.design import Bound
from sfumato.systems.channel.engines.generation import AT_ONCE, Generation, Optimum, refuse_too_many
from sfumato.systems.channel.posteriors import corners

TOUCHING = 1e-6  # privacy this close to the ceiling is the ceiling: tables print six digits


class ExactSearch:
    """Optimal channels for one prior, δ and cap on the gain. Every point adds corners and bounds that the next use."""

    def __init__(
        self, prior: Floats, delta: float, gain: float | None = None, candidates: Floats | None = None
    ) -> None:
        """`candidates` are other posteriors than all corners; what is then found is proven among them only."""
        attainable(prior, delta)
        require_room(prior, delta)
        refuse_too_many(prior)
        self.prior, self.delta, self.gain = prior, delta, gain
        self.columns = corners(caps_of(prior, delta, gain)) if candidates is None else candidates
        self.heights = self.columns.max(axis=0)
        self.bounds: list[Bound] = []
        self.range = self._range()
        self.generation = Generation(prior, self.columns, self._first_columns())

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
        optimum, bound = self.generation.solve(limit, allowed, 1.0 - high if limit is None else limit)
        if not ceiling:
            self.bounds.append(bound)
        return optimum

    def lower_bound(self, privacy: float) -> float:
        """The best proven spread at any privacy, from the bounds of all points solved so far."""
        return max((bound.at(1.0 - privacy) for bound in self.bounds), default=0.0)

    def _range(self) -> tuple[float, float]:
        """The least and the most privacy. With a cap on the gain the least is that of a linear program."""
        low, high = attainable(self.prior, self.delta)
        if self.gain is not None:
            low = min(max(low, 1.0 - float(self.heights @ self._mixture(self.heights))), high)
        return low, high

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
        if self.gain is not None:
            used |= np.arange(count) % max(count // AT_ONCE, 1) == 0
            for worth in (self.heights, -self.heights, -((self.columns / self.prior[:, None]) ** 2).sum(axis=0)):
                used |= self._mixture(worth) > 0  # so that the prior can be reached, near both ends of the range
        return np.asarray(used)

    def _mixture(self, worth: Floats) -> Floats:
        """Weights that add up to the prior and are worth the most."""
        program = scipy.optimize.linprog(-worth, A_eq=self.columns, b_eq=self.prior, method="highs")
        if program.x is None:
            raise AssertionError("the prior lies between the corners")
        return np.asarray(program.x)
