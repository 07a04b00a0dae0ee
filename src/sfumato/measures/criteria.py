"""Class criteria in compiled loops: k, ℓ, t, α, β or δ of each class, from the counts of its values.

A class criterion is a privacy measure whose value is the worst of the released classes, and whose value for a class
does not depend on other classes. A class that violates a limit can thus be suppressed without a change to other
classes. To make this true of t, β and δ, classes are compared with the distribution of the input (docs/lattice.md).
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sfumato.base.arrays import Counts64, Floats
from sfumato.base.compiled import compiled
from sfumato.measures.classes import EXEMPT, bit_count

Tally = npt.NDArray[np.int32]
Rows = npt.NDArray[np.int32] | npt.NDArray[np.int64]

GRID = 1e9  # values equal to nine decimals are one threshold: rounding errors must not decide about suppression


class Criterion(IntEnum):
    """The figure of a class that a measure reads. Risks are one over a size and are compared as sizes."""

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
        """Return whether the criterion counts records or values, so that joining classes never lowers it."""
        return self in (Criterion.SIZE, Criterion.PEOPLE, Criterion.DISTINCT)


SIZE, PEOPLE, DISTINCT, ENTROPY, FREQUENCY, ALPHA, RECURSIVE_L, RECURSIVE_C, CLOSENESS, BETA, ENHANCED_BETA, DELTA = (
    int(kind) for kind in Criterion
)
EQUAL, ORDERED, HIERARCHICAL = range(3)
SLACK = 1e-12  # of enhanced β: a rounding error must not violate the bound


class Secrets(NamedTuple):
    """The layout of the sensitive columns in a tally: column b has the counts `start[b]:start[b + 1]`.

    The shares of values in the input are `whole`. The distance of a column is `distance`, and the values that the table
    has are in `order`. The parent of each node of the tree of column b is at `parents[climb[b]:]`, level by level, with
    the number of nodes of each level in `widths`. With `bits` a tally has sets of values instead, with 32 values in a
    word, which is enough to count different values.
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
    bits: bool
    units: bool


@compiled
def quantised(value: float) -> float:
    """Round a value to the grid on which thresholds are compared."""
    if abs(value) > 1e6:
        return value
    return float(np.floor(value * GRID + 0.5) / GRID)


# Each loop is over all classes of one sensitive column, whose counts are at `begin:end` of a tally, because a call for
# each class would take longer than its work. `out` keeps the worst of several columns (larger is better). Classes
# without records are skipped.


@compiled
def _distinct(tally: Tally, rows: Rows, size: int, begin: int, end: int, bits: bool, units: bool, out: Floats) -> None:
    """Count the different values of each class. If the tally has `bits`, each word has 32 values.

    If rows are `units`, a class has at most as many values as units, and one if all of its units have the same value.
    The first bit is for all harmless values, and a class without another bit is exempt.
    """
    # Readings of SPEC: ℓ counts units, so a class in which one value is held by all units has ℓ 1, however many other
    # values its records have. The values of harmless ones are one alternative, because none of them reveals anything.
    for c in range(size):
        held, harmless = 0, 0
        if bits:
            harmless = int(tally[c, begin]) & 1
        for v in range(begin, end):
            if bits:
                held += bit_count(int(tally[c, v]) & 0xFFFFFFFF)
            else:
                held += int(tally[c, v] > 0)
        if units:
            held = min(held, int(rows[c]))
            for v in range(begin, end):
                if tally[c, v] >= rows[c]:
                    held = min(held, 1)
        if rows[c] > 0:
            out[c] = min(out[c], float(held) if held > harmless else float(EXEMPT))


@compiled
def _entropy(tally: Tally, rows: Rows, size: int, begin: int, end: int, out: Floats) -> None:
    for c in range(size):
        n = float(rows[c])
        if n > 0:
            total = 0.0
            for v in range(begin, end):
                if tally[c, v] > 0:
                    share = tally[c, v] / n
                    total += share * np.log(share)
            out[c] = min(out[c], float(np.exp(-total)))


@compiled
def _commonest(tally: Tally, rows: Rows, size: int, begin: int, end: int, inverse: bool, out: Floats) -> None:
    """Compute the share of the most frequent value, or one over it if `inverse`."""
    for c in range(size):
        n = float(rows[c])
        if n > 0:
            largest = 0
            for v in range(begin, end):
                largest = max(largest, tally[c, v])
            out[c] = min(out[c], float(n / largest) if inverse else -float(largest / n))


@compiled
def _equal_distance(tally: Tally, rows: Rows, size: int, begin: int, end: int, whole: Floats, out: Floats) -> None:
    """Compute the earth mover's distance from the input if all values have the same distance."""
    for c in range(size):
        n = float(rows[c])
        if n > 0:
            total = 0.0
            for v in range(begin, end):
                total += abs(tally[c, v] / n - whole[v])
            out[c] = min(out[c], -(total / 2))


@compiled
def _ordered_distance(tally: Tally, rows: Rows, size: int, order: Counts64, whole: Floats, out: Floats) -> None:
    """Compute the earth mover's distance of ordered values. The values that the table has are in `order`."""
    for c in range(size):
        n = float(rows[c])
        if n > 0:
            # In one dimension the optimal transport moves the cumulated difference from each value to the next.
            total, carried = 0.0, 0.0
            for v in order:
                carried += tally[c, v] / n - whole[v]
                total += abs(carried)
            out[c] = min(out[c], -float(total / max(len(order) - 1, 1)))


