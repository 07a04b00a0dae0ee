"""Mondrian (LeFevre, DeWitt, Ramakrishnan 2006): cut the space of all columns again and again while every part is fit.

Works on cells: distinct tuples with counts, and beside each the members of some sets that it holds, as bits. A part is
fit if it has at least k records and, of each set, at least l members. Readings: docs/readings.md, 2, Mondrian.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sfumato.comparisons import mondrian_kernel
from sfumato.runtime.arrays import Codes, Counts64, Flags, Floats

DIVIDE = {"never": mondrian_kernel.NEVER, "needed": mondrian_kernel.NEEDED, "always": mondrian_kernel.ALWAYS}
Masks = npt.NDArray[np.uint64]


class Grid(NamedTuple):
    """The columns: units in order, and for columns with a tree its nodes as runs of units.

    Column j has the units from `unit[j]` to below `unit[j + 1]`; `leaves[unit[j] + j + u]` leaves stand before its unit
    u, and `others[j]` is one less than its domain has. `alone[j]`: its last unit joins others only if all join. `leaf`
    is the node of each single unit (-1: the column has no tree); a node has a run of units, a parent, and children that
    begin at `starts[first[node]:first[node + 1]]`.
    """

    unit: Counts64
    leaves: Counts64
    others: Floats
    alone: Flags
    leaf: Counts64
    low: Counts64
    high: Counts64
    parent: Counts64
    first: Counts64
    starts: Counts64


class Cells(NamedTuple):
    """Distinct tuples: `codes[j, c]` a unit of column j, `counts[c]` records; `masks[c, words[s]:words[s + 1]]` are the
    members of set s that the cell holds. Where a cell may be divided it must hold one member of each set."""

    codes: Codes
    counts: Counts64
    masks: Masks
    words: Counts64


@dataclass(frozen=True, eq=False)
class Partition:
    """What came of it: classes as boxes, with their records; and which records of which cell are in which class.

    The label of class i in column j is the run of units from `low[i, j]` to below `high[i, j]`. `members[i]` is the
    least number of members of any set. Entry e: `entry_count[e]` records of `entry_cell[e]` are in `entry_class[e]`.
    """

    grid: Grid
    cells: Cells
    low: Counts64
    high: Counts64
    rows: Counts64
    members: Counts64
    entry_cell: Counts64
    entry_class: Counts64
    entry_count: Counts64

    @property
    def classes(self) -> int:
        return len(self.rows)

    def losses(self) -> Floats:
        """For each column, the loss of all its cells: (leaves covered - 1)/(leaves of the domain - 1), added up."""
        grid = self.grid
        losses = np.zeros(len(grid.others))
        for j, others in enumerate(grid.others.tolist()):
            before = grid.leaves[grid.unit[j] + j : grid.unit[j + 1] + j + 1]
            covered = before[self.high[:, j]] - before[self.low[:, j]]
            losses[j] = float(((covered - 1) * self.rows).sum()) / others
        return losses

    def labels_per_value(self) -> float:
        """How many different labels a value carries, on average over the values of all columns that occur."""
        carried = values = 0
        for j, codes in enumerate(self.cells.codes):
            width = int(self.grid.unit[j + 1] - self.grid.unit[j]) + 1
            own = codes[self.entry_cell].astype(np.int64)
            label = self.low[self.entry_class, j] * width + self.high[self.entry_class, j]
            carried += len(np.unique(own * width * width + label))
            values += len(np.unique(own))
        return carried / max(values, 1)


def mondrian(grid: Grid, cells: Cells, k: int, l: int = 1, divide: str = "never") -> Partition | None:
    """Cut as long as a cut leaves every part fit; None where the whole table is not fit itself.

    `divide` says when the records of the median value are divided between both sides, so that both get as many: never
    (strict), where a column has no fit cut that keeps values together (needed), or first of all (always). Classes whose
    labels then come out the same are one class.
    """
    records = int(cells.counts.sum())
    whole = np.bitwise_or.reduce(cells.masks, axis=0, keepdims=True)
    if records < max(k, 1) or mondrian_kernel.least_members(whole, cells.words)[0] < l:
        return None
    room = len(cells.counts) if divide == "never" else records
    parts = mondrian_kernel.partition(grid, cells, k, l, DIVIDE[divide], room, min(room, records // max(k, 1)))
    low, high, rows, masks, entry_cell, entry_class, entry_count = parts
    if divide != "never":
        boxes, number = np.unique(np.hstack([low, high]), axis=0, return_inverse=True)
        number = number.reshape(-1).astype(np.int64)
        low, high = np.hsplit(boxes, 2)
        rows = np.bincount(number, weights=rows).astype(np.int64)
        joined = np.zeros((len(rows), masks.shape[1]), dtype=np.uint64)
        np.bitwise_or.at(joined, number, masks)
        masks, entry_class = joined, number[entry_class]
    members = mondrian_kernel.least_members(masks, cells.words)
    return Partition(grid, cells, low, high, rows, members, entry_cell, entry_class, entry_count)
