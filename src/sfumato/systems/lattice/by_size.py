"""The releases of one node where class sizes alone decide, in compiled loops."""

from __future__ import annotations

import numpy as np

from sfumato.measures.criteria import Tally
from sfumato.runtime.arrays import Codes, Counts64
from sfumato.runtime.compiled import compiled
from sfumato.runtime.sorting import sort_by
from sfumato.systems.lattice.rule import (
    DEMANDED,
    FAILING,
    FEW,
    GONE,
    RECORDS,
    SOUGHT,
    SUM_K,
    SUM_L,
    WRONG,
    Keys,
    Maps,
    Rows,
    Rule,
    Space,
    Walked,
)

NONE = 1 << 62  # the size of a class where there is none


@compiled
def highest_size(rows: Rows, size: int, budget: int, small: Counts64) -> tuple[int, int]:
    """The highest size below which all classes can go within the budget, and the records of those classes."""
    gone = np.int64(0)
    # Fine nodes have thousands of classes and a small k: counting one size at a time is a loop the processor
    # can do in wide steps, and it ends at k. A histogram would wait for its own last write.
    for s in range(1, min(budget, 4) + 1):
        alike = 0
        for c in range(size):
            alike += rows[c] == s
        if gone + alike * s > budget:
            return s, int(gone)
        gone += alike * s
    gone = np.int64(0)
    k = np.int64(NONE)
    if budget > FEW * size:
        # More sizes than classes: halve the range of sizes instead of listing them.
        goes, top = np.int64(0), np.int64(budget)  # all up to `goes` may go
        while goes < top:
            middle = (goes + top + 1) // 2
            total = np.int64(0)
            for c in range(size):
                total += np.int64(rows[c]) * (rows[c] <= middle)
            if total <= budget:
                goes = middle
            else:
                top = middle - 1
        for c in range(size):
            n = np.int64(rows[c])
            if n <= goes:
                gone += n
            elif n < k:
                k = n
        return int(k), int(gone)
    for s in range(budget + 2):
        small[s] = 0
    for c in range(size):
        n = np.int64(rows[c])
        if n <= budget:
            small[n] += n
        elif n < k:
            k = n
    for s in range(1, budget + 1):
        if small[s] > 0:
            if gone + small[s] > budget:
                return s, int(gone)
            gone += small[s]
    return int(k), int(gone)


@compiled
def demanded_size(rows: Rows, size: int, least: int) -> tuple[int, int]:
    """The smallest class that is left where all below a size go, and the records of those."""
    gone, k = np.int64(0), np.int64(NONE)
    for c in range(size):
        n = np.int64(rows[c])
        if n < least:
            gone += n
        elif n < k:
            k = n
    return int(k), int(gone)


@compiled
def by_size(
    keys: Keys,
    rows: Rows,
    tally: Tally,
    size: int,
    node: Codes,
    i: int,
    rule: Rule,
    maps: Maps,
    space: Space,
    walked: Walked,
) -> bool:
    """The releases of node i, the highest threshold first; False if there is no room for them."""
    mode, mass = rule.modes[0], rule.mass
    figures, hidden, worst, places = walked.figures, walked.hidden, walked.worst, space.places
    shift, mask, covers = maps.shift, maps.mask, maps.covers
    columns = len(node)
    at = walked.start[i]
    if at >= len(figures):
        return False
    squares = np.int64(0)
    for c in range(size):
        squares += np.int64(rows[c]) * np.int64(rows[c])
    if mode == DEMANDED:
        least = int(np.ceil(rule.limits[0]))
        k, gone = demanded_size(rows, size, least)
    else:  # a size that is only measured takes nothing out
        k, gone = highest_size(rows, size, rule.budget if mode == SOUGHT else 0, space.small)
        least = k
    walked.best[i, 0] = k
    walked.whole[i, FAILING] = gone if mode == DEMANDED else 0
    walked.whole[i, SUM_K], walked.whole[i, SUM_L], walked.whole[i, WRONG] = squares, 0, 0
    figures[at, GONE], figures[at, SUM_K], figures[at, SUM_L], figures[at, WRONG] = gone, squares, 0, 0
    figures[at, RECORDS] = 0
    worst[at, 0] = k if k < NONE else 0
    for j in range(columns):
        hidden[at, j] = 0
    walked.start[i + 1] = at + 1
    if gone == 0:
        return True
    number = 0
    for c in range(size):
        if rows[c] < least:
            places[number] = c
            number += 1
            figures[at, SUM_K] -= np.int64(rows[c]) * np.int64(rows[c])
            figures[at, RECORDS] += np.int64(rows[c]) if mass < 0 else np.int64(tally[c, mass])
    for j in range(columns):  # column by column, so that shift and mask stay in registers
        low, field, begin = np.uint64(shift[j]), np.uint64(mask[j]), np.uint64(maps.cover_start[j, node[j]])
        total = np.int64(0)
        for g in range(number):
            c = places[g]
            records = np.int64(rows[c]) if mass < 0 else np.int64(tally[c, mass])
            total += records * covers[begin + ((np.uint64(keys[c]) >> low) & field)]
        hidden[at, j] = total
    if not rule.every or mode != SOUGHT:
        return True
    # Give the sizes back one after another, the largest first.
    sort_by(rows, places, number, space.spare)
    g = number - 1
    while g >= 0:
        at += 1
        if at >= len(figures):
            return False
        n = np.int64(rows[places[g]])
        for f in range(figures.shape[1]):
            figures[at, f] = figures[at - 1, f]
        for j in range(columns):
            hidden[at, j] = hidden[at - 1, j]
        worst[at, 0] = n
        while g >= 0 and np.int64(rows[places[g]]) == n:
            figures[at, GONE] -= n
            figures[at, SUM_K] += n * n
            records = n if mass < 0 else np.int64(tally[places[g], mass])
            figures[at, RECORDS] -= records
            key = np.uint64(keys[places[g]])
            for j in range(columns):
                group = (key >> np.uint64(shift[j])) & np.uint64(mask[j])
                hidden[at, j] -= records * covers[np.uint64(maps.cover_start[j, node[j]]) + group]
            g -= 1
    walked.start[i + 1] = at + 1
    return True
