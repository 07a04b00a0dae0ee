"""The roll-up evaluator: the indices of any nodes of a table's lattice, by the compiled walk, on many threads."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sfumato.errors import MeasureError
from sfumato.plans.levels import all_nodes
from sfumato.runtime.arrays import Codes, Counts64
from sfumato.systems.lattice import walk
from sfumato.tables.frequency import FrequencyTable

KEY_BITS = 63
HELD_CELLS = 8_000_000
TALLY_CELLS = 150_000_000  # of all buffers together; beyond it sensitive counts are left to the plain evaluator


@dataclass(frozen=True, eq=False)
class Indices:
    """The indices of nodes: one row per node, columns as in `walk`; and the leaves its suppressed labels cover."""

    table: FrequencyTable
    nodes: Codes
    figures: Counts64
    hidden: Counts64

    def __getitem__(self, index: int) -> Counts64:
        return np.asarray(self.figures[:, index])

    @property
    def k(self) -> Counts64:
        return self[walk.K]

    @property
    def suppressed(self) -> Counts64:
        return self[walk.GONE] + self.table.removed


@dataclass(frozen=True, eq=False)
class Base:
    """Classes at some levels, from which the classes of every coarser node follow."""

    levels: Codes
    keys: walk.Keys
    rows: walk.Rows
    tally: walk.Tally

    @property
    def cells(self) -> int:
        return int(self.keys.size * (2 + self.tally.shape[1]))


class RollUp:
    """A table prepared for the walk: keys, look-ups, counts of values. Build it once, ask it for nodes.

    The classes from which the last nodes were made are kept while there is room: what is near them is made from them,
    not from the table.
    """

    def __init__(self, table: FrequencyTable, sensitive: str | None = None, label: bool = False) -> None:
        self.table = table
        self.heights = np.array([domain.hierarchy.height for domain in table.domains], dtype=np.int64)
        # The last column changes most often. Best there is one with many levels that tells few records apart, so that
        # what tells most apart is generalized early and the rest of the walk meets few classes.
        told = [_entropy(table, column) / height for column, height in enumerate(self.heights)]
        self.order = sorted(range(len(told)), key=lambda column: -told[column])
        tally, self._split = self._tallies(sensitive, label)
        keys, rows = self._prepare()
        self._table = Base(np.zeros(len(self.order), dtype=np.int32), keys, rows, tally)
        self._bases: list[Base] = []  # the last used first

    @property
    def space(self) -> int:
        """The nodes of the lattice."""
        return int(np.prod([int(height) + 1 for height in self.heights], dtype=object))

    @cached_property
    def all_nodes(self) -> Codes:
        """Every node, in the order of its levels."""
        return all_nodes([int(height) + 1 for height in self.heights])

    @cached_property
    def covered(self) -> list[Counts64]:
        return covered_leaves(self.table)

    def evaluate(self, nodes: Codes, budget: int, floor: int = 0, threads: int | None = None) -> Indices:
        """The indices of some nodes, in the order they are given."""
        nodes = np.ascontiguousarray(nodes, dtype=np.int32)
        walked = nodes[:, self.order]
        order = np.lexsort(walked.T[::-1])
        ordered = np.ascontiguousarray(walked[order])
        workers = min(threads or os.cpu_count() or 1, max(len(nodes) // 64, 1))
        budget = max(budget - self.table.removed, 0)
        base = self._base(walked.min(axis=0)) if len(nodes) else self._table
        if workers == 1:
            parts = [self._walk(ordered, base, budget, floor)]
        else:
            chunks = np.array_split(ordered, workers * 8)
            with ThreadPoolExecutor(workers) as pool:
                parts = list(pool.map(lambda chunk: self._walk(chunk, base, budget, floor), chunks))
        figures = np.empty((len(nodes), walk.INDICES), dtype=np.int64)
        hidden = np.empty((len(nodes), len(self.order)), dtype=np.int64)
        figures[order] = np.concatenate([part[0] for part in parts])
        unordered = np.concatenate([part[1] for part in parts])
        hidden[np.ix_(order, np.array(self.order))] = unordered
        return Indices(self.table, nodes, figures, hidden)

    def column_sums(self, indices: Indices) -> Counts64:
        """For each node and column, the leaves that the labels of kept records cover, added up."""
        whole = np.stack([self.covered[j][indices.nodes[:, j]] for j in range(len(self.covered))], axis=1)
        return np.asarray(whole - indices.hidden)

    def full_sums(self, nodes: Codes) -> Counts64:
        """The same with nothing suppressed: known for every node without visiting it."""
        return full_sums(self.covered, nodes)

    def _base(self, finest: Codes) -> Base:
        """The classes of a node that is at least as fine as all that are asked, made from the fewest classes."""
        fitting = [base for base in self._bases if (base.levels <= finest).all()]
        best = min(fitting, key=lambda base: len(base.keys), default=self._table)
        if (best.levels < finest).any():
            parts = walk.reduced(
                finest,
                best.levels,
                best.keys,
                best.rows,
                best.tally,
                self._shift,
                self._mask,
                self._lookups,
                self._lookup_start,
            )
            best = Base(finest, *parts)
        elif best is self._table:
            return best
        self._bases = [best, *(base for base in self._bases if base is not best)]
        held = np.cumsum([base.cells for base in self._bases])
        self._bases = self._bases[: max(int(np.searchsorted(held, HELD_CELLS, side="right")), 1)]
        return best

    def _walk(self, nodes: Codes, base: Base, budget: int, floor: int) -> tuple[Counts64, Counts64]:
        if not len(nodes):
            return np.empty((0, walk.INDICES), dtype=np.int64), np.empty((0, len(self.order)), dtype=np.int64)
        return walk.walk(
            nodes,
            base.levels,
            base.keys,
            base.rows,
            base.tally,
            self._split,
            budget,
            floor,
            self._shift,
            self._mask,
            self._lookups,
            self._lookup_start,
            self._covers,
            self._cover_start,
        )

    def _tallies(
        self, sensitive: str | None, label: bool
    ) -> tuple[np.ndarray[tuple[int, int], np.dtype[np.int32]], int]:
        """The counts of sensitive and label values of each tuple, side by side."""
        columns = [self.table.sensitive[sensitive]] if sensitive else []
        if label and self.table.label is not None:
            columns.append(self.table.label)
        widths = [len(values.domain.labels) for values in columns]
        if len(self.table.domains) * self.table.tuples * sum(widths) > TALLY_CELLS:
            raise MeasureError("too many sensitive values for the walk", expected="the plain evaluator")
        tally = np.zeros((self.table.tuples, sum(widths)), dtype=np.int32)
        begin = 0
        for values, width in zip(columns, widths, strict=True):
            tally[values.tuple_of, begin + values.values] = values.counts
            begin += width
        return tally, widths[0] if sensitive else 0

    def _prepare(self) -> tuple[walk.Keys, walk.Rows]:
        """Lay out the keys and everything that rolls them up."""
        trees = [self.table.domains[column].hierarchy for column in self.order]
        bits = [max(int(len(tree.leaves) - 1).bit_length(), 1) for tree in trees]
        if sum(bits) > KEY_BITS:
            raise MeasureError(f"a class key of {sum(bits)} bits", expected=f"at most {KEY_BITS} bits")
        self._shift = np.array([sum(bits[place + 1 :]) for place in range(len(bits))], dtype=np.int64)
        self._mask = np.array([(1 << width) - 1 for width in bits], dtype=np.int64)
        keys = np.zeros(self.table.tuples, dtype=np.uint64)
        tallest = max(tree.height for tree in trees)
        self._lookup_start = np.zeros((len(trees), tallest + 1, tallest + 1), dtype=np.int64)
        self._cover_start = np.zeros((len(trees), tallest + 1), dtype=np.int64)
        lookups: list[np.ndarray[tuple[int], np.dtype[np.uint64]]] = []
        covers: list[Counts64] = []
        placed, covered = 0, 0
        for place, (column, tree) in enumerate(zip(self.order, trees, strict=True)):
            keys |= self.table.codes[column].astype(np.uint64) << np.uint64(self._shift[place])
            for high in range(tree.height + 1):
                self._cover_start[place, high] = covered
                covers.append(tree.sizes[high].astype(np.int64))
                covered += len(covers[-1])
                for low in range(high):
                    step = np.zeros(int(self._mask[place]) + 1, dtype=np.uint64)
                    step[tree.maps[low]] = tree.maps[high]
                    self._lookup_start[place, low, high] = placed
                    lookups.append(step)
                    placed += len(step)
        narrow = sum(bits) <= 32
        few = self.table.rows < 1 << 31
        self._lookups, self._covers = np.concatenate(lookups).astype(np.uint32), np.concatenate(covers)
        return (
            keys.astype(np.uint32) if narrow else keys,
            self.table.counts.astype(np.int32) if few else self.table.counts,
        )


def covered_leaves(table: FrequencyTable) -> list[Counts64]:
    """For each column and level, the leaves that the labels of all records cover, added up."""
    found = []
    for domain, codes in zip(table.domains, table.codes, strict=True):
        records = np.bincount(codes, weights=table.counts, minlength=len(domain.labels)).astype(np.int64)
        tree = domain.hierarchy
        found.append(np.array([int(records @ tree.sizes[level][tree.maps[level]]) for level in range(tree.height + 1)]))
    return found


def full_sums(covered: list[Counts64], nodes: Codes) -> Counts64:
    """For each node and column, the leaves that its labels cover with nothing suppressed."""
    return np.stack([covered[j][nodes[:, j]] for j in range(len(covered))], axis=1)


def _entropy(table: FrequencyTable, column: int) -> float:
    """How much a column tells records apart, in bits."""
    counts = np.bincount(table.codes[column], weights=table.counts)
    shares = counts[counts > 0] / counts.sum()
    return float(-(shares * np.log2(shares)).sum())
