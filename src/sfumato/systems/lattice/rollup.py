"""The roll-up evaluator: the indices of any nodes of a table's lattice, by the compiled walk, on many threads."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sfumato.errors import MeasureError
from sfumato.measures.criteria import Tally
from sfumato.plans.levels import all_nodes
from sfumato.runtime.arrays import Codes, Counts64, Floats
from sfumato.systems.lattice import walk
from sfumato.systems.lattice.rule import (
    GONE,
    RECORDS,
    Keys,
    Maps,
    Rows,
    Rule,
    Walked,
    empty_walk,
    held_classes,
    space_for,
    trimmed,
    with_room,
)
from sfumato.systems.lattice.tallies import NOTHING, Reads, Tallies
from sfumato.tables.frequency import FrequencyTable

KEY_BITS = 63
HELD_CELLS = 8_000_000


@dataclass(frozen=True, eq=False)
class Releases:
    """The releases of nodes, as `walk` gives them; columns of `hidden` are those of the table."""

    table: FrequencyTable
    nodes: Codes
    start: Counts64
    figures: Counts64
    hidden: Counts64
    worst: Floats
    whole: Counts64
    best: Floats

    @property
    def node(self) -> Counts64:
        """The node of each release, as its place among those asked for."""
        return np.repeat(np.arange(len(self.nodes)), np.diff(self.start))

    @property
    def suppressed(self) -> Counts64:
        """The units suppressed."""
        return np.asarray(self.figures[:, GONE] + self.table.removed)

    @property
    def suppressed_rows(self) -> Counts64:
        """The records suppressed."""
        return np.asarray(self.figures[:, RECORDS] + self.table.removed)


@dataclass(frozen=True, eq=False)
class Base:
    """Classes at some levels, from which the classes of every coarser node follow."""

    levels: Codes
    keys: Keys
    rows: Rows
    tally: Tally

    @property
    def cells(self) -> int:
        return int(self.keys.size * (2 + self.tally.shape[1]))


class RollUp:
    """A table prepared for the walk: keys, look-ups, counts of values. Build it once, ask it for nodes.

    The classes from which the last nodes were made are kept while there is room: what is near them is made from them,
    not from the table.
    """

    def __init__(self, table: FrequencyTable, reads: Reads = NOTHING) -> None:
        self.table = table
        self.heights = np.array([domain.hierarchy.height for domain in table.domains], dtype=np.int64)
        # The last column changes most often. Best there is one with many levels that tells few records apart, so that
        # what tells most apart is generalized early and the rest of the walk meets few classes.
        stated = [_entropy(table, column) / height for column, height in enumerate(self.heights)]
        self.order = sorted(range(len(stated)), key=lambda column: -stated[column])
        self.tallies = Tallies.of(table, reads)
        keys, rows, self._maps = self._prepare()
        tally = self.tallies.tally
        if reads.people and table.population is not None:
            theirs = self._keys(table.population.codes, self._maps.shift)
            keys, rows, tally = self.tallies.with_people(table.population, theirs, keys, rows)
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

    def evaluate(self, nodes: Codes, rule: Rule, threads: int | None = None) -> Releases:
        """The releases of some nodes, in the order they are given."""
        nodes = np.ascontiguousarray(nodes, dtype=np.int32)
        walked = nodes[:, self.order]
        order = np.lexsort(walked.T[::-1])
        ordered = np.ascontiguousarray(walked[order])
        workers = min(threads or os.cpu_count() or 1, max(len(nodes) // 64, 1))
        base = self._base(walked.min(axis=0)) if len(nodes) else self._table
        if workers == 1:
            parts = [self._walk(ordered, base, rule)]
        else:
            chunks = np.array_split(ordered, workers * 8)
            with ThreadPoolExecutor(workers) as pool:
                parts = list(pool.map(lambda chunk: self._walk(chunk, base, rule), chunks))
        counts = np.concatenate([np.diff(part.start) for part in parts])
        begin = np.concatenate([[0], np.cumsum(counts)])
        position = np.empty(len(nodes), dtype=np.int64)  # where the releases of each node were put
        position[order] = np.arange(len(nodes))
        start = np.concatenate([[0], np.cumsum(counts[position])]).astype(np.int64)
        rows = np.repeat(begin[position] - start[:-1], counts[position]) + np.arange(start[-1])
        hidden = np.empty((len(rows), len(self.order)), dtype=np.int64)
        hidden[:, np.array(self.order)] = np.concatenate([part.hidden for part in parts])[rows]
        figures, worst = (
            np.concatenate([getattr(part, name) for part in parts])[rows] for name in ("figures", "worst")
        )
        whole, best = (np.concatenate([getattr(part, name) for part in parts])[position] for name in ("whole", "best"))
        return Releases(self.table, nodes, start, figures, hidden, worst, whole, best)

    def column_sums(self, releases: Releases) -> Counts64:
        """For each release and column, the leaves that the labels of kept records cover, added up."""
        return np.asarray(self.full_sums(releases.nodes)[releases.node] - releases.hidden)

    def full_sums(self, nodes: Codes) -> Counts64:
        """The same with nothing suppressed: known for every node without visiting it."""
        return full_sums(self.covered, nodes)

    def _base(self, finest: Codes) -> Base:
        """The classes of a node that is at least as fine as all that are asked, made from the fewest classes."""
        fitting = [base for base in self._bases if (base.levels <= finest).all()]
        best = min(fitting, key=lambda base: len(base.keys), default=self._table)
        if (best.levels < finest).any():
            own = held_classes(best.keys, best.rows, best.tally, 1)
            last = int(np.flatnonzero(finest > best.levels)[-1])
            walk.roll_columns(0, last, int(best.levels[0]), finest, best.levels, 1, 0, own, self._maps)
            size = int(own.number[0])
            best = Base(finest, own.keys[0, :size].copy(), own.rows[0, :size].copy(), own.tally[0, :size].copy())
        elif best is self._table:
            return best
        self._bases = [best, *(base for base in self._bases if base is not best)]
        held = np.cumsum([base.cells for base in self._bases])
        self._bases = self._bases[: max(int(np.searchsorted(held, HELD_CELLS, side="right")), 1)]
        return best

    def _walk(self, nodes: Codes, base: Base, rule: Rule) -> Walked:
        go = walk.walk_sizes if rule.sizes else walk.walk_criteria
        columns = len(self.order)
        held = held_classes(base.keys, base.rows, base.tally, columns)
        space = space_for(len(base.keys), columns, base.tally.shape[1], rule)
        walked = empty_walk(len(nodes), columns, len(rule.kinds))
        depths = np.empty(len(nodes), dtype=np.int64)
        walk.branches(nodes, depths)
        done = 0
        while True:
            done = go(nodes, depths, done, base.levels, rule, self.tallies.secrets, self._maps, held, space, walked)
            if done == len(nodes):
                return trimmed(walked)
            walked = with_room(walked)

    def _keys(self, codes: Codes, shift: Counts64) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
        """Tuples as keys, a field of bits for each column."""
        keys = np.zeros(codes.shape[1], dtype=np.uint64)
        for position, column in enumerate(self.order):
            keys |= codes[column].astype(np.uint64) << np.uint64(shift[position])
        return keys

    def _prepare(self) -> tuple[Keys, Rows, Maps]:
        """Lay out the keys and everything that rolls them up."""
        trees = [self.table.domains[column].hierarchy for column in self.order]
        bits = [max(int(len(tree.leaves) - 1).bit_length(), 1) for tree in trees]
        if sum(bits) > KEY_BITS:
            raise MeasureError(f"a class key of {sum(bits)} bits", expected=f"at most {KEY_BITS} bits")
        shift = np.array([sum(bits[position + 1 :]) for position in range(len(bits))], dtype=np.int64)
        mask = np.array([(1 << width) - 1 for width in bits], dtype=np.int64)
        tallest = max(tree.height for tree in trees)
        lookup_start = np.zeros((len(trees), tallest + 1, tallest + 1), dtype=np.int64)
        cover_start = np.zeros((len(trees), tallest + 1), dtype=np.int64)
        lookups: list[np.ndarray[tuple[int], np.dtype[np.uint32]]] = []
        covers: list[Counts64] = []
        placed, covered = 0, 0
        for position, tree in enumerate(trees):
            for high in range(tree.height + 1):
                cover_start[position, high] = covered
                covers.append(tree.sizes[high].astype(np.int64))
                covered += len(covers[-1])
                for low in range(high):
                    step = np.zeros(int(mask[position]) + 1, dtype=np.uint32)
                    step[tree.maps[low]] = tree.maps[high]
                    lookup_start[position, low, high] = placed
                    lookups.append(step)
                    placed += len(step)
        maps = Maps(
            shift,
            mask,
            np.concatenate(lookups),
            lookup_start,
            np.concatenate(covers),
            cover_start,
            self.tallies.bits,
        )
        keys = self._keys(self.table.codes, shift)
        few = self.table.rows < 1 << 31
        rows = self.table.counts if self.table.units is None else self.table.units.per_tuple
        return (
            keys.astype(np.uint32) if sum(bits) <= 32 else keys,
            rows.astype(np.int32) if few else rows,
            maps,
        )


def covered_leaves(table: FrequencyTable) -> list[Counts64]:
    """For each column and level, the leaves that the labels of all records cover, added up."""
    result = []
    for domain, codes in zip(table.domains, table.codes, strict=True):
        records = np.bincount(codes, weights=table.counts, minlength=len(domain.labels)).astype(np.int64)
        tree = domain.hierarchy
        result.append(
            np.array([int(records @ tree.sizes[level][tree.maps[level]]) for level in range(tree.height + 1)])
        )
    return result


def full_sums(covered: list[Counts64], nodes: Codes) -> Counts64:
    """For each node and column, the leaves that its labels cover with nothing suppressed."""
    return np.stack([covered[j][nodes[:, j]] for j in range(len(covered))], axis=1)


def _entropy(table: FrequencyTable, column: int) -> float:
    """How much a column tells records apart, in bits."""
    counts = np.bincount(table.codes[column], weights=table.counts)
    shares = counts[counts > 0] / counts.sum()
    return float(-(shares * np.log2(shares)).sum())
