"""Method 2: take the cheapest box of all that holds at least k free records, again and again; leftovers join classes.

The cost of a cell's cheapest box only rises while records are taken, so a cost worked out before is a bound and the
cells wait in a heap: the first whose cost is still true has the cheapest box of all.
"""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np

from sfumato.runtime.arrays import Codes, Counts64, Floats
from sfumato.runtime.compiled import compiled
from sfumato.systems.local.boxes import TINY, cheapest, sorted_pool, work_of
from sfumato.systems.local.model import Labels, cell_cost

WIDER = (1.5, 1.3)  # a box this much above the cheapest of all is taken at once: a tenth of the time, hardly more loss
STEP = 1e-3


@compiled
def take_boxes(
    labels: Any, pool: Any, bound: Floats, k: int, wider: float, work: Any, owner: Counts64, made: int
) -> int:
    """Take boxes up to a cost until half of the cells are gone or none is left; how many were made in all.

    `bound[c]` is at most the cost of the cheapest box of cell c, and is raised; `owner[c]` becomes its class.
    """
    size = len(bound)
    heap = [(bound[i], i) for i in range(size)]
    heapq.heapify(heap)
    free, cells = pool.live.sum(), size
    while free >= k and 2 * cells > size:
        cost, c = heapq.heappop(heap)
        if owner[c] >= 0:
            continue
        limit = cost * wider + STEP
        got = cheapest(labels, pool, c, k, limit, work)
        bound[c] = min(got, limit)
        if got >= limit - TINY:
            heapq.heappush(heap, (bound[c], c))
            continue
        for i in range(work.size[0]):  # the cells that the search gathered hold all of the box
            at = work.cells[0, i]
            inside = True
            for j in range(pool.codes.shape[1]):
                u = pool.codes[at, j]
                if u < work.best_low[j] or u > work.best_high[j]:
                    inside = False
                    break
            if inside:
                owner[at] = made
                free -= pool.live[at]
                pool.live[at] = 0
                cells -= 1
        made += 1
    return made


def best_boxes(labels: Labels, codes: Codes, counts: Counts64, bound: Floats, k: int, wider: float) -> Counts64:
    """The class of each cell by best-box greedy; -1 for those that are left over.

    The cells are sorted (`boxes.sorting`); `bound` is at most the cost of the cheapest box of each.
    """
    work = work_of(labels, len(counts))
    owner = np.full(len(counts), -1, np.int64)
    ids, made = np.arange(len(counts)), 0
    while counts[ids].sum() >= k:
        pool = sorted_pool(labels, np.ascontiguousarray(codes[ids]), counts[ids])
        some, near = np.full(len(ids), -1, np.int64), bound[ids]
        made = take_boxes(labels, pool, near, k, wider, work, some, made)
        bound[ids], owner[ids] = near, some
        ids = ids[some < 0]

    return owner


@compiled
def box_cost(labels: Any, low: Counts64, high: Counts64) -> float:
    """What a record of a box pays; `low` and `high` are its first and last units."""
    cost = 0.0
    for j in range(len(low)):
        cost += cell_cost(labels, j, low[j], high[j])
    return cost
