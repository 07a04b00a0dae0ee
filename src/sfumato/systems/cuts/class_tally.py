"""A tally of classes by size and diversity, and what each rule of suppression makes of it. Compiled.

All classes of one size (and diversity) are one cell with its records and its cost. The cost is the generalization loss
in whole units of a small fraction, so that adding and taking away leave no rounding behind. Blocks of cells are summed
beside them, and behind the last block stands the sum of all: a rule skips empty or wholly suppressed blocks at once.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sfumato.runtime.arrays import Counts64
from sfumato.runtime.compiled import compiled

BLOCK = 64
NONE, WITHIN, BELOW_MEAN, DEMANDED, SAFE, PRINTED_K, PRINTED_L = range(7)
K, L, SUPPRESSED, KEPT_COST, SUM, FIGURES = 0, 1, 2, 3, 4, 5
Table = npt.NDArray[np.int64]


@compiled
def add(cells: Table, blocks: Table, level: int, size: int, rows: int, cost: int) -> None:
    """Put a class in; with negative rows and cost, take it out. `cells[v, s]` are (records, cost).

    A class that is exempt from ℓ has no level that is too low: it is at the highest.
    """
    level = min(level, cells.shape[0] - 1)
    at = min(size, cells.shape[1] - 1)
    cells[level, at, 0] += rows
    cells[level, at, 1] += cost
    blocks[level, at // BLOCK, 0] += rows
    blocks[level, at // BLOCK, 1] += cost
    blocks[level, -1, 0] += rows
    blocks[level, -1, 1] += cost


@compiled
def smallest_left(cells: Table, blocks: Table, low: int, budget: int) -> tuple[int, int, int]:
    """Suppress whole sizes among classes of diversity `low` and more while their records stay within the budget.

    Returns the smallest size left, the records gone and their cost.
    """
    levels, sizes = cells.shape[0], cells.shape[1]
    gone, cost = 0, 0
    for block in range(blocks.shape[1] - 1):
        rows, part = 0, 0
        for v in range(low, levels):
            rows += blocks[v, block, 0]
            part += blocks[v, block, 1]
        if rows == 0:
            continue
        if gone + rows <= budget:
            gone += rows
            cost += part
            continue
        for s in range(block * BLOCK, min((block + 1) * BLOCK, sizes)):
            rows, part = 0, 0
            for v in range(low, levels):
                rows += cells[v, s, 0]
                part += cells[v, s, 1]
            if gone + rows > budget:
                return s, gone, cost
            gone += rows
            cost += part
    return -1, gone, cost


@compiled
def below(cells: Table, blocks: Table, total: int, records: int) -> tuple[int, int, int]:
    """Suppress every class whose property is under the mean total/records: smallest left, records gone, their cost."""
    gone, cost = 0, 0
    sizes = cells.shape[1]
    for block in range(blocks.shape[1] - 1):
        if blocks[0, block, 0] == 0:
            continue
        if (min((block + 1) * BLOCK, sizes) - 1) * records < total:
            gone += blocks[0, block, 0]
            cost += blocks[0, block, 1]
            continue
        for s in range(block * BLOCK, min((block + 1) * BLOCK, sizes)):
            if cells[0, s, 0] > 0:
                if s * records >= total:
                    return s, gone, cost
                gone += cells[0, s, 0]
                cost += cells[0, s, 1]
    return sizes - 1, gone, cost


@compiled
def printed(cells: Table, budget: int, by_size: bool, out: Counts64, total: int) -> None:
    """Problem 4 as printed: classes in lexicographic order go while within the budget; what is left is measured."""
    levels, sizes = cells.shape[0], cells.shape[1]
    gone, cost = 0, 0
    least_k, least_l = -1, -1
    stopped = False
    outer, inner = (sizes, levels) if by_size else (levels, sizes)
    for a in range(outer):
        for b in range(inner):
            v, s = (b, a) if by_size else (a, b)
            if cells[v, s, 0] == 0:
                continue
            if not stopped and gone + cells[v, s, 0] <= budget:
                gone += cells[v, s, 0]
                cost += cells[v, s, 1]
                continue
            stopped = True
            if least_k < 0 or s < least_k:
                least_k = s
            if least_l < 0 or v < least_l:
                least_l = v
    out[K], out[L], out[SUPPRESSED], out[KEPT_COST] = least_k, least_l, gone, total - cost


@compiled
def judge(rule: int, cells: Table, blocks: Table, budget: int, cost: int, total: int, records: int, out: Table) -> None:
    """What a rule makes of a tally: a row of figures for each variant (one, or one for each diversity if SAFE).

    `cost` is the generalization loss of all classes and `total` the sum of the property over all records, both with
    nothing suppressed. The first figure of a variant that cannot be had is -1. With DEMANDED `budget` is the size below
    which classes go, however many records that takes.
    """
    out[:, :] = -1
    out[:, SUM] = total
    if rule == SAFE:
        gone, lost = 0, 0
        for low in range(cells.shape[0]):
            if low > 0:
                gone += blocks[low - 1, -1, 0]
                lost += blocks[low - 1, -1, 1]
            if gone > budget:
                break
            least, more, part = smallest_left(cells, blocks, low, budget - gone)
            out[low, K], out[low, L], out[low, SUPPRESSED] = least, low, gone + more
            out[low, KEPT_COST] = cost - lost - part
    elif rule in (PRINTED_K, PRINTED_L):
        printed(cells, budget, rule == PRINTED_L, out[0], cost)
    else:
        if rule == BELOW_MEAN:
            least, more, part = below(cells, blocks, total, records)
        elif rule == DEMANDED:
            least, more, part = below(cells, blocks, budget, 1)
        else:
            least, more, part = smallest_left(cells, blocks, 0, budget if rule == WITHIN else 0)
        out[0, K], out[0, L], out[0, SUPPRESSED], out[0, KEPT_COST] = least, least, more, cost - part
