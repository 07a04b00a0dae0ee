"""The units of swaps, their distances, and targeted record swapping.

A unit is a record or a household, and is exchanged with one of the same size. The influential metric is the cost of
swapping two records between areas (equation 25).

Targeted record swapping, the usual protection of places in census tables, is a baseline for plans that know the group.
A record is at risk if fewer than a number of records of its area share its attributes. Units with records at risk, the
greatest risk first, are exchanged with the most similar of some drawn units of the same size in another area. This
needs no group, attacker or sensitive area.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.base.arrays import Codes, Counts64, Flags, Floats
from sfumato.base.compiled import compiled
from sfumato.methods.groups.microfile import Microfile, quantile_groups


@compiled
def _distances(
    codes: Codes, values: Floats, ordinal: Flags, weights: Floats, left: Counts64, right: Counts64
) -> Floats:
    """Return the influential metric of each of `left` with each of `right`."""
    # Compiled, because numpy would need an array of givers by takers by columns, which may not fit into memory.
    distances = np.empty((len(left), len(right)))
    for a in range(len(left)):
        i = left[a]
        for b in range(len(right)):
            j = right[b]
            total = 0.0
            for c in range(len(codes)):
                if codes[c, i] == codes[c, j]:
                    continue
                if ordinal[c]:
                    x, y = values[c, codes[c, i]], values[c, codes[c, j]]
                    both = x + y
                    # Outside the range a value may be missing or negative, and the difference
                    # counts as one of category.
                    if both != both or both == 0:
                        total += weights[c]
                    else:
                        total += weights[c] * min(((x - y) / both) ** 2, 1.0)
                else:
                    total += weights[c]
            distances[a, b] = total
    return distances


class Influence:
    """Distances between records of a microfile.

    Equal categories cost 0 and different ones their weight; the paper prints it the other way round. An ordinal
    difference is ((a − b)/(a + b))², and 0 if both are 0 (docs/readings.md, 4.3).
    """

    def __init__(
        self,
        microfile: Microfile,
        columns: Sequence[str] = (),
        ordinal: Sequence[str] = (),
        weights: Sequence[float] | None = None,
    ) -> None:
        names = list(columns or microfile.attributes)
        positions = [microfile.attributes.index(name) for name in names]
        self.codes = np.ascontiguousarray(microfile.codes[positions])
        self.values = np.zeros((len(positions), max(len(microfile.values[p]) for p in positions)))
        for row, position in enumerate(positions):
            self.values[row, : len(microfile.values[position])] = microfile.values[position]
        self.ordinal = np.array([name in ordinal for name in names])
        self.weights = np.array(weights if weights is not None else [1.0] * len(names))

    def between(self, left: Counts64, right: Counts64) -> Floats:
        """Return the cost of swapping each of `left` with each of `right`."""
        return _distances(self.codes, self.values, self.ordinal, self.weights, left, right)

    def of_pairs(self, left: Counts64, right: Counts64) -> float:
        """Return the cost of swapping each of `left` with the one at the same position of `right`."""
        return sum(float(self.between(left[i : i + 1], right[i : i + 1])[0, 0]) for i in range(len(left)))


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
        """Return the units of a file. Each record is one, unless the file has units."""
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
        """Return a weight per record as one per unit."""
        return np.bincount(self.unit_of, weights, minlength=self.count).astype(np.float64)

    def records(self, units: Counts64) -> Counts64:
        """Return the records of some units, one after the other."""
        parts = [self.order[self.start[u] : self.start[u] + self.size[u]] for u in units.tolist()]
        return np.concatenate(parts) if parts else np.zeros(0, np.int64)

    def between(self, influence: Influence, left: Counts64, right: Counts64) -> Floats:
        """Return the cost of exchanging units, record by record in their order. Sizes must be equal."""
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


DRAWN = 60  # partners that are compared for each unit
VALUES = 12  # an attribute with more values is divided into this number of groups


def risks(microfile: Microfile, least: int) -> Floats:
    """Return one over the number of records of the same area with the same attributes; 0 if these are enough."""
    key = microfile.area_of.astype(np.int64)
    for position, values in enumerate(microfile.values):
        codes, count = microfile.codes[position].astype(np.int64), len(values)
        if count > VALUES:
            codes, count = quantile_groups(np.bincount(codes, minlength=count), VALUES)[codes], VALUES
        _, key = np.unique(key * count + codes, return_inverse=True)
        key = key.reshape(-1).astype(np.int64)
    alike = np.bincount(key)[key]
    return np.where(alike < least, 1.0 / alike, 0.0)


def targeted_pairs(
    microfile: Microfile, units: Units, influence: Influence, rate: float, least: int, rng: np.random.Generator
) -> tuple[Counts64, Counts64]:
    """Return units to exchange so that about a rate of all units move, each at most once."""
    at_risk = np.zeros(units.count)
    np.maximum.at(at_risk, units.unit_of, risks(microfile, least))
    order = rng.permutation(units.count)
    order = order[np.argsort(-at_risk[order], kind="stable")]
    wanted = max(int(rate * units.count / 2), 1)
    free = np.ones(units.count, np.bool_)
    by_size = {size: np.flatnonzero(units.size == size) for size in np.unique(units.size).tolist()}
    one: list[int] = []
    two: list[int] = []
    for unit in order.tolist():
        if len(one) == wanted:
            break
        if not free[unit]:
            continue
        alike = by_size[int(units.size[unit])]
        some = rng.choice(alike, min(DRAWN, len(alike)), replace=False)
        some = some[free[some] & (units.area_of[some] != units.area_of[unit])]
        if not len(some):
            continue
        cost = units.between(influence, np.array([unit]), some)[0]
        partner = int(some[np.argmin(cost)])
        free[[unit, partner]] = False
        one.append(unit)
        two.append(partner)
    return np.array(one, np.int64), np.array(two, np.int64)
