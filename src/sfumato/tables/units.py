"""Units: the persons or households that rows belong to, and how many of them each class holds (SPEC: n, h and w)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from sfumato.base.arrays import Codes, Counts64, Flags, Floats, Index

Kind = Literal["unit", "household"]
Pairs = tuple[Codes, Codes]  # a class on the left hides among one on the right too (missing values that match anything)


@dataclass(frozen=True, eq=False)
class UnitValues:
    """The values of one column by unit: distinct (tuple, unit, value) with their rows, sorted in that order."""

    tuple_of: Counts64
    unit: Codes
    values: Codes
    rows: Counts64


@dataclass(frozen=True, eq=False, repr=False)
class Units:
    """The units of a frequency table: distinct (tuple, unit) with their rows, sorted in that order.

    Units are numbered 0 to `number` − 1 in the order of their texts. `values` has the sensitive columns.
    """

    kind: Kind
    number: int
    tuples: int
    tuple_of: Counts64
    unit: Codes
    rows: Counts64
    values: Mapping[str, UnitValues]

    def __repr__(self) -> str:
        return f"<Units: {self.number:,} of {int(self.rows.sum()):,} rows>"

    @cached_property
    def constant(self) -> bool:
        """Whether the quasi-identifiers are constant within units: every unit is in one tuple, so counts add up."""
        return len(self.unit) == self.number

    @cached_property
    def per_tuple(self) -> Counts64:
        """The units of each tuple."""
        return np.bincount(self.tuple_of, minlength=self.tuples).astype(np.int64)

    @cached_property
    def by_unit(self) -> tuple[Counts64, Counts64]:
        """The tuples of the pairs sorted by unit, and where the pairs of each unit begin."""
        order = np.argsort(self.unit, kind="stable")
        start = np.concatenate([[0], np.cumsum(np.bincount(self.unit, minlength=self.number))])
        return self.tuple_of[order].astype(np.int64), start.astype(np.int64)

    def regrouped(self, of: Counts64, tuples: int) -> Units:
        """Return the same units in a table with fewer tuples: `of[t]` is the one that a tuple is in."""
        pairs = units_from(self.kind, tuples, of[self.tuple_of], self.unit, self.rows, {})
        values = {
            name: units_from(self.kind, tuples, of[own.tuple_of], own.unit, own.rows, {name: own.values}).values[name]
            for name, own in self.values.items()
        }
        return replace(pairs, number=self.number, values=values)

    def held_in(self, column: str) -> Counts64:
        """Return how many units hold each value in each tuple, in the order of the table's value counts."""
        entries = self.values[column]
        keys = entries.tuple_of << 32 | entries.values
        return np.asarray(np.unique(keys, return_counts=True)[1], dtype=np.int64)

    def constant_in(self, column: str) -> bool:
        """Return whether a sensitive column is constant within units."""
        entries = self.values[column]
        return len(np.unique(entries.unit.astype(np.int64) << 32 | entries.values)) == self.number

    def within(self, kept: Flags) -> Units:
        """Return the units of some tuples, which are numbered anew."""
        position = np.cumsum(kept) - 1
        entries = kept[self.tuple_of]
        known, unit = np.unique(self.unit[entries], return_inverse=True)
        tuple_of = position[self.tuple_of[entries]].astype(np.int64)
        return Units(self.kind, len(known), int(kept.sum()), tuple_of, unit.astype(np.int32), self.rows[entries], {})

    def in_classes(self, index: Index, classes: int, pairs: Pairs | None = None) -> Counts64:
        """Return n: the distinct units of each class, or of the classes it hides among.

        >>> one = np.array([0, 0, 1], dtype=np.int64)
        >>> units = Units("unit", 2, 2, one, np.array([0, 1, 0], dtype=np.int32), np.ones(3, dtype=np.int64), {})
        >>> units.in_classes(np.array([0, 1], dtype=np.uint32), 2), units.in_classes(np.zeros(2, dtype=np.uint32), 1)
        (array([2, 1]), array([2]))
        """
        if self.constant and pairs is None:
            return np.bincount(index, weights=self.per_tuple, minlength=classes).astype(np.int64)
        entry, class_of = _spread(index[self.tuple_of], classes, pairs)
        held = np.unique(class_of * self.number + self.unit[entry])
        return np.bincount(held // self.number, minlength=classes).astype(np.int64)

    def gone(self, index: Index, some: Flags) -> int:
        """Return how many units have a row in one of some classes."""
        if self.constant:
            return int(self.per_tuple[some[index]].sum())
        return len(np.unique(self.unit[some[index[self.tuple_of]]]))

    def first_gone(self, index: Index, rank: Counts64) -> Counts64:
        """Return the least rank of the classes of each unit, which is suppressed with classes up to that rank."""
        result = np.full(self.number, np.iinfo(np.int64).max)
        np.minimum.at(result, self.unit, rank[index[self.tuple_of]])
        return result

    def with_values(
        self, column: str, index: Index, keys: Counts64, classes: int, width: int, pairs: Pairs | None
    ) -> tuple[Counts64, Floats, Counts64]:
        """Return h and w of each (class, value), by sorted `keys` of class · width + value, and n of each class."""
        entries = self.values[column]
        entry, class_of = _spread(index[entries.tuple_of], classes, pairs)
        unit, value, rows = entries.unit[entry], entries.values[entry], entries.rows[entry]
        pair, at = np.unique(class_of * self.number + unit, return_inverse=True)
        held_rows = np.bincount(at, weights=rows, minlength=len(pair))
        triple = np.unique(at * np.int64(width) + value)
        place = np.searchsorted(keys, pair[triple // width] // self.number * width + triple % width)
        h = np.bincount(place, minlength=len(keys)).astype(np.int64)
        share = rows / held_rows[at]
        w = np.bincount(np.searchsorted(keys, class_of * width + value), weights=share, minlength=len(keys))
        return h, np.asarray(w, dtype=np.float64), np.bincount(pair // self.number, minlength=classes).astype(np.int64)

    def distribution(self, column: str, width: int, kept: Flags | None) -> tuple[Floats, Floats]:
        """H/n and W/n over the rows of some tuples (all if None): the references of β and δ, and of t."""
        entries = self.values[column]
        there = slice(None) if kept is None else np.flatnonzero(kept[entries.tuple_of])
        unit, value, rows = entries.unit[there], entries.values[there], entries.rows[there]
        held = np.unique(unit.astype(np.int64) * width + value)
        each = np.bincount(unit, weights=rows, minlength=self.number)
        number = max(int(np.count_nonzero(each)), 1)
        shares = np.bincount(value, weights=rows / each[unit], minlength=width) / number
        return np.bincount(held % width, minlength=width) / number, shares


def _spread(class_of: Index, classes: int, pairs: Pairs | None) -> tuple[Counts64, Counts64]:
    """Entries with their class, and again with every class that hides among theirs."""
    own, entry = class_of.astype(np.int64), np.arange(len(class_of))
    if pairs is None:
        return entry, own
    left, right = pairs[0].astype(np.int64), pairs[1].astype(np.int64)
    order = np.argsort(right, kind="stable")
    start = np.concatenate([[0], np.cumsum(np.bincount(right, minlength=classes))])
    lengths = np.diff(start)[own]
    offsets = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    places = np.repeat(start[own], lengths) + offsets
    return np.concatenate([entry, np.repeat(entry, lengths)]), np.concatenate([own, left[order][places]])


def units_from(
    kind: Kind, tuples: int, tuple_of: Counts64, unit: Codes, rows: Counts64, values: Mapping[str, Codes]
) -> Units:
    """Return the units of a table from entries of a tuple, a unit, its rows, and a value of each sensitive column."""

    def summed(*parts: Counts64 | Codes) -> tuple[list[Counts64], Counts64]:
        order = np.lexsort(parts[::-1])
        ordered = [np.asarray(part, dtype=np.int64)[order] for part in parts]
        new = np.ones(len(order), dtype=np.bool_)
        new[1:] = np.any([part[1:] != part[:-1] for part in ordered], axis=0)
        first = np.flatnonzero(new)
        return [part[first] for part in ordered], np.add.reduceat(rows[order], first) if len(first) else rows[:0]

    (held, units), counts = summed(tuple_of, unit)
    by_column = {}
    for name, value in values.items():
        (of_tuple, of_unit, of_value), number = summed(tuple_of, unit, value)
        by_column[name] = UnitValues(of_tuple, of_unit.astype(np.int32), of_value.astype(np.int32), number)
    highest = int(units.max()) + 1 if len(units) else 0
    return Units(kind, highest, tuples, held, units.astype(np.int32), counts, by_column)