@compiled
def _tree_distance(
    tally: Tally,
    rows: Rows,
    size: int,
    begin: int,
    end: int,
    whole: Floats,
    parents: Counts64,
    widths: Counts64,
    height: int,
    scratch: Floats,
    out: Floats,
) -> None:
    """Compute the earth mover's distance if two values are as far apart as their lowest common ancestor is high."""
    # Mass is exchanged at the lowest possible node. What the children of a node cannot exchange goes on to its parent.
    width = end - begin
    extra, more, less = scratch[:width], scratch[width : 2 * width], scratch[2 * width : 3 * width]
    for c in range(size):
        n = float(rows[c])
        if n > 0:
            total = 0.0
            for v in range(width):
                extra[v] = tally[c, begin + v] / n - whole[begin + v]
            at, known = 0, width
            for level in range(1, height + 1):
                wide = widths[level]
                for v in range(wide):
                    more[v], less[v] = 0.0, 0.0
                for v in range(known):
                    parent = parents[at + v]
                    if extra[v] > 0:
                        more[parent] += extra[v]
                    else:
                        less[parent] -= extra[v]
                for v in range(wide):
                    total += level / height * min(more[v], less[v])
                    extra[v] = more[v] - less[v]
                at += known
                known = wide
            out[c] = min(out[c], -total)


@compiled
def _recursive(
    tally: Tally,
    rows: Rows,
    size: int,
    begin: int,
    end: int,
    places: bool,
    parameter: float,
    scratch: Floats,
    out: Floats,
) -> None:
    """Compute the highest ℓ for a c, or with `places` False the least c for an ℓ."""
    for c in range(size):
        if rows[c] == 0:
            continue
        held = 0
        for v in range(begin, end):  # insertion sort, the most frequent first: numpy's sort takes seconds to compile
            count = float(tally[c, v])
            if count > 0:
                at = held
                while at > 0 and scratch[at - 1] < count:
                    scratch[at] = scratch[at - 1]
                    at -= 1
                scratch[at] = count
                held += 1
        rest, best = float(rows[c]), 0.0 if places else -np.inf
        for position in range(held):
            if places:
                best += 1.0 if scratch[0] < parameter * rest else 0.0
            elif position == int(parameter) - 1:
                best = -(scratch[0] / rest)
            rest -= scratch[position]
        out[c] = min(out[c], best)


@compiled
def _gain(
    tally: Tally, rows: Rows, size: int, begin: int, end: int, kind: int, parameter: float, whole: Floats, out: Floats
) -> None:
    """Compute β, enhanced β or δ: how much more (or less) frequent a value is in the class than in the input."""
    for c in range(size):
        n = float(rows[c])
        if n > 0:
            worst = 0.0
            for v in range(begin, end):
                if kind == DELTA:
                    if tally[c, v] > 0:
                        worst = max(worst, abs(np.log(tally[c, v] / n / whole[v])))
                    elif parameter > 0 and whole[v] > 0:
                        worst = np.inf
                elif tally[c, v] > 0:
                    gain = tally[c, v] / n / whole[v] - 1.0
                    # Enhanced β limits a gain to min(β, −ln p). Beyond −ln p no β is enough.
                    if kind == ENHANCED_BETA and gain > -np.log(whole[v]) + SLACK:
                        worst = np.inf
                    worst = max(worst, gain)
            out[c] = min(out[c], -worst)


@compiled
def class_values(
    kind: int,
    parameter: float,
    tally: Tally,
    rows: Rows,
    size: int,
    people: int,
    secrets: Secrets,
    scratch: Floats,
    out: Floats,
) -> None:
    """Return the criterion of each class, where larger is better. Of several columns it is the worst.

    It is infinite for a class without records (people of a population who are not in the table).
    """
    for c in range(size):
        out[c] = np.inf
        if rows[c] > 0 and kind == SIZE:
            out[c] = float(rows[c])
        elif rows[c] > 0 and kind == PEOPLE:
            out[c] = float(tally[c, people])
    if kind in (SIZE, PEOPLE):
        return
    whole = secrets.whole
    for b in range(len(secrets.start) - 1):
        begin, end = secrets.start[b], secrets.start[b + 1]
        if kind == DISTINCT:
            _distinct(tally, rows, size, begin, end, secrets.bits, secrets.units, out)
        elif kind == ENTROPY:
            _entropy(tally, rows, size, begin, end, out)
        elif kind in (FREQUENCY, ALPHA):
            _commonest(tally, rows, size, begin, end, kind == FREQUENCY, out)
        elif kind in (RECURSIVE_L, RECURSIVE_C):
            _recursive(tally, rows, size, begin, end, kind == RECURSIVE_L, parameter, scratch, out)
        elif kind != CLOSENESS:
            _gain(tally, rows, size, begin, end, kind, parameter, whole, out)
        elif secrets.distance[b] == EQUAL:
            _equal_distance(tally, rows, size, begin, end, whole, out)
        elif secrets.distance[b] == ORDERED:
            order = secrets.order[secrets.order_start[b] : secrets.order_start[b + 1]]
            _ordered_distance(tally, rows, size, order, whole, out)
        else:
            parents, widths, height = secrets.parents[secrets.climb[b] :], secrets.widths[b], secrets.heights[b]
            _tree_distance(tally, rows, size, begin, end, whole, parents, widths, height, scratch, out)
