"""The compiled walk over a lattice: a node's classes come from those of a finer node, never from the rows.

Nodes come sorted, the last column fastest. A class is one key with a field of bits per column; rolling a column up is a
shift, a look-up and an insert into a small hash table, in place. A column at level 0 is a pointer to the buffer on its
left, not a copy. Every class carries its records and, where asked, how often each sensitive and label value occurs.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sfumato.runtime.arrays import Codes, Counts64
from sfumato.runtime.compiled import compiled

Keys = npt.NDArray[np.uint32] | npt.NDArray[np.uint64]  # as narrow as the columns allow
Rows = npt.NDArray[np.int32] | npt.NDArray[np.int64]
Tally = npt.NDArray[np.int32]

# Columns of the table of indices.
K, GONE, SUM_K, SUM_K_FULL, DISTINCT, DISTINCT_BOUND, SUM_L, SUM_L_FULL, WRONG, WRONG_FULL = range(10)
INDICES = 10
FEW = 8  # a budget of fewer records than this many times the classes is gone through size by size


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
def value_figures(
    rows: Rows, tally: Tally, size: int, split: int, budget: int, least: int, by_distinct: Counts64, out: Counts64
) -> None:
    """The indices that read sensitive values (before `split`) and labels (behind it)."""
    width = tally.shape[1]
    by_distinct[:] = 0
    kept = split
    for c in range(size):
        n = np.int64(rows[c])
        distinct = 0
        squares = np.int64(0)
        for v in range(split):
            count = np.int64(tally[c, v])
            distinct += int(count > 0)
            squares += count * count
        wrong = n
        for v in range(split, width):
            wrong = min(wrong, n - np.int64(tally[c, v]))
        by_distinct[distinct] += n
        out[SUM_L_FULL] += squares
        out[WRONG_FULL] += wrong
        if n < least:
            out[WRONG] += n
        else:
            out[SUM_L] += squares
            out[WRONG] += wrong
            kept = min(kept, distinct)
    out[DISTINCT] = kept
    # The best ℓ that suppressing within the budget can reach: monotone along the lattice, unlike ℓ as measured.
    total = np.int64(0)
    for value in range(split + 1):
        if by_distinct[value] > 0:
            out[DISTINCT_BOUND] = value
            total += by_distinct[value]
            if total > budget:
                break


@compiled
def figures(
    keys: Keys,
    rows: Rows,
    tally: Tally,
    size: int,
    split: int,
    budget: int,
    floor: int,
    small: Counts64,
    going: Codes,
    by_distinct: Counts64,
    shift: Counts64,
    mask: Counts64,
    covers: Counts64,
    cover_start: Counts64,
    out: Counts64,
    hidden: Counts64,
) -> None:
    """The indices of one node from its classes.

    With `floor` above 0 exactly the classes below it are suppressed, else whole sizes within the budget
    (docs/readings.md, 1.1). `hidden[j]` gets the leaves that the labels of suppressed records cover in column j.
    """
    squares = np.int64(0)
    for c in range(size):
        squares += np.int64(rows[c]) * np.int64(rows[c])
    gone = np.int64(0)
    least = np.int64(floor)
    k = np.int64(0)
    if floor == 0:
        # Fine nodes have thousands of classes and a small k: counting one size at a time is a loop the processor
        # can do in wide steps, and it ends at k. A histogram would wait for its own last write.
        for s in range(1, min(budget, 4) + 1):
            alike = 0
            for c in range(size):
                alike += rows[c] == s
            if gone + alike * s > budget:
                k = np.int64(s)
                break
            gone += alike * s
        if k == 0 and budget > FEW * size:
            # More sizes than classes: halve the range of sizes instead of listing them.
            goes, top = np.int64(0), np.int64(budget)  # all up to `goes` may go
            while goes < top:
                middle = (goes + top + 1) // 2
                total = np.int64(0)
                for c in range(size):
                    total += np.int64(rows[c]) * (rows[c] <= middle)
                if total <= budget:
                    goes = middle
                else:
                    top = middle - 1
            gone = np.int64(0)
            k = np.int64(1) << 62
            for c in range(size):
                n = np.int64(rows[c])
                if n <= goes:
                    gone += n
                elif n < k:
                    k = n
        elif k == 0:
            gone = np.int64(0)
            large = np.int64(1) << 62
            small[: budget + 2] = 0
            for c in range(size):
                n = np.int64(rows[c])
                if n <= budget:
                    small[n] += n
                elif n < large:
                    large = n
            k = large
            for s in range(1, budget + 1):
                if small[s] > 0:
                    if gone + small[s] > budget:
                        k = np.int64(s)
                        break
                    gone += small[s]
        least = k
    else:
        k = np.int64(1) << 62
        for c in range(size):
            n = np.int64(rows[c])
            if n < least:
                gone += n
            elif n < k:
                k = n
    out[K] = k
    out[GONE] = gone
    out[SUM_K] = squares
    out[SUM_K_FULL] = squares
    if gone > 0:
        found = 0
        for c in range(size):
            if rows[c] < least:
                going[found] = c
                found += 1
                out[SUM_K] -= np.int64(rows[c]) * np.int64(rows[c])
        for j in range(len(hidden)):  # column by column, so that shift and mask stay in registers
            low, field, begin = np.uint64(shift[j]), np.uint64(mask[j]), np.uint64(cover_start[j])
            total = np.int64(0)
            for g in range(found):
                c = going[g]
                total += np.int64(rows[c]) * covers[begin + ((np.uint64(keys[c]) >> low) & field)]
            hidden[j] = total
    if tally.shape[1] > 0:
        value_figures(rows, tally, size, split, budget, int(least), by_distinct, out)


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
def walk(
    nodes: Codes,
    base: Codes,
    keys: Keys,
    rows: Rows,
    tally: Tally,
    split: int,
    budget: int,
    floor: int,
    shift: Counts64,
    mask: Counts64,
    lookups: Keys,
    lookup_start: Counts64,
    covers: Counts64,
    cover_start: Counts64,
) -> tuple[Counts64, Counts64]:
    """The indices of each node, and what its suppressed labels cover. `nodes` are sorted, the last column fastest.

    The classes that are given stand at the levels `base`, and no node is finer than that.

    `lookups[lookup_start[j, a, b] + group]` is the group at level b of a group at level a of column j, and
    `covers[cover_start[j, b] + group]` the leaves under it.
    """
    asked, columns = nodes.shape
    size, width = len(keys), tally.shape[1]
    # One buffer of classes per column, and behind them the table itself.
    held_keys = np.empty((columns + 1, size), keys.dtype)
    held_rows = np.empty((columns + 1, size), rows.dtype)
    held_tally = np.empty((columns + 1, size, width), np.int32)
    number = np.zeros(columns + 1, np.int64)
    held_keys[columns], held_rows[columns], held_tally[columns], number[columns] = keys, rows, tally, size
    level = np.zeros(columns, np.int64)  # the level that a column's own buffer holds
    at = np.full(columns, columns, np.int64)  # the buffer in force at each depth
    capacity = 8
    while capacity < 8 * size:
        capacity *= 2
    slots = np.empty(capacity, np.int32)
    small = np.empty(min(budget, FEW * size) + 2, np.int64)
    going = np.empty(size, np.int32)
    by_distinct = np.zeros(split + 1, np.int64)
    out = np.zeros((asked, INDICES), np.int64)
    hidden = np.zeros((asked, columns), np.int64)
    current = np.full(columns, -1, np.int64)
    begin = np.empty(columns, np.int64)
    for i in range(asked):
        first = 0
        while first < columns and nodes[i, first] == current[first]:
            first += 1
        for j in range(first, columns):
            wanted = nodes[i, j]
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
        for j in range(columns):
            begin[j] = cover_start[j, nodes[i, j]]
        top = at[columns - 1]
        found_keys, found_rows = held_keys[top], held_rows[top]
        figures(
            found_keys,
            found_rows,
            held_tally[top],
            number[top],
            split,
            budget,
            floor,
            small,
            going,
            by_distinct,
            shift,
            mask,
            covers,
            begin,
            out[i],
            hidden[i],
        )
    return out, hidden
