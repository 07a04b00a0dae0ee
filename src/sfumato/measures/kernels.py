"""Compiled loops that form classes. Tests compare each with a plain version in `oracle.py`.

A class is the set of tuples with the same group in every column. The groups of a tuple form one integer key. Keys
become class numbers by a dense table if there are few possible keys, else by a hash table. Classes are numbered in the
order of their first tuple, so the numbers are the same with both.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sfumato.base.arrays import Codes, Counts64, Index
from sfumato.base.compiled import compiled

Keys = npt.NDArray[np.uint32] | npt.NDArray[np.uint64]

DENSE = 1 << 16
NARROW = float(1 << 32)
WIDE = float(1 << 62)
Packing = tuple[Index, Counts64, Counts64, Counts64, Index]


@compiled
def number_keys(keys: Keys, space: float, index: Index, first: Index) -> int:
    """Number equal keys 0, 1, … in order of appearance, write the first tuple of each to `first`, return the count."""
    size = len(keys)
    result = 0
    if space <= max(DENSE, 12 * size):
        table = np.full(int(space), -1, np.int32)
        for t in range(size):
            number = table[keys[t]]
            if number < 0:
                number = np.int32(result)
                table[keys[t]] = number
                first[result] = t
                result += 1
            index[t] = number
        return result
    # The table is at most half full, so that a look-up rarely needs a second probe. Multiplication by 2^64 over the
    # golden ratio spreads consecutive keys over the upper bits.
    bits = 1
    while (1 << bits) < 2 * size:
        bits += 1
    numbers = np.full(1 << bits, -1, np.int32)
    held = np.empty(1 << bits, keys.dtype)
    mask, shift = np.uint64((1 << bits) - 1), np.uint64(64 - bits)
    for t in range(size):
        key = keys[t]
        position = (np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)) >> shift
        while numbers[position] >= 0 and held[position] != key:
            position = (position + np.uint64(1)) & mask
        if numbers[position] < 0:
            numbers[position] = result
            held[position] = key
            first[result] = t
            result += 1
        index[t] = numbers[position]
    return result


@compiled
def fold_keys(
    keys: Keys,
    codes: Index,
    members: Counts64,
    begin: Counts64,
    sizes: Counts64,
    decode: Index,
    groups: Index,
    start: Counts64,
    radix: Counts64,
) -> tuple[Index, Index]:
    """Number the classes by keys of a given width.

    Indices are unsigned, because a signed index costs a check for negative values at each look-up.
    """
    folded, size = codes.shape
    index = np.empty(size, np.uint32)
    first = np.empty(size, np.uint32)
    typed = np.empty(1, keys.dtype)  # a width of the same type as the keys lets the processor use narrow vectors
    space = 1.0
    for c in range(folded):
        width = np.uint64(1)
        for m in range(begin[c], begin[c + 1]):
            width *= np.uint64(radix[members[m]])
        if space * width > WIDE:  # too wide for one integer: replace the keys so far by their numbers
            space = float(number_keys(keys, space, index, first))
            for t in range(size):
                keys[t] = index[t]
        table = np.zeros(sizes[c], np.uint32)
        for m in range(begin[c], begin[c + 1]):
            part = groups[start[members[m]] :]
            own = decode[c, m - begin[c]]
            base = np.uint32(radix[members[m]])
            for code in range(sizes[c]):
                table[code] = table[code] * base + part[own[code]]
        row = codes[c]
        typed[0] = width
        step = typed[0]
        if c == 0:
            for t in range(size):
                keys[t] = table[row[t]]
        else:
            for t in range(size):
                keys[t] = keys[t] * step + table[row[t]]
        space *= width
    result = number_keys(keys, space, index, first)
    return index, first[:result].copy()


@compiled
def class_index(
    codes: Index,
    members: Counts64,
    begin: Counts64,
    sizes: Counts64,
    decode: Index,
    groups: Index,
    start: Counts64,
    radix: Counts64,
) -> tuple[Index, Index]:
    """Return the class number of every tuple, and the first tuple of every class.

    The first five arrays are a `Packed`. Code c of column j is in the group `groups[start[j] + c]` of `radix[j]`.
    """
    # Keys of 32 bits take half the memory of keys of 64 bits, and the loop over them is limited by memory.
    space = 1.0
    for j in range(len(radix)):
        space *= radix[j]
    if space < NARROW:
        keys = np.empty(codes.shape[1], np.uint32)
        return fold_keys(keys, codes, members, begin, sizes, decode, groups, start, radix)
    wide = np.empty(codes.shape[1], np.uint64)
    return fold_keys(wide, codes, members, begin, sizes, decode, groups, start, radix)


@compiled
def class_rows(index: Index, counts: Counts64, classes: int) -> Counts64:
    """Return the number of records of each class."""
    rows = np.zeros(classes, np.int64)
    for t in range(len(index)):
        rows[index[t]] += counts[t]
    return rows


@compiled
def class_values(
    index: Index, tuple_of: Counts64, values: Codes, counts: Counts64, classes: int, width: int
) -> tuple[Counts64, Codes, Counts64]:
    """Return the counts of a column's values as (start, values, counts), sorted by class, then by value."""
    dense = np.zeros(classes * width, np.int64)
    for e in range(len(values)):
        dense[index[tuple_of[e]] * np.int64(width) + values[e]] += counts[e]
    filled = np.count_nonzero(dense)
    start = np.zeros(classes + 1, np.int64)
    result = np.zeros(filled, np.int32)
    number = np.zeros(filled, np.int64)
    position = 0
    for c in range(classes):
        for v in range(width):
            if dense[c * width + v] != 0:
                result[position] = v
                number[position] = dense[c * width + v]
                position += 1
        start[c + 1] = position
    return start, result, number
