"""The cheapest box of a record, by exact branch and bound over the columns, most expensive columns first.

A branch has fixed the labels of some columns. A cell is kept if these labels cover it and if a box that reaches it in
the open columns could still be cheaper than the best one. A branch with fewer than k such records is pruned. The last
column is scanned: an ordered column with two pointers, a tree from the leaf to the root.

Method 2 is a greedy algorithm. It takes the cheapest box that holds at least k free records, repeatedly, and the
remaining records join existing classes. The cost of a cell's cheapest box can only rise while records are taken. So an
earlier cost is a lower bound, and cells wait in a heap: the first one whose cost is still exact has the cheapest box.
"""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sfumato.base.arrays import Codes, Counts64, Floats
from sfumato.base.compiled import compiled
from sfumato.methods.local.model import Labels, Unit, cell_cost, label

TINY = 1e-12
Lists = npt.NDArray[np.int64]
Grids = npt.NDArray[np.float64]


class Work(NamedTuple):
    """Reused arrays of a search: cells and the rest of their costs by depth, and record counts by unit.

    `spent` counts the cells visited; budgets are measured by it.
    """

    order: Counts64
    cells: Lists
    rest: Grids
    size: Counts64
    pair: Floats
    tally: Counts64
    present: npt.NDArray[np.bool_]
    base: Floats
    sums: Floats
    low: Counts64
    high: Counts64
    node: Counts64
    held: Counts64
    best_low: Counts64
    best_high: Counts64
    spent: Counts64


def work_of(labels: Labels, capacity: int) -> Work:
    """Allocate the arrays of a search among a number of cells, and choose the order of the columns.

    Columns with an expensive step come first, because they prune most. The ordered column with the most units comes
    last, because the last column is scanned in linear time.
    """
    columns, units = labels.columns, np.diff(labels.unit)
    order = sorted(range(columns), key=lambda j: (-labels.price[j], j))
    ordered = [j for j in order if labels.leaf[labels.unit[j]] < 0]
    last = max(ordered or order, key=lambda j: (units[j], j))
    order = [j for j in order if j != last] + [last]
    return Work(
        np.array(order, np.int64),
        np.zeros((columns + 1, capacity), np.int64),
        np.zeros((columns + 1, capacity)),
        np.zeros(columns + 1, np.int64),
        np.zeros(int(labels.unit[-1])),
        np.zeros(int(units.max()), np.int64),
        np.zeros((columns, int(units.max())), np.bool_),
        np.zeros(columns + 1),
        np.zeros(columns + 1),
        low=np.zeros(columns, np.int64),
        high=np.zeros(columns, np.int64),
        node=np.zeros(columns, np.int64),
        held=np.zeros(columns, np.int64),
        best_low=np.zeros(columns, np.int64),
        best_high=np.zeros(columns, np.int64),
        spent=np.zeros(1, np.int64),
    )


class Pool(NamedTuple):
    """Cells to search among, sorted by the columns in the order in which they are fixed: a trie stored as two arrays.

    Cell c has `live[c]` records. It differs from the cell before it first at depth `differs[c]`. `jump[c, depth]` is
    the next cell that differs from c at that depth or before, so a pruned branch is skipped in one step. Compiled code
    creates a pool only over arrays that it also holds itself: a returned pool over temporary arrays was read after they
    were freed.
    """

    codes: Codes
    live: Counts64
    differs: Counts64
    jump: Codes


@compiled
def link(codes: Codes, order: Counts64, differs: Counts64, jump: Codes) -> None:
    """Fill in the depths at which neighbouring sorted cells differ, and the jumps over equal ones."""
    size, columns = codes.shape
    for c in range(1, size):
        depth = 0
        while depth < columns - 1 and codes[c, order[depth]] == codes[c - 1, order[depth]]:
            depth += 1
        differs[c] = depth
    for c in range(size - 1, -1, -1):
        for depth in range(columns):
            apart = c + 1 == size or differs[c + 1] <= depth
            jump[c, depth] = c + 1 if apart else jump[c + 1, depth]


def sorted_pool(labels: Labels, codes: Codes, live: Counts64) -> Pool:
    """Return a pool of cells that are in the order of `sorting`."""
    pool = Pool(codes, live, np.zeros(len(codes), np.int64), np.empty(codes.shape, np.int32))
    link(codes, work_of(labels, 1).order, pool.differs, pool.jump)
    return pool


def sorting(labels: Labels, codes: Codes) -> Counts64:
    """Return the order of the cells that a pool needs."""
    return np.lexsort([codes[:, j] for j in work_of(labels, 1).order[::-1]])


