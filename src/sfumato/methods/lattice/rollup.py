"""The compiled walk over a lattice: the classes of a node follow from those of a finer node, not from the rows.

Nodes are sorted with the last column fastest. A class is a key with a field of bits for each column. A roll-up of a
column is a shift and a look-up for each class, and an insert into a small hash table, in place. A column at level 0
refers to the buffer on its left instead of a copy. Each class has its number of records and, if a goal needs them, the
tallies of sensitive values, labels, and people of the population. `RollUp` evaluates nodes with several threads.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from sfumato.base.arrays import Codes, Counts64, Floats
from sfumato.base.compiled import compiled
from sfumato.errors import MeasureError
from sfumato.measures.classes import bits_of
from sfumato.measures.criteria import EQUAL, HIERARCHICAL, ORDERED, Secrets, Tally
from sfumato.measures.privacy.closeness import in_order
from sfumato.methods.lattice.release_kernels import by_criteria, by_size
from sfumato.methods.lattice.rule import (
    Held,
    Keys,
    Maps,
    Rows,
    Rule,
    Space,
    Walked,
    empty_walk,
    held_classes,
    space_for,
    trimmed,
    with_room,
)
from sfumato.plans.recodings import all_nodes
from sfumato.tables.frequency import FrequencyTable, Population, ValueCounts


@compiled
def roll_up(
    source: Keys,
    rows: Rows,
    tally: Tally,
    size: int,
    out_keys: Keys,
    out_rows: Rows,
    out_tally: Tally,
    slots: Codes,
    shift: int,
    mask: int,
    lookup: Keys,
    sets: int,
) -> int:
    """Generalize one column of `size` classes and merge equal classes. The output may be the input."""
    bits = 3
    while (1 << bits) < 8 * size:  # a sparse table, because a second probe costs more than the memory
        bits += 1
    for slot in range(1 << bits):
        slots[slot] = -1
    last, high = np.uint64((1 << bits) - 1), np.uint64(64 - bits)
    low, field = np.uint64(shift), np.uint64(mask)
    clear = ~(field << low)
    width = out_tally.shape[1]
    made = np.uint64(0)
    for i in range(size):
        key = np.uint64(source[i])
        key = (key & clear) | (np.uint64(lookup[(key >> low) & field]) << low)
        position = (key * np.uint64(0x9E3779B97F4A7C15)) >> high
        number = slots[position]
        while number >= 0 and np.uint64(out_keys[np.uint64(number)]) != key:
            position = (position + np.uint64(1)) & last
            number = slots[position]
        if number < 0:
            slots[position] = made
            out_keys[made] = key
            out_rows[made] = rows[i]
            for v in range(width):
                out_tally[made, v] = tally[i, v]
            made += np.uint64(1)
        else:
            known = np.uint64(number)
            out_rows[known] += rows[i]
            for v in range(sets):
                out_tally[known, v] |= tally[i, v]
            for v in range(sets, width):
                out_tally[known, v] += tally[i, v]
    return int(made)


@compiled
def recode(source: Keys, size: int, out: Keys, shift: int, mask: int, lookup: Keys) -> None:
    """Generalize one column of `size` classes without merging any."""
    low, field = np.uint64(shift), np.uint64(mask)
    clear = ~(field << low)
    for i in range(size):
        key = np.uint64(source[i])
        out[i] = (key & clear) | (np.uint64(lookup[(key >> low) & field]) << low)


@compiled
def roll_columns(
    first: int, last: int, fine: int, node: Codes, base: Codes, source: int, into: int, held: Held, maps: Maps
) -> None:
    """Roll up the columns from `first` to `last` together, from one buffer into another.

    In the source, column `first` is at level `fine` and the others are at the levels of `base`.
    """
    keys, size = held.keys[source], held.number[source]
    for c in range(first, last + 1):
        low = fine if c == first else base[c]
        if node[c] == low:
            continue
        lookup = maps.lookups[maps.lookup_start[c, low, node[c]] :]
        if c < last:
            recode(keys, size, held.keys[into], maps.shift[c], maps.mask[c], lookup)
            keys = held.keys[into]
        else:
            held.number[into] = roll_up(
                keys,
                held.rows[source],
                held.tally[source],
                size,
                held.keys[into],
                held.rows[into],
                held.tally[into],
                held.slots,
                maps.shift[c],
                maps.mask[c],
                lookup,
                maps.bits,
            )


@compiled
def branches(nodes: Codes, depths: Counts64) -> None:
    """Return the depths, as bits, at which later nodes branch off from each node. The classes there are kept."""
    asked, columns = nodes.shape
    later = np.int64(0)
    for i in range(asked - 1, -1, -1):
        depths[i] = later
        if i > 0:
            same = 0
            while same < columns and nodes[i, same] == nodes[i - 1, same]:
                same += 1
            later = (later & ((np.int64(1) << (same + 1)) - 1)) | (np.int64(1) << same)


@compiled
def advance(node: Codes, base: Codes, depths: int, held: Held, maps: Maps) -> int:
    """Roll up the buffers to the next node, and return the number of the buffer with its classes.

    Columns between two depths from which later nodes start are rolled up together.
    """
    columns = len(node)
    first = 0
    while first < columns and node[first] == held.current[first]:
        first += 1
    begin = first
    while begin < columns:
        end = begin + 1
        while end < columns and (depths >> end) & 1 == 0:
            end += 1
        source, fine, last = held.at[begin - 1] if begin > 0 else columns, base[begin], begin - 1
        for c in range(begin, end):
            held.current[c] = node[c]
            if node[c] > base[c]:
                last = c
        # Only the buffer of the first column that changed still belongs to the same levels of the columns before it.
        if begin == first and held.at[begin] == begin and fine < held.level[begin] < node[begin]:
            source, fine = begin, held.level[begin]
        if last >= begin:
            roll_columns(begin, last, fine, node, base, source, last, held, maps)
            held.level[last] = node[last]
        for c in range(begin, end):
            held.at[c] = source if last < begin else (last if c >= last else -1)
        begin = end
    return int(held.at[columns - 1])


@compiled
def walk_sizes(
    nodes: Codes,
    depths: Counts64,
    done: int,
    base: Codes,
    rule: Rule,
    secrets: Secrets,  # noqa: ARG001
    maps: Maps,
    held: Held,
    space: Space,
    walked: Walked,
) -> int:
    """Write the releases of each node by size alone, from node `done` on. Return how many nodes fit in the arrays.

    Nodes are sorted with the last column fastest. The first classes are at the levels `base`, and no node is finer.
    """
    for i in range(done, len(nodes)):
        top = advance(nodes[i], base, depths[i], held, maps)
        keys, rows, tally = held.keys[top], held.rows[top], held.tally[top]
        if not by_size(keys, rows, tally, held.number[top], nodes[i], i, rule, maps, space, walked):
            return i
    return len(nodes)


@compiled
def walk_criteria(
    nodes: Codes,
    depths: Counts64,
    done: int,
    base: Codes,
    rule: Rule,
    secrets: Secrets,
    maps: Maps,
    held: Held,
    space: Space,
    walked: Walked,
) -> int:
    """Write the releases of each node for any criteria.

    It is separate from `walk_sizes` because the criteria take long to compile, and most searches do not need them.
    """
    for i in range(done, len(nodes)):
        top = advance(nodes[i], base, depths[i], held, maps)
        if not by_criteria(
            held.keys[top],
            held.rows[top],
            held.tally[top],
            held.number[top],
            nodes[i],
            i,
            rule,
            secrets,
            maps,
            space,
            walked,
        ):
            return i
    return len(nodes)


TALLY_CELLS = 150_000_000  # of all buffers together; above it the plain evaluator counts sensitive values
WORD = 32  # sensitive values in a word, if only the set of values of a class is needed


@dataclass(frozen=True)
class Reads:
    """The tallies that a search needs: counts or sets of sensitive values, labels, the population."""

    counts: bool = False
    sets: bool = False
    label: bool = False
    people: bool = False


NOTHING = Reads()


@dataclass(frozen=True, eq=False)
class Tallies:
    """The tallies of each tuple: sensitive values, then labels (from `label` on), then the population.

    The first `bits` words are sets of values. The position of the population is `people`, or -1.
    """

    tally: Tally
    secrets: Secrets
    label: Counts64
    people: int
    mass: int
    bits: int

    @classmethod
    def of(cls, table: FrequencyTable, reads: Reads) -> Tallies:
        """Return the tallies of the tuples of a table, with a column for the population."""
        units = table.units
        columns = list(table.sensitive.values()) if reads.counts or reads.sets else []
        sets = reads.sets and not reads.counts and units is None
        if units is not None:
            columns = [replace(values, counts=units.held_in(values.domain.name)) for values in columns]
        secrets = secrets_of(columns, sets, None if units is None else units.number)
        labels = [table.label] if reads.label and table.label is not None else []
        begin = int(secrets.start[-1])
        end = begin + sum(len(values.domain.labels) for values in labels)
        people, mass = (end if reads.people else -1), (-1 if units is None else end + reads.people)
        wide = end + reads.people + (units is not None)
        if len(table.domains) * table.tuples * wide > TALLY_CELLS:
            raise MeasureError("too many sensitive values for the walk", expected="the plain evaluator")
        tally = np.zeros((table.tuples, wide), dtype=np.int32)
        if units is not None:
            tally[:, mass] = table.counts
        for start, values in zip((*secrets.start.tolist(), begin), (*columns, *labels), strict=False):
            if sets and start < begin:
                place = bits_of(values.domain)[values.values].astype(np.int64)
                known = place >= 0  # a missing value is not counted
                word, bit = np.divmod(place[known], WORD)
                there = np.left_shift(np.uint32(1), bit.astype(np.uint32))
                np.bitwise_or.at(tally.view(np.uint32), (values.tuple_of[known], start + word), there)
            else:
                tally[values.tuple_of, start + values.values] = values.counts
        label = np.array([begin, end], dtype=np.int64)
        return cls(tally, secrets, label, people, mass, begin if sets else 0)

    @property
    def width(self) -> int:
        return int(self.tally.shape[1])

    def with_people(self, people: Population, theirs: Keys, keys: Keys, rows: Rows) -> tuple[Keys, Rows, Tally]:
        """Add the tuples of the population to keys, records and tallies. Those not in the table have no records."""
        if people.counts.sum() >= 1 << 31 or (people.codes < 0).any():
            raise MeasureError("a population that the walk cannot count", expected="the plain evaluator")
        every, number = np.unique(np.concatenate([keys.astype(np.uint64), theirs]), return_inverse=True)
        here, there = number[: len(keys)], number[len(keys) :]
        all_rows = np.zeros(len(every), dtype=rows.dtype)
        all_rows[here] = rows
        tally = np.zeros((len(every), self.width), dtype=np.int32)
        tally[here] = self.tally
        tally[:, self.people] = np.bincount(there, weights=people.counts, minlength=len(every))
        return every.astype(np.uint32) if keys.dtype == np.uint32 else every, all_rows, tally


DISTANCES = {"equal": EQUAL, "ordered": ORDERED, "hierarchical": HIERARCHICAL}


def secrets_of(columns: Sequence[ValueCounts], sets: bool = False, units: int | None = None) -> Secrets:
    """Return the sensitive columns in the form that compiled loops read. With `sets`, each value is one bit.

    With a number of `units`, the counts are of units with a value.
    """
    widths = [len(values.domain.labels) for values in columns]
    words = [int(bits_of(values.domain).max(initial=0)) // WORD + 1 for values in columns] if sets else widths
    start = np.concatenate([[0], np.cumsum(words)]).astype(np.int64)
    whole, orders, parents = [], [], []
    tallest = max((values.domain.hierarchy.height for values in columns), default=0)
    levels = np.zeros((len(columns), tallest + 1), dtype=np.int64)
    for b, values in enumerate(columns):
        counts = np.bincount(values.values, weights=values.counts, minlength=widths[b])
        shares = counts / max(counts.sum() if units is None else units, 1.0)
        whole.append(shares)
        orders.append(start[b] + in_order(shares, values.domain))
        tree = values.domain.hierarchy
        if values.domain.distance == "hierarchical" and len(values.domain.labels) != len(tree.leaves):
            raise MeasureError("labels behind the leaves of a tree", expected="the plain evaluator")
        levels[b, : tree.height + 1] = [len(level) for level in tree.levels]
        parents.append(np.concatenate([np.asarray(step) for step in (*tree.parents, np.empty(0))]))

    def joined(parts: Sequence[Counts64 | Floats]) -> Counts64:
        return np.concatenate([*parts, np.empty(0)]).astype(np.int64)

    def starts(parts: Sequence[Counts64 | Floats]) -> Counts64:
        return np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.int64)

    return Secrets(
        start,
        np.concatenate([*whole, np.empty(0)]),
        np.array([DISTANCES[values.domain.distance] for values in columns], dtype=np.int64),
        joined(orders),
        starts(orders),
        joined(parents),
        starts(parents),
        levels,
        np.array([values.domain.hierarchy.height for values in columns], dtype=np.int64),
        sets,
        units is not None,
    )


KEY_BITS = 63
HELD_CELLS = 8_000_000


@dataclass(frozen=True, eq=False)
class Base:
    """The classes at some levels, from which the classes of every coarser node follow."""

    levels: Codes
    keys: Keys
    rows: Rows
    tally: Tally

    @property
    def cells(self) -> int:
        return int(self.keys.size * (2 + self.tally.shape[1]))


class RollUp:
    """A table that is prepared for the walk: keys, look-ups and tallies. It evaluates any number of nodes.

    The classes at which the last walks began are kept in a cache of limited size. Coarser nodes are computed from them
    instead of the table.
    """

    def __init__(self, table: FrequencyTable, reads: Reads = NOTHING) -> None:
        self.table = table
        self.heights = np.array([domain.hierarchy.height for domain in table.domains], dtype=np.int64)
        # The last column changes most often. The best last column has many levels and distinguishes few records. The
        # columns that distinguish most records are then generalized early, and the rest of the walk has few classes.
        stated = [_entropy(table, column) / height for column, height in enumerate(self.heights)]
        self.order = sorted(range(len(stated)), key=lambda column: -stated[column])
        self.tallies = Tallies.of(table, reads)
        keys, rows, self._maps = self._prepare()
        tally = self.tallies.tally
        if reads.people and table.population is not None:
            theirs = self._keys(table.population.codes, self._maps.shift)
            keys, rows, tally = self.tallies.with_people(table.population, theirs, keys, rows)
        self._table = Base(np.zeros(len(self.order), dtype=np.int32), keys, rows, tally)
        self._bases: list[Base] = []  # the most recently used first

    @cached_property
    def all_nodes(self) -> Codes:
        """Return every node in the order of levels."""
        return all_nodes([int(height) + 1 for height in self.heights])

    def evaluate(self, nodes: Codes, rule: Rule, threads: int | None = None) -> Walked:
        """Return the releases of some nodes in the given order, with `hidden` by the columns of the table."""
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
        position = np.empty(len(nodes), dtype=np.int64)  # the index of each node's releases
        position[order] = np.arange(len(nodes))
        start = np.concatenate([[0], np.cumsum(counts[position])]).astype(np.int64)
        rows = np.repeat(begin[position] - start[:-1], counts[position]) + np.arange(start[-1])
        hidden = np.empty((len(rows), len(self.order)), dtype=np.int64)
        hidden[:, np.array(self.order)] = np.concatenate([part.hidden for part in parts])[rows]
        figures, worst = (
            np.concatenate([getattr(part, name) for part in parts])[rows] for name in ("figures", "worst")
        )
        whole, best = (np.concatenate([getattr(part, name) for part in parts])[position] for name in ("whole", "best"))
        return Walked(start, figures, hidden, worst, whole, best)

    def _base(self, finest: Codes) -> Base:
        """Return the classes of a node that is at least as fine as some nodes, computed from the fewest classes."""
        fitting = [base for base in self._bases if (base.levels <= finest).all()]
        best = min(fitting, key=lambda base: len(base.keys), default=self._table)
        if (best.levels < finest).any():
            own = held_classes(best.keys, best.rows, best.tally, 1)
            last = int(np.flatnonzero(finest > best.levels)[-1])
            roll_columns(0, last, int(best.levels[0]), finest, best.levels, 1, 0, own, self._maps)
            size = int(own.number[0])
            best = Base(finest, own.keys[0, :size].copy(), own.rows[0, :size].copy(), own.tally[0, :size].copy())
        elif best is self._table:
            return best
        self._bases = [best, *(base for base in self._bases if base is not best)]
        held = np.cumsum([base.cells for base in self._bases])
        self._bases = self._bases[: max(int(np.searchsorted(held, HELD_CELLS, side="right")), 1)]
        return best

    def _walk(self, nodes: Codes, base: Base, rule: Rule) -> Walked:
        go = walk_sizes if rule.sizes else walk_criteria
        columns = len(self.order)
        held = held_classes(base.keys, base.rows, base.tally, columns)
        space = space_for(len(base.keys), columns, base.tally.shape[1], rule)
        walked = empty_walk(len(nodes), columns, len(rule.kinds))
        depths = np.empty(len(nodes), dtype=np.int64)
        branches(nodes, depths)
        done = 0
        while True:
            done = go(nodes, depths, done, base.levels, rule, self.tallies.secrets, self._maps, held, space, walked)
            if done == len(nodes):
                return trimmed(walked)
            walked = with_room(walked)

    def _keys(self, codes: Codes, shift: Counts64) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
        """Return tuples as keys with a field of bits for each column."""
        keys = np.zeros(codes.shape[1], dtype=np.uint64)
        for position, column in enumerate(self.order):
            keys |= codes[column].astype(np.uint64) << np.uint64(shift[position])
        return keys

    def _prepare(self) -> tuple[Keys, Rows, Maps]:
        """Compute the layout of the keys and the look-ups that roll them up."""
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
        steps, sizes = np.concatenate(lookups), np.concatenate(covers)
        maps = Maps(shift, mask, steps, lookup_start, sizes, cover_start, self.tallies.bits)
        keys = self._keys(self.table.codes, shift)
        few = self.table.rows < 1 << 31
        rows = self.table.counts if self.table.units is None else self.table.units.per_tuple
        return keys.astype(np.uint32) if sum(bits) <= 32 else keys, rows.astype(np.int32) if few else rows, maps


def covered_leaves(table: FrequencyTable) -> list[Counts64]:
    """Return for each column and level the sum of leaves under the labels of all records."""
    result = []
    for domain, codes in zip(table.domains, table.codes, strict=True):
        records = np.bincount(codes, weights=table.counts, minlength=len(domain.labels)).astype(np.int64)
        tree = domain.hierarchy
        levels = zip(tree.sizes, tree.maps, strict=True)
        result.append(np.array([int(records @ sizes[groups]) for sizes, groups in levels]))
    return result


def full_sums(covered: list[Counts64], nodes: Codes) -> Counts64:
    """Return for each node and column the sum of leaves under its labels without suppression."""
    return np.stack([covered[j][nodes[:, j]] for j in range(len(covered))], axis=1)


def _entropy(table: FrequencyTable, column: int) -> float:
    """Return the entropy of a column in bits, which measures how well it distinguishes records."""
    counts = np.bincount(table.codes[column], weights=table.counts)
    shares = counts[counts > 0] / counts.sum()
    return float(-(shares * np.log2(shares)).sum())
