"""The class table: what a recoding makes of a frequency table. Measures are functions of it.

Which classes look alike where missing values match anything: a join for each pair of patterns of missing cells.

Sets of sensitive values as bits, for the compiled loops of classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

from sfumato.base.arrays import Codes, Counts64, Flags, Floats, Index
from sfumato.base.compiled import compiled
from sfumato.errors import MeasureError, counted
from sfumato.measures.kernels import class_index, class_rows, class_values
from sfumato.measures.property import Property
from sfumato.plans.recodings import Recoding, as_it_stands
from sfumato.tables.domain import HARMFUL, UNKNOWN, Domain
from sfumato.tables.frequency import FrequencyTable, Packed


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


DENSE_CELLS = 40_000_000


@dataclass(frozen=True, eq=False)
class ClassValues:
    """The values of one column in each class: entries `start[c]:start[c + 1]`, sorted by value.

    `counts` are over the records a class's records hide among, `own` over the class itself; the two differ only
    where missing values match anything. Of `size` units that a class hides among, `held` hold the value, and `weight`
    is the sum of the shares of their rows that do; where every row is a unit all three are counts of records.
    """

    domain: Domain
    start: Counts64
    values: Codes
    counts: Counts64
    own: Counts64
    held: Counts64
    weight: Counts64 | Floats
    size: Counts64

    @cached_property
    def class_of(self) -> Counts64:
        """The class of each entry."""
        return np.repeat(np.arange(len(self.start) - 1), np.diff(self.start))

    def fold(self, function: np.ufunc, entries: Floats | Counts64 | Flags) -> Floats:
        """Fold the entries of each class, such as `fold(np.maximum, counts)`."""
        return np.asarray(function.reduceat(entries, self.start[:-1]), dtype=np.float64)


@dataclass(frozen=True, eq=False, repr=False)
class ClassTable:
    """Equivalence classes of a table under a recoding.

    `index[t]` is the class of tuple t; `rows` the records of a class; `crowd` how many records each of them hides
    among (the same, unless missing values match anything); `size` how many units these belong to (as many, unless the
    table has units); `suppressed` the classes that are not released.
    `reference` says which rows the distribution of a sensitive column is taken over.
    """

    table: FrequencyTable
    recoding: Recoding
    index: Index
    first: Index
    rows: Counts64
    crowd: Counts64
    size: Counts64
    suppressed: Flags
    population: Counts64 | None = None
    population_reason: str = "needs a population table"
    pairs: tuple[Codes, Codes] | None = None
    weights: tuple[float, ...] = ()
    reference: Literal["kept", "input"] = "kept"
    _values: dict[str, ClassValues] = field(default_factory=dict, repr=False)

    def __repr__(self) -> str:
        return f"<ClassTable of {counted(len(self.size), 'class', 'classes')}>"

    @property
    def records(self) -> int:
        """N: every original record, released or not."""
        return self.table.records

    @property
    def kept(self) -> Flags:
        return ~self.suppressed

    @property
    def suppressed_rows(self) -> int:
        """Records that are suppressed, in the file or before it."""
        return int(self.rows[self.suppressed].sum()) + self.table.removed

    @property
    def suppressed_units(self) -> int:
        """Units of which a row is suppressed; records where every row is a unit."""
        return self.counted(self.suppressed) + self.table.removed

    def counted(self, some: Flags) -> int:
        """How many units have a row in one of some classes: what a suppression limit counts."""
        units = self.table.units
        return int(self.rows[some].sum()) if units is None else units.gone(self.index, some)

    def upto(self, order: Counts64) -> Counts64:
        """How many units have a row in the first 1, 2, … classes of an order."""
        units = self.table.units
        if units is None:
            return np.cumsum(self.rows[order])
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order))
        first = units.first_gone(self.index, rank)
        return np.cumsum(np.bincount(first, minlength=len(order)))

    @cached_property
    def households(self) -> Counts64 | None:
        """The distinct households that each class hides among; None where the table has none."""
        households = self.table.households
        return None if households is None else households.in_classes(self.index, len(self.rows), self.pairs)

    @cached_property
    def groups(self) -> Codes:
        """The group of each class in each column."""
        return np.stack([r.groups[c[self.first]] for r, c in zip(self.recoding, self.table.codes, strict=True)])

    @cached_property
    def covers(self) -> Counts64:
        """Leaves under the label of each column in each class."""
        return np.stack([r.covers[g] for r, g in zip(self.recoding, self.groups, strict=True)]).astype(np.int64)

    @property
    def leaves(self) -> Counts64:
        """Leaves of each column's domain."""
        return np.array([domain.leaves for domain in self.table.domains], dtype=np.int64)

    @property
    def attribute_weights(self) -> Floats:
        """The weight of each column in losses; 1 unless set."""
        return np.array(self.weights or [1.0] * len(self.recoding))

    def with_suppressed(self, suppressed: Flags) -> ClassTable:
        """The same classes with others suppressed. Where missing values match anything, nobody hides among those."""
        if self.pairs is None:
            return self._labelled(replace(self, suppressed=suppressed))
        left, right = self.pairs
        seen = ~suppressed[left] & ~suppressed[right]
        return self._labelled(replace(self._hiding((left[seen], right[seen])), suppressed=suppressed))

    def _hiding(self, pairs: tuple[Codes, Codes]) -> ClassTable:
        """The same classes, with the others that each hides among."""
        left, right = pairs
        crowd = self.rows.copy()
        np.add.at(crowd, left, self.rows[right])
        units = self.table.units
        size = crowd if units is None else units.in_classes(self.index, len(self.rows), pairs)
        return replace(self, crowd=crowd, size=size, pairs=pairs, _values={})

    def _labelled(self, other: ClassTable) -> ClassTable:
        """The same classes otherwise suppressed, with what is known of their labels already."""
        other.__dict__.update({name: known for name, known in self.__dict__.items() if name in ("groups", "covers")})
        return other

    def values(self, column: str) -> ClassValues:
        """The counts of a sensitive column's or the label's values in each class."""
        if column not in self._values:
            self._values[column] = self._tallied(column)
        return self._values[column]

    def distribution(self, column: str) -> Floats:
        """The shares of a column's values over the kept rows (docs/readings.md, 0), or over all of the input."""
        values = self.values(column)
        own = values.own if self.reference == "input" else np.where(self.kept[values.class_of], values.own, 0)
        counts = np.bincount(values.values, weights=own, minlength=len(values.domain.labels))
        return np.asarray(counts / max(counts.sum(), 1.0))

    def references(self, column: str) -> tuple[Floats, Floats]:
        """What classes are compared with: the share of units that hold each value (β, δ), and of their rows (t)."""
        units = self.table.units_for(column)
        if units is None:
            shares = self.distribution(column)
            return shares, shares
        kept = None if self.reference == "input" else self.kept[self.index]
        return units.distribution(column, len(self.table.values_of(column).domain.labels), kept)

    def per_class(self, values: Floats | Counts64 | Flags, hidden: float) -> Property:
        """A property that all records of a class share; `hidden` is what a suppressed record has."""
        return Property.of(self, None, values, self.rows, self.suppressed, hidden)

    def per_value(self, column: str, values: Floats | Counts64 | Flags, hidden: float) -> Property:
        """A property that depends on a record's own value in a column."""
        entries = self.values(column)
        return Property.of(self, column, values, entries.own, self.suppressed[entries.class_of], hidden)

    def per_tuple(self, values: Floats, hidden: Floats) -> Property:
        """A property that depends on a record's original tuple."""
        if self.table.removed:
            raise MeasureError(
                "the original values of removed records are not in this file", expected="the original table"
            )
        suppressed = self.suppressed[self.index]
        return Property.of(
            self, Property.TUPLES, np.where(suppressed, hidden, values), self.table.counts, suppressed, None
        )

    def _tallied(self, column: str) -> ClassValues:
        source = self.table.values_of(column)
        classes, width = len(self.rows), len(source.domain.labels)
        if classes * width <= DENSE_CELLS:
            start, values, own = class_values(self.index, source.tuple_of, source.values, source.counts, classes, width)
        else:
            start, values, own = _sparse(
                self.index[source.tuple_of].astype(np.int64), source.values, source.counts, classes, width
            )
        result = ClassValues(source.domain, start, values, own, own, own, own, self.crowd)
        if self.pairs is not None:
            result = _with_matches(result, self.pairs)
        units = self.table.units_for(column) if column in self.table.sensitive else None
        if units is None:
            return result
        keys = result.class_of * width + result.values
        held, weight, size = units.with_values(column, self.index, keys, classes, width, self.pairs)
        return replace(result, held=held, weight=weight, size=size)


