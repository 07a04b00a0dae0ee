"""How cuts are varied: crossover and mutation as in the paper, and random small changes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sfumato.runtime.arrays import Counts64, Flags, Floats
from sfumato.runtime.compiled import compiled
from sfumato.systems.cuts.moves import Bits, Layout, small_changes

CROSSOVER, MUTATION = 0.9, 0.1


def offspring(layout: Layout, parents: Bits, rng: np.random.Generator, mutation: float = MUTATION) -> Bits:
    """Children of pairs of parents: single-point crossover in each segment, then bit flips in the free ones.

    A constrained segment is crossed at a gap where both parents part (Lunacek et al.), so both halves stay whole nodes;
    without such a gap the children keep their parents' segments. It is not mutated (docs/readings.md, 2.1).
    """
    pairs, columns = len(parents) // 2, len(layout.gap) - 1
    children = parents[: 2 * pairs].copy()
    crossed = rng.random(pairs) < CROSSOVER
    points = rng.random((pairs, columns))
    flips = rng.random(children.shape) < mutation if mutation else np.zeros(children.shape, dtype=np.bool_)
    cross(children, layout.gap, layout.node, layout.guarded, crossed, points, flips)
    return children


def jolted(layout: Layout, parents: Bits, rng: np.random.Generator, limit: int = 3) -> Bits:
    """Each parent after one to `limit` random small changes, each of a random column."""
    changes = rng.integers(1, limit + 1, len(parents))
    draws = rng.random((len(parents), limit, 2))
    result = parents.copy()
    jolt(
        result,
        changes,
        draws,
        layout.gap,
        layout.guarded,
        layout.node,
        layout.low,
        layout.high,
        layout.first,
        layout.child,
        layout.marks,
    )
    return result


@compiled
def cross(
    bits: Bits,
    gap: Counts64,
    node: Counts64,
    guarded: Flags,
    crossed: Flags,
    points: Floats,
    flips: Flags,
) -> None:
    """Cross rows 2p and 2p + 1 in place, then flip bits of free segments."""
    for p in range(len(crossed)):
        one, two = bits[2 * p], bits[2 * p + 1]
        for j in range(len(gap) - 1):
            low, high = gap[j], gap[j + 1]
            constrained = node[j + 1] > node[j]
            at = -1
            if crossed[p] and high > low:
                if constrained:
                    common = 0
                    for g in range(low, high):
                        common += one[g] & two[g]
                    pick = int(points[p, j] * common)
                    for g in range(low, high):
                        if one[g] & two[g]:
                            if pick == 0:
                                at = g
                                break
                            pick -= 1
                else:
                    at = low + int(points[p, j] * (high - low))
            if at >= 0:
                for g in range(at, high):
                    one[g], two[g] = two[g], one[g]
            if not constrained:
                for row in (2 * p, 2 * p + 1):
                    parted = False
                    last = high - (1 if guarded[j] else 0)
                    for g in range(low, last):
                        if flips[row, g]:
                            bits[row, g] ^= np.uint8(1)
                        parted = parted or bits[row, g] > 0
                    if guarded[j]:
                        bits[row, last] = np.uint8(1 if parted else 0)


@compiled
def jolt(
    bits: Bits,
    changes: Counts64,
    draws: npt.NDArray[np.float64],
    gap: Counts64,
    guarded: Flags,
    node: Counts64,
    low: Counts64,
    high: Counts64,
    first: Counts64,
    child: Counts64,
    marks: npt.NDArray[np.uint64],
) -> None:
    """Apply random small changes in place: first a column is drawn, then one of its changes."""
    columns = len(gap) - 1
    for i in range(len(bits)):
        for c in range(changes[i]):
            column, a, b, begin, ends, _ = small_changes(bits[i], gap, guarded, node, low, high, first, child, marks)
            count = np.zeros(columns, np.int64)
            for m in range(len(column)):
                count[column[m]] += 1
            free = 0
            for j in range(columns):
                free += count[j] > 0
            if free == 0:
                continue
            pick = int(draws[i, c, 0] * free)
            j = 0
            while count[j] == 0 or pick > 0:
                pick -= count[j] > 0
                j += 1
            at = 0
            while column[at] != j:
                at += 1
            m = at + int(draws[i, c, 1] * count[j])
            for u in range(a[m], b[m] - 1):
                bits[i, gap[j] + u] = 0
            for e in range(begin[m], begin[m + 1]):
                bits[i, gap[j] + ends[e] - 1] = 1
