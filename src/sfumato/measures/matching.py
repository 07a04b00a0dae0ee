"""Which classes look alike where missing values match anything: a join for each pair of patterns of missing cells."""

from __future__ import annotations

import numpy as np

from sfumato.runtime.arrays import Codes, Counts64


def matching_pairs(groups: Codes, wild: Codes) -> tuple[Codes, Codes]:
    """Pairs of different classes that agree wherever neither has the column's wildcard group, both ways round.

    Classes with the same columns missing are joined at once, on the columns that neither side lacks.

    >>> left, right = matching_pairs(np.array([[0, 1, 9], [5, 6, 5]]), np.array([9, -1]))
    >>> sorted(zip(left.tolist(), right.tolist()))
    [(0, 2), (2, 0)]
    """
    loose = (groups == wild[:, None]) & (wild[:, None] >= 0)
    patterns, pattern_of = np.unique(loose.T, axis=0, return_inverse=True)
    pattern_of = pattern_of.reshape(-1)
    members = [np.flatnonzero(pattern_of == number) for number in range(len(patterns))]
    some: list[Counts64] = [np.empty(0, dtype=np.int64)]
    others: list[Counts64] = [np.empty(0, dtype=np.int64)]
    for one in np.flatnonzero(patterns.any(axis=1)).tolist():
        for two in range(len(patterns)):
            if two < one and patterns[two].any():
                continue  # joined already, the other way round
            left, right = _joined(groups[~(patterns[one] | patterns[two])], members[one], members[two])
            kept = left < right if one == two else left != right
            some += [left[kept], right[kept]]
            others += [right[kept], left[kept]]
    return np.concatenate(some).astype(np.int32), np.concatenate(others).astype(np.int32)


def _joined(groups: Codes, left: Counts64, right: Counts64) -> tuple[Counts64, Counts64]:
    """All pairs of a left and a right class with equal groups."""
    number = np.zeros(len(left) + len(right), dtype=np.int64)
    for column in groups[:, np.concatenate([left, right])]:  # keys column by column, renumbered so that none overflows
        number = np.unique(number * (int(column.max(initial=0)) + 1) + column, return_inverse=True)[1].reshape(-1)
    mine, theirs = number[: len(left)], number[len(left) :]
    order = np.argsort(theirs, kind="stable")
    first = np.searchsorted(theirs[order], mine, side="left")
    counts = np.searchsorted(theirs[order], mine, side="right") - first
    places = np.repeat(first - (np.cumsum(counts) - counts), counts) + np.arange(counts.sum())
    return np.repeat(left, counts), right[order][places]
