"""Mondrian (LeFevre, DeWitt, Ramakrishnan 2006): recursive cuts of the space of all columns while parts are feasible.

It works on cells: distinct tuples with counts and, as bits, the members of some sets that each one holds. A part is
feasible if it has at least k records and, of each set, at least l members (docs/readings.md, 2, Mondrian). Columns,
labels and classes are those of the method `local`.

The compiled loops are compared with a plain twin in tests. The records of all open parts are in one buffer of entries
(a cell and a number of its records), part after part. The last part is removed, cut in place, and replaced by its
pieces. An entry has at least one record, so the buffer never needs more entries than there are records.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sfumato.base.arrays import Codes, Counts64
from sfumato.base.compiled import compiled
from sfumato.measures.classes import Masks
from sfumato.methods.local.criteria import merged_equal
from sfumato.methods.local.model import Cells, Classes, Labels, label

NEVER, NEEDED, ALWAYS = 0, 1, 2  # when the records of a median value are divided between both sides
UPPER = 3  # the median value is in the upper part


class Tuples(NamedTuple):
    """Distinct tuples: `codes[j, c]` is a unit of column j, and `counts[c]` the number of records.

    The members of set s that the tuple holds are `masks[c, words[s]:words[s + 1]]`. A tuple that may be divided must
    hold one member of each set.
    """

    codes: Codes
    counts: Counts64
    masks: Masks
    words: Counts64


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
def divided(
    cells: Tuples,
    cell: Counts64,
    count: Counts64,
    own: Codes,
    side: Counts64,
    parts: int,
    shared: int,
    quota: int,
    least: tuple[int, int],
) -> tuple[Counts64, Counts64, Counts64]:
    """Return the end of each part, and the entries sorted by their part. There are no ends if a part is not feasible.

    The first `quota` records of unit `shared` go to part 0, the others to part 1, so an entry may become two.
    """
    # A counting sort: two passes, and the order within a part does not change.
    size, left = len(cell), quota
    ends = np.zeros(parts + 1, np.int64)
    to, part = np.empty(size, np.int64), np.empty(size, np.int64)
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
    filled, start = 0, 0
    for end in ends[1:]:
        if end > start:
            filled += 1
            if not feasible(cells, new_cell[start:end], new_count[start:end], least):
                return ends[:0], new_cell, new_count
            start = end
    return ends[1:] if filled > 1 else ends[:0], new_cell, new_count


@compiled
def feasible(cells: Tuples, cell: Counts64, count: Counts64, least: tuple[int, int]) -> bool:
    """Return whether a part has at least k records and, of each set, at least l members, with (k, l) as `least`."""
    if count.sum() < least[0]:
        return False
    # Members of sets are bits, so that the diversity of a part is a union, whatever the number of its records.
    masks = np.zeros((1, cells.masks.shape[1]), np.uint64)
    for c in cell:
        for w in range(masks.shape[1]):
            masks[0, w] |= cells.masks[c, w]
    return bool(least_members(masks, cells.words)[0] >= least[1])


@compiled
def cut(
    labels: Labels,
    cells: Tuples,
    cell: Counts64,
    count: Counts64,
    j: int,
    low: int,
    high: int,
    side: Counts64,
    least: tuple[int, int],
    divide: int,
) -> tuple[Counts64, Counts64, Counts64]:
    """Return the first cut of column j that leaves every part feasible, as `divided` does."""
    own = cells.codes[j]
    if labels.leaf[labels.unit[j] + low] >= 0:
        begin, end = label(labels, j, low, high)
        parts, unit = 0, begin
        # A column with a tree is cut into the children of the node, because its labels are nodes.
        while unit < end:
            child = labels.leaf[labels.unit[j] + unit]
            above = labels.parent[child]
            while labels.low[above] != begin or labels.high[above] != end:
                child, above = above, labels.parent[above]
            unit = labels.high[child]
            side[labels.low[child] : unit] = parts
            parts += 1
        return divided(cells, cell, count, own, side, parts, -1, 0, least)
    if labels.alone[j] and high == labels.unit[j + 1] - labels.unit[j] - 1:  # missing values are separated first
        side[low:high], side[high] = 0, 1
        found = divided(cells, cell, count, own, side, 2, -1, 0, least)
        if len(found[0]):
            return found
    tally = np.zeros(high + 1, np.int64)
    for e in range(len(cell)):
        tally[own[cell[e]]] += count[e]
    half = (tally.sum() + 1) // 2
    median, below = low, np.int64(0)
    while below + tally[median] < half:
        below += tally[median]
        median += 1
    even = int(half - below)  # records of the median value in the left part, so that both sides have equal numbers
    # The median value is put into the lower part first, as in the paper, and into the upper part if that is not
    # feasible. Its records are divided first or last, or never.
    for way in (ALWAYS, NEVER, UPPER, NEEDED):
        if way in (ALWAYS, NEEDED) and way != divide:
            continue
        side[low : high + 1] = 1
        side[low : median + (way != UPPER)] = 0
        shared, quota = (median, even) if way == divide and divide != NEVER else (-1, 0)
        found = divided(cells, cell, count, own, side, 2, shared, quota, least)
        if len(found[0]):
            return found
    return found


@compiled
def partition(
    labels: Labels, cells: Tuples, least: tuple[int, int], divide: int, room: int
) -> tuple[Counts64, Counts64, Counts64]:
    """Return all classes as entries: a cell, its class, and a number of records."""
    columns, size = cells.codes.shape
    cell, count = np.empty(room, np.int64), np.empty(room, np.int64)
    cell[:size], count[:size] = np.arange(size), cells.counts
    begin = np.zeros(room + 1, np.int64)  # of each open part; the last one ends with the entries
    entry_cell, entry_class, entry_count = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.int64)
    width = np.empty(columns)
    low, high = np.empty(columns, np.int64), np.empty(columns, np.int64)
    side = np.zeros(np.max(np.diff(labels.unit)), np.int64)
    classes, entries, open_parts = 0, 0, 1
    while open_parts > 0:
        open_parts -= 1
        at = begin[open_parts]
        here, held = cell[at:size], count[at:size]
        total = held.sum()
        for j in range(columns):
            own = cells.codes[j]
            low[j] = high[j] = own[here[0]]
            for e in range(len(here)):
                low[j], high[j] = min(low[j], own[here[e]]), max(high[j], own[here[e]])
            start, end = label(labels, j, low[j], high[j])
            before = labels.before[labels.unit[j] + j : labels.unit[j + 1] + j + 1]
            width[j] = (before[end] - before[start] - 1) / max(before[-1] - 1, 1)
        ends = begin[:0]
        while total >= 2 * least[0]:  # the widest column that can be cut; the first of equal ones
            j = int(np.argmax(width))
            if width[j] <= 0:
                break
            ends, new_cell, new_count = cut(labels, cells, here, held, j, low[j], high[j], side, least, divide)
            if len(ends):
                size = at + len(new_cell)
                cell[at:size], count[at:size] = new_cell, new_count
                break
            width[j] = 0.0
        start = 0
        for end in ends:
            if end > start:
                begin[open_parts] = at + start
                open_parts += 1
                start = end
        if len(ends) == 0:
            until = entries + len(here)
            entry_cell[entries:until], entry_count[entries:until], entry_class[entries:until] = here, held, classes
            entries, classes, size = until, classes + 1, at
    return entry_cell[:entries].copy(), entry_class[:entries].copy(), entry_count[:entries].copy()


DIVIDE = {"never": NEVER, "needed": NEEDED, "always": ALWAYS}


def mondrian(
    labels: Labels, cells: Tuples, k: int, l: int = 1, divide: str = "never"
) -> tuple[Classes, Counts64] | None:
    """Cut as long as a cut leaves every part feasible; None if the whole table is not feasible.

    `divide` is when the records of the median value are divided between both sides, so that both have equal numbers:
    never (strict), if a column has no feasible cut that keeps values together (needed), or first of all (always).
    Classes whose labels are the same at the end become one class. The least number of members of any set is returned
    for each class.
    """
    records = int(cells.counts.sum())
    whole = np.bitwise_or.reduce(cells.masks, axis=0, keepdims=True)
    if records < max(k, 1) or least_members(whole, cells.words)[0] < l:
        return None
    room = len(cells.counts) if divide == "never" else records
    entries = partition(labels, cells, (k, l), DIVIDE[divide], room)
    found = Classes.of(labels, Cells(np.ascontiguousarray(cells.codes.T), cells.counts), *entries)
    found = found if divide == "never" else merged_equal(found)
    masks = np.zeros((len(found.rows), cells.masks.shape[1]), dtype=np.uint64)
    np.bitwise_or.at(masks, found.owner, cells.masks[found.cell])
    return found, least_members(masks, cells.words)


def labels_per_value(classes: Classes) -> float:
    """Return the number of different labels of a value, averaged over all values that occur."""
    carried = values = 0
    for j, width in enumerate((np.diff(classes.labels.unit) + 1).tolist()):
        own = classes.cells.codes[classes.cell, j].astype(np.int64)
        run = classes.low[classes.owner, j] * width + classes.high[classes.owner, j]
        carried += len(np.unique(own * width * width + run))
        values += len(np.unique(own))
    return carried / max(values, 1)
