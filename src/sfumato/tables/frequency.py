"""Frequency tables: distinct tuples of the quasi-identifiers with counts, which measures and searches read.

Several small columns are packed into one, so that a kernel looks up three codes and not eight.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from sfumato.base.arrays import Codes, Counts64, Flags, Floats, Index
from sfumato.errors import counted
from sfumato.tables.domain import Domain
from sfumato.tables.units import Units

LIMIT = 4096  # entries of a look-up table that stays in the fastest cache


@dataclass(frozen=True, eq=False)
class Packed:
    """Tuples in packed columns.

    Packed column c holds the columns `members[first[c]:first[c + 1]]`. `decode[c, i, code]` is the code of its i-th
    member, and `codes[c, t]` the packed code of tuple t.
    """

    codes: Index
    members: Counts64
    first: Counts64
    sizes: Counts64
    decode: Index


def pack(codes: Codes, sizes: Sequence[int]) -> Packed:
    """Pack columns whose domains multiply to at most LIMIT, the largest first.

    >>> packed = pack(np.array([[0, 1, 2], [1, 0, 1]], dtype=np.int32), [3, 2])
    >>> packed.codes.tolist(), packed.decode[0, :, 3].tolist()
    ([[1, 2, 5]], [1, 1])
    """
    folded: list[list[int]] = []
    for column in sorted(range(len(sizes)), key=lambda column: -sizes[column]):
        fits = (group for group in folded if int(np.prod([sizes[c] for c in group])) * sizes[column] <= LIMIT)
        group = next(fits, None)
        if group is None:
            folded.append([column])
        else:
            group.append(column)
    widths = np.array([int(np.prod([sizes[c] for c in group])) for group in folded], dtype=np.int64)
    deepest = max(len(group) for group in folded)
    decode = np.zeros((len(folded), deepest, int(widths.max())), dtype=np.uint32)
    joined = np.zeros((len(folded), codes.shape[1]), dtype=np.uint32)
    for number, group in enumerate(folded):
        rest = np.arange(widths[number])
        for i, column in reversed(list(enumerate(group))):
            decode[number, i, : widths[number]] = rest % sizes[column]
            rest = rest // sizes[column]
        for column in group:
            joined[number] = joined[number] * np.uint32(sizes[column]) + codes[column].astype(np.uint32)
    members = np.array([column for group in folded for column in group], dtype=np.int64)
    first = np.cumsum([0, *(len(group) for group in folded)]).astype(np.int64)
    return Packed(joined, members, first, widths, decode)


@dataclass(frozen=True, eq=False)
class ValueCounts:
    """Counts of each value of a column with each tuple, sorted by tuple, then value.

    `start[t]:start[t + 1]` are the entries of tuple t.
    """

    domain: Domain
    start: Counts64
    values: Codes
    counts: Counts64

    @property
    def tuple_of(self) -> Counts64:
        """The tuple of each entry."""
        return np.repeat(np.arange(len(self.start) - 1), np.diff(self.start))


@dataclass(frozen=True, eq=False)
class Population:
    """Tuples of the population the table was drawn from, in the codes of the table's domains."""

    codes: Codes
    counts: Counts64


