"""The compiled loops. Each has a plain twin in `oracle.py` that tests compare it with.

A class is the set of tuples with the same group in every column. Groups are folded into one integer key per
tuple; keys become class numbers through a dense table when the key space is small, else through a hash table.
Classes are numbered in the order in which they first appear, so the numbering does not depend on the method.
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
    """Number equal keys 0, 1, … in order of appearance; `first` gets the first tuple of each. Returns how many."""
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
    """Class numbers by keys of the given width. Indices are unsigned: a signed one costs a check for each look-up."""
    folded, size = codes.shape
    index = np.empty(size, np.uint32)
    first = np.empty(size, np.uint32)
    typed = np.empty(1, keys.dtype)  # a width of the keys' own type keeps the loop narrow
    space = 1.0
    for c in range(folded):
        width = np.uint64(1)
        for m in range(begin[c], begin[c + 1]):
            width *= np.uint64(radix[members[m]])
        if space * width > WIDE:  # too wide for one integer: number what there is, and go on
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
    """The class number of every tuple, and the first tuple of every class.

    The first five arrays are a `Packed`; `groups[start[j] + code]` is the group of a code in column j, of `radix[j]`.
    """
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
    """The records of each class."""
    rows = np.zeros(classes, np.int64)
    for t in range(len(index)):
        rows[index[t]] += counts[t]
    return rows


@compiled
def class_values(
    index: Index, tuple_of: Counts64, values: Codes, counts: Counts64, classes: int, width: int
) -> tuple[Counts64, Codes, Counts64]:
    """The counts of a column's values in each class, as (start, values, counts) sorted by class, then value."""
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
