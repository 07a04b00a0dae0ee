"""The compiled walk over a lattice: a node's classes come from those of a finer node, never from the rows.

Nodes come sorted, the last column fastest. A class is one key with a field of bits per column; rolling a column up is a
shift, a look-up and an insert into a small hash table, in place. A column at level 0 is a pointer to the buffer on its
left, not a copy. Every class carries its records and, where asked, how often each sensitive and label value occurs.
"""

from __future__ import annotations

from typing import Any, NamedTuple

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


class Held(NamedTuple):
    """One buffer of classes per column, and behind them the table itself.

    `level` is the level that a column's own buffer holds, `at` the buffer in force at each depth, `current` the node.
    """

    keys: Keys
    rows: Rows
    tally: Tally
    number: Counts64
    level: Counts64
    at: Counts64
    current: Counts64
    slots: Codes


class Maps(NamedTuple):
    """Where a column's group stands in a key, and what becomes of it.

    `lookups[lookup_start[j, a, b] + group]` is the group at level b of a group at level a of column j, and
    `covers[cover_start[j, b] + group]` the leaves under it.
    """

    shift: Counts64
    mask: Counts64
    lookups: Keys
    lookup_start: Counts64
    covers: Counts64
    cover_start: Counts64


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
    slots = np.empty(slots_for(size), np.int32)
    out_keys, out_rows, out_tally = keys.copy(), rows.copy(), tally.copy()
    for j in range(len(node)):
        if node[j] > base[j]:
            lookup = lookups[lookup_start[j, base[j], node[j]] :]
            size = roll_up(
                out_keys, out_rows, out_tally, size, out_keys, out_rows, out_tally, slots, shift[j], mask[j], lookup
            )
    return out_keys[:size].copy(), out_rows[:size].copy(), out_tally[:size].copy()


@compiled
def held_classes(keys: Keys, rows: Rows, tally: Tally, columns: int) -> Held:
    """Buffers for the classes that a walk starts from."""
    size, width = len(keys), tally.shape[1]
    held = Held(
        np.empty((columns + 1, size), keys.dtype),
        np.empty((columns + 1, size), rows.dtype),
        np.empty((columns + 1, size, width), np.int32),
        np.zeros(columns + 1, np.int64),
        np.zeros(columns, np.int64),
        np.full(columns, columns, np.int64),
        np.full(columns, -1, np.int64),
        np.empty(slots_for(size), np.int32),
    )
    held.keys[columns], held.rows[columns], held.tally[columns], held.number[columns] = keys, rows, tally, size
    return held


@compiled
def slots_for(size: int) -> int:
    """Room for a sparse hash table of so many classes."""
    capacity = 8
    while capacity < 8 * size:
        capacity *= 2
    return capacity


@compiled
def advance(node: Codes, base: Codes, held: Held, maps: Maps) -> int:
    """Roll the buffers on to the next node, and say which of them holds its classes."""
    columns = len(node)
    first = 0
    while first < columns and node[first] == held.current[first]:
        first += 1
    for j in range(first, columns):
        wanted = node[j]
        held.current[j] = wanted
        source = held.at[j - 1] if j > 0 else columns
        fine = base[j]
        if wanted == fine:
            held.at[j] = source
            continue
        # Only at the first column that changed is its own buffer still under the same columns.
        if j == first and held.at[j] == j and fine < held.level[j] < wanted:
            fine, source = held.level[j], j
        held.number[j] = roll_up(
            held.keys[source],
            held.rows[source],
            held.tally[source],
            held.number[source],
            held.keys[j],
            held.rows[j],
            held.tally[j],
            held.slots,
            maps.shift[j],
            maps.mask[j],
            maps.lookups[maps.lookup_start[j, fine, wanted] :],
        )
        held.level[j] = wanted
        held.at[j] = j
    return int(held.at[columns - 1])


@compiled
def room_for(releases: int, classes: int, columns: int, width: int, rule: Rule) -> Space:
    """Room for the releases of a node."""
    several, criteria = 0 if rule.sizes else classes, len(rule.kinds)
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
        np.empty(min(rule.budget, FEW * classes) + 2, np.int64),
    )


