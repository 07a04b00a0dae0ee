"""NSGA-II's selection (Deb et al. 2002): non-dominated ranks, crowding within a rank, binary tournaments."""

from __future__ import annotations

import numpy as np

from sfumato.algorithms.dominance import ranks
from sfumato.runtime.arrays import Counts64, Floats

WORST = 1e300  # stands for what cannot be had, so that distances stay numbers


def crowding(values: Floats, rank: Counts64) -> Floats:
    """How far a point's neighbours of the same rank are, over all objectives; the ends of a rank are infinitely far.

    All ranks are done at once: sorted by rank and value, neighbours stand side by side.
    """
    count = len(values)
    distance = np.zeros(count)
    fronts = int(rank.max()) + 1
    for column in np.minimum(values, WORST).T:
        order = np.lexsort((column, rank))
        value, level = column[order], rank[order]
        first = np.ones(count, dtype=np.bool_)
        first[1:] = level[1:] != level[:-1]
        last = np.ones(count, dtype=np.bool_)
        last[:-1] = first[1:]
        span = np.empty(fronts)
        span[level[first]] = value[last] - value[first]
        gain = np.zeros(count)
        gain[1:-1] = value[2:] - value[:-2]
        width = span[level]
        with np.errstate(divide="ignore", invalid="ignore"):
            gain = np.where(width > 0, gain / width, 0.0)
        gain[first | last] = np.inf
        distance[order] += gain
    return distance


def survivors(values: Floats, count: int) -> tuple[Counts64, Counts64, Floats]:
    """The best points by rank, then by crowding: their places, ranks and crowding."""
    rank = ranks(values)
    crowd = crowding(values, rank)
    best = np.lexsort((-crowd, rank))[:count]
    return best, rank[best], crowd[best]


def tournament(rank: Counts64, crowd: Floats, count: int, rng: np.random.Generator) -> Counts64:
    """Winners of binary tournaments: the lower rank, then the less crowded, then the first drawn."""
    one, two = rng.integers(0, len(rank), (2, count))
    second = (rank[two] < rank[one]) | ((rank[two] == rank[one]) & (crowd[two] > crowd[one]))
    return np.asarray(np.where(second, two, one))