@dataclass(frozen=True, eq=False, repr=False)
class FrequencyTable:
    """Distinct quasi-identifier tuples with their counts, and with counts of sensitive values and labels.

    `codes[j, t]` is the code of tuple t in column j. The tuples are in the order of their codes, so that the same data
    give the same table on any number of threads. The `units` are the persons that rows belong to (None where every row
    is a person). The `households` are the households of the persons (None where none are declared), and `household_of`
    has the household of every unit. The number `left_out` counts the records of the source that the missing rule left
    out, here or before a release.
    """

    domains: tuple[Domain, ...]
    codes: Codes
    counts: Counts64
    sensitive: Mapping[str, ValueCounts] = field(default_factory=dict)
    label: ValueCounts | None = None
    weights: Floats | None = None
    population: Population | None = None
    units: Units | None = None
    households: Units | None = None
    household_of: Codes | None = None
    rows_read: int = 0
    left_out: int = 0
    removed: int = 0
    fingerprint: str = ""

    def __repr__(self) -> str:
        tuples = counted(self.codes.shape[1], "distinct tuple")
        return f"<FrequencyTable of {counted(len(self.domains), 'column')}: {tuples}>"

    @property
    def columns(self) -> tuple[str, ...]:
        """The quasi-identifiers, in order."""
        return tuple(domain.name for domain in self.domains)

    @property
    def rows(self) -> int:
        """Records in the table (those removed from a release before are not)."""
        return int(self.counts.sum())

    @property
    def records(self) -> int:
        """N: the records in the table and those removed from it before."""
        return self.rows + self.removed

    @property
    def tuples(self) -> int:
        return len(self.counts)

    @property
    def persons(self) -> int:
        """The units in the table and those removed from it before: records where every row is a unit."""
        return self.records if self.units is None else self.units.number

    @property
    def counts_units(self) -> bool:
        """Whether figures of disclosure count persons or households, of which one may have several records."""
        return self.units is not None or self.households is not None

    def units_for(self, column: str) -> Units | None:
        """Return the units that ℓ, t and similar measures count: households where the column is constant in them."""
        households = self.households
        if households is not None and column in households.values and households.constant_in(column):
            return households
        return self.units

    @cached_property
    def packed(self) -> Packed:
        """The tuples in packed columns, which the kernels read."""
        return pack(self.codes, [len(domain.labels) for domain in self.domains])

    @property
    def special(self) -> bool:
        """Whether some sensitive value is harmless or missing, so that classes may be exempt from ℓ, α, β and δ."""
        return any(values.domain.special for values in self.sensitive.values())

    @property
    def starred(self) -> Flags:
        """Tuples in which all quasi-identifiers are hidden, which are suppressed rows in the file.

        If all rows are such, the table is generalized to the top and no row is suppressed.
        """
        flags = np.ones(self.tuples, dtype=np.bool_)
        for domain, codes in zip(self.domains, self.codes, strict=True):
            flags &= np.isin(codes, domain.stars)
        return flags if not flags.all() else np.zeros_like(flags)

    def values_of(self, column: str) -> ValueCounts:
        """Return the value counts of a sensitive column or of the label."""
        if self.label is not None and self.label.domain.name == column:
            return self.label
        return self.sensitive[column]


def from_codes(
    domains: Sequence[Domain],
    records: Codes,
    sensitive: Mapping[str, tuple[Domain, Codes]] | None = None,
    label: tuple[Domain, Codes] | None = None,
    removed: int = 0,
) -> FrequencyTable:
    """Return a frequency table from one code per column and record, for tables that are already in memory.

    `records[j, i]` is the code of record i in column j.
    """
    order = np.lexsort(records[::-1])
    ordered = records[:, order]
    new = np.ones(ordered.shape[1], dtype=np.bool_)
    new[1:] = np.any(ordered[:, 1:] != ordered[:, :-1], axis=0)
    tuple_of = np.cumsum(new) - 1
    counts = np.bincount(tuple_of).astype(np.int64)

    def tallied(domain: Domain, codes: Codes) -> ValueCounts:
        keys, number = np.unique(tuple_of * len(domain.labels) + codes[order], return_counts=True)
        return value_counts(domain, keys // len(domain.labels), keys % len(domain.labels), number, len(counts))

    return FrequencyTable(
        tuple(domains),
        np.ascontiguousarray(ordered[:, new], dtype=np.int32),
        counts,
        {name: tallied(*pair) for name, pair in (sensitive or {}).items()},
        tallied(*label) if label else None,
        rows_read=records.shape[1],
        removed=removed,
    )


def value_counts(domain: Domain, tuple_of: Counts64, values: Codes, counts: Counts64, tuples: int) -> ValueCounts:
    """Return value counts from entries that are sorted by tuple, then value."""
    start = np.zeros(tuples + 1, dtype=np.int64)
    np.cumsum(np.bincount(tuple_of, minlength=tuples), out=start[1:])
    return ValueCounts(domain, start, values.astype(np.int32), counts.astype(np.int64))
