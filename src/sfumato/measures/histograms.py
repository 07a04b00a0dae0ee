"""Class histograms: the classes of a recoding, summed by size and diversity. They determine the result of suppression.

A cell has the number of records in all classes of one size and diversity, and the generalization loss of these records.
The loss is a whole number of a small unit, so the loss after suppression has no rounding error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sfumato.base.arrays import Codes, Counts64, Floats, Index
from sfumato.base.arrow import MAX_ROWS, array_of, arrow_table, read_parquet
from sfumato.base.compiled import compiled
from sfumato.errors import DataError
from sfumato.measures.classes import EXEMPT, Masks, diversity, folded, sensitive_masks
from sfumato.measures.kernels import Packing, class_index
from sfumato.plans.recodings import RecodingPlan
from sfumato.tables.frequency import FrequencyTable

MAX_RECODINGS = 1 << 24
CELLS = ("size", "diversity", "records", "cost")  # the numbers of a cell


@dataclass(frozen=True, eq=False)
class Histogram:
    """The classes of one recoding by size and diversity (0 without a sensitive column), sorted by both."""

    size: Counts64
    diversity: Counts64
    records: Counts64
    cost: Counts64
    scale: float
    full: float
    rows: int

    def loss(self, kept: Counts64 | int, cost: Counts64 | int) -> Floats:
        """Return the loss as a share of d·N if `kept` records with a generalization loss of `cost` are released."""
        return np.asarray(np.asarray(cost) / self.scale / self.full + (self.rows - np.asarray(kept)) / self.rows)

    def options(self, limit: int) -> Options:
        """Return every (k, ℓ) that results from the suppression of at most `limit` records in small classes.

        >>> one, two = np.array([3, 5]), np.array([1, 2])
        >>> histogram = Histogram(size=one, diversity=two, records=one, cost=0 * one, scale=1.0, full=1.0, rows=8)
        >>> found = histogram.options(8)
        >>> [pair for pair in zip(found.k.tolist(), found.l.tolist(), found.suppressed.tolist())]
        [(3, 1, 0), (5, 2, 3)]
        """
        sizes, row = np.unique(self.size, return_inverse=True)
        levels, column = np.unique(self.diversity, return_inverse=True)
        held = np.zeros((4, len(sizes), len(levels)), dtype=np.int64)
        # In a mean, a class that is exempt from ℓ counts as one value.
        counted = np.where(self.diversity >= EXEMPT, 1, self.diversity)
        for part, what in enumerate((self.records, self.cost, self.records * self.size, self.records * counted)):
            held[part, row, column] = what
        beside = held[0, :, ::-1].cumsum(axis=1)[:, ::-1]  # records of this size, and of this diversity or more
        above = held[0, ::-1].cumsum(axis=0)[::-1]  # records of this diversity, and of this size or more
        kept = held[:, ::-1, ::-1].cumsum(axis=1).cumsum(axis=2)[:, ::-1, ::-1]
        gone = self.rows - kept[0]
        limited = (levels < EXEMPT) | bool(np.all(levels >= EXEMPT))
        a, b = np.nonzero((beside > 0) & (above > 0) & (gone <= limit) & limited)
        by_size, by_diversity = gone[a, 0], gone[0, b]
        taken = gone[a, b]
        return Options(
            k=sizes[a],
            l=levels[b],
            suppressed=taken,
            loss=self.loss(kept[0, a, b], kept[1, a, b]),
            weighted_k=kept[2, a, b] / self.rows,
            weighted_l=kept[3, a, b] / self.rows,
            suppress_below=np.where((by_diversity == taken) & (by_size < taken), 0, sizes[a]),
            diversity_below=np.where(by_size == taken, 0, levels[b]),
        )

    def achieved(self, suppress_below: int, diversity_below: int) -> tuple[int, int, int]:
        """Return k, ℓ and the suppressed records for two thresholds. k and ℓ are 0 if all records are suppressed."""
        kept = (self.size >= suppress_below) & (self.diversity >= (diversity_below if diversity_below > 1 else 0))
        if not kept.any():
            return 0, 0, self.rows
        return int(self.size[kept].min()), int(self.diversity[kept].min()), self.rows - int(self.records[kept].sum())


@dataclass(frozen=True, eq=False)
class Options:
    """The figures of a recoding under different suppressions, one entry for each."""

    k: Counts64
    l: Counts64
    suppressed: Counts64
    loss: Floats
    weighted_k: Floats
    weighted_l: Floats
    suppress_below: Counts64
    diversity_below: Counts64


@dataclass(frozen=True, eq=False)
class Histograms:
    """The histograms of several recodings. Recoding r has the cells `start[r]:start[r + 1]`."""

    start: Counts64
    size: Counts64
    diversity: Counts64
    records: Counts64
    cost: Counts64
    scale: float
    full: float
    rows: int
    diverse: bool

    def __len__(self) -> int:
        return len(self.start) - 1

    def of(self, recoding: int) -> Histogram:
        cells = slice(int(self.start[recoding]), int(self.start[recoding + 1]))
        parts = self.size[cells], self.diversity[cells], self.records[cells], self.cost[cells]
        return Histogram(*parts, self.scale, self.full, self.rows)

    def write(self, path: Path) -> None:
        """Write a Parquet file with a row for each cell."""
        import pyarrow.parquet

        columns = {"recoding": np.repeat(np.arange(len(self)), np.diff(self.start))}
        columns |= {name: getattr(self, name) for name in CELLS}
        about = {name: repr(getattr(self, name)) for name in ("scale", "full", "rows", "diverse")}
        table = arrow_table(columns).replace_schema_metadata(about | {"recodings": str(len(self))})
        pyarrow.parquet.write_table(table, path)

    @property
    def readable(self) -> bool:
        """Return whether the histograms are few enough for a file. A front is complete without them."""
        return len(self.size) <= MAX_ROWS and len(self.start) <= MAX_RECODINGS

    @classmethod
    def read(cls, path: Path) -> Histograms:
        """Read a file of `write`."""
        expected = "the classes of a front that sfumato search wrote"
        table = read_parquet(path, ("recoding", *CELLS), expected=expected)
        about = {name.decode(): value.decode() for name, value in (table.schema.metadata or {}).items()}
        recodings, number = array_of(table, "recoding"), int(about["recodings"])
        outside = len(recodings) and not 0 <= recodings.min() <= recodings.max() < number
        if not 0 <= number <= MAX_RECODINGS or outside:
            raise DataError(f"{path} names recodings that it does not have", expected=expected)
        counts = np.bincount(recodings, minlength=number)
        start = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        scale, full, rows = float(about["scale"]), float(about["full"]), int(about["rows"])
        size, held, records, cost = (array_of(table, name) for name in CELLS)
        return cls(start, size, held, records, cost, scale, full, rows, about["diverse"] == "True")


def histograms_of(
    table: FrequencyTable, plans: Sequence[RecodingPlan], weights: Mapping[str, float] | None = None
) -> Histograms:
    """Return the histograms of the recodings of some plans, before suppression."""
    each = np.array([(weights or {}).get(name, 1.0) for name in table.columns])
    scale = float(2 ** int(60 - np.log2(max(each.sum(), 1.0) * max(table.records, 1))))
    price = np.round(each / np.array([max(domain.leaves - 1, 1) for domain in table.domains]) * scale).astype(np.int64)
    masks, words = sensitive_masks(table)
    start = np.concatenate([[0], np.cumsum([len(domain.labels) for domain in table.domains])[:-1]]).astype(np.int64)
    result: list[tuple[Counts64, ...]] = []
    for plan in plans:
        parts = [plan.grouped(domain) for domain in table.domains]
        groups = np.concatenate([part for part, _ in parts]).astype(np.uint32)
        covered = [unit * (covers[part] - 1) for unit, (part, covers) in zip(price, parts, strict=True)]
        radix = np.array([len(covers) for _, covers in parts], dtype=np.int64)
        cells = _classes(
            folded(table.packed), table.codes, table.counts, masks, words, groups, start, radix, np.concatenate(covered)
        )
        result.append(_summed(*cells))
    counts = [len(cells[0]) for cells in result]
    size, held, records, cost = (np.concatenate([cells[part] for cells in result]) for part in range(4))
    ends = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    full = float(each.sum()) * table.records
    return Histograms(ends, size, held, records, cost, scale, full, table.records, bool(table.sensitive))


def _summed(rows: Counts64, held: Counts64, cost: Counts64) -> tuple[Counts64, Counts64, Counts64, Counts64]:
    """Sum classes by size and diversity."""
    order = np.lexsort((held, rows))
    rows, held, cost = rows[order], held[order], cost[order]
    new = np.ones(len(rows), dtype=np.bool_)
    new[1:] = (rows[1:] != rows[:-1]) | (held[1:] != held[:-1])
    first = np.flatnonzero(new)
    return rows[first], held[first], np.add.reduceat(rows, first), np.add.reduceat(cost, first)


@compiled
def _classes(
    packed: Packing,
    codes: Codes,
    counts: Counts64,
    masks: Masks,
    words: Counts64,
    groups: Index,
    start: Counts64,
    radix: Counts64,
    cost_of: Counts64,
) -> tuple[Counts64, Counts64, Counts64]:
    """Return the number of records, the diversity and the cost of each class."""
    index, first = class_index(packed[0], packed[1], packed[2], packed[3], packed[4], groups, start, radix)
    rows = np.zeros(len(first), np.int64)
    wide = masks.shape[1]
    held = np.zeros((len(first), wide), np.uint64)
    for t in range(len(index)):
        rows[index[t]] += counts[t]
        for w in range(wide):
            held[index[t], w] |= masks[t, w]
    different = np.zeros(len(first), np.int64)
    cost = np.zeros(len(first), np.int64)
    for c in range(len(first)):
        # All records of a class have the same labels, so its first tuple gives the cost of each.
        each = 0
        for j in range(codes.shape[0]):
            each += cost_of[start[j] + codes[j, first[c]]]
        cost[c] = rows[c] * each
        if wide:
            different[c] = diversity(held[c], words)
    return rows, different, cost
