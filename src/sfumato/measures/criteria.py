"""Class criteria in compiled loops: what one class has of k, ℓ, t, α, β or δ, from the counts of its values.

A class criterion is a privacy measure whose value is the worst of the released classes, and that each class has on its
own: a class that falls short of a limit can be suppressed without moving what the others have. t, β and δ compare with
the distribution of the whole input here, so that this holds for them too (docs/lattice.md).
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sfumato.runtime.arrays import Counts64, Floats
from sfumato.runtime.compiled import compiled

Tally = npt.NDArray[np.int32]

GRID = 1e9  # values that agree to nine decimals are one threshold: rounding noise must not decide who is suppressed


class Criterion(IntEnum):
    """Which figure of a class a measure reads; risks are one over a size, and compared as the size."""

    SIZE = 0
    PEOPLE = 1
    DISTINCT = 2
    ENTROPY = 3
    FREQUENCY = 4
    ALPHA = 5
    RECURSIVE_L = 6
    RECURSIVE_C = 7
    CLOSENESS = 8
    BETA = 9
    ENHANCED_BETA = 10
    DELTA = 11

    @property
    def counts(self) -> bool:
        """Whether it counts what a class holds: joining a class with any other never lowers it."""
        return self in (Criterion.SIZE, Criterion.PEOPLE, Criterion.DISTINCT)


SIZE, PEOPLE, DISTINCT, ENTROPY, FREQUENCY, ALPHA, RECURSIVE_L, RECURSIVE_C, CLOSENESS, BETA, ENHANCED_BETA, DELTA = (
    int(kind) for kind in Criterion
)
EQUAL, ORDERED, HIERARCHICAL = range(3)
SLACK = 1e-12  # of enhanced β: rounding must not break the bound


class Secrets(NamedTuple):
    """The sensitive columns beside each other in a tally: column b has the counts `start[b]:start[b + 1]`.

    `whole` are the shares of the whole input; `distance` how far apart values are; `order` the values that the table
    holds, in order; `parents[climb[b]:]` the node above each node of column b's tree, level by level, with the number
    of nodes of each level in `widths`.
    """

    start: Counts64
    whole: Floats
    distance: Counts64
    order: Counts64
    order_start: Counts64
    parents: Counts64
    climb: Counts64
    widths: Counts64
    heights: Counts64


@compiled
def quantised(value: float) -> float:
    """A value on the grid on which thresholds are told apart."""
    if abs(value) > 1e6:
        return value
    return float(np.floor(value * GRID + 0.5) / GRID)


@compiled
def _closeness(counts: Tally, n: float, b: int, secrets: Secrets, scratch: Floats) -> float:
    """The earth mover's distance of a class from the whole input, in one column."""
    begin, end = secrets.start[b], secrets.start[b + 1]
    total = 0.0
    if secrets.distance[b] == EQUAL:
        for v in range(begin, end):
            total += abs(counts[v] / n - secrets.whole[v])
        return total / 2
    if secrets.distance[b] == ORDERED:
        first, last = secrets.order_start[b], secrets.order_start[b + 1]
        carried = 0.0
        for place in range(first, last):
            v = secrets.order[place]
            carried += counts[v] / n - secrets.whole[v]
            total += abs(carried)
        return float(total / max(last - first - 1, 1))
    width = end - begin
    height = secrets.heights[b]
    for v in range(width):
        scratch[v] = counts[begin + v] / n - secrets.whole[begin + v]
    at = secrets.climb[b]
    more, less = scratch[width : 2 * width], scratch[2 * width : 3 * width]
    known = width
    for level in range(1, height + 1):
        wide = secrets.widths[b, level]
        more[:wide] = 0.0
        less[:wide] = 0.0
        for v in range(known):
            parent = secrets.parents[at + v]
            if scratch[v] > 0:
                more[parent] += scratch[v]
            else:
                less[parent] -= scratch[v]
        for v in range(wide):
            total += level / height * min(more[v], less[v])
            scratch[v] = more[v] - less[v]
        at += known
        known = wide
    return total


@compiled
def _of_column(
    kind: int, parameter: float, counts: Tally, n: float, b: int, secrets: Secrets, scratch: Floats
) -> float:
    """What a class has in one sensitive column."""
    begin, end = secrets.start[b], secrets.start[b + 1]
    if kind == DISTINCT:
        held = 0
        for v in range(begin, end):
            held += int(counts[v] > 0)
        return float(held)
    if kind == ENTROPY:
        total = 0.0
        for v in range(begin, end):
            if counts[v] > 0:
                share = counts[v] / n
                total += share * np.log(share)
        return float(np.exp(-total))
    if kind in (FREQUENCY, ALPHA):
        largest = 0
        for v in range(begin, end):
            largest = max(largest, counts[v])
        return float(n / largest) if kind == FREQUENCY else float(largest / n)
    if kind == CLOSENESS:
        return _closeness(counts, n, b, secrets, scratch)
    if kind in (RECURSIVE_L, RECURSIVE_C):
        held = 0
        for v in range(begin, end):
            if counts[v] > 0:
                scratch[held] = -counts[v]
                held += 1
        some = np.sort(scratch[:held])  # the commonest first
        rest = n
        places = 0.0
        for place in range(held):
            if kind == RECURSIVE_L:
                places += 1.0 if -some[0] < parameter * rest else 0.0
            elif place == int(parameter) - 1:
                return float(-some[0] / rest)
            rest += some[place]
        return places if kind == RECURSIVE_L else np.inf
    worst = 0.0
    for v in range(begin, end):
        if kind == DELTA:
            if counts[v] > 0:
                worst = max(worst, abs(np.log(counts[v] / n / secrets.whole[v])))
            elif parameter > 0 and secrets.whole[v] > 0:
                return np.inf
        elif counts[v] > 0:
            gain = counts[v] / n / secrets.whole[v] - 1.0
            if kind == ENHANCED_BETA and gain > -np.log(secrets.whole[v]) + SLACK:
                return np.inf
            worst = max(worst, gain)
    return worst


@compiled
def class_value(
    kind: int,
    parameter: float,
    sign: float,
    counts: Tally,
    n: float,
    people: int,
    secrets: Secrets,
    scratch: Floats,
) -> float:
    """What a class of n records has, larger being better: `sign` is -1 where less is; the worst of several columns."""
    if kind == SIZE:
        return n
    if kind == PEOPLE:
        return float(counts[people])
    worst = np.inf
    for b in range(len(secrets.start) - 1):
        worst = min(worst, sign * _of_column(kind, parameter, counts, n, b, secrets, scratch))
    return worst
