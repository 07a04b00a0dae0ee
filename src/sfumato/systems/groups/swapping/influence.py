"""The influential metric: what it costs to swap two records between areas (equation 25)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sfumato.runtime.arrays import Codes, Counts64, Flags, Floats
from sfumato.runtime.compiled import compiled
from sfumato.systems.groups.files.microfile import Microfile


@compiled
def _distances(
    codes: Codes, values: Floats, ordinal: Flags, weights: Floats, left: Counts64, right: Counts64, distances: Floats
) -> None:
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
                    # Out of range a value may be missing or negative: such a difference counts as one of kind.
                    if both != both or both == 0:
                        total += weights[c]
                    else:
                        total += weights[c] * min(((x - y) / both) ** 2, 1.0)
                else:
                    total += weights[c]
            distances[a, b] = total


class Influence:
    """Distances between records of a microfile.

    Equal categories cost 0 and different ones their weight; the paper prints it the other way round. An ordinal
    difference is ((a − b)/(a + b))², 0 where both are 0 (docs/readings.md, 4.3).
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
        """The cost of swapping each of `left` with each of `right`."""
        distances = np.empty((len(left), len(right)))
        _distances(self.codes, self.values, self.ordinal, self.weights, left, right, distances)
        return distances

    def of_pairs(self, left: Counts64, right: Counts64) -> float:
        """The cost of swapping each of `left` with the one of `right` at the same place."""
        return sum(float(self.between(left[i : i + 1], right[i : i + 1])[0, 0]) for i in range(len(left)))


def literal_distance(one: Sequence[float], two: Sequence[float], ordinal: Sequence[bool]) -> float:
    """Equation 25 for two records, word by word, all weights 1: the oracle of the kernel.

    >>> literal_distance([1, 30.0, 0.0], [2, 10.0, 0.0], [False, True, True])
    1.25
    """
    total = 0.0
    for a, b, is_ordinal in zip(one, two, ordinal, strict=True):
        if is_ordinal:
            total += ((a - b) / (a + b)) ** 2 if a + b else float(a != b)
        else:
            total += float(a != b)
    return total