@compiled
def empty_walk(asked: int, columns: int, criteria: int) -> Walked:
    """Room for the releases of nodes."""
    return Walked(
        np.zeros(asked + 1, np.int64),
        np.empty((asked + ROOM, INDICES), np.int64),
        np.empty((asked + ROOM, columns), np.int64),
        np.empty((asked + ROOM, criteria)),
        np.empty((asked, INDICES), np.int64),
        np.empty((asked, criteria)),
    )


@compiled
def grown(array: Any, used: int, room: int) -> Any:
    """The array with room for more rows."""
    larger = np.empty((room, array.shape[1]), array.dtype)
    larger[:used] = array[:used]
    return larger


@compiled
def with_node(walked: Walked, i: int, made: int, space: Space) -> Walked:
    """What was walked with the releases of one more node."""
    used = walked.start[i]
    figures, hidden, worst = walked.figures, walked.hidden, walked.worst
    if used + made > len(figures):
        more = 2 * (used + made)
        figures, hidden, worst = grown(figures, used, more), grown(hidden, used, more), grown(worst, used, more)
    figures[used : used + made] = space.figures[:made]
    hidden[used : used + made] = space.hidden[:made]
    worst[used : used + made] = space.worst[:made]
    walked.start[i + 1] = used + made
    walked.whole[i], walked.best[i] = space.whole, space.best
    return Walked(walked.start, figures, hidden, worst, walked.whole, walked.best)


@compiled
def trimmed(walked: Walked) -> Walked:
    """What was walked without the room that is left."""
    used = walked.start[-1]
    figures, hidden, worst = walked.figures[:used], walked.hidden[:used], walked.worst[:used]
    return Walked(walked.start, figures, hidden, worst, walked.whole, walked.best)


@compiled
def walk_sizes(
    nodes: Codes,
    base: Codes,
    keys: Keys,
    rows: Rows,
    tally: Tally,
    rule: Rule,
    secrets: Secrets,  # noqa: ARG001
    maps: Maps,
) -> Walked:
    """The releases of each node by size alone. `nodes` are sorted, the last column fastest.

    The classes that are given stand at the levels `base`, and no node is finer than that.
    """
    asked, columns = nodes.shape
    size, width = len(keys), tally.shape[1]
    held, walked = held_classes(keys, rows, tally, columns), empty_walk(asked, columns, len(rule.kinds))
    room, begin = ROOM, np.empty(columns, np.int64)
    space = room_for(room, size, columns, width, rule)
    for i in range(asked):
        top = advance(nodes[i], base, held, maps)
        for j in range(columns):
            begin[j] = maps.cover_start[j, nodes[i, j]]
        while True:
            made = by_size(
                held.keys[top], held.rows[top], held.number[top], rule, maps.shift, maps.mask, maps.covers, begin, space
            )
            if made <= room:
                break
            room = 2 * made
            space = room_for(room, size, columns, width, rule)
        walked = with_node(walked, i, made, space)
    return trimmed(walked)


@compiled
def walk_criteria(
    nodes: Codes,
    base: Codes,
    keys: Keys,
    rows: Rows,
    tally: Tally,
    rule: Rule,
    secrets: Secrets,
    maps: Maps,
) -> Walked:
    """The same under any criteria. It is a loop of its own because compiling the criteria takes long."""
    asked, columns = nodes.shape
    size, width = len(keys), tally.shape[1]
    held, walked = held_classes(keys, rows, tally, columns), empty_walk(asked, columns, len(rule.kinds))
    room, begin = ROOM, np.empty(columns, np.int64)
    space = room_for(room, size, columns, width, rule)
    for i in range(asked):
        top = advance(nodes[i], base, held, maps)
        for j in range(columns):
            begin[j] = maps.cover_start[j, nodes[i, j]]
        while True:
            made = by_criteria(
                held.keys[top],
                held.rows[top],
                held.tally[top],
                held.number[top],
                rule,
                secrets,
                maps.shift,
                maps.mask,
                maps.covers,
                begin,
                space,
            )
            if made <= room:
                break
            room = 2 * made
            space = room_for(room, size, columns, width, rule)
        walked = with_node(walked, i, made, space)
    return trimmed(walked)
