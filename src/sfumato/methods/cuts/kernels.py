"""The compiled evaluation of cuts: one candidate in full, or every small change of a candidate at once.

A small change touches one column. The classes of the other columns are numbered once for all changes of that column;
the records of each of them by unit are summed up along the units, so the records of any run are one subtraction. A
change then takes the classes it touches out of the tally and puts those it makes in.

A tally of classes by size and diversity, and what each rule of suppression makes of it. Compiled.

All classes of one size (and diversity) are one cell with its records and its cost. The cost is the generalization loss
in whole units of a small fraction, so that adding and taking away leave no rounding behind. Blocks of cells are summed
beside them, and behind the last block stands the sum of all: a rule skips empty or wholly suppressed blocks at once.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sfumato.base.arrays import Codes, Counts64, Index
from sfumato.base.compiled import compiled
from sfumato.measures.classes import Masks, diversity
from sfumato.measures.kernels import Packing, class_index
from sfumato.plans.segments import Bits

BLOCK = 64
NONE, WITHIN, BELOW_MEAN, BELOW_LIMIT, SAFE, PRINTED_K, PRINTED_L = range(7)
K_AT, L_AT, SUPPRESSED_AT, KEPT_COST_AT, SUM_AT, FIGURES = 0, 1, 2, 3, 4, 5
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
    out[K_AT], out[L_AT], out[SUPPRESSED_AT], out[KEPT_COST_AT] = least_k, least_l, gone, total - cost


@compiled
def judge(rule: int, cells: Table, blocks: Table, budget: int, cost: int, total: int, records: int, out: Table) -> None:
    """What a rule makes of a tally: a row of figures for each variant (one, or one for each diversity if SAFE).

    `cost` is the generalization loss of all classes and `total` the sum of the property over all records, both with
    nothing suppressed. The first figure of a variant that cannot be had is -1. With DEMANDED `budget` is the size below
    which classes go, however many records that takes.
    """
    out[:, :] = -1
    out[:, SUM_AT] = total
    if rule == SAFE:
        gone, lost = 0, 0
        for low in range(cells.shape[0]):
            if low > 0:
                gone += blocks[low - 1, -1, 0]
                lost += blocks[low - 1, -1, 1]
            if gone > budget:
                break
            least, more, part = smallest_left(cells, blocks, low, budget - gone)
            out[low, K_AT], out[low, L_AT], out[low, SUPPRESSED_AT] = least, low, gone + more
            out[low, KEPT_COST_AT] = cost - lost - part
    elif rule in (PRINTED_K, PRINTED_L):
        printed(cells, budget, rule == PRINTED_L, out[0], cost)
    else:
        if rule == BELOW_MEAN:
            least, more, part = below(cells, blocks, total, records)
        elif rule == BELOW_LIMIT:
            least, more, part = below(cells, blocks, budget, 1)
        else:
            least, more, part = smallest_left(cells, blocks, 0, budget if rule == WITHIN else 0)
        out[0, K_AT], out[0, L_AT], out[0, SUPPRESSED_AT], out[0, KEPT_COST_AT] = least, least, more, cost - part


UNEVALUATED = -2


@compiled
def place_of(size: int, held: int, rule: int, by_diversity: bool) -> tuple[int, int]:
    """Where a class stands in the tally: its level and its property."""
    if by_diversity:
        return 0, held
    return (held, size) if rule >= SAFE else (0, size)


@compiled
def spread(
    bits: Bits, gap: Counts64, unit: Counts64, leaves: Counts64, price: Counts64, groups: Index, cells: Counts64
) -> Counts64:
    """The group of every unit of every column and the cost of a cell in it; returns the number of groups by column.

    `leaves` runs up along each column's units (one entry more than units); `price[j]` is the cost of one more leaf.
    """
    columns = len(gap) - 1
    radix = np.ones(columns, np.int64)
    for j in range(columns):
        size = unit[j + 1] - unit[j]
        up = leaves[unit[j] + j : unit[j + 1] + j + 1]
        low = 0
        for u in range(size):
            groups[unit[j] + u] = radix[j] - 1
            if u == size - 1 or bits[gap[j] + u]:
                held = up[u + 1] - up[low]
                cost = price[j] * (held - 1)
                for inside in range(low, u + 1):
                    cells[unit[j] + inside] = cost
                low = u + 1
                if u < size - 1:
                    radix[j] += 1
    return radix


@compiled
def fill(
    packed: Packing,
    codes: Codes,
    counts: Counts64,
    masks: Masks,
    words: Counts64,
    unit: Counts64,
    groups: Index,
    radix: Counts64,
    cost_of: Counts64,
    rule: int,
    by_diversity: bool,
    cells: Table,
    blocks: Table,
    places: Codes,
) -> tuple[int, int, Index, Index]:
    """Put every class of a candidate into the tally.

    Returns their cost, the sum of the property, the class of every tuple and the first tuple of every class.

    `places[:, c]` gets the level and the property of class c.
    """
    index, first = class_index(packed[0], packed[1], packed[2], packed[3], packed[4], groups, unit[:-1], radix)
    rows = np.zeros(len(first), np.int64)
    for t in range(len(index)):
        rows[index[t]] += counts[t]
    wide = masks.shape[1]
    held = np.zeros((len(first), wide), np.uint64)
    if wide:
        for t in range(len(index)):
            for w in range(wide):
                held[index[t], w] |= masks[t, w]
    cost, total = 0, 0
    for c in range(len(first)):
        price = 0
        for j in range(codes.shape[0]):
            price += cost_of[unit[j] + codes[j, first[c]]]
        level, size = place_of(rows[c], diversity(held[c], words) if wide else 0, rule, by_diversity)
        add(cells, blocks, level, size, rows[c], rows[c] * price)
        places[0, c], places[1, c] = level, size
        cost += rows[c] * price
        total += rows[c] * size
    return cost, total, index, first


@compiled
def clear(cells: Table, blocks: Table, places: Codes) -> None:
    """Empty the cells that were filled: far fewer than there are."""
    for c in range(places.shape[1]):
        level, at = min(places[0, c], cells.shape[0] - 1), min(places[1, c], cells.shape[1] - 1)
        cells[level, at] = 0
        blocks[level, at // BLOCK] = 0
        blocks[level, -1] = 0


@compiled
def exact_k(figures: Table, places: Codes, sizes: int) -> None:
    """Sizes behind the end of the tally are one cell: where the smallest class left is there, look it up."""
    for v in range(len(figures)):
        if figures[v, 0] == sizes - 1:
            least = 1 << 40
            for c in range(places.shape[1]):
                if places[0, c] >= v and places[1, c] >= sizes - 1:
                    least = min(least, int(places[1, c]))
            figures[v, 0] = least


@compiled
def evaluate(
    bits: Bits,
    packed: Packing,
    codes: Codes,
    counts: Counts64,
    masks: Masks,
    words: Counts64,
    gap: Counts64,
    unit: Counts64,
    leaves: Counts64,
    price: Counts64,
    rule: int,
    by_diversity: bool,
    budget: int,
    records: int,
    levels: int,
    sizes: int,
) -> Table:
    """The figures of candidates, each in full: (candidate, variant, figure)."""
    result = np.empty((len(bits), levels if rule == SAFE else 1, FIGURES), np.int64)
    cells = np.zeros((levels, sizes, 2), np.int64)
    blocks = np.zeros((levels, sizes // BLOCK + 2, 2), np.int64)
    groups = np.zeros(unit[-1], np.uint32)
    cost_of = np.zeros(unit[-1], np.int64)
    places = np.zeros((2, len(counts)), np.int32)
    for i in range(len(bits)):
        radix = spread(bits[i], gap, unit, leaves, price, groups, cost_of)
        cost, total, _, first = fill(
            packed, codes, counts, masks, words, unit, groups, radix, cost_of, rule, by_diversity, cells, blocks, places
        )
        judge(rule, cells, blocks, budget, cost, total, records, result[i])
        exact_k(result[i], places[:, : len(first)], sizes)
        clear(cells, blocks, places[:, : len(first)])
    return result


@compiled
def made(
    touched: Counts64,
    runs: Codes,
    held: Masks,
    words: Counts64,
    low: int,
    ends: Counts64,
    high: int,
    up: Counts64,
    price: int,
    rest: Counts64,
    rule: int,
    by_diversity: bool,
    classes: Table,
    at: int,
) -> int:
    """List the classes of a column's runs between two boundaries: level, property, records, cost. Returns the end."""
    wide = held.shape[2]
    mask = np.zeros(wide, np.uint64)
    begin = low
    for position in range(len(ends) + 1):
        end = ends[position] if position < len(ends) else high
        each = price * (up[end] - up[begin] - 1)
        left, right = runs[begin], runs[end]
        for r in touched:
            size = int(right[r] - left[r])
            if size > 0:
                different = 0
                if wide:
                    mask[:] = 0
                    for u in range(begin, end):
                        for w in range(wide):
                            mask[w] |= held[u, r, w]
                    different = diversity(mask, words)
                classes[at, 0], classes[at, 1] = place_of(size, different, rule, by_diversity)
                classes[at, 2], classes[at, 3] = size, size * (rest[r] + each)
                at += 1
        begin = end
    return at


