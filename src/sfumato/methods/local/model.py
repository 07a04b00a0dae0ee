"""The model of local recoding: columns of ordered units, labels that are runs of units, and cells with counts.

A cell is a distinct tuple of quasi-identifier values. A class is a set of records. Its label in a column is the
smallest allowed run of units that covers its records. An ordered column allows any run, a constrained column the runs
of its tree nodes. docs/local.md lists the readings of the papers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sfumato.base.arrays import Codes, Counts64, Flags, Floats
from sfumato.base.compiled import compiled

Unit = int | np.int64  # the position of a unit in its column: compiled code needs 64 bits


class Labels(NamedTuple):
    """The allowed labels of each column and their costs, as flat arrays.

    Column j has the units `unit[j]` to below `unit[j + 1]`. The number `before[unit[j] + j + u]` counts its leaves
    before its unit u. The price `price[j]` is the cost of one more leaf per record, such that a fully suppressed record
    costs 1. The node of each unit is `leaf`, or -1 if the column is ordered and has no nodes. A node is the run `low`
    to below `high` and has a `parent`. The flag `alone[j]` is true if the last unit of an ordered column are missing
    values: a label has these alone, or with all values.
    """

    unit: Counts64
    before: Counts64
    price: Floats
    alone: Flags
    leaf: Counts64
    low: Counts64
    high: Counts64
    parent: Counts64

    @property
    def columns(self) -> int:
        return len(self.price)


class Column(NamedTuple):
    """A column: the leaves of each unit, tree nodes as runs (low, high), whether the last unit is missing values."""

    leaves: Sequence[int]
    nodes: Sequence[tuple[int, int]] = ()
    alone: bool = False


def labels_of(columns: Sequence[Column], weights: Sequence[float] | None = None) -> Labels:
    """Return the columns as flat arrays. Weights are relative; a column with a single value has no loss."""
    weight = np.ones(len(columns)) if weights is None else np.array(weights, dtype=np.float64)
    share = weight / weight.sum() if weight.sum() > 0 else np.full(len(columns), 1.0 / max(len(columns), 1))
    unit = _numbers([0, *np.cumsum([len(column.leaves) for column in columns])])
    before = np.concatenate([np.concatenate([[0], np.cumsum(column.leaves)]) for column in columns]).astype(np.int64)
    leaf = np.full(int(unit[-1]), -1, dtype=np.int64)
    low: list[int] = []
    high: list[int] = []
    parent: list[int] = []
    for j, column in enumerate(columns):
        first, nodes = len(low), sorted(set(column.nodes), key=lambda run: (run[1] - run[0], run[0]))
        for number, (start, end) in enumerate(nodes):
            above = [a for a in range(number + 1, len(nodes)) if nodes[a][0] <= start and end <= nodes[a][1]]
            parent.append(first + above[0] if above else -1)
            if end - start == 1:
                leaf[unit[j] + start] = first + number
        low += [start for start, _ in nodes]
        high += [end for _, end in nodes]
    return Labels(
        unit,
        before,
        np.array([s / max(sum(column.leaves) - 1, 1) for s, column in zip(share, columns, strict=True)]),
        np.array([column.alone and not column.nodes for column in columns], dtype=np.bool_),
        leaf,
        _numbers(low),
        _numbers(high),
        _numbers(parent),
    )


def _numbers(values: Sequence[int]) -> Counts64:
    return np.array(values, dtype=np.int64)


@compiled
def label(labels: Labels, j: int, low: Unit, high: Unit) -> tuple[Unit, Unit]:
    """Return the run (first, one past the last) of the smallest label of column j over the units `low` to `high`."""
    node = labels.leaf[labels.unit[j] + low]
    if node >= 0:
        while labels.high[node] <= high:
            node = labels.parent[node]
        return labels.low[node], labels.high[node]
    if labels.alone[j] and low < high and high == labels.unit[j + 1] - labels.unit[j] - 1:
        return 0, high + 1
    return low, high + 1


@compiled
def cell_cost(labels: Labels, j: int, low: Unit, high: Unit) -> float:
    """Return the cost per record of the smallest label of column j that covers the units `low` to `high`."""
    if low == high:
        at = labels.unit[j] + j + low
        return float((labels.before[at + 1] - labels.before[at] - 1) * labels.price[j])
    start, end = label(labels, j, low, high)
    at = labels.unit[j] + j
    return float((labels.before[at + end] - labels.before[at + start] - 1) * labels.price[j])


@dataclass(frozen=True, eq=False)
class Cells:
    """Distinct tuples: `codes[c, j]` is a value of column j, `counts[c]` the number of records.

    Where rows belong to persons, the search counts persons: `counts[c]` are the persons of a tuple, `rows[c]` its rows.
    """

    codes: Codes
    counts: Counts64
    rows: Counts64 | None = None

    @property
    def records(self) -> int:
        return int(self.counts.sum())

    @property
    def lost(self) -> Counts64:
        """The rows of each tuple; losses are means over rows."""
        return self.counts if self.rows is None else self.rows


@dataclass(frozen=True, eq=False)
class Classes:
    """A local recoding: the records of each cell by class; the records of class -1 are suppressed.

    Entry e states that `count[e]` records of `cell[e]` are in class `owner[e]`. The label of class i in column j is the
    run of units from `low[i, j]` to below `high[i, j]`. Class i has `rows[i]` records.
    """

    labels: Labels
    cells: Cells
    cell: Counts64
    owner: Counts64
    count: Counts64
    low: Counts64
    high: Counts64
    rows: Counts64

    @classmethod
    def of(cls, labels: Labels, cells: Cells, cell: Counts64, owner: Counts64, count: Counts64) -> Classes:
        """Return classes from their entries, with the smallest labels that cover them.

        Entries of the same cell and class are merged. Classes are numbered in the order of their first cells.
        """
        kept = count > 0
        cell, owner, count = cell[kept], owner[kept], count[kept]
        order = np.lexsort((owner, cell))
        cell, owner, count = cell[order], owner[order], count[order]
        new = np.ones(len(cell), dtype=np.bool_)
        new[1:] = (cell[1:] != cell[:-1]) | (owner[1:] != owner[:-1])
        start = np.flatnonzero(new)
        count = np.add.reduceat(count, start) if len(start) else count
        cell, owner = cell[start], owner[start]
        known = owner >= 0
        values, first, inverse = np.unique(owner[known], return_index=True, return_inverse=True)
        rank = np.empty(len(values), dtype=np.int64)
        rank[np.argsort(first, kind="stable")] = np.arange(len(values))
        number = np.full(len(owner), -1, dtype=np.int64)
        number[known] = rank[inverse.reshape(-1)]
        low, high, rows = boxes_of(labels, cells.codes, cell, number, count, len(values))
        return cls(labels, cells, cell, number, count, low, high, rows)

    @classmethod
    def joined(cls, labels: Labels, cells: Cells, *parts: tuple[Counts64, Counts64, Counts64]) -> Classes:
        """Return classes from several lists of entries: their cells, owners and counts."""
        cell, owner, count = (np.concatenate(each) for each in zip(*parts, strict=True))
        return cls.of(labels, cells, cell, owner, count)

    @property
    def suppressed(self) -> int:
        return int(self.count[self.owner < 0].sum())

    @property
    def costs(self) -> Floats:
        """The cost per record of each class."""
        labels = self.labels
        total = np.zeros(len(self.rows))
        for j in range(labels.columns):
            total += (self._covered(j) - 1) * labels.price[j]
        return total

    @property
    def paid(self) -> Floats:
        """The mean cost per record of each cell; a suppressed record costs 1."""
        each = np.where(self.owner < 0, 1.0, self.costs[self.owner] if len(self.rows) else 1.0)
        return np.bincount(self.cell, each * self.count, len(self.cells.counts)) / self.cells.counts

    def _covered(self, j: int) -> Counts64:
        before = self.labels.before[self.labels.unit[j] + j :]
        return before[self.high[:, j]] - before[self.low[:, j]]

    @property
    def loss(self) -> float:
        """The mean cost over all records; a suppressed record costs 1.

        Whole numbers are summed first, column by column, so the result does not depend on the order of the classes.
        """
        labels, total = self.labels, float(self.suppressed)
        for j in range(labels.columns):
            total += float(((self._covered(j) - 1) * self.rows).sum()) * float(labels.price[j])
        return total / self.cells.records


@compiled
def boxes_of(
    labels: Labels, codes: Codes, cell: Counts64, owner: Counts64, count: Counts64, classes: int
) -> tuple[Counts64, Counts64, Counts64]:
    """Return the labels of classes as runs, and their numbers of records."""
    columns = codes.shape[1]
    low, high = np.full((classes, columns), 1 << 40, np.int64), np.full((classes, columns), -1, np.int64)
    rows = np.zeros(classes, np.int64)
    for e in range(len(cell)):
        i = owner[e]
        if i >= 0:
            rows[i] += count[e]
            for j in range(columns):
                low[i, j] = min(low[i, j], codes[cell[e], j])
                high[i, j] = max(high[i, j], codes[cell[e], j])
    for i in range(classes):
        for j in range(columns):
            low[i, j], high[i, j] = label(labels, j, low[i, j], high[i, j])
    return low, high, rows
