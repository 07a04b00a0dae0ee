"""Mondrian (LeFevre, DeWitt, Ramakrishnan 2006): recursive cuts of the space of all columns while parts are feasible.

It works on cells: distinct tuples with counts and, as bits, the members of some sets that each one holds. A part is
feasible if it has at least k records and, of each set, at least l members (docs/readings.md, 2, Mondrian).

The compiled loops are compared with a plain twin in tests. The records of all open parts are in one buffer of entries
(a cell and a number of its records), part after part. The last part is removed, cut in place, and replaced by its
pieces. An entry has at least one record, so the buffer never needs more entries than there are records.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from sfumato.base.arrays import Codes, Counts64, Flags, Floats
from sfumato.base.compiled import compiled
from sfumato.measures.classes import Masks

NEVER, NEEDED, ALWAYS = 0, 1, 2  # when the records of a median value are divided between both sides
Found = tuple[Counts64, Counts64, Counts64, Masks, Counts64, Counts64, Counts64]


@compiled
def least_members(masks: Masks, words: Counts64) -> Counts64:
    """Return, for each row of bits, the least number of members of any set."""
    counts = np.zeros(len(masks), np.int64)
    for row in range(len(masks)):
        least = np.int64(1) << 62
        for s in range(len(words) - 1):
            held = np.int64(0)
            for w in range(words[s], words[s + 1]):
                bits = masks[row, w]
                while bits:  # each step clears the lowest bit
                    bits &= bits - np.uint64(1)
                    held += 1
            least = min(least, held)
        counts[row] = least
    return counts


@compiled
def label(grid: Any, j: int, low: int, high: int) -> tuple[int, int]:
    """Return the run of units that a label of column j must cover to hold the units from `low` to `high`."""
    size = grid.unit[j + 1] - grid.unit[j]
    node = grid.leaf[grid.unit[j] + low]
    if node >= 0:
        while grid.high[node] <= high:
            node = grid.parent[node]
        return grid.low[node], grid.high[node]
    # Missing values have no position in the order, so a label with them covers all of the column.
    if grid.alone[j] and high == size - 1 and low < high:
        return 0, size
    return low, high + 1


@compiled
def fit(
    cells: Any,
    cell: Counts64,
    count: Counts64,
    own: Codes,
    side: Counts64,
    parts: int,
    shared: int,
    quota: int,
    k: int,
    l: int,
) -> bool:
    """Return whether every part that gets records is feasible.

    The first `quota` records of unit `shared` go to the left part, the others to the right.
    """
    # Members of sets are bits, so that the diversity of a part is a union, whatever the number of its records.
    rows = np.zeros(parts, np.int64)
    masks = np.zeros((parts, cells.masks.shape[1]), np.uint64)
    left = quota
    for e in range(len(cell)):
        unit = own[cell[e]]
        part, here = side[unit], count[e]
        if unit == shared:
            part, here = 0, min(left, count[e])
            left -= here
        rest = count[e] - here
        rows[part] += here
        rows[1] += rest
        for w in range(masks.shape[1]):
            if here > 0:
                masks[part, w] |= cells.masks[cell[e], w]
            if rest > 0:
                masks[1, w] |= cells.masks[cell[e], w]
    held = least_members(masks, cells.words)
    filled = 0
    for part in range(parts):
        if rows[part] > 0:
            filled += 1
            if rows[part] < k or held[part] < l:
                return False
    return filled > 1


@compiled
def scatter(
    cell: Counts64, count: Counts64, size: int, own: Codes, side: Counts64, parts: int, shared: int, quota: int
) -> Counts64:
    """Sort the first `size` entries by their part, and return the end of each. An entry may become two."""
    # A counting sort: two passes, and the order within a part does not change.
    ends = np.zeros(parts + 1, np.int64)
    to = np.empty(size, np.int64)
    part = np.empty(size, np.int64)
    left = quota
    for e in range(size):
        unit = own[cell[e]]
        part[e] = side[unit]
        to[e] = count[e]
        if unit == shared:
            to[e] = min(left, count[e])  # records of the entry in the left part
            left -= to[e]
            part[e] = 0
            if to[e] < count[e]:
                ends[2] += 1
        if to[e] > 0:
            ends[part[e] + 1] += 1
    for p in range(parts):
        ends[p + 1] += ends[p]
    position = ends[:-1].copy()
    new_cell, new_count = np.empty(ends[parts], np.int64), np.empty(ends[parts], np.int64)
    for e in range(size):
        if to[e] > 0:
            new_cell[position[part[e]]], new_count[position[part[e]]] = cell[e], to[e]
            position[part[e]] += 1
        if to[e] < count[e]:
            new_cell[position[1]], new_count[position[1]] = cell[e], count[e] - to[e]
            position[1] += 1
    cell[: ends[parts]], count[: ends[parts]] = new_cell, new_count
    return ends[1:]


@compiled
def cut(
    grid: Any,
    cells: Any,
    cell: Counts64,
    count: Counts64,
    j: int,
    low: int,
    high: int,
    side: Counts64,
    k: int,
    l: int,
    divide: int,
) -> tuple[int, int, int]:
    """Return a cut of column j that leaves every part feasible.

    The result is its parts (0: no cut), the unit it divides (-1: none), and the quota.
    """
    own = cells.codes[j]
    node = grid.leaf[grid.unit[j] + low]
    if node >= 0:
        while grid.high[node] <= high:
            node = grid.parent[node]
        begin, parts = grid.first[node], grid.first[node + 1] - grid.first[node]
        # A column with a tree is cut into the children of the node, because its labels are nodes.
        for part in range(parts):
            until = grid.starts[begin + part + 1] if part + 1 < parts else grid.high[node]
            side[grid.starts[begin + part] : until] = part
        return (parts, -1, 0) if fit(cells, cell, count, own, side, parts, -1, 0, k, l) else (0, -1, 0)
    if grid.alone[j] and high == grid.unit[j + 1] - grid.unit[j] - 1:  # first separate missing values from the others
        side[low:high], side[high] = 0, 1
        if fit(cells, cell, count, own, side, 2, -1, 0, k, l):
            return 2, -1, 0
    tally = np.zeros(high + 1, np.int64)
    total = np.int64(0)
    for e in range(len(cell)):
        tally[own[cell[e]]] += count[e]
        total += count[e]
    half = (total + 1) // 2
    median, below = low, np.int64(0)
    while below + tally[median] < half:
        below += tally[median]
        median += 1
    side[low : high + 1] = 1
    side[low : median + 1] = 0
    even = int(half - below)  # records of the median value in the left part, so that both sides have equal numbers
    if divide == ALWAYS and fit(cells, cell, count, own, side, 2, median, even, k, l):
        return 2, median, even
    if fit(cells, cell, count, own, side, 2, -1, 0, k, l):
        return 2, -1, 0
    # The median value is put into the lower part first, as in the paper, and to the upper part if that is not feasible.
    side[median] = 1
    if fit(cells, cell, count, own, side, 2, -1, 0, k, l):
        return 2, -1, 0
    if divide == NEEDED and fit(cells, cell, count, own, side, 2, median, even, k, l):
        return 2, median, even
    return 0, -1, 0


@compiled
def partition(grid: Any, cells: Any, k: int, l: int, divide: int, room: int, limit: int) -> Found:
    """Return all classes: their runs of units by column, records, members of sets, and their entries.

    An entry is a cell, its class, and a number of records.
    """
    columns, size = cells.codes.shape
    words = cells.masks.shape[1]
    cell, count = np.empty(room, np.int64), np.empty(room, np.int64)
    cell[:size], count[:size] = np.arange(size), cells.counts
    begin = np.zeros(room + 1, np.int64)  # of each open part; the last one ends with the entries
    entry_cell, entry_class, entry_count = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.int64)
    lows, highs = np.empty((limit, columns), np.int64), np.empty((limit, columns), np.int64)
    rows, masks = np.zeros(limit, np.int64), np.zeros((limit, words), np.uint64)
    width = np.empty(columns)
    low, high = np.empty(columns, np.int64), np.empty(columns, np.int64)
    side = np.zeros(np.max(np.diff(grid.unit)), np.int64)
    classes, entries, open_parts = 0, 0, 1
    while open_parts > 0:
        at = begin[open_parts - 1]
        here, held = cell[at:size], count[at:size]
        total = held.sum()
        for j in range(columns):
            own = cells.codes[j]
            low[j] = high[j] = own[here[0]]
            for e in range(len(here)):
                unit = own[here[e]]
                if unit < low[j]:
                    low[j] = unit
                elif unit > high[j]:
                    high[j] = unit
            lows[classes, j], highs[classes, j] = label(grid, j, low[j], high[j])
            before = grid.leaves[grid.unit[j] + j :]
            width[j] = (before[highs[classes, j]] - before[lows[classes, j]] - 1) / grid.others[j]
        parts, shared, quota = 0, -1, 0
        while total >= 2 * k:  # the widest column that can be cut; the first of equal ones
            j = int(np.argmax(width))
            if width[j] <= 0:
                break
            parts, shared, quota = cut(grid, cells, here, held, j, low[j], high[j], side, k, l, divide)
            if parts > 0:
                ends = scatter(cell[at:], count[at:], size - at, cells.codes[j], side, parts, shared, quota)
                open_parts -= 1
                start = np.int64(0)
                for part in range(parts):
                    if ends[part] > start:
                        begin[open_parts] = at + start
                        open_parts += 1
                        start = ends[part]
                size = at + start
                break
            width[j] = 0.0
        if parts == 0:
            for e in range(len(here)):
                entry_cell[entries], entry_class[entries], entry_count[entries] = here[e], classes, held[e]
                entries += 1
                for w in range(words):
                    masks[classes, w] |= cells.masks[here[e], w]
            rows[classes] = total
            classes += 1
            size = at
            open_parts -= 1
    return (
        lows[:classes].copy(),
        highs[:classes].copy(),
        rows[:classes].copy(),
        masks[:classes].copy(),
        entry_cell[:entries].copy(),
        entry_class[:entries].copy(),
        entry_count[:entries].copy(),
    )


DIVIDE = {"never": NEVER, "needed": NEEDED, "always": ALWAYS}


class Grid(NamedTuple):
    """The columns: units in order and, for columns with a tree, its nodes as runs of units.

    Column j has the units from `unit[j]` to below `unit[j + 1]`. Before its unit u there are `leaves[unit[j] + j + u]`
    leaves, and `others[j]` is the number of leaves of its domain minus one. If `alone[j]`, its last unit joins others
    only if all join. The node of each single unit is `leaf`, which is -1 if the column has no tree. A node has a run of
    units, a parent, and children that begin at `starts[first[node]:first[node + 1]]`.
    """

    unit: Counts64
    leaves: Counts64
    others: Floats
    alone: Flags
    leaf: Counts64
    low: Counts64
    high: Counts64
    parent: Counts64
    first: Counts64
    starts: Counts64


class Cells(NamedTuple):
    """Distinct tuples: `codes[j, c]` is a unit of column j, and `counts[c]` the number of records.

    The members of set s that the cell holds are `masks[c, words[s]:words[s + 1]]`. A cell that may be divided must hold
    one member of each set.
    """

    codes: Codes
    counts: Counts64
    masks: Masks
    words: Counts64


@dataclass(frozen=True, eq=False)
class Partition:
    """The result: classes as boxes with their records, and which records of which cell are in which class.

    The label of class i in column j is the run of units from `low[i, j]` to below `high[i, j]`. The least number of
    members of any set is `members[i]`. Of entry e, `entry_count[e]` records of `entry_cell[e]` are in `entry_class[e]`.
    """

    grid: Grid
    cells: Cells
    low: Counts64
    high: Counts64
    rows: Counts64
    members: Counts64
    entry_cell: Counts64
    entry_class: Counts64
    entry_count: Counts64

    @property
    def classes(self) -> int:
        return len(self.rows)

    def losses(self) -> Floats:
        """Return, per column, the sum over cells of (leaves covered - 1)/(leaves of the domain - 1)."""
        grid = self.grid
        losses = np.zeros(len(grid.others))
        for j, others in enumerate(grid.others.tolist()):
            before = grid.leaves[grid.unit[j] + j : grid.unit[j + 1] + j + 1]
            covered = before[self.high[:, j]] - before[self.low[:, j]]
            losses[j] = float(((covered - 1) * self.rows).sum()) / others
        return losses

    def labels_per_value(self) -> float:
        """Return the number of different labels of a value, averaged over all values that occur."""
        carried = values = 0
        for j, codes in enumerate(self.cells.codes):
            width = int(self.grid.unit[j + 1] - self.grid.unit[j]) + 1
            own = codes[self.entry_cell].astype(np.int64)
            label = self.low[self.entry_class, j] * width + self.high[self.entry_class, j]
            carried += len(np.unique(own * width * width + label))
            values += len(np.unique(own))
        return carried / max(values, 1)


def mondrian(grid: Grid, cells: Cells, k: int, l: int = 1, divide: str = "never") -> Partition | None:
    """Cut as long as a cut leaves every part feasible; None if the whole table is not feasible.

    `divide` is when the records of the median value are divided between both sides, so that both have equal numbers:
    never (strict), if a column has no feasible cut that keeps values together (needed), or first of all (always).
    Classes whose labels are the same at the end become one class.
    """
    records = int(cells.counts.sum())
    whole = np.bitwise_or.reduce(cells.masks, axis=0, keepdims=True)
    if records < max(k, 1) or least_members(whole, cells.words)[0] < l:
        return None
    room = len(cells.counts) if divide == "never" else records
    parts = partition(grid, cells, k, l, DIVIDE[divide], room, min(room, records // max(k, 1)))
    low, high, rows, masks, entry_cell, entry_class, entry_count = parts
    if divide != "never":
        boxes, number = np.unique(np.hstack([low, high]), axis=0, return_inverse=True)
        number = number.reshape(-1).astype(np.int64)
        low, high = np.hsplit(boxes, 2)
        rows = np.bincount(number, weights=rows).astype(np.int64)
        joined = np.zeros((len(rows), masks.shape[1]), dtype=np.uint64)
        np.bitwise_or.at(joined, number, masks)
        masks, entry_class = joined, number[entry_class]
    members = least_members(masks, cells.words)
    return Partition(grid, cells, low, high, rows, members, entry_cell, entry_class, entry_count)