@compiled
def gather(labels: Labels, pool: Pool, r: int, limit: float, work: Work) -> int:
    """List the cells that a box of r below the cost limit could hold, and return their free records."""
    codes, live = pool.codes, pool.live
    size, columns = codes.shape
    for j in range(columns):
        v: Unit = np.int64(codes[r, j])
        first = labels.unit[j]
        for u in range(labels.unit[j + 1] - first):
            work.pair[first + u] = cell_cost(labels, j, min(u, v), max(u, v))
    sums = work.sums
    sums[0] = 0.0
    # The cells are a trie: partial sums of the columns that a cell shares with the one before are kept, and a cell
    # that is too far away in an expensive column is skipped with all cells that share it. This is two to five times
    # faster than a visit of every cell.
    kept, total, c, known, seen = 0, 0, 0, 0, 0
    while c < size:
        known = min(known, pool.differs[c])
        if live[c] == 0:
            c += 1
            continue
        depth = known
        known = columns
        seen += 1
        while depth < columns:
            j = work.order[depth]
            sums[depth + 1] = sums[depth] + work.pair[labels.unit[j] + codes[c, j]]
            if sums[depth + 1] >= limit:
                break
            depth += 1
        if depth < columns:
            known = depth
            c = pool.jump[c, depth]
            continue
        work.cells[0, kept], work.rest[0, kept] = c, sums[columns]
        kept += 1
        total += live[c]
        c += 1
    work.size[0] = kept
    work.spent[0] += seen + 64
    return total


@compiled
def enter(codes: Codes, labels: Labels, r: int, depth: int, work: Work) -> None:
    """Start the iteration over the labels of the column at a depth; `advance` returns them one by one."""
    j = work.order[depth]
    v: Unit = np.int64(codes[r, j])
    work.node[depth] = -2
    work.low[depth], work.high[depth], work.held[depth] = v, v - 1, -1
    if labels.leaf[labels.unit[j] + v] < 0:
        for i in range(work.size[depth]):
            work.present[depth, codes[work.cells[depth, i], j]] = True
        work.present[depth, v] = True


@compiled
def advance(codes: Codes, labels: Labels, r: int, depth: int, work: Work, limit: float) -> bool:
    """Move to the next label that costs less than the limit; return False if there is none."""
    j = work.order[depth]
    v: Unit = np.int64(codes[r, j])
    leaf = labels.leaf[labels.unit[j] + v]
    if leaf >= 0:
        node = leaf if work.node[depth] == -2 else labels.parent[work.node[depth]]
        if node < 0:
            return False
        work.node[depth] = node
        work.low[depth], work.high[depth] = labels.low[node], labels.high[node] - 1
        return bool(work.base[depth] + cell_cost(labels, j, work.low[depth], work.high[depth]) < limit)
    units = labels.unit[j + 1] - labels.unit[j]
    low, high = work.low[depth], work.high[depth]
    while True:
        high += 1
        if high < units and work.base[depth] + cell_cost(labels, j, low, high) < limit:
            if work.present[depth, high]:
                work.low[depth], work.high[depth] = low, high
                return True
            continue
        low -= 1
        while low >= 0 and not work.present[depth, low]:
            low -= 1
        if low < 0 or work.base[depth] + cell_cost(labels, j, low, v) >= limit:
            return False
        high = v - 1


