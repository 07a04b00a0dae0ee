"""The certified optimum under ε of local differential privacy, for any prior (docs/readings.md, 3.12).

Where only ε limits a report, its likelihoods lie in a cone whose extreme rays have two values, 1 and e^ε. A mixture of
rays is at least as informative as the report itself. So the best channel is a mixture of rays, and the bound over all
of them holds for every channel.
"""

from __future__ import annotations

import numpy as np

from sfumato.base.arrays import Flags, Floats
from sfumato.methods.channel.exact import AT_ONCE, ColumnGeneration, Optimum, refuse_too_many
from sfumato.methods.channel.prior import rays


class LocalSearch:
    """Optimal channels for one prior and any ε. The sets in use at one ε are the start for the next."""

    def __init__(self, prior: Floats) -> None:
        refuse_too_many(prior)
        self.prior, self.used = prior, _first(len(prior))

    def at(self, epsilon: float) -> Optimum:
        """Return the best channel whose reports are at most e^ε times as likely under one true value as under another.

        >>> round(float(LocalSearch(np.array([0.5, 0.5])).at(np.log(3)).matrix.max()), 6)
        0.75
        """
        generation = ColumnGeneration(self.prior, rays(self.prior, epsilon), self.used)
        optimum, _ = generation.solve(None, np.ones(len(self.used), dtype=np.bool_), 1.0)
        return optimum


def _first(categories: int) -> Flags:
    """Return all sets if they are few, else the small and the large ones and an even choice of the rest."""
    sets = np.arange(1, 2**categories - 1)
    if len(sets) <= AT_ONCE:
        return np.ones(len(sets), dtype=np.bool_)
    sizes = ((sets[:, None] >> np.arange(categories)) & 1).sum(axis=1)
    return np.asarray((sizes <= 2) | (sizes == categories - 1) | (sets % (len(sets) // 1500) == 0))
