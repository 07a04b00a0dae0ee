"""SPEA2 (Zitzler, Laumanns, Thiele 2001) over arrays of objectives, all minimised: fitness and environmental selection.

The kernels know nothing of what the points stand for. `plain_fitness` and `plain_selection` say the same slowly.
"""

from __future__ import annotations

import numpy as np

from sfumato.runtime.arrays import Counts64, Floats
from sfumato.runtime.compiled import compiled


@compiled
def fitness(values: Floats) -> Floats:
    """Raw fitness plus density 1/(σ + 2), σ the distance to the nearest neighbour; below 1 is not dominated."""
    size, objectives = values.shape
    strength = np.zeros(size)
    nearest = np.full(size, np.inf)
    relation = np.zeros((size, size), np.int8)
    for i in range(size):
        for j in range(i + 1, size):
            less, more, distance = False, False, 0.0
            for k in range(objectives):
                a, b = values[i, k], values[j, k]
                if a < b:
                    less = True
                elif a > b:
                    more = True
                distance += (a - b) * (a - b)
            nearest[i] = min(nearest[i], distance)
            nearest[j] = min(nearest[j], distance)
            if less and not more:
                strength[i] += 1.0
                relation[j, i] = 1
            elif more and not less:
                strength[j] += 1.0
                relation[i, j] = 1
    scores = np.empty(size)
    for i in range(size):
        raw = 0.0
        for j in range(size):
            if relation[i, j]:
                raw += strength[j]
        scores[i] = raw + 1.0 / (np.sqrt(nearest[i]) + 2.0)
    return scores


@compiled
def _closer(distances: Floats, alive: Counts64, left: int, i: int, j: int) -> bool:
    """Whether i has the smaller distances, compared from the nearest on; a full tie is decided by the number."""
    # Nearest neighbours of each other tie at every step; the second distances mostly decide, and need no sorting.
    first_i, second_i, first_j, second_j = np.inf, np.inf, np.inf, np.inf
    for position in range(left):
        a, b = distances[i, alive[position]], distances[j, alive[position]]
        if a < first_i:
            first_i, second_i = a, first_i
        elif a < second_i:
            second_i = a
        if b < first_j:
            first_j, second_j = b, first_j
        elif b < second_j:
            second_j = b
    if second_i != second_j:
        return bool(second_i < second_j)
    mine, other = np.empty(left), np.empty(left)
    for position in range(left):
        mine[position] = distances[i, alive[position]]
        other[position] = distances[j, alive[position]]
    mine.sort()
    other.sort()
    for position in range(left):
        if mine[position] != other[position]:
            return bool(mine[position] < other[position])
    return i < j


@compiled
def truncated(values: Floats, size: int) -> Counts64:
    """The places of `size` points left after taking away, again and again, the one with the nearest neighbour."""
    count, objectives = values.shape
    distances = np.empty((count, count))
    for i in range(count):
        distances[i, i] = np.inf
        for j in range(i):
            total = 0.0
            for k in range(objectives):
                total += (values[i, k] - values[j, k]) ** 2
            distances[i, j] = total
            distances[j, i] = total
    alive = np.arange(count)
    nearest = np.empty(count)
    who = np.empty(count, np.int64)
    for i in range(count):
        who[i] = np.argmin(distances[i])
        nearest[i] = distances[i, who[i]]
    left = count
    while left > size:
        worst = 0
        for position in range(1, left):
            i, best = alive[position], alive[worst]
            if nearest[i] < nearest[best]:
                worst = position
            elif nearest[i] == nearest[best] and nearest[i] > 0 and _closer(distances, alive, left, i, best):
                worst = position  # copies need no comparison: any of them may go
        gone = alive[worst]
        for position in range(worst, left - 1):
            alive[position] = alive[position + 1]
        left -= 1
        for position in range(left):
            i = alive[position]
            if who[i] == gone:
                nearest[i] = np.inf
                for other in range(left):
                    if distances[i, alive[other]] < nearest[i]:
                        nearest[i] = distances[i, alive[other]]
                        who[i] = alive[other]
    return alive[:left].copy()


def selected(values: Floats, scores: Floats, size: int) -> Counts64:
    """Environmental selection: all that nothing dominates; too few are filled up by fitness, too many truncated."""
    free = np.flatnonzero(scores < 1.0)
    if len(free) <= size:
        return np.argsort(scores, kind="stable")[:size]
    return np.asarray(free[truncated(values[free], size)])


def plain_fitness(values: Floats) -> Floats:
    """The plain twin of `fitness`."""
    weak = (values[:, None] <= values[None]).all(axis=2)
    dominates = weak & (values[:, None] < values[None]).any(axis=2)
    strength = dominates.sum(axis=1)
    distances = np.linalg.norm(values[:, None] - values[None], axis=2)
    np.fill_diagonal(distances, np.inf)
    return np.asarray(strength @ dominates + 1.0 / (distances.min(axis=1) + 2.0))


def plain_truncated(values: Floats, size: int) -> Counts64:
    """The plain twin of `truncated`."""
    alive = list(range(len(values)))
    while len(alive) > size:
        distances = ((values[alive][:, None] - values[alive][None]) ** 2).sum(axis=2)
        np.fill_diagonal(distances, np.inf)
        lists = [tuple(sorted(row)) for row in distances.tolist()]
        alive.pop(min(range(len(alive)), key=lambda number: (lists[number], number)))
    return np.array(alive)
