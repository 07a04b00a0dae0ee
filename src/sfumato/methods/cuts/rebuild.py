"""One column cut anew, the best way for the others as they are; and columns one after the other until none changes.

With the classes of the other columns given and a smallest size asked for, what a run of a column costs does not depend
on the column's other runs: classes that are large enough keep their records at the price of the run's labels, the
others are suppressed. So the best runs follow from shorter ones (or, along a tree, from a node's children), however
many boundaries move at once. Where more records would go than the budget allows, they are made dearer until it holds.
Where a rule spends the whole budget in any case, records that go may cost less than all their cells from the start.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sfumato.base.arrays import Codes, Counts64, Flags, Floats, Index
from sfumato.base.compiled import compiled
from sfumato.measures.kernels import Packing, class_index
from sfumato.methods.cuts.kernels import spread
from sfumato.plans.segments import Bits

Table = npt.NDArray[np.int64]
STEPS = 9  # halvings of the price at which the budget holds
DEAREST = 20  # doublings of it


@compiled
def merged(order: Index, start: Counts64, rest_of: Index, counts: Counts64, classes: int) -> tuple[Counts64, Table]:
    """The records of each unit by their class of the other columns: where each unit's begin, and (class, records).

    `order[start[u]:start[u + 1]]` are the tuples of unit u, `rest_of` their classes.
    """
    begin = np.zeros(len(start), np.int64)
    cells = np.empty((len(order), 2), np.int64)
    slot = np.full(classes, -1, np.int64)
    count = 0
    for u in range(len(start) - 1):
        for position in range(start[u], start[u + 1]):
            t = order[position]
            r = rest_of[t]
            if slot[r] < begin[u]:
                slot[r] = count
                cells[count, 0], cells[count, 1] = r, 0
                count += 1
            cells[slot[r], 1] += counts[t]
        begin[u + 1] = count
    return begin, cells


@compiled
def tabulate(
    begin: Counts64,
    cells: Table,
    rest: Counts64,
    up: Counts64,
    price: int,
    size: int,
    low: Counts64,
    high: Counts64,
    cost: Floats,
    gone: Floats,
) -> None:
    """What runs of a column's units keep and lose: `cost[a, b]` of records in classes of `size` and more when the units
    from a to below b are one group, `gone[a, b]` the records in smaller ones. Along a tree only nodes are looked at.

    `rest` is what a record of a class costs in the other columns.
    """
    units = len(begin) - 1
    held = np.zeros(len(rest), np.int64)
    for run in range(len(low) if len(low) else units):
        a, end = (low[run], high[run]) if len(low) else (run, units)
        held[:] = 0
        kept, dear, small = 0, 0, 0
        for b in range(a, end):
            for position in range(begin[b], begin[b + 1]):
                r, more = cells[position, 0], cells[position, 1]
                old = held[r]
                held[r] = old + more
                if old >= size:
                    kept += more
                    dear += more * rest[r]
                elif old + more >= size:
                    kept += old + more
                    dear += (old + more) * rest[r]
                    small -= old
                else:
                    small += more
            cost[a, b + 1] = dear + kept * price * (up[b + 1] - up[a] - 1)
            gone[a, b + 1] = small


@compiled
def shortest(
    cost: Floats,
    gone: Floats,
    dear: float,
    units: int,
    guarded: bool,
    low: Counts64,
    high: Counts64,
    first: Counts64,
    child: Counts64,
    bits: Bits,
) -> None:
    """The runs of least cost when each record that goes costs `dear`; `low` and `high` are nodes, small ones first."""
    bits[:] = 0
    if len(low):
        best = np.empty(len(low), np.float64)
        whole = np.zeros(len(low), np.bool_)
        for n in range(len(low)):
            a, b = low[n], high[n]
            best[n] = cost[a, b] + dear * gone[a, b]
            whole[n] = True
            if b - a < 2:
                continue
            apart = 0.0
            for c in range(first[n], first[n + 1]):
                to = child[c + 1] if c + 1 < first[n + 1] else b
                for m in range(n):
                    if low[m] == child[c] and high[m] == to:
                        apart += best[m]
            if apart < best[n]:
                best[n], whole[n] = apart, False
        waiting = [len(low) - 1]
        while len(waiting):
            n = waiting.pop()
            if whole[n]:
                continue
            for c in range(first[n], first[n + 1]):
                to = child[c + 1] if c + 1 < first[n + 1] else high[n]
                if c > first[n]:
                    bits[child[c] - 1] = 1
                for m in range(n):
                    if low[m] == child[c] and high[m] == to:
                        waiting.append(m)
        return
    last = units - 1 if guarded else units  # missing values stand alone unless all is joined
    reach = np.full(last + 1, np.inf)
    come = np.zeros(last + 1, np.int64)
    reach[0] = 0.0
    for b in range(1, last + 1):
        for a in range(1 if last < units and b == last else 0, b):
            now = reach[a] + cost[a, b] + dear * gone[a, b]
            if now < reach[b]:
                reach[b], come[b] = now, a
    if last < units:
        alone = reach[last] + cost[last, units] + dear * gone[last, units]
        if cost[0, units] + dear * gone[0, units] <= alone:
            return
        bits[last - 1] = 1
    b = come[last]
    while b > 0:
        bits[b - 1] = 1
        b = come[b]


@compiled
def totals(cost: Floats, gone: Floats, bits: Bits) -> tuple[float, float]:
    """What some runs cost, and the records that go."""
    a, paid, lost = 0, 0.0, 0.0
    for b in range(1, len(bits) + 2):
        if b == len(bits) + 1 or bits[b - 1]:
            paid += cost[a, b]
            lost += gone[a, b]
            a = b
    return paid, lost


@compiled
def within(
    cost: Floats,
    gone: Floats,
    least: float,
    full: float,
    budget: float,
    guarded: bool,
    low: Counts64,
    high: Counts64,
    first: Counts64,
    child: Counts64,
    bits: Bits,
) -> None:
    """The runs of least cost at the `least` price of a record that goes, if those are within the budget; else at the
    lowest price at which they are, found by halving; where they are at no price, those that lose fewest."""
    units = len(bits) + 1
    shortest(cost, gone, least, units, guarded, low, high, first, child, bits)
    if totals(cost, gone, bits)[1] <= budget:
        return
    cheap, dear = least, max(full, 2.0 * least) / 2.0
    tried = bits.copy()
    for _ in range(DEAREST):
        dear *= 2.0
        shortest(cost, gone, dear, units, guarded, low, high, first, child, bits)
        if totals(cost, gone, bits)[1] <= budget:
            break
        cheap = dear
    else:
        return
    for _ in range(STEPS):
        middle = (cheap + dear) / 2
        shortest(cost, gone, middle, units, guarded, low, high, first, child, tried)
        if totals(cost, gone, tried)[1] <= budget:
            dear = middle
            bits[:] = tried
        else:
            cheap = middle


@compiled
def descend(
    parent: Bits,
    columns: Counts64,
    size: int,
    budget: int,
    least: float,
    full: float,
    packed: Packing,
    codes: Codes,
    counts: Counts64,
    gap: Counts64,
    unit: Counts64,
    leaves: Counts64,
    price: Counts64,
    order: Index,
    start: Counts64,
    guarded: Flags,
    node: Counts64,
    low: Counts64,
    high: Counts64,
    first: Counts64,
    child: Counts64,
    passes: int,
) -> tuple[Bits, int]:
    """Cut the columns anew in the given order, again and again until none changes; and how many were looked at.

    `order[j]` are the tuples by unit of column j, whose first in each unit are `start[unit[j] + j:]`.
    """
    bits = parent.copy()
    groups = np.zeros(unit[-1], np.uint32)
    cost_of = np.zeros(unit[-1], np.int64)
    looked, still = 0, 0
    for turn in range(passes * len(columns)):
        j = columns[turn % len(columns)]
        units = unit[j + 1] - unit[j]
        still += 1
        if units > 1:
            radix = spread(bits, gap, unit, leaves, price, groups, cost_of)
            groups[unit[j] : unit[j + 1]] = 0
            radix[j] = 1
            rest_of, head = class_index(packed[0], packed[1], packed[2], packed[3], packed[4], groups, unit[:-1], radix)
            rest = np.zeros(len(head), np.int64)
            for other in range(codes.shape[0]):
                if other != j:
                    for r in range(len(head)):
                        rest[r] += cost_of[unit[other] + codes[other, head[r]]]
            cost, gone = np.zeros((units, units + 1)), np.zeros((units, units + 1))
            up = leaves[unit[j] + j : unit[j + 1] + j + 1]
            own = start[unit[j] + j : unit[j + 1] + j + 1]
            begin, cells = merged(order[j], own, rest_of, counts, len(head))
            a, b = node[j], node[j + 1]
            tabulate(begin, cells, rest, up, price[j], size, low[a:b], high[a:b], cost, gone)
            new = np.zeros(units - 1, np.uint8)
            within(cost, gone, least, full, budget, guarded[j], low[a:b], high[a:b], first[a : b + 1], child, new)
            looked += 1
            paid, lost = totals(cost, gone, bits[gap[j] : gap[j + 1]])
            now, less = totals(cost, gone, new)
            cheaper = less <= budget and now + least * less < paid + least * lost - 0.5
            better = less < lost if lost > budget else cheaper
            if better:
                bits[gap[j] : gap[j + 1]] = new
                still = 0
        if still >= len(columns):
            break
    return bits, looked
