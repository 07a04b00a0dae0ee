"""Column generation over a known set of posteriors: the best mixture of all of them, with a bound over all of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.errors import InputError
from sfumato.runtime.arrays import Counts64, Flags, Floats
from sfumato.systems.channel.engines.design import Bound, Design, solve
from sfumato.systems.channel.engines.thinning import balanced, thin

MOST_CATEGORIES = 16
AT_ONCE = 2500  # posteriors that are all used from the start; more are generated as they are needed
ADDED = 400
ROUNDS = 30
CLOSED = 2e-6  # a gap at which no more posteriors are looked for
DUST = 1e-7  # reports rarer than this are traces of the method, and would set the worst posterior


@dataclass(frozen=True, eq=False)
class Optimum:
    """A channel as matrix and posteriors (rows), and the spread that no channel within the same limits goes below."""

    matrix: Floats
    posteriors: Floats
    lower_bound: float


def refuse_too_many(prior: Floats) -> None:
    """Raise where there are more categories than sets can be listed."""
    if len(prior) > MOST_CATEGORIES:
        raise InputError(
            f"{len(prior)} categories are too many for the exact engine",
            expected=f"at most {MOST_CATEGORIES}: their {2 ** len(prior):,} sets are all looked at",
            remedy='engine = "square" or engine = "optrr" under [channel], or join rare categories into groups',
        )


class Generation:
    """Mixtures of posteriors (columns) that add up to a prior. Those in use stay in use for the next mixture."""

    def __init__(self, prior: Floats, columns: Floats, used: Flags) -> None:
        self.prior, self.columns, self.used = prior, columns, used
        self.heights = columns.max(axis=0)

    def solve(self, limit: float | None, allowed: Flags, reached: float) -> tuple[Optimum, Bound]:
        """The best mixture of the columns allowed; `limit` caps its accuracy, `reached` is where its bound is read.

        Solve over the columns in use, add those that are worth more than they are priced, until none are left.
        """
        best: Bound | None = None
        for _ in range(ROUNDS):
            chosen = np.flatnonzero(self.used & allowed)
            design = solve(self.prior, self.columns[:, chosen], self.heights[chosen], limit)
            bound, excess = Bound.of(design, self.prior, self.columns[:, allowed], self.heights[allowed])
            best = bound if best is None or bound.at(reached) >= best.at(reached) else best
            if design.value - bound.at(reached) <= CLOSED * design.value:
                break
            places = np.flatnonzero(allowed)
            fresh = np.flatnonzero((excess > 0) & ~self.used[places])
            if not len(fresh):
                break
            self.used[places[fresh[np.argsort(-excess[fresh], kind="stable")[:ADDED]]]] = True
        if best is None:
            raise AssertionError("there is at least one round")
        return self._optimum(design, chosen, best.at(reached)), best

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