@compiled
def exchange(gone: Table, come: Table, cells: Table, blocks: Table) -> tuple[int, int]:
    """Take classes out of the tally and put others in. Returns how the cost and the sum of the property move."""
    cost, total = 0, 0
    for c in range(len(gone)):
        add(cells, blocks, gone[c, 0], gone[c, 1], -gone[c, 2], -gone[c, 3])
        cost -= gone[c, 3]
        total -= gone[c, 1] * gone[c, 2]
    for c in range(len(come)):
        add(cells, blocks, come[c, 0], come[c, 1], come[c, 2], come[c, 3])
        cost += come[c, 3]
        total += come[c, 1] * come[c, 2]
    return cost, total


@compiled
def sweep(
    bits: Bits,
    packed: Packing,
    codes: Codes,
    counts: Counts64,
    masks: Masks,
    words: Counts64,
    gap: Counts64,
    unit: Counts64,
    leaves: Counts64,
    price: Counts64,
    rule: int,
    by_diversity: bool,
    budget: int,
    records: int,
    levels: int,
    sizes: int,
    column: Counts64,
    low: Counts64,
    high: Counts64,
    begin: Counts64,
    ends: Counts64,
    room: int,
) -> Table:
    """The figures of every small change of one candidate.

    Change m replaces the runs of column `column[m]` between units `low[m]` and `high[m]` by those that end at
    `ends[begin[m]:begin[m + 1]]`. Changes are sorted by column. Those whose table would not fit are left unevaluated.
    """
    result = np.empty((len(column), levels if rule == SAFE else 1, FIGURES), np.int64)
    cells = np.zeros((levels, sizes, 2), np.int64)
    blocks = np.zeros((levels, sizes // BLOCK + 2, 2), np.int64)
    groups = np.zeros(unit[-1], np.uint32)
    cost_of = np.zeros(unit[-1], np.int64)
    radix = spread(bits, gap, unit, leaves, price, groups, cost_of)
    places = np.zeros((2, len(counts)), np.int32)
    cost, total, class_of, leaders = fill(
        packed, codes, counts, masks, words, unit, groups, radix, cost_of, rule, by_diversity, cells, blocks, places
    )
    wide = masks.shape[1]
    heads = packed[0][:, leaders]  # a class is told apart by its first tuple, and there are fewer of them
    classes = np.empty((2 * len(counts), 4), np.int64)
    at = 0
    while at < len(column):
        j = column[at]
        last = at
        while last < len(column) and column[last] == j:
            last += 1
        size = unit[j + 1] - unit[j]
        others, alone = groups.copy(), radix.copy()
        others[unit[j] : unit[j + 1]] = 0
        alone[j] = 1
        rest_of, first = class_index(heads, packed[1], packed[2], packed[3], packed[4], others, unit[:-1], alone)
        if len(first) * (size + 1) * (1 + 2 * wide) > room:
            result[at:last] = UNEVALUATED
            at = last
            continue
        runs = np.zeros((size + 1, len(first)), np.int32)
        held = np.zeros((size if wide else 0, len(first), wide), np.uint64)
        for t in range(len(class_of)):
            r = rest_of[class_of[t]]
            runs[codes[j, t] + 1, r] += counts[t]
            for w in range(wide):
                held[codes[j, t], r, w] |= masks[t, w]
        for u in range(size):
            runs[u + 1] += runs[u]
        rest = np.zeros(len(first), np.int64)
        for r in range(len(first)):
            for other in range(codes.shape[0]):
                if other != j:
                    rest[r] += cost_of[unit[other] + codes[other, leaders[first[r]]]]
        up = leaves[unit[j] + j : unit[j + 1] + j + 1]
        old = np.empty(size, np.int64)
        touched = np.empty(len(first) + 1, np.int64)
        for m in range(at, last):
            count = 0
            for u in range(low[m], high[m] - 1):
                if bits[gap[j] + u]:
                    old[count] = u + 1
                    count += 1
            new, was = ends[begin[m] : begin[m + 1]], old[:count]
            some = 0
            left, right = runs[low[m]], runs[high[m]]
            for r in range(len(first)):
                touched[some] = r
                some += right[r] > left[r]
            seen = touched[:some]
            a, b, c = low[m], high[m], price[j]
            half = made(seen, runs, held, words, a, was, b, up, c, rest, rule, by_diversity, classes, 0)
            end = made(seen, runs, held, words, a, new, b, up, c, rest, rule, by_diversity, classes, half)
            more, extra = exchange(classes[:half], classes[half:end], cells, blocks)
            judge(rule, cells, blocks, budget, cost + more, total + extra, records, result[m])
            exchange(classes[half:end], classes[:half], cells, blocks)
        at = last
    return result
