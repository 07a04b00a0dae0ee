"""Errors of two-way tables: those of the source compared with those that a reader makes of its release.

A reader distributes a record evenly over the values that its label covers. The error of a table is half the sum of the
absolute differences between the shares of its cells in the source and in the release. This is the share of records
that would have to be moved.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from sfumato.base.arrays import Codes, Counts64, Floats, Index
from sfumato.base.compiled import compiled

Pair = tuple[int, int]
MOST_VALUES = 2_000  # of a column: tables of columns with more values would fill the memory


def source_tables(codes: Codes, counts: Counts64, widths: Sequence[int]) -> dict[Pair, Floats]:
    """Return the two-way table of every pair of columns as shares. Tuple t has `codes[j, t]` in column j."""
    tables = {}
    for i, j in combinations(range(len(widths)), 2):
        cells = np.bincount(codes[i].astype(np.int64) * widths[j] + codes[j], counts, widths[i] * widths[j])
        tables[i, j] = cells.reshape(widths[i], widths[j]) / counts.sum()
    return tables


def table_errors(
    source: dict[Pair, Floats], labels: Codes | Counts64, rows: Counts64, spread: Sequence[Floats]
) -> dict[Pair, float]:
    """Return the error of each two-way table, which is 1 if nothing is released.

    Class c has `rows[c]` records with the label `labels[j, c]` in column j. A label distributes its records over the
    values of the column with the shares `spread[j][label]`.

    >>> kept = source_tables(np.array([[0, 1], [0, 1]]), np.array([1, 1]), [2, 2])
    >>> one = np.zeros((2, 1), int)
    >>> table_errors(kept, one, np.array([2]), [np.full((1, 2), 0.5)] * 2)  # a quarter in each cell, not two halves
    {(0, 1): 0.5}
    """
    total = float(rows.sum())
    errors = {}
    for (i, j), shares in source.items():
        if not total:
            errors[i, j] = 1.0
            continue
        sizes = len(spread[i]), len(spread[j])
        counted = np.bincount(labels[i].astype(np.int64) * sizes[1] + labels[j], rows, sizes[0] * sizes[1])
        released = spread[i].T @ counted.reshape(sizes) @ spread[j] / total
        errors[i, j] = 0.5 * float(np.abs(shares - released).sum())
    return errors


@compiled
def grouped_errors(
    shares: Floats, widths: Counts64, group: Index, start: Counts64, radix: Counts64, labels: Codes, rows: Counts64
) -> Floats:
    """Return the error of each pair of columns if the labels of each column divide its values into groups.

    The tables of the source, one after the other, are `shares`. Value v of column j is in the group
    `group[start[j] + v]` of its `radix[j]` groups.
    """
    # A group has one share for all its cells, so the loop needs no table of the release in single values.
    columns = len(widths)
    errors = np.empty(columns * (columns - 1) // 2)
    total = 0
    for c in range(len(rows)):
        total += rows[c]
    sizes = np.zeros(radix.sum(), np.int64)
    first = np.zeros(columns + 1, np.int64)
    for j in range(columns):
        first[j + 1] = first[j] + radix[j]
        for v in range(widths[j]):
            sizes[first[j] + group[start[j] + v]] += 1
    pair, at = 0, 0
    for i in range(columns):
        for j in range(i + 1, columns):
            counted = np.zeros(radix[i] * radix[j])
            for c in range(len(rows)):
                counted[labels[i, c] * radix[j] + labels[j, c]] += rows[c]
            for a in range(radix[i]):
                for b in range(radix[j]):
                    values = sizes[first[i] + a] * sizes[first[j] + b]
                    if values > 0:
                        counted[a * radix[j] + b] /= values * max(total, 1)
            error = 0.0
            for v in range(widths[i]):
                row = group[start[i] + v] * radix[j]
                for w in range(widths[j]):
                    error += abs(shares[at] - counted[row + group[start[j] + w]])
                    at += 1
            errors[pair] = 0.5 * error if total > 0 else 1.0
            pair += 1
    return errors


def plain_errors(
    shares: Floats, widths: Counts64, group: Index, start: Counts64, radix: Counts64, labels: Codes, rows: Counts64
) -> Floats:
    """Return `grouped_errors` without compiled loops."""
    spread, source, at = [], {}, 0
    for j, width in enumerate(widths.tolist()):
        inside = np.arange(radix[j])[:, None] == group[start[j] : start[j] + width]
        spread.append(inside / np.maximum(inside.sum(axis=1, keepdims=True), 1))
    for i, j in combinations(range(len(widths)), 2):
        size = int(widths[i] * widths[j])
        source[i, j] = shares[at : at + size].reshape(int(widths[i]), int(widths[j]))
        at += size
    return np.array([*table_errors(source, labels, rows, spread).values()])


def run_spread(low: Counts64, high: Counts64, width: int) -> tuple[Counts64, Floats]:
    """Return runs of ordered values as labels: the number of each class's run, and the shares of values in each run."""
    runs, number = np.unique(np.stack([low, high], axis=1), axis=0, return_inverse=True)
    places = np.arange(width)
    inside = (places >= runs[:, :1]) & (places < runs[:, 1:])
    return number.reshape(-1), inside / inside.sum(axis=1, keepdims=True)


def box_errors(
    codes: Codes, counts: Counts64, widths: Sequence[int], low: Counts64, high: Counts64, rows: Counts64
) -> dict[Pair, float]:
    """Return the errors of a file in which class i has values `low[i, j]` to below `high[i, j]` in column j."""
    numbers, spread = [], []
    for j, width in enumerate(widths):
        number, how = run_spread(low[:, j], high[:, j], width)
        numbers.append(number)
        spread.append(how)
    return table_errors(source_tables(codes, counts, widths), np.stack(numbers), rows, spread)


def mean_and_largest(errors: dict[Pair, float]) -> tuple[float, float]:
    """Return the mean error and the largest error, which are 0 without a pair of columns."""
    return (float(np.mean([*errors.values()])), max(errors.values())) if errors else (0.0, 0.0)


def worst_pair(errors: dict[Pair, float]) -> Pair | None:
    """Return the pair of columns whose table has the largest error, the first of several."""
    return max(errors, key=lambda pair: errors[pair], default=None)