def classify(table: FrequencyTable, recoding: Recoding | None = None, weights: Sequence[float] = ()) -> ClassTable:
    """The equivalence classes of a table, as it stands or under a recoding.

    Args:
        table: the frequency table of a study.
        recoding: what each column is recoded to; as it stands unless given.
        weights: how much each column counts in losses; equally unless given.

    Returns:
        The classes.
    """
    standing = recoding is None
    plan: Recoding = as_it_stands(table) if recoding is None else recoding
    index, first = class_index(*folded(table.packed), *flattened(plan))
    rows = class_rows(index, table.counts, len(first))
    suppressed = np.zeros(len(rows), dtype=np.bool_)
    if standing:
        suppressed[index[table.starred]] = True
    size = rows if table.units is None else table.units.in_classes(index, len(first))
    result = ClassTable(table, plan, index, first, rows, rows, size, suppressed, weights=tuple(weights))
    if any(domain.wildcard for domain in table.domains):
        result = _matched(result)
    return result if table.population is None else with_population(result)


def folded(packed: Packed) -> tuple[Index, Counts64, Counts64, Counts64, Index]:
    """Packed tuples as the arrays the kernels take."""
    return packed.codes, packed.members, packed.first, packed.sizes, packed.decode


def flattened(recoding: Recoding) -> tuple[Index, Counts64, Counts64]:
    """A recoding as flat arrays for the kernels: groups, where each column starts, groups per column."""
    groups = np.concatenate([part.groups for part in recoding]).astype(np.uint32)
    sizes = np.array([len(part.groups) for part in recoding], dtype=np.int64)
    start = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
    return groups, start, np.array([part.radix for part in recoding], dtype=np.int64)


