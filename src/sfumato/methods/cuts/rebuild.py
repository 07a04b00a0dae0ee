"""Coordinate descent: the optimal cuts of one column for fixed other columns, one column after the other.

For fixed classes of the other columns and a smallest class size, the cost of a run does not depend on the column's
other runs. Classes that are large enough keep their records at the cost of the run's label. The others are suppressed.
So dynamic programming gives the best runs from shorter ones (or from the children of a node of the tree). If the result
exceeds the suppression budget, the cost of a suppressed record (a Lagrange multiplier) is increased until it does not.
If a rule uses the complete budget in any case, a suppressed record may cost less than all its cells from the beginning.
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
BISECTIONS = 9  # of the Lagrange multiplier
DOUBLINGS = 20  # of the multiplier, at most


@compiled
def merged(order: Index, start: Counts64, rest_of: Index, counts: Counts64, classes: int) -> tuple[Counts64, Table]:
    """Return for each unit its first entry, and entries of (class of the other columns, records).

    Unit u has the tuples `order[start[u]:start[u + 1]]`, whose classes are `rest_of`.
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
    """Compute the cost and the suppressed records of each run of a column's units, or of each node of a tree.

    If the units from a to below b are one group, its records in classes of at least `size` cost `cost[a, b]`, and
    `gone[a, b]` records in smaller classes are suppressed. A record of a class costs `rest` in the other columns.
    """
    units = len(begin) - 1
    held = np.zeros(len(rest), np.int64)
    for run in range(len(low) if len(low) else units):
        a, end = (low[run], high[run]) if len(low) else (run, units)
        held[:] = 0
        kept, elsewhere, small = 0, 0, 0
        for b in range(a, end):
            for position in range(begin[b], begin[b + 1]):
                r, more = cells[position, 0], cells[position, 1]
                old = held[r]
                held[r] = old + more
                if old >= size:
                    kept += more
                    elsewhere += more * rest[r]
                elif old + more >= size:
                    kept += old + more
                    elsewhere += (old + more) * rest[r]
                    small -= old
                else:
                    small += more
            cost[a, b + 1] = elsewhere + kept * price * (up[b + 1] - up[a] - 1)
            gone[a, b + 1] = small


@compiled
def shortest(
    cost: Floats,
    gone: Floats,
    multiplier: float,
    units: int,
    guarded: bool,
    low: Counts64,
    high: Counts64,
    first: Counts64,
    child: Counts64,
    bits: Bits,
) -> None:
    """Write the runs of least cost if each suppressed record costs `multiplier`. Small nodes come first.

    Without a tree this is a shortest path over the boundaries. Along a tree, a node is kept or split into children.
    """
    bits[:] = 0
    if len(low):
        best = np.empty(len(low), np.float64)
        whole = np.zeros(len(low), np.bool_)
        for n in range(len(low)):
            a, b = low[n], high[n]
            best[n] = cost[a, b] + multiplier * gone[a, b]
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
    last = units - 1 if guarded else units  # missing values are in their own run, unless all units are joined
    reach = np.full(last + 1, np.inf)
    come = np.zeros(last + 1, np.int64)
    reach[0] = 0.0
    for b in range(1, last + 1):
        for a in range(1 if last < units and b == last else 0, b):
            now = reach[a] + cost[a, b] + multiplier * gone[a, b]
            if now < reach[b]:
                reach[b], come[b] = now, a
    if last < units:
        alone = reach[last] + cost[last, units] + multiplier * gone[last, units]
        if cost[0, units] + multiplier * gone[0, units] <= alone:
            return
        bits[last - 1] = 1
    b = come[last]
    while b > 0:
        bits[b - 1] = 1
        b = come[b]


@compiled
def totals(cost: Floats, gone: Floats, bits: Bits) -> tuple[float, float]:
    """Return the cost of some runs and the number of suppressed records."""
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
    """Write the runs of least cost that are within the budget of suppressed records.

    The Lagrange multiplier of the budget is `least` if that is enough. Else it is doubled until the runs are within the
    budget and then bisected. If no multiplier is enough, the runs with nearly the fewest suppressed records are kept.
    """
    units = len(bits) + 1
    shortest(cost, gone, least, units, guarded, low, high, first, child, bits)
    if totals(cost, gone, bits)[1] <= budget:
        return
    too_low, enough = least, max(full, 2.0 * least) / 2.0
    tried = bits.copy()
    for _ in range(DOUBLINGS):
        enough *= 2.0
        shortest(cost, gone, enough, units, guarded, low, high, first, child, bits)
        if totals(cost, gone, bits)[1] <= budget:
            break
        too_low = enough
    else:
        return
    for _ in range(BISECTIONS):
        middle = (too_low + enough) / 2
        shortest(cost, gone, middle, units, guarded, low, high, first, child, tried)
        if totals(cost, gone, tried)[1] <= budget:
            enough = middle
            bits[:] = tried
        else:
            too_low = middle


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
    """Optimise the columns in the given order until none changes, and return how many columns were optimised.

    Column j has its tuples by unit in `order[j]`, and the first tuple of each unit in `start[unit[j] + j:]`.
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
