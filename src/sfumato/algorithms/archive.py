"""An archive of every non-dominated point seen, with the candidate each came from."""

from __future__ import annotations

import numpy as np

from sfumato.algorithms.dominance import first_non_dominated
from sfumato.runtime.arrays import Counts64, Flags, Floats


class Archive:
    """Non-dominated values; of equal ones the first. `members` are numbers that the caller gives to candidates.

    Where `grid` is above 0, an objective is compared in steps of it: real-valued objectives have no end of points.

    >>> archive = Archive(np.zeros(2))
    >>> archive.add(np.array([[1.0, 2.0], [2.0, 1.0], [2.0, 2.0], [1.0, 2.0]]), np.arange(4)).tolist()
    [0, 1]
    >>> archive.add(np.array([[1.0, 1.0]]), np.array([9])).tolist(), archive.members.tolist()
    ([0], [9])
    """

    def __init__(self, grid: Floats) -> None:
        self.grid = grid
        self.values: Floats = np.empty((0, len(grid)))
        self.members: Counts64 = np.empty(0, dtype=np.int64)

    def __len__(self) -> int:
        return len(self.members)

    def better(self, values: Floats) -> Counts64:
        """The places of points that would be taken: neither a member nor an earlier point is as good in everything."""
        return np.flatnonzero(self._standing(values)[len(self) :])

    def add(self, values: Floats, members: Counts64) -> Counts64:
        """Offer points; returns the places of those that were taken."""
        standing = self._standing(values)
        kept, taken = standing[: len(self)], np.flatnonzero(standing[len(self) :])
        if len(taken):
            self.values = np.vstack([self.values[kept], values[taken]])
            self.members = np.concatenate([self.members[kept], members[taken]])
        return taken

    def _standing(self, values: Floats) -> Flags:
        """Which of the members and the points behind them are non-dominated, the first of equal ones."""
        finite = np.isfinite(values).all(axis=1)
        both = np.vstack([self.values, values[finite]])
        step = np.where(self.grid > 0, self.grid, 1.0)
        both = np.where(self.grid > 0, np.ceil(both / step - 1e-9), both)
        standing = np.zeros(len(self) + len(values), dtype=np.bool_)
        places = np.concatenate([np.arange(len(self)), len(self) + np.flatnonzero(finite)])
        standing[places] = first_non_dominated(both)
        return standing