def margins_of(table: FrequencyTable) -> Counts64:
    """The records of each code, column after column."""
    parts = [
        np.bincount(codes, weights=table.counts, minlength=len(domain.labels))
        for domain, codes in zip(table.domains, table.codes, strict=True)
    ]
    return np.concatenate(parts).astype(np.int64)


def with_population(classes: ClassTable) -> ClassTable:
    """The same classes with how many people of the population look like each, or the reason why that is not known."""
    people = classes.table.population
    if people is None:
        return classes
    reason = None
    if any(domain.wildcard for domain in classes.table.domains):
        reason = "is not defined where missing values match anything"
    groups = []
    for j, (domain, part) in enumerate(zip(classes.table.domains, classes.recoding, strict=True)):
        released = np.unique(classes.table.codes[j][classes.kept[classes.index]])
        leaf_groups = _group_of_leaves(domain, part.groups, released)
        if leaf_groups is None:
            reason = f"cannot be computed: the labels of {domain.name} overlap"
            break
        groups.append(leaf_groups[people.codes[j]])
    if reason is not None:
        return replace(classes, population_reason=reason)
    # The classes and the people's tuples are numbered together; a leaf that no label covers is in nobody's class.
    _, number = np.unique(np.concatenate([classes.groups, np.stack(groups)], axis=1), axis=1, return_inverse=True)
    everyone = np.bincount(number[len(classes.rows) :], weights=people.counts, minlength=int(number.max()) + 1)
    sizes = everyone[number[: len(classes.rows)]].astype(np.int64)
    short = int(np.sum((sizes < classes.size) & classes.kept))
    if short:
        return replace(
            classes, population_reason=f"cannot be computed: the population table lacks people of {short} classes"
        )
    return replace(classes, population=np.maximum(sizes, 1))


def _group_of_leaves(domain: Domain, groups: Codes, released: Codes) -> Codes | None:
    """The group of each leaf (-1: none), or None when two released labels of different groups share a leaf."""
    if len(domain.labels) == len(domain.hierarchy.leaves):
        return groups
    result = np.full(len(domain.labels), -1, dtype=np.int32)
    for code in released:
        inside = np.flatnonzero(domain.inside(int(code)))
        if np.any((result[inside] >= 0) & (result[inside] != groups[code])):
            return None
        result[inside] = groups[code]
    return result


def _matched(classes: ClassTable) -> ClassTable:
    """Class sizes where a missing value matches anything."""
    wild = []
    for domain, part in zip(classes.table.domains, classes.recoding, strict=True):
        group = part.groups[domain.missing] if domain.wildcard and domain.missing is not None else -1
        alone = group >= 0 and np.count_nonzero(part.groups == group) == 1
        wild.append(int(group) if alone else -1)
    left, right = matching_pairs(classes.groups, np.array(wild, dtype=np.int32))
    seen = classes.kept[left] & classes.kept[right]  # nobody hides among records that are not released
    return classes._hiding((left[seen], right[seen]))


