"""Compiled evaluation of cuts: a complete candidate, or all neighbours of a candidate together.

A neighbour differs in one column. The classes of the other columns are numbered once for all neighbours of that column.
Their records are cumulated over the units of the column, so the records of a run of units are a difference of two
sums. For each neighbour, the classes that disappear are removed from the tally and the new ones are added.

The tally has a cell for each size (and diversity) of classes, with the records and the cost of these classes. The cost
is the generalization loss as a whole number of a small unit, so additions and subtractions have no rounding error. The
tally also has the sums of blocks of cells, and at the end the sum of all cells. A rule of suppression can thus skip
blocks that are empty or completely suppressed.
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
RULES = ("none", "within", "below_mean", "demanded", "safe", "printed_k", "printed_l")
NONE, WITHIN, BELOW_MEAN, BELOW_LIMIT, SAFE, PRINTED_K, PRINTED_L = range(7)
LEAST_SIZE, LEAST_DIVERSITY, SUPPRESSED, KEPT_COST, PROPERTY_SUM, FIGURES = 0, 1, 2, 3, 4, 5
Table = npt.NDArray[np.int64]


@compiled
def add(cells: Table, blocks: Table, level: int, size: int, rows: int, cost: int) -> None:
    """Add a class to the tally, or remove it with negative rows and cost. `cells[v, s]` are (records, cost).

    A class that is exempt from ℓ satisfies every limit of ℓ, so it has the highest level.
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
    """Suppress the smallest sizes among classes of diversity `low` and more, within the budget of records.

    Returns the smallest size left, the number of suppressed records and their cost.
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
    """Suppress every class whose property is below the mean. Return the smallest left, suppressed records, cost."""
    gone, cost = 0, 0
    sizes = cells.shape[1]
    for block in range(blocks.shape[1] - 1):
        if blocks[0, block, 0] == 0:
            continue
        # The mean is compared by a product, because a quotient would need rounding.
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
    """Suppress classes in lexicographic order within the budget (problem 4 as printed), and measure those left."""
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
    out[LEAST_SIZE], out[LEAST_DIVERSITY] = least_k, least_l
    out[SUPPRESSED], out[KEPT_COST] = gone, total - cost


@compiled
def judge(rule: int, cells: Table, blocks: Table, budget: int, cost: int, total: int, records: int, out: Table) -> None:
    """Apply a rule of suppression to a tally, and write a row of figures for each variant.

    There is one variant, or one for each diversity if the rule is `SAFE`. Before suppression all classes have the
    generalization loss `cost` and the sum of the property over records `total`. The first figure of a variant that does
    not exist is -1. If the rule is `BELOW_LIMIT`, all classes smaller than `budget` are suppressed.
    """
    out[:, :] = -1
    out[:, PROPERTY_SUM] = total
    if rule == SAFE:
        # For each least diversity, the classes below it are suppressed first, and the smallest of the others with the
        # budget that is left. This gives the largest k for each ℓ.
        gone, lost = 0, 0
        for low in range(cells.shape[0]):
            if low > 0:
                gone += blocks[low - 1, -1, 0]
                lost += blocks[low - 1, -1, 1]
            if gone > budget:
                break
            least, more, part = smallest_left(cells, blocks, low, budget - gone)
            out[low, LEAST_SIZE], out[low, LEAST_DIVERSITY], out[low, SUPPRESSED] = least, low, gone + more
            out[low, KEPT_COST] = cost - lost - part
    elif rule in (PRINTED_K, PRINTED_L):
        printed(cells, budget, rule == PRINTED_L, out[0], cost)
    else:
        if rule == BELOW_MEAN:
            least, more, part = below(cells, blocks, total, records)
        elif rule == BELOW_LIMIT:
            least, more, part = below(cells, blocks, budget, 1)
        else:
            least, more, part = smallest_left(cells, blocks, 0, budget if rule == WITHIN else 0)
        out[0, LEAST_SIZE], out[0, LEAST_DIVERSITY] = least, least
        out[0, SUPPRESSED], out[0, KEPT_COST] = more, cost - part


UNEVALUATED = -2


@compiled
def place_of(size: int, held: int, rule: int, by_diversity: bool) -> tuple[int, int]:
    """Return the cell of a class in the tally: its level and its property."""
    if by_diversity:
        return 0, held
    return (held, size) if rule >= SAFE else (0, size)


@compiled
def spread(
    bits: Bits, gap: Counts64, unit: Counts64, leaves: Counts64, price: Counts64, groups: Index, cells: Counts64
) -> Counts64:
    """Write the group of every unit and the cost of a cell in it, and return the number of groups of each column.

    The leaves are cumulated over each column's units (with one entry more than units). Each further leaf in a group of
    column j costs `price[j]`.
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
    """Add every class of a candidate to the tally, and write the cell of class c to `places[:, c]`.

    Returns the cost, the sum of the property, the class of every tuple and the first tuple of every class.
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
    """Clear only the cells of the classes that were added, which are few compared with the tally."""
    for c in range(places.shape[1]):
        level, at = min(places[0, c], cells.shape[0] - 1), min(places[1, c], cells.shape[1] - 1)
        cells[level, at] = 0
        blocks[level, at // BLOCK] = 0
        blocks[level, -1] = 0


@compiled
def exact_k(figures: Table, places: Codes, sizes: int) -> None:
    """Return the smallest class left if its size is above the sizes of the tally, which are all in its last cell."""
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
    """Return the figures of complete candidates by candidate, variant and figure."""
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
    """List level, property, records and cost of the classes of runs between two boundaries. Return the end."""
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
    """Replace classes in the tally, and return the differences of the cost and of the sum of the property."""
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
    """Return the figures of every neighbour of a candidate.

    Neighbour m replaces the runs of column `column[m]` between units `low[m]` and `high[m]` by those that end at
    `ends[begin[m]:begin[m + 1]]`. Neighbours are sorted by column. A neighbour whose table of sums would exceed the
    memory is not evaluated.
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
    heads = packed[0][:, leaders]  # the first tuple identifies a class, and there are fewer of these than tuples
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
