"""Order and runs: cells in a reflected order, and the cheapest partition of that order into runs of records.

An order of the columns with a first direction for each gives an order of the cells: sorted by the first column, then
within equal values by the second, whose direction turns from one group to the next, and so on, so that neighbours
differ little. A class is then a run of records, of k to 2k - 1: a longer one can be divided at no cost. The records of
one cell may lie in several classes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sfumato.runtime.arrays import Codes, Counts64
from sfumato.runtime.compiled import compiled
from sfumato.systems.local.model import cell_cost


@compiled
def reflected(codes: Codes, units: Counts64, order: Counts64, turned: Codes) -> Counts64:
    """The cells in reflected order: by the columns of `order`, the first group of column j descending if turned[j]."""
    size = len(codes)
    cells, other = np.arange(size), np.empty(size, np.int64)
    ends, next_ends = np.empty(size + 1, np.int64), np.empty(size + 1, np.int64)
    groups = 1
    ends[0], ends[1] = 0, size
    tally = np.zeros(np.max(units) + 1, np.int64)
    for j in order:
        made = 0
        next_ends[0] = 0
        for g in range(groups):
            start, end = ends[g], ends[g + 1]
            if end - start == 1:
                other[start] = cells[start]
                made += 1
                next_ends[made] = end
                continue
            low, high = np.int64(codes[cells[start], j]), np.int64(codes[cells[start], j])
            for i in range(start, end):
                u = codes[cells[i], j]
                tally[u] += 1
                low, high = min(low, u), max(high, u)
            at = start
            down = (g + turned[j]) % 2 == 1
            for step in range(high - low + 1):
                u = high - step if down else low + step
                held = tally[u]
                if held > 0:
                    tally[u] = at
                    at += held
                    made += 1
                    next_ends[made] = at
            for i in range(start, end):
                u = codes[cells[i], j]
                other[tally[u]] = cells[i]
                tally[u] += 1
            for i in range(start, end):
                tally[codes[cells[i], j]] = 0
        cells, other = other, cells
        ends, next_ends = next_ends, ends
        groups = made
    return cells


@compiled
def divide(
    labels: Any, codes: Codes, counts: Counts64, order: Counts64, k: int, fee: float
) -> tuple[float, Counts64, Counts64]:
    """The cheapest partition of the ordered records into runs of k to 2k - 1; a record may be suppressed for `fee`.

    Gives the sum of costs, where each run ends, and 1 for each of these that is a class (0: one suppressed record).
    With an infinite fee nothing is suppressed. k is at least 2 and there are at least k records, or the fee is finite.
    """
    size, columns = len(order), codes.shape[1]
    start = np.zeros(size + 1, np.int64)
    for i in range(size):
        start[i + 1] = start[i] + counts[order[i]]
    records = start[size]
    best, back = np.full(records + 1, np.inf), np.full(records + 1, -1, np.int64)
    best[0] = 0.0
    low, high = np.empty(columns, np.int64), np.empty(columns, np.int64)
    part = np.empty(columns)
    for t in range(size):
        cost = 0.0
        for j in range(columns):
            low[j] = high[j] = codes[order[t], j]
            part[j] = cell_cost(labels, j, low[j], high[j])
            cost += part[j]
        floor = np.inf
        for s in range(max(start[t] + 2 - 2 * k, 0), start[t] + 1):
            floor = min(floor, best[s])
        u = t
        while True:
            worst = 0.0
            for e in range(start[t] + 1, start[t + 1] + 1):
                worst = max(worst, best[e])
            if floor + max(k, start[t] + 2 - start[u + 1]) * cost >= worst:
                break  # neither this cell nor an earlier one can begin a better run
            for e in range(max(start[t] + 1, start[u] + k), start[t + 1] + 1):
                least, at = best[e], back[e]
                for s in range(max(start[u], e - 2 * k + 1), min(start[u + 1] - 1, e - k) + 1):
                    value = best[s] + (e - s) * cost
                    if value < least:
                        least, at = value, s
                best[e], back[e] = least, at
            u -= 1
            if u < 0 or start[u + 1] - 1 < start[t] + 2 - 2 * k:
                break
            cell = order[u]
            for j in range(columns):
                value = codes[cell, j]
                if value < low[j]:
                    low[j] = value
                elif value > high[j]:
                    high[j] = value
                else:
                    continue
                new = cell_cost(labels, j, low[j], high[j])
                cost += new - part[j]
                part[j] = new
        own = 0.0
        for j in range(columns):
            own += cell_cost(labels, j, codes[order[t], j], codes[order[t], j])
        for e in range(start[t] + 1, start[t + 1] + 1):  # runs inside the cell, once all before them are settled
            if best[e - 1] + fee < best[e]:
                best[e], back[e] = best[e - 1] + fee, e - 1
            for s in range(max(start[t], e - 2 * k + 1), e - k + 1):
                if best[s] + (e - s) * own < best[e]:
                    best[e], back[e] = best[s] + (e - s) * own, s
    ends, kept = np.empty(records, np.int64), np.empty(records, np.int64)
    made, e = 0, records
    while e > 0 and back[e] >= 0:
        ends[made], kept[made] = e, 1 if e - back[e] > 1 else 0
        made += 1
        e = back[e]
    return best[records], ends[:made][::-1].copy(), kept[:made][::-1].copy()