def _with_matches(values: ClassValues, pairs: tuple[Codes, Codes]) -> ClassValues:
    """Add to each class the values of the classes it matches."""
    left, right = pairs
    lengths = np.diff(values.start)[right]
    begin = values.start[right]
    offsets = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    entries = np.repeat(begin, lengths) + offsets
    classes, width = len(values.start) - 1, len(values.domain.labels)
    class_of = np.concatenate([values.class_of, np.repeat(left, lengths)]).astype(np.int64)
    result = np.concatenate([values.values, values.values[entries]])
    start, merged, counts = _sparse(class_of, result, np.concatenate([values.own, values.own[entries]]), classes, width)
    own = np.zeros(len(merged), dtype=np.int64)
    keys = np.repeat(np.arange(classes), np.diff(start)) * width + merged
    own[np.searchsorted(keys, values.class_of * width + values.values)] = values.own
    crowd = np.bincount(np.repeat(np.arange(classes), np.diff(start)), weights=counts, minlength=classes)
    return ClassValues(values.domain, start, merged, counts, own, counts, counts, crowd.astype(np.int64))


def _sparse(
    class_of: Counts64, values: Codes, counts: Counts64, classes: int, width: int
) -> tuple[Counts64, Codes, Counts64]:
    """Like the kernel, by sorting: for domains too large for a dense table."""
    keys, inverse = np.unique(class_of * width + values, return_inverse=True)
    summed = np.bincount(inverse, weights=counts).astype(np.int64)
    start = np.concatenate([[0], np.cumsum(np.bincount(keys // width, minlength=classes))])
    return start.astype(np.int64), (keys % width).astype(np.int32), summed


Masks = npt.NDArray[np.uint64]
EXEMPT = 1 << 30  # the diversity of a class in which there is nothing to be learned: larger than any other


@compiled
def bit_count(word: int) -> int:
    """How many bits are set."""
    x = np.uint64(word)
    x = x - ((x >> np.uint64(1)) & np.uint64(0x5555555555555555))
    x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return int((x * np.uint64(0x0101010101010101)) >> np.uint64(56))


@compiled
def diversity(mask: Masks, words: Counts64) -> int:
    """The fewest different values over the sensitive columns; `words` says where each column's bits begin.

    The first bit of a column is that of all harmless values together, and a missing value has none. A column with no
    other bit is exempt; EXEMPT says that all are.
    """
    least = EXEMPT
    for column in range(len(words) - 1):
        held = 0
        for w in range(words[column], words[column + 1]):
            held += bit_count(mask[w])
        harmless = int(mask[words[column]] & np.uint64(1)) if words[column + 1] > words[column] else 0
        if held > harmless:
            least = min(least, held)
    return least


def bits_of(domain: Domain) -> Codes:
    """The bit of each label: the first for all that are harmless, -1 for a missing value, which has none."""
    harmful = domain.harm == HARMFUL
    bits = np.where(harmful, np.cumsum(harmful), 0)
    return np.where(domain.harm == UNKNOWN, -1, bits).astype(np.int32)


def sensitive_masks(table: FrequencyTable) -> tuple[Masks, Counts64]:
    """The sensitive values of each tuple as bits; `words[c]` is where those of column c begin."""
    values = list(table.sensitive.values())
    bits = [bits_of(held.domain) for held in values]
    sizes = [int(of.max(initial=0)) // 64 + 1 for of in bits]
    words = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    masks = np.zeros((table.tuples, int(words[-1])), dtype=np.uint64)
    for column, (held, of) in enumerate(zip(values, bits, strict=True)):
        place = of[held.values].astype(np.int64)
        known = place >= 0
        word, bit = np.divmod(place[known], 64)
        there = np.uint64(1) << bit.astype(np.uint64)
        np.bitwise_or.at(masks, (held.tuple_of[known], words[column] + word), there)
    return masks, words


def no_masks(table: FrequencyTable) -> tuple[Masks, Counts64]:
    """The bits of a table whose sensitive values do not matter."""
    return np.zeros((table.tuples, 0), dtype=np.uint64), np.zeros(1, dtype=np.int64)
