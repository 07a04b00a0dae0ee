"""The compiled walk over a lattice: a node's classes come from those of a finer node, never from the rows.

Nodes come sorted, the last column fastest. A class is one key with a field of bits per column; rolling a column up is a
shift, a look-up and an insert into a small hash table, in place. A column at level 0 is a pointer to the buffer on its
left, not a copy. Every class carries its records and, where asked, how often each sensitive and label value occurs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sfumato.measures.criteria import Secrets, Tally
from sfumato.runtime.arrays import Codes, Counts64, Floats
from sfumato.runtime.compiled import compiled
from sfumato.systems.lattice.releases import FEW, INDICES, Keys, Rows, Rule, Space, by_criteria, by_size

ROOM = 16  # releases of a node that are expected at first


class Walked(NamedTuple):
    """The releases of nodes, those of a node together and its highest threshold first, and what each node has.

    `start[i]:start[i + 1]` are the releases of node i; `whole` and `best` have the sums of the node before suppression
    and the best level of each criterion that the budget reaches.
    """

    start: Counts64
    figures: Counts64
    hidden: Counts64
    worst: Floats
    whole: Counts64
    best: Floats


@compiled
def roll_up(
    source: Keys,
    rows: Rows,
    tally: Tally,
    size: int,
    out_keys: Keys,
    out_rows: Rows,
    out_tally: Tally,
    slots: Codes,
    shift: int,
    mask: int,
    lookup: Keys,
) -> int:
    """Generalize one column of `size` classes and merge what became equal; the output may be the input itself."""
    bits = 3
    while (1 << bits) < 8 * size:  # a sparse table: a second probe costs more than the memory
        bits += 1
    slots[: 1 << bits] = -1
    last, high = np.uint64((1 << bits) - 1), np.uint64(64 - bits)
    low, field = np.uint64(shift), np.uint64(mask)
    clear = ~(field << low)
    width = out_tally.shape[1]
    found = np.uint64(0)
    for i in range(size):
        key = np.uint64(source[i])
        key = (key & clear) | (np.uint64(lookup[(key >> low) & field]) << low)
        place = (key * np.uint64(0x9E3779B97F4A7C15)) >> high
        number = slots[place]
        while number >= 0 and np.uint64(out_keys[np.uint64(number)]) != key:
            place = (place + np.uint64(1)) & last
            number = slots[place]
        if number < 0:
            slots[place] = found
            out_keys[found] = key
            out_rows[found] = rows[i]
            for v in range(width):
                out_tally[found, v] = tally[i, v]
            found += np.uint64(1)
        else:
            known = np.uint64(number)
            out_rows[known] += rows[i]
            for v in range(width):
                out_tally[known, v] += tally[i, v]
    return int(found)


@compiled
def reduced(
    node: Codes,
    base: Codes,
    keys: Keys,
    rows: Rows,
    tally: Tally,
    shift: Counts64,
    mask: Counts64,
    lookups: Keys,
    lookup_start: Counts64,
) -> tuple[Keys, Rows, Tally]:
    """The classes of a node, from those of a finer one at the levels `base`."""
    size = len(keys)
    capacity = 8
    while capacity < 8 * size:
        capacity *= 2
    slots = np.empty(capacity, np.int32)
    out_keys, out_rows, out_tally = keys.copy(), rows.copy(), tally.copy()
    for j in range(len(node)):
        if node[j] > base[j]:
            lookup = lookups[lookup_start[j, base[j], node[j]] :]
            size = roll_up(
                out_keys, out_rows, out_tally, size, out_keys, out_rows, out_tally, slots, shift[j], mask[j], lookup
            )
    return out_keys[:size].copy(), out_rows[:size].copy(), out_tally[:size].copy()


@compiled
def grown(array: Counts64, used: int, room: int) -> Counts64:
    """The array with room for more rows."""
    larger = np.empty((room, array.shape[1]), array.dtype)
    larger[:used] = array[:used]
    return larger


@compiled
def advance(
    node: Codes,
    base: Codes,
    held_keys: Keys,
    held_rows: Rows,
    held_tally: Tally,
    number: Counts64,
    level: Counts64,
    at: Counts64,
    current: Counts64,
    slots: Codes,
    shift: Counts64,
    mask: Counts64,
    lookups: Keys,
    lookup_start: Counts64,
) -> int:
    """Roll the buffers on to the next node, and say which of them holds its classes.

    There is one buffer of classes per column, and behind them the table itself; `level` is the level that a column's
    own buffer holds, and `at` the buffer in force at each depth.
    """
    columns = len(node)
    first = 0
    while first < columns and node[first] == current[first]:
        first += 1
    for j in range(first, columns):
        wanted = node[j]
        current[j] = wanted
        source = at[j - 1] if j > 0 else columns
        fine = base[j]
        if wanted == fine:
            at[j] = source
            continue
        # Only at the first column that changed is its own buffer still under the same columns.
        if j == first and at[j] == j and fine < level[j] < wanted:
            fine, source = level[j], j
        number[j] = roll_up(
            held_keys[source],
            held_rows[source],
            held_tally[source],
            number[source],
            held_keys[j],
            held_rows[j],
            held_tally[j],
            slots,
            shift[j],
            mask[j],
            lookups[lookup_start[j, fine, wanted] :],
        )
        level[j] = wanted
        at[j] = j
    return int(at[columns - 1])


@compiled
def room_for(releases: int, classes: int, columns: int, criteria: int, width: int, budget: int, sizes: bool) -> Space:
    """Room for the releases of a node."""
    several = 0 if sizes else classes
    return Space(
        np.empty((releases, INDICES), np.int64),
        np.empty((releases, columns), np.int64),
        np.empty((releases, criteria)),
        np.empty(INDICES, np.int64),
        np.empty(criteria),
        np.empty((criteria, several)),
        np.empty((criteria, several)),
        np.empty((several, INDICES + columns), np.int64),
        np.empty(classes, np.int32),
        np.empty(several, np.bool_),
        np.empty(3 * width + 1),
        np.empty(min(budget, FEW * classes) + 2, np.int64),
    )


@compiled
def walk_sizes(
    nodes: Codes,
    base: Codes,
    keys: Keys,
    rows: Rows,
    tally: Tally,
    rule: Rule,
    secrets: Secrets,  # noqa: ARG001
    shift: Counts64,
    mask: Counts64,
    lookups: Keys,
    lookup_start: Counts64,
    covers: Counts64,
    cover_start: Counts64,
) -> Walked:
    """The releases of each node by size alone. `nodes` are sorted, the last column fastest.

    The classes that are given stand at the levels `base`, and no node is finer than that.

    `lookups[lookup_start[j, a, b] + group]` is the group at level b of a group at level a of column j, and
    `covers[cover_start[j, b] + group]` the leaves under it.
    """
    asked, columns = nodes.shape
    size, width, criteria = len(keys), tally.shape[1], len(rule.kinds)
    held_keys = np.empty((columns + 1, size), keys.dtype)
    held_rows = np.empty((columns + 1, size), rows.dtype)
    held_tally = np.empty((columns + 1, size, width), np.int32)
    number = np.zeros(columns + 1, np.int64)
    held_keys[columns], held_rows[columns], held_tally[columns], number[columns] = keys, rows, tally, size
    level = np.zeros(columns, np.int64)
    at = np.full(columns, columns, np.int64)
    current = np.full(columns, -1, np.int64)
    capacity = 8
    while capacity < 8 * size:
        capacity *= 2
    slots = np.empty(capacity, np.int32)
    room = ROOM
    space = room_for(room, size, columns, criteria, width, rule.budget, rule.sizes)
    start = np.zeros(asked + 1, np.int64)
    figures = np.empty((asked + ROOM, INDICES), np.int64)
    hidden = np.empty((asked + ROOM, columns), np.int64)
    worst = np.empty((asked + ROOM, criteria))
    whole = np.empty((asked, INDICES), np.int64)
    best = np.empty((asked, criteria))
    begin = np.empty(columns, np.int64)
    for i in range(asked):
        top = advance(
            nodes[i],
            base,
            held_keys,
            held_rows,
            held_tally,
            number,
            level,
            at,
            current,
            slots,
            shift,
            mask,
            lookups,
            lookup_start,
        )
        for j in range(columns):
            begin[j] = cover_start[j, nodes[i, j]]
        while True:
            made = by_size(held_keys[top], held_rows[top], number[top], rule, shift, mask, covers, begin, space)
            if made <= room:
                break
            room = 2 * made
            space = room_for(room, size, columns, criteria, width, rule.budget, rule.sizes)
        used = start[i]
        if used + made > len(figures):
            more = 2 * (used + made)
            figures, hidden, worst = grown(figures, used, more), grown(hidden, used, more), grown(worst, used, more)
        figures[used : used + made] = space.figures[:made]
        hidden[used : used + made] = space.hidden[:made]
        worst[used : used + made] = space.worst[:made]
        start[i + 1] = used + made
        whole[i], best[i] = space.whole, space.best
    used = start[asked]
    return Walked(start, figures[:used], hidden[:used], worst[:used], whole, best)


@compiled
def walk_criteria(
    nodes: Codes,
    base: Codes,
    keys: Keys,
    rows: Rows,
    tally: Tally,
    rule: Rule,
    secrets: Secrets,
    shift: Counts64,
    mask: Counts64,
    lookups: Keys,
    lookup_start: Counts64,
    covers: Counts64,
    cover_start: Counts64,
) -> Walked:
    """The same under any criteria. It is a loop of its own because compiling the criteria takes long."""
    asked, columns = nodes.shape
    size, width, criteria = len(keys), tally.shape[1], len(rule.kinds)
    held_keys = np.empty((columns + 1, size), keys.dtype)
    held_rows = np.empty((columns + 1, size), rows.dtype)
    held_tally = np.empty((columns + 1, size, width), np.int32)
    number = np.zeros(columns + 1, np.int64)
    held_keys[columns], held_rows[columns], held_tally[columns], number[columns] = keys, rows, tally, size
    level = np.zeros(columns, np.int64)
    at = np.full(columns, columns, np.int64)
    current = np.full(columns, -1, np.int64)
    capacity = 8
    while capacity < 8 * size:
        capacity *= 2
    slots = np.empty(capacity, np.int32)
    room = ROOM
    space = room_for(room, size, columns, criteria, width, rule.budget, rule.sizes)
    start = np.zeros(asked + 1, np.int64)
    figures = np.empty((asked + ROOM, INDICES), np.int64)
    hidden = np.empty((asked + ROOM, columns), np.int64)
    worst = np.empty((asked + ROOM, criteria))
    whole = np.empty((asked, INDICES), np.int64)
    best = np.empty((asked, criteria))
    begin = np.empty(columns, np.int64)
    for i in range(asked):
        top = advance(
            nodes[i],
            base,
            held_keys,
            held_rows,
            held_tally,
            number,
            level,
            at,
            current,
            slots,
            shift,
            mask,
            lookups,
            lookup_start,
        )
        for j in range(columns):
            begin[j] = cover_start[j, nodes[i, j]]
        while True:
            made = by_criteria(
                held_keys[top],
                held_rows[top],
                held_tally[top],
                number[top],
                rule,
                secrets,
                shift,
                mask,
                covers,
                begin,
                space,
            )
            if made <= room:
                break
            room = 2 * made
            space = room_for(room, size, columns, criteria, width, rule.budget, rule.sizes)
        used = start[i]
        if used + made > len(figures):
            more = 2 * (used + made)
            figures, hidden, worst = grown(figures, used, more), grown(hidden, used, more), grown(worst, used, more)
        figures[used : used + made] = space.figures[:made]
        hidden[used : used + made] = space.hidden[:made]
        worst[used : used + made] = space.worst[:made]
        start[i + 1] = used + made
        whole[i], best[i] = space.whole, space.best
    used = start[asked]
    return Walked(start, figures[:used], hidden[:used], worst[:used], whole, best)