@compiled
def last_column(
    labels: Labels, codes: Codes, live: Counts64, r: int, depth: int, k: int, limit: float, work: Work
) -> float:
    """Find the cheapest label of the last column that reaches k; store the box and return the new cost limit."""
    j = work.order[depth]
    v: Unit = np.int64(codes[r, j])
    base = work.base[depth]
    units = labels.unit[j + 1] - labels.unit[j]
    low: Unit = units
    high: Unit = np.int64(-1)
    for i in range(work.size[depth]):
        c = work.cells[depth, i]
        u: Unit = np.int64(codes[c, j])
        work.tally[u] += live[c]
        low, high = min(low, u), max(high, u)
    got_low: Unit = np.int64(-1)
    got_high: Unit = np.int64(-1)
    node = labels.leaf[labels.unit[j] + v]
    end = units - 1 if labels.alone[j] else units
    if node >= 0:
        while node >= 0:
            cost = base + cell_cost(labels, j, labels.low[node], labels.high[node] - 1)
            if cost >= limit:
                break
            held = 0
            for u in range(max(low, labels.low[node]), min(high + 1, labels.high[node])):
                held += work.tally[u]
            if held >= k:
                limit, got_low, got_high = cost, labels.low[node], labels.high[node] - 1
                break
            node = labels.parent[node]
    else:
        if labels.alone[j]:
            held = 0
            for u in range(low, high + 1):
                held += work.tally[u]
            whole: Unit = np.int64(0)
            for a, b, reached in ((v, v, work.tally[v]), (whole, units - 1, held)):
                cost = base + cell_cost(labels, j, a, b)
                if reached >= k and cost < limit:
                    limit, got_low, got_high = cost, a, b
        # Two pointers: while the run grows to the left, its right end can only move left.
        if v < end:
            held, b, a = work.tally[v], v, v
            while held < k and b + 1 < end and b < high and base + cell_cost(labels, j, v, b + 1) < limit:
                b += 1
                held += work.tally[b]
            while True:
                while b > v and held - work.tally[b] >= k:
                    held -= work.tally[b]
                    b -= 1
                if held >= k:
                    cost = base + cell_cost(labels, j, a, b)
                    if cost < limit:
                        limit, got_low, got_high = cost, a, b
                a -= 1
                if a < low or a < 0 or base + cell_cost(labels, j, a, v) >= limit:
                    break
                held += work.tally[a]
    for i in range(work.size[depth]):
        work.tally[codes[work.cells[depth, i], j]] = 0
    if got_low >= 0:
        for i in range(depth):
            a, b = label(labels, work.order[i], work.low[i], work.high[i])
            work.best_low[work.order[i]], work.best_high[work.order[i]] = a, b - 1
        work.best_low[j], work.best_high[j] = got_low, got_high
    return limit


@compiled
def cheapest(labels: Labels, pool: Pool, r: int, k: int, limit: float, work: Work) -> float:
    """Return the cost of the cheapest box of r with at least k free records, if it is below the limit, else the limit.

    The first and last units of the box are stored in `best_low` and `best_high`.
    """
    codes, live = pool.codes, pool.live
    if gather(labels, pool, r, limit, work) < k:
        return limit
    columns = codes.shape[1]
    depth = 0
    work.base[0] = 0.0
    if columns == 1:
        return last_column(labels, codes, live, r, 0, k, limit, work)
    enter(codes, labels, r, 0, work)
    while depth >= 0:
        if not advance(codes, labels, r, depth, work, limit - TINY):
            for i in range(work.size[depth]):
                work.present[depth, codes[work.cells[depth, i], work.order[depth]]] = False
            work.present[depth, codes[r, work.order[depth]]] = False
            depth -= 1
            continue
        j = work.order[depth]
        first, end = label(labels, j, work.low[depth], work.high[depth])
        cost = work.base[depth] + cell_cost(labels, j, work.low[depth], work.high[depth])
        held, size, inside = 0, 0, 0
        work.spent[0] += work.size[depth] + 8
        for i in range(work.size[depth]):
            c = work.cells[depth, i]
            u = codes[c, j]
            if first <= u < end:
                inside += live[c]
                rest = work.rest[depth, i] - work.pair[labels.unit[j] + u]
                if cost + rest < limit - TINY:
                    work.cells[depth + 1, size], work.rest[depth + 1, size] = c, rest
                    size += 1
                    held += live[c]
        larger = inside > work.held[depth]  # a larger node with the same records only costs more
        work.held[depth] = inside
        if held < k or (work.node[depth] >= 0 and not larger):
            continue
        work.size[depth + 1] = size
        work.base[depth + 1] = cost
        if depth + 1 == columns - 1:
            limit = last_column(labels, codes, live, r, depth + 1, k, limit, work)
            continue
        depth += 1
        enter(codes, labels, r, depth, work)
    return limit


@compiled
def joined_cost(labels: Labels, codes: Codes, low: Counts64, high: Counts64, r: int) -> float:
    """Return the cost of a box (first and last units) after it is widened to hold r."""
    cost = 0.0
    for j in range(codes.shape[1]):
        v: Unit = np.int64(codes[r, j])
        cost += cell_cost(labels, j, min(low[j], v), max(high[j], v))
    return cost


