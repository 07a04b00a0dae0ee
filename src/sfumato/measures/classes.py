"""The class table: the equivalence classes of a frequency table under a recoding. Measures are functions of it.

If missing values match anything, a class also matches classes with other labels. Sets of sensitive values are bits for
the compiled loops.
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
    """Return all ordered pairs of different classes that match: equal in each column in which neither is missing.

    Classes with the same pattern of missing columns are joined together, on the columns that both patterns have.

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
                continue  # joined already, in the other order
            left, right = _joined(groups[~(patterns[one] | patterns[two])], members[one], members[two])
            kept = left < right if one == two else left != right
            some += [left[kept], right[kept]]
            others += [right[kept], left[kept]]
    return np.concatenate(some).astype(np.int32), np.concatenate(others).astype(np.int32)


def _joined(groups: Codes, left: Counts64, right: Counts64) -> tuple[Counts64, Counts64]:
    """Return all pairs of a left and a right class with equal groups."""
    number = np.zeros(len(left) + len(right), dtype=np.int64)
    for column in groups[:, np.concatenate([left, right])]:  # renumbered after each column, so that no key overflows
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
    """The values of a column in each class: entries `start[c]:start[c + 1]`, sorted by value.

    The records of the class are counted in `own`, all records that match the class in `counts`. The two differ only if
    missing values match anything. Of the `size` units that match a class, `held` have the value, and `weight` is the
    sum over them of the share of their rows with it. If every row is a unit, all three count records.
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
        """Return the class of each entry."""
        return np.repeat(np.arange(len(self.start) - 1), np.diff(self.start))

    def fold(self, function: np.ufunc, entries: Floats | Counts64 | Flags) -> Floats:
        """Reduce the entries of each class, such as `fold(np.maximum, counts)`."""
        return np.asarray(function.reduceat(entries, self.start[:-1]), dtype=np.float64)


@dataclass(frozen=True, eq=False, repr=False)
class ClassTable:
    """The equivalence classes of a table under a recoding.

    Tuple t is in class `index[t]`. A class has `rows` records, which match `crowd` records (the same number, unless
    missing values match anything) of `size` units (the same number, unless the table has units). The classes that are
    not released are `suppressed`. Whether the distribution of a sensitive column is that of the kept rows or of the
    input is the `reference`.
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
        """Return N: the number of all original records, released or not."""
        return self.table.records

    @property
    def kept(self) -> Flags:
        return ~self.suppressed

    @property
    def suppressed_rows(self) -> int:
        """Return the number of suppressed records, including those that were removed before."""
        return int(self.rows[self.suppressed].sum()) + self.table.removed

    @property
    def suppressed_units(self) -> int:
        """Return the number of units with a suppressed row, which are records if every row is a unit."""
        return self.counted(self.suppressed) + self.table.removed

    def counted(self, some: Flags) -> int:
        """Return the number of units with a row in some classes, which is what a suppression limit counts."""
        units = self.table.units
        return int(self.rows[some].sum()) if units is None else units.gone(self.index, some)

    def upto(self, order: Counts64) -> Counts64:
        """Return the number of units with a row in the first 1, 2, … classes of an order."""
        units = self.table.units
        if units is None:
            return np.cumsum(self.rows[order])
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order))
        first = units.first_gone(self.index, rank)
        return np.cumsum(np.bincount(first, minlength=len(order)))

    @cached_property
    def households(self) -> Counts64 | None:
        """Return the number of distinct households that match each class, or None for a table without households."""
        households = self.table.households
        return None if households is None else households.in_classes(self.index, len(self.rows), self.pairs)

    @cached_property
    def groups(self) -> Codes:
        """Return the group of each class in each column."""
        return np.stack([r.groups[c[self.first]] for r, c in zip(self.recoding, self.table.codes, strict=True)])

    @cached_property
    def covers(self) -> Counts64:
        """Return the number of leaves under the label of each class in each column."""
        return np.stack([r.covers[g] for r, g in zip(self.recoding, self.groups, strict=True)]).astype(np.int64)

    @property
    def leaves(self) -> Counts64:
        """Return the number of leaves of each column's domain."""
        return np.array([domain.leaves for domain in self.table.domains], dtype=np.int64)

    @property
    def attribute_weights(self) -> Floats:
        """Return the weight of each column in losses, by default 1."""
        return np.array(self.weights or [1.0] * len(self.recoding))

    def with_suppressed(self, suppressed: Flags) -> ClassTable:
        """Return the classes with others suppressed. Suppressed classes no longer match classes with missing values."""
        if self.pairs is None:
            return self._labelled(replace(self, suppressed=suppressed))
        left, right = self.pairs
        seen = ~suppressed[left] & ~suppressed[right]
        return self._labelled(replace(self._hiding((left[seen], right[seen])), suppressed=suppressed))

    def _hiding(self, pairs: tuple[Codes, Codes]) -> ClassTable:
        """Return the classes with the given pairs of matching classes."""
        left, right = pairs
        crowd = self.rows.copy()
        np.add.at(crowd, left, self.rows[right])
        units = self.table.units
        size = crowd if units is None else units.in_classes(self.index, len(self.rows), pairs)
        return replace(self, crowd=crowd, size=size, pairs=pairs, _values={})

    def _labelled(self, other: ClassTable) -> ClassTable:
        """Copy the cached labels to the same classes with another suppression."""
        other.__dict__.update({name: known for name, known in self.__dict__.items() if name in ("groups", "covers")})
        return other

    def values(self, column: str) -> ClassValues:
        """Return the counts of the values of a sensitive column or of the label in each class."""
        if column not in self._values:
            self._values[column] = self._tallied(column)
        return self._values[column]

    def distribution(self, column: str) -> Floats:
        """Return the shares of a column's values over the kept rows (docs/readings.md, 0), or over the input."""
        values = self.values(column)
        own = values.own if self.reference == "input" else np.where(self.kept[values.class_of], values.own, 0)
        counts = np.bincount(values.values, weights=own, minlength=len(values.domain.labels))
        return np.asarray(counts / max(counts.sum(), 1.0))

    def references(self, column: str) -> tuple[Floats, Floats]:
        """Return the distributions that classes are compared with: of units (for β and δ) and of their rows (for t)."""
        units = self.table.units_for(column)
        if units is None:
            shares = self.distribution(column)
            return shares, shares
        kept = None if self.reference == "input" else self.kept[self.index]
        return units.distribution(column, len(self.table.values_of(column).domain.labels), kept)

    def per_class(self, values: Floats | Counts64 | Flags, hidden: float) -> Property:
        """Return a property with one number for each class, and `hidden` for suppressed records."""
        return Property.of(self, None, values, self.rows, self.suppressed, hidden)

    def per_value(self, column: str, values: Floats | Counts64 | Flags, hidden: float) -> Property:
        """Return a property that depends on the record's own value in a column."""
        entries = self.values(column)
        return Property.of(self, column, values, entries.own, self.suppressed[entries.class_of], hidden)

    def per_tuple(self, values: Floats, hidden: Floats) -> Property:
        """Return a property that depends on the record's original tuple."""
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
    """Return the equivalence classes of a table, unchanged or under a recoding.

    Args:
        table: the frequency table of a study.
        recoding: the groups of each column. By default the table is unchanged.
        weights: the weight of each column in losses, by default 1.

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
    """Return packed tuples as the arguments of the kernels."""
    return packed.codes, packed.members, packed.first, packed.sizes, packed.decode


def flattened(recoding: Recoding) -> tuple[Index, Counts64, Counts64]:
    """Return a recoding as flat arrays for the kernels: groups, the start of each column, its number of groups."""
    groups = np.concatenate([part.groups for part in recoding]).astype(np.uint32)
    sizes = np.array([len(part.groups) for part in recoding], dtype=np.int64)
    start = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
    return groups, start, np.array([part.radix for part in recoding], dtype=np.int64)


def margins_of(table: FrequencyTable) -> Counts64:
    """Return the number of records of each code, column after column."""
    parts = [
        np.bincount(codes, weights=table.counts, minlength=len(domain.labels))
        for domain, codes in zip(table.domains, table.codes, strict=True)
    ]
    return np.concatenate(parts).astype(np.int64)


def with_population(classes: ClassTable) -> ClassTable:
    """Return the classes with the number of matching people of the population, or the reason why it is unknown."""
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
    # Classes and tuples of the population are numbered together. People with a leaf under no label are in no class.
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
    """Return the group of each leaf (-1: none), or None if labels of different groups have a leaf in common."""
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
    """Return the classes with their matches, for missing values that match anything."""
    wild = []
    for domain, part in zip(classes.table.domains, classes.recoding, strict=True):
        group = part.groups[domain.missing] if domain.wildcard and domain.missing is not None else -1
        alone = group >= 0 and np.count_nonzero(part.groups == group) == 1
        wild.append(int(group) if alone else -1)
    left, right = matching_pairs(classes.groups, np.array(wild, dtype=np.int32))
    seen = classes.kept[left] & classes.kept[right]  # records that are not released protect no other record
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
    """Count values like the kernel `class_values`, by sorting, for domains that are too large for a dense table."""
    keys, inverse = np.unique(class_of * width + values, return_inverse=True)
    summed = np.bincount(inverse, weights=counts).astype(np.int64)
    start = np.concatenate([[0], np.cumsum(np.bincount(keys // width, minlength=classes))])
    return start.astype(np.int64), (keys % width).astype(np.int32), summed


Masks = npt.NDArray[np.uint64]
EXEMPT = 1 << 30  # the diversity of a class without a value that may not be learned; no other class has more


@compiled
def bit_count(word: int) -> int:
    """Return the number of bits that are set."""
    x = np.uint64(word)
    x = x - ((x >> np.uint64(1)) & np.uint64(0x5555555555555555))
    x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return int((x * np.uint64(0x0101010101010101)) >> np.uint64(56))


@compiled
def diversity(mask: Masks, words: Counts64) -> int:
    """Return the fewest different values over the sensitive columns. The words of column c begin at `words[c]`.

    The first bit of a column is for all harmless values together, and a missing value has no bit. A column without
    another bit is exempt, and EXEMPT is returned if all columns are.
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
    """Return the bit of each label: 0 for all harmless values, -1 for a missing value, which has no bit."""
    harmful = domain.harm == HARMFUL
    bits = np.where(harmful, np.cumsum(harmful), 0)
    return np.where(domain.harm == UNKNOWN, -1, bits).astype(np.int32)


def sensitive_masks(table: FrequencyTable) -> tuple[Masks, Counts64]:
    """Return the sensitive values of each tuple as bits, and the first word of each column."""
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
    """Return empty sets of bits, for a search that does not use sensitive values."""
    return np.zeros((table.tuples, 0), dtype=np.uint64), np.zeros(1, dtype=np.int64)
