"""The compiled walk over a lattice: a node's classes come from those of a finer node, never from the rows.

Nodes come sorted, the last column fastest. A class is one key with a field of bits per column; rolling columns up is a
shift and a look-up for each, and an insert into a small hash table, in place. A column at level 0 is a pointer to the
buffer on its left, not a copy. Every class carries its records and, where asked, which values it has.
"""

from __future__ import annotations

import numpy as np

from sfumato.measures.criteria import Secrets, Tally
from sfumato.runtime.arrays import Codes, Counts64
from sfumato.runtime.compiled import compiled
from sfumato.systems.lattice.by_criteria import by_criteria
from sfumato.systems.lattice.by_size import by_size
from sfumato.systems.lattice.rule import Held, Keys, Maps, Rows, Rule, Space, Walked


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
    sets: int,
) -> int:
    """Generalize one column of `size` classes and merge what became equal; the output may be the input itself."""
    bits = 3
    while (1 << bits) < 8 * size:  # a sparse table: a second probe costs more than the memory
        bits += 1
    for slot in range(1 << bits):
        slots[slot] = -1
    last, high = np.uint64((1 << bits) - 1), np.uint64(64 - bits)
    low, field = np.uint64(shift), np.uint64(mask)
    clear = ~(field << low)
    width = out_tally.shape[1]
    made = np.uint64(0)
    for i in range(size):
        key = np.uint64(source[i])
        key = (key & clear) | (np.uint64(lookup[(key >> low) & field]) << low)
        position = (key * np.uint64(0x9E3779B97F4A7C15)) >> high
        number = slots[position]
        while number >= 0 and np.uint64(out_keys[np.uint64(number)]) != key:
            position = (position + np.uint64(1)) & last
            number = slots[position]
        if number < 0:
            slots[position] = made
            out_keys[made] = key
            out_rows[made] = rows[i]
            for v in range(width):
                out_tally[made, v] = tally[i, v]
            made += np.uint64(1)
        else:
            known = np.uint64(number)
            out_rows[known] += rows[i]
            for v in range(sets):
                out_tally[known, v] |= tally[i, v]
            for v in range(sets, width):
                out_tally[known, v] += tally[i, v]
    return int(made)


@compiled
def recode(source: Keys, size: int, out: Keys, shift: int, mask: int, lookup: Keys) -> None:
    """Generalize one column of `size` classes without merging any."""
    low, field = np.uint64(shift), np.uint64(mask)
    clear = ~(field << low)
    for i in range(size):
        key = np.uint64(source[i])
        out[i] = (key & clear) | (np.uint64(lookup[(key >> low) & field]) << low)


@compiled
def roll_columns(
    first: int, last: int, fine: int, node: Codes, base: Codes, source: int, into: int, held: Held, maps: Maps
) -> None:
    """Roll the classes of one buffer up into another, the columns from `first` to `last` at once.

    In the source, column `first` is at the level `fine` and the others at those of `base`.
    """
    keys, size = held.keys[source], held.number[source]
    for c in range(first, last + 1):
        low = fine if c == first else base[c]
        if node[c] == low:
            continue
        lookup = maps.lookups[maps.lookup_start[c, low, node[c]] :]
        if c < last:
            recode(keys, size, held.keys[into], maps.shift[c], maps.mask[c], lookup)
            keys = held.keys[into]
        else:
            held.number[into] = roll_up(
                keys,
                held.rows[source],
                held.tally[source],
                size,
                held.keys[into],
                held.rows[into],
                held.tally[into],
                held.slots,
                maps.shift[c],
                maps.mask[c],
                lookup,
                maps.bits,
            )


@compiled
def branches(nodes: Codes, depths: Counts64) -> None:
    """The depths at which later nodes leave the path of each node, as bits: their classes are worth keeping."""
    asked, columns = nodes.shape
    later = np.int64(0)
    for i in range(asked - 1, -1, -1):
        depths[i] = later
        if i > 0:
            same = 0
            while same < columns and nodes[i, same] == nodes[i - 1, same]:
                same += 1
            later = (later & ((np.int64(1) << (same + 1)) - 1)) | (np.int64(1) << same)


@compiled
def advance(node: Codes, base: Codes, depths: int, held: Held, maps: Maps) -> int:
    """Roll the buffers on to the next node, and say which of them holds its classes.

    Columns between two depths that later nodes start from are rolled up at once.
    """
    columns = len(node)
    first = 0
    while first < columns and node[first] == held.current[first]:
        first += 1
    begin = first
    while begin < columns:
        end = begin + 1
        while end < columns and (depths >> end) & 1 == 0:
            end += 1
        source, fine, last = held.at[begin - 1] if begin > 0 else columns, base[begin], begin - 1
        for c in range(begin, end):
            held.current[c] = node[c]
            if node[c] > base[c]:
                last = c
        # Only at the first column that changed is its own buffer still under the same columns.
        if begin == first and held.at[begin] == begin and fine < held.level[begin] < node[begin]:
            source, fine = begin, held.level[begin]
        if last >= begin:
            roll_columns(begin, last, fine, node, base, source, last, held, maps)
            held.level[last] = node[last]
        for c in range(begin, end):
            held.at[c] = source if last < begin else (last if c >= last else -1)
        begin = end
    return int(held.at[columns - 1])


@compiled
def walk_sizes(
    nodes: Codes,
    depths: Counts64,
    done: int,
    base: Codes,
    rule: Rule,
    secrets: Secrets,  # noqa: ARG001
    maps: Maps,
    held: Held,
    space: Space,
    walked: Walked,
) -> int:
    """The releases of each node by size alone, from node `done` on; says how many nodes there was room for.

    `nodes` are sorted, the last column fastest. The classes that are held stand at the levels `base`, and no node is
    finer than that.
    """
    for i in range(done, len(nodes)):
        top = advance(nodes[i], base, depths[i], held, maps)
        keys, rows, tally = held.keys[top], held.rows[top], held.tally[top]
        if not by_size(keys, rows, tally, held.number[top], nodes[i], i, rule, maps, space, walked):
            return i
    return len(nodes)


@compiled
def walk_criteria(
    nodes: Codes,
    depths: Counts64,
    done: int,
    base: Codes,
    rule: Rule,
    secrets: Secrets,
    maps: Maps,
    held: Held,
    space: Space,
    walked: Walked,
) -> int:
    """The same under any criteria. It is a loop of its own because compiling the criteria takes long."""
    for i in range(done, len(nodes)):
        top = advance(nodes[i], base, depths[i], held, maps)
        if not by_criteria(
            held.keys[top],
            held.rows[top],
            held.tally[top],
            held.number[top],
            nodes[i],
            i,
            rule,
            secrets,
            maps,
            space,
            walked,
        ):
            return i
    return len(nodes)