@compiled
def box_costs(labels: Labels, pool: Pool, k: int, work: Work) -> tuple[Floats, Counts64, Counts64]:
    """Return the cheapest box of each cell and its cost, the box bound; the table has at least k records.

    The box of the cell before, widened to hold this one, gives the first cost limit.
    """
    codes = pool.codes
    size, columns = codes.shape
    costs = np.empty(size)
    low, high = np.zeros((size, columns), np.int64), np.zeros((size, columns), np.int64)
    before = -1
    for r in range(size):  # sorted cells: the cell before is similar, so its box is a tight limit
        limit = 2.0
        if before >= 0:
            limit = joined_cost(labels, codes, low[before], high[before], r) + 2 * TINY
        cost = cheapest(labels, pool, r, k, limit, work)
        if cost < limit:
            low[r], high[r] = work.best_low, work.best_high
        else:
            for j in range(columns):
                v: Unit = np.int64(codes[r, j])
                a, b = label(labels, j, min(low[before, j], v), max(high[before, j], v))
                low[r, j], high[r, j] = a, b - 1
            cost = joined_cost(labels, codes, low[r], high[r], r)
        costs[r] = cost
        before = r
    return costs, low, high


# A box whose cost exceeds the cheapest by this factor is taken at once: a tenth of the time, hardly more loss.
TOLERANCES = (1.5, 1.3)
STEP = 1e-3


@compiled
def take_boxes(
    labels: Labels, pool: Pool, bound: Floats, k: int, tolerance: float, work: Work, owner: Counts64, made: int
) -> int:
    """Take boxes in the order of their costs until half of the cells are covered; return the number of all boxes.

    `bound[c]` is a lower bound on the cost of the cheapest box of cell c and is raised. `owner[c]` receives its class.
    """
    size = len(bound)
    # Stops when half of the cells are covered: a new pool without them is faster to search.
    heap = [(bound[i], i) for i in range(size)]
    heapq.heapify(heap)
    free, cells = pool.live.sum(), size
    while free >= k and 2 * cells > size:
        cost, c = heapq.heappop(heap)
        if owner[c] >= 0:
            continue
        limit = cost * tolerance + STEP
        got = cheapest(labels, pool, c, k, limit, work)
        bound[c] = min(got, limit)
        if got >= limit - TINY:
            heapq.heappush(heap, (bound[c], c))
            continue
        for i in range(work.size[0]):  # the search gathered all cells of the box
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


@compiled
def box_cost(labels: Labels, low: Counts64, high: Counts64) -> float:
    """Return the cost of a box per record; `low` and `high` are its first and last units."""
    cost = 0.0
    for j in range(len(low)):
        cost += cell_cost(labels, j, low[j], high[j])
    return cost


@compiled
def attach(labels: Labels, codes: Codes, counts: Counts64, owner: Counts64, classes: int) -> Counts64:
    """Add every cell without a class to the class where it costs least."""
    size, columns = codes.shape
    low, high = np.empty((classes, columns), np.int64), np.empty((classes, columns), np.int64)
    cost, rows = np.zeros(classes), np.zeros(classes, np.int64)
    for i in range(classes):
        low[i, :], high[i, :] = 1 << 40, -1
    for c in range(size):
        if owner[c] >= 0:
            rows[owner[c]] += counts[c]
            for j in range(columns):
                low[owner[c], j] = min(low[owner[c], j], codes[c, j])
                high[owner[c], j] = max(high[owner[c], j], codes[c, j])
    for i in range(classes):
        cost[i] = box_cost(labels, low[i], high[i])
    for c in range(size):
        if owner[c] < 0:
            best, least = 0, np.inf
            for i in range(classes):
                new = joined_cost(labels, codes, low[i], high[i], c)
                more = new * (rows[i] + counts[c]) - cost[i] * rows[i]
                if more < least:
                    best, least = i, more
            owner[c] = best
            rows[best] += counts[c]
            for j in range(columns):
                low[best, j] = min(low[best, j], codes[c, j])
                high[best, j] = max(high[best, j], codes[c, j])
            cost[best] = box_cost(labels, low[best], high[best])
    return owner


def best_boxes(labels: Labels, codes: Codes, counts: Counts64, bound: Floats, k: int, tolerance: float) -> Counts64:
    """Return the class of each cell by the greedy choice of cheapest boxes; cells that remain join existing classes.

    Cells are in the order of `sorting`; `bound` has a lower bound on the cost of the cheapest box of each.
    """
    work = work_of(labels, len(counts))
    owner = np.full(len(counts), -1, np.int64)
    ids, made = np.arange(len(counts)), 0
    while counts[ids].sum() >= k:
        pool = sorted_pool(labels, np.ascontiguousarray(codes[ids]), counts[ids])
        some, near = np.full(len(ids), -1, np.int64), bound[ids]
        made = take_boxes(labels, pool, near, k, tolerance, work, some, made)
        bound[ids], owner[ids] = near, some
        ids = ids[some < 0]
    return attach(labels, codes, counts, owner, made)
