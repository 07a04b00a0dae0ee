"""Columns folded together: several small columns become one, so that a kernel looks up three codes and not eight."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.runtime.arrays import Codes, Counts64, Index

LIMIT = 4096  # entries of a look-up table that stays in the fastest cache


@dataclass(frozen=True, eq=False)
class Packed:
    """Tuples in folded columns.

    Folded column c stands for the columns `members[first[c]:first[c + 1]]`; `decode[c, i, code]` is the code of
    its i-th member. `codes[c, t]` is the folded code of tuple t.
    """

    codes: Index
    members: Counts64
    first: Counts64
    sizes: Counts64
    decode: Index


def pack(codes: Codes, sizes: Sequence[int]) -> Packed:
    """Fold columns whose domains multiply to at most LIMIT, the largest first.

    >>> packed = pack(np.array([[0, 1, 2], [1, 0, 1]], dtype=np.int32), [3, 2])
    >>> packed.codes.tolist(), packed.decode[0, :, 3].tolist()
    ([[1, 2, 5]], [1, 1])
    """
    folded: list[list[int]] = []
    for column in sorted(range(len(sizes)), key=lambda column: -sizes[column]):
        fits = (group for group in folded if int(np.prod([sizes[c] for c in group])) * sizes[column] <= LIMIT)
        group = next(fits, None)
        if group is None:
            folded.append([column])
        else:
            group.append(column)
    widths = np.array([int(np.prod([sizes[c] for c in group])) for group in folded], dtype=np.int64)
    deepest = max(len(group) for group in folded)
    decode = np.zeros((len(folded), deepest, int(widths.max())), dtype=np.uint32)
    joined = np.zeros((len(folded), codes.shape[1]), dtype=np.uint32)
    for number, group in enumerate(folded):
        rest = np.arange(widths[number])
        for i, column in reversed(list(enumerate(group))):
            decode[number, i, : widths[number]] = rest % sizes[column]
            rest = rest // sizes[column]
        for column in group:
            joined[number] = joined[number] * np.uint32(sizes[column]) + codes[column].astype(np.uint32)
    members = np.array([column for group in folded for column in group], dtype=np.int64)
    first = np.cumsum([0, *(len(group) for group in folded)]).astype(np.int64)
    return Packed(joined, members, first, widths, decode)
