"""The roll-up evaluator: the indices of any nodes of a table's lattice, by the compiled walk, on many threads."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from sfumato.errors import MeasureError
from sfumato.measures.criteria import EQUAL, HIERARCHICAL, ORDERED, Secrets, Tally
from sfumato.measures.privacy.t_closeness import in_order
from sfumato.plans.levels import all_nodes
from sfumato.runtime.arrays import Codes, Counts64, Floats
from sfumato.systems.lattice import walk
from sfumato.systems.lattice.releases import GONE, Keys, Rows, Rule
from sfumato.tables.frequency import FrequencyTable, Population, ValueCounts

KEY_BITS = 63
HELD_CELLS = 8_000_000
TALLY_CELLS = 150_000_000  # of all buffers together; beyond it sensitive counts are left to the plain evaluator


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
        return np.asarray(self.figures[:, GONE] + self.table.removed)


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

    def __init__(
        self, table: FrequencyTable, sensitive: bool = False, label: bool = False, people: bool = False
    ) -> None:
        self.table = table
        self.heights = np.array([domain.hierarchy.height for domain in table.domains], dtype=np.int64)
        # The last column changes most often. Best there is one with many levels that tells few records apart, so that
        # what tells most apart is generalized early and the rest of the walk meets few classes.
        told = [_entropy(table, column) / height for column, height in enumerate(self.heights)]
        self.order = sorted(range(len(told)), key=lambda column: -told[column])
        tally = self._tallies(sensitive, label, people)
        self.width = tally.shape[1]
        keys, rows = self._prepare()
        if people and table.population is not None:
            keys, rows, tally = self._with_people(table.population, keys, rows, tally)
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
        place = np.empty(len(nodes), dtype=np.int64)  # where the releases of each node were put
        place[order] = np.arange(len(nodes))
        start = np.concatenate([[0], np.cumsum(counts[place])]).astype(np.int64)
        rows = np.repeat(begin[place] - start[:-1], counts[place]) + np.arange(start[-1])
        hidden = np.empty((len(rows), len(self.order)), dtype=np.int64)
        hidden[:, np.array(self.order)] = np.concatenate([part.hidden for part in parts])[rows]
        figures, worst = (
            np.concatenate([getattr(part, name) for part in parts])[rows] for name in ("figures", "worst")
        )
        whole, best = (np.concatenate([getattr(part, name) for part in parts])[place] for name in ("whole", "best"))
        return Releases(self.table, nodes, start, figures, hidden, worst, whole, best)

    def column_sums(self, found: Releases) -> Counts64:
        """For each release and column, the leaves that the labels of kept records cover, added up."""
        return np.asarray(self.full_sums(found.nodes)[found.node] - found.hidden)

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

    def _walk(self, nodes: Codes, base: Base, rule: Rule) -> walk.Walked:
        go = walk.walk_sizes if rule.sizes else walk.walk_criteria
        maps = walk.Maps(self._shift, self._mask, self._lookups, self._lookup_start, self._covers, self._cover_start)
        return go(nodes, base.levels, base.keys, base.rows, base.tally, rule, self._secrets, maps)

    def _tallies(self, sensitive: bool, label: bool, people: bool) -> Tally:
        """The counts of sensitive and label values of each tuple side by side, and room for the population behind."""
        columns = list(self.table.sensitive.values()) if sensitive else []
        self._secrets = secrets_of(columns)
        begin = int(self._secrets.start[-1])
        if label and self.table.label is not None:
            columns = [*columns, self.table.label]
        widths = [len(values.domain.labels) for values in columns]
        self.label = np.array([begin, sum(widths)], dtype=np.int64)
        self.people = sum(widths) if people else -1
        if len(self.table.domains) * self.table.tuples * (sum(widths) + people) > TALLY_CELLS:
            raise MeasureError("too many sensitive values for the walk", expected="the plain evaluator")
        tally = np.zeros((self.table.tuples, sum(widths) + people), dtype=np.int32)
        begin = 0
        for values, width in zip(columns, widths, strict=True):
            tally[values.tuple_of, begin + values.values] = values.counts
            begin += width
        return tally

    def _with_people(self, people: Population, keys: Keys, rows: Rows, tally: Tally) -> tuple[Keys, Rows, Tally]:
        """The same with the tuples of the population: those that the table lacks have no records."""
        if people.counts.sum() >= 1 << 31 or (people.codes < 0).any():
            raise MeasureError("a population that the walk cannot count", expected="the plain evaluator")
        theirs = np.zeros(people.codes.shape[1], dtype=np.uint64)
        for place, column in enumerate(self.order):
            theirs |= people.codes[column].astype(np.uint64) << np.uint64(self._shift[place])
        every, number = np.unique(np.concatenate([keys.astype(np.uint64), theirs]), return_inverse=True)
        here, there = number[: len(keys)], number[len(keys) :]
        all_rows = np.zeros(len(every), dtype=rows.dtype)
        all_rows[here] = rows
        all_tally = np.zeros((len(every), tally.shape[1]), dtype=np.int32)
        all_tally[here] = tally
        all_tally[:, self.people] = np.bincount(there, weights=people.counts, minlength=len(every))
        return every.astype(np.uint32) if keys.dtype == np.uint32 else every, all_rows, all_tally

    def _prepare(self) -> tuple[Keys, Rows]:
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


def secrets_of(columns: Sequence[ValueCounts]) -> Secrets:
    """The sensitive columns as compiled loops read them."""
    widths = [len(values.domain.labels) for values in columns]
    start = np.concatenate([[0], np.cumsum(widths)]).astype(np.int64)
    whole, orders, parents = [], [], []
    tallest = max((values.domain.hierarchy.height for values in columns), default=0)
    levels = np.zeros((len(columns), tallest + 1), dtype=np.int64)
    for b, values in enumerate(columns):
        counts = np.bincount(values.values, weights=values.counts, minlength=widths[b])
        shares = counts / max(counts.sum(), 1.0)
        whole.append(shares)
        orders.append(start[b] + in_order(shares, values.domain))
        tree = values.domain.hierarchy
        if values.domain.distance == "hierarchical" and len(values.domain.labels) != len(tree.leaves):
            raise MeasureError("labels behind the leaves of a tree", expected="the plain evaluator")
        levels[b, : tree.height + 1] = [len(level) for level in tree.levels]
        parents.append(np.concatenate([np.asarray(step) for step in (*tree.parents, np.empty(0))]))
    kinds = {"equal": EQUAL, "ordered": ORDERED, "hierarchical": HIERARCHICAL}

    def joined(parts: Sequence[Any]) -> Counts64:
        return np.concatenate([*parts, np.empty(0)]).astype(np.int64)

    def starts(parts: Sequence[Any]) -> Counts64:
        return np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.int64)

    return Secrets(
        start,
        np.concatenate([*whole, np.empty(0)]),
        np.array([kinds[values.domain.distance] for values in columns], dtype=np.int64),
        joined(orders),
        starts(orders),
        joined(parents),
        starts(parents),
        levels,
        np.array([values.domain.hierarchy.height for values in columns], dtype=np.int64),
    )
