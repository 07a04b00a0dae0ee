"""Local recoding of a study's table: its columns and cells as Mondrian takes them, and what its classes cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.comparisons.cost import Cost
from sfumato.comparisons.mondrian import Cells, Grid, Partition, mondrian
from sfumato.measures.two_way import MOST_VALUES, box_errors, mean_and_largest
from sfumato.plans.segments import Segment, segments_of
from sfumato.runtime.arrays import Counts64, Floats
from sfumato.study import Study
from sfumato.systems.cuts.problem import UnitTable
from sfumato.systems.cuts.space import CutSpace
from sfumato.tables.frequency import FrequencyTable

DIVIDES = {"mondrian_strict": "never", "mondrian_relaxed": "needed", "mondrian_even": "always"}


@dataclass(frozen=True, eq=False)
class LocalTable:
    """A table made ready for cuts through all columns at once.

    Relaxed cuts divide the records of a tuple, so `divided` has a cell for each tuple and sensitive value. What several
    sensitive columns hold together is not in a frequency table; relaxed classes then have no known diversity.
    """

    table: FrequencyTable
    grid: Grid
    whole: Cells
    divided: Cells
    weights: Floats
    labels: str

    @classmethod
    def of(cls, study: Study, table: FrequencyTable) -> LocalTable:
        space = CutSpace(tuple(segments_of(study, table)))
        units = UnitTable.of(table, space, diverse=bool(table.sensitive))
        whole = Cells(units.codes, units.counts, units.masks, units.words)
        weights = np.array(study.weights_for(table))
        return cls(table, grid_of(space), whole, _divided(table, space, whole), weights, label_words(space.segments))

    @property
    def diverse_when_divided(self) -> bool:
        """Whether the diversity of relaxed classes is known."""
        return len(self.table.sensitive) == 1

    def classes(self, method: str, k: int, l: int = 1) -> Partition | None:
        """The classes of Mondrian; None where the whole table has too few records or values."""
        divide = DIVIDES[method]
        return mondrian(self.grid, self.whole if divide == "never" else self.divided, k, l, divide=divide)

    def cost(self, method: str, k: int, l: int = 1) -> Cost:
        """What Mondrian reaches and costs. It suppresses nothing."""
        strict = DIVIDES[method] == "never"
        if l > 1 and not strict and not self.diverse_when_divided:
            return Cost(method, k, note="the diversity of divided tuples is known for one sensitive column only")
        partition = self.classes(method, k, l)
        if partition is None:
            return Cost(method, k, note="even the whole table as one class does not reach this")
        diverse = bool(self.table.sensitive) and (strict or self.diverse_when_divided)
        full = float(self.weights.sum()) * self.table.records
        return Cost(
            method,
            k,
            k=int(partition.rows.min()),
            l=int(partition.members.min()) if diverse else None,
            loss=float(self.weights @ partition.losses()) / full,
            suppressed=0,
            classes=partition.classes,
            labels_per_value=partition.labels_per_value(),
            table_error=_table_error(partition),
        )


def _table_error(partition: Partition) -> float | None:
    """The mean error of two-way tables, each label spread evenly over its units; None for very wide columns."""
    cells, widths = partition.cells, np.diff(partition.grid.unit).tolist()
    if max(widths) > MOST_VALUES:
        return None
    errors = box_errors(cells.codes, cells.counts, widths, partition.low, partition.high, partition.rows)
    return mean_and_largest(errors)[0]


def label_words(segments: Sequence[Segment]) -> str:
    """Which labels a class may have, in a sentence."""
    trees = [segment.name for segment in segments if segment.constrained]
    free = [segment.name for segment in segments if not segment.constrained]
    parts = [f"nodes of the tree for {', '.join(trees)}"] if trees else []
    parts += [f"runs of neighbouring values for {', '.join(free)}"] if free else []
    return f"Mondrian's labels are {' and '.join(parts)}."


def grid_of(space: CutSpace) -> Grid:
    """The columns of a space as flat arrays."""
    segments = space.segments
    unit = np.concatenate([[0], np.cumsum([s.units for s in segments])]).astype(np.int64)
    leaves = np.concatenate([np.concatenate([[0], np.cumsum(s.leaves)]) for s in segments]).astype(np.int64)
    leaf = np.full(int(unit[-1]), -1, dtype=np.int64)
    low: list[int] = []
    high: list[int] = []
    parent: list[int] = []
    children: list[tuple[int, ...]] = []
    for segment, begin in zip(segments, unit.tolist(), strict=False):
        first = len(low)
        low += [node.low for node in segment.nodes]
        high += [node.high for node in segment.nodes]
        children += [node.children for node in segment.nodes]
        parent += [first + above if above >= 0 else -1 for above in _parents(segment)]
        for number, node in enumerate(segment.nodes):
            if node.high - node.low == 1:
                leaf[begin + node.low] = first + number
    return Grid(
        unit,
        leaves,
        others=np.array([max(s.domain.leaves - 1, 1) for s in segments], dtype=np.float64),
        alone=np.array([s.guarded and not s.constrained for s in segments], dtype=np.bool_),
        leaf=leaf,
        low=_whole(low),
        high=_whole(high),
        parent=_whole(parent),
        first=_whole([0, *np.cumsum([len(c) for c in children]).tolist()]),
        starts=_whole([start for some in children for start in some]),
    )


def _parents(segment: Segment) -> list[int]:
    parents = [-1] * len(segment.nodes)
    for number, below in enumerate(segment.members):
        for child in below:
            parents[child] = number
    return parents


def _whole(numbers: Sequence[int]) -> Counts64:
    return np.array(numbers, dtype=np.int64)


def _divided(table: FrequencyTable, space: CutSpace, whole: Cells) -> Cells:
    """Cells whose records are alike in their sensitive value too."""
    if len(table.sensitive) != 1:
        return whole._replace(masks=np.zeros((len(whole.counts), 0), np.uint64), words=np.zeros(1, np.int64))
    (held,) = table.sensitive.values()
    codes = np.stack([s.unit_of[c] for s, c in zip(space.segments, table.codes, strict=True)]).astype(np.int32)
    word, bit = np.divmod(held.values.astype(np.int64), 64)
    masks = np.zeros((len(word), int(whole.words[-1])), dtype=np.uint64)
    masks[np.arange(len(word)), word] = np.uint64(1) << bit.astype(np.uint64)
    return Cells(np.ascontiguousarray(codes[:, held.tuple_of]), held.counts, masks, whole.words)
