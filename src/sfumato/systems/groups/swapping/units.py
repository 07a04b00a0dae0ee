"""What moves whole: single records, or households. A unit changes places with one of the same size."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.runtime.arrays import Codes, Counts64, Floats
from sfumato.systems.groups.files.microfile import Microfile
from sfumato.systems.groups.swapping.influence import Influence


@dataclass(frozen=True)
class Units:
    """Records by unit: those of unit u are `order[start[u] : start[u] + size[u]]`, in the order of the file."""

    unit_of: Counts64
    order: Counts64
    start: Counts64
    size: Counts64
    area_of: Codes

    @classmethod
    def of(cls, microfile: Microfile) -> Units:
        """The units of a file; each record is one unless the file says otherwise."""
        given = np.arange(microfile.records) if microfile.unit_of is None else microfile.unit_of
        _, unit_of = np.unique(given, return_inverse=True)
        unit_of = unit_of.reshape(-1).astype(np.int64)
        order = np.argsort(unit_of, kind="stable").astype(np.int64)
        size = np.bincount(unit_of).astype(np.int64)
        start = np.cumsum(size) - size
        return cls(unit_of, order, start, size, microfile.area_of[order[start]])

    @property
    def count(self) -> int:
        return len(self.size)

    def sums(self, weights: Floats) -> Floats:
        """A weight per record as one per unit."""
        return np.bincount(self.unit_of, weights, minlength=self.count).astype(np.float64)

    def records(self, units: Counts64) -> Counts64:
        """The records of some units, one after the other."""
        parts = [self.order[self.start[u] : self.start[u] + self.size[u]] for u in units.tolist()]
        return np.concatenate(parts) if parts else np.zeros(0, np.int64)

    def between(self, influence: Influence, left: Counts64, right: Counts64) -> Floats:
        """What exchanging units costs: the first record with the first, and so on. Other sizes cannot be exchanged."""
        if (self.size == 1).all():
            return influence.between(self.order[self.start[left]], self.order[self.start[right]])
        cost = np.full((len(left), len(right)), np.inf)
        for size in np.intersect1d(self.size[left], self.size[right]).tolist():
            mine, theirs = np.flatnonzero(self.size[left] == size), np.flatnonzero(self.size[right] == size)
            one, two = (
                self.order[self.start[left[mine]][:, None] + np.arange(size)],
                self.order[self.start[right[theirs]][:, None] + np.arange(size)],
            )
            total = np.zeros((len(mine), len(theirs)))
            for position in range(size):
                total += influence.between(one[:, position], two[:, position])
            cost[np.ix_(mine, theirs)] = total
        return cost
