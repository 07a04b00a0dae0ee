"""Properties of a table: one number for each original record, and the summaries of these numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol

import numpy as np

from sfumato.base.arrays import Codes, Counts64, Flags, Floats, Index
from sfumato.tables.frequency import FrequencyTable


class Entries(Protocol):
    """The values of a column in each class."""

    @property
    def values(self) -> Codes: ...

    @property
    def class_of(self) -> Counts64: ...


class Classes(Protocol):
    """The part of a class table that a property reads."""

    @property
    def table(self) -> FrequencyTable: ...

    @property
    def index(self) -> Index: ...

    def values(self, name: str) -> Entries: ...


@dataclass(frozen=True, eq=False)
class Property:
    """One number for each record, stored once for records that share it.

    Suppressed records, including those removed from the file, have the number that their measure declares
    (docs/readings.md, 0). The worst case is over the kept records. Sums, means and quantiles are over all records. With
    `units` they are over persons, each with the worst number of the person's records.
    """

    TUPLES: ClassVar[str] = "\0tuples"

    classes: Classes
    over: str | None
    values: Floats
    rows: Counts64
    kept: Flags
    units: Floats | None = None

    @classmethod
    def of(
        cls,
        classes: Classes,
        over: str | None,
        values: Floats | Counts64 | Flags,
        rows: Counts64,
        suppressed: Flags,
        hidden: float | None,
    ) -> Property:
        numbers = np.asarray(values, dtype=np.float64)
        if hidden is not None:
            numbers = np.append(np.where(suppressed, hidden, numbers), hidden)
            rows, suppressed = np.append(rows, classes.table.removed), np.append(suppressed, True)
        return cls(classes, over, numbers, rows, ~suppressed)

    def worst(self, direction: str) -> float:
        """Return the worst number of a released record: the least if more is better, else the largest."""
        seen = self.values[self.kept & (self.rows > 0)]
        if not len(seen):
            return float("nan")
        return float(seen.min() if direction == "max" else seen.max())

    def in_units(self, direction: str) -> Property:
        """Return the property with one number for each unit: the worst of its records, suppressed ones included.

        It is unchanged for a table without units.
        """
        units = self.classes.table.units
        if units is None or self.units is not None:
            return self
        if self.over == self.TUPLES:
            unit, numbers = units.unit, self.values[units.tuple_of]
        elif self.over is None:
            unit, numbers = units.unit, self.values[self.classes.index[units.tuple_of]]
        else:
            entries, held = units.values[self.over], self.classes.values(self.over)
            width = len(self.classes.table.values_of(self.over).domain.labels)
            keys = held.class_of.astype(np.int64) * width + held.values
            wanted = self.classes.index[entries.tuple_of].astype(np.int64) * width + entries.values
            unit, numbers = entries.unit, self.values[np.searchsorted(keys, wanted)]
        least = direction == "max"
        result = np.full(units.number, np.inf if least else -np.inf)
        (np.minimum if least else np.maximum).at(result, unit, numbers)
        return replace(self, units=result)

    def limited(self, below: float) -> Property:
        """Return the property without exempt records, which are those with at least a value, unless all are exempt."""
        counted = (self.values < below) & (self.rows > 0)
        if not counted.any():
            return self
        units = None if self.units is None else self.units[self.units < below]
        return replace(self, rows=np.where(counted, self.rows, 0), units=units)

    @property
    def _each(self) -> tuple[Floats, Counts64]:
        """Return the numbers for sums and means, and how often each counts."""
        if self.units is not None:
            return self.units, np.ones(len(self.units), dtype=np.int64)
        there = self.rows > 0
        return self.values[there], self.rows[there]

    def total(self) -> float:
        """Return the sum over all records, or over all units."""
        values, rows = self._each
        return float(np.sum(values * rows))

    def mean(self) -> float:
        return self.total() / max(int(self._each[1].sum()), 1)

    def quantiles(self, shares: Sequence[float]) -> list[float]:
        """Return the quantiles of the numbers of records, or of units, at given shares."""
        values, rows = self._each
        order = np.argsort(values, kind="stable")
        values, upto = values[order], np.cumsum(rows[order])
        places = [min(int(np.searchsorted(upto, share * upto[-1], side="left")), len(values) - 1) for share in shares]
        return [float(values[position]) for position in places]

    def records(self) -> Floats:
        """Return one number for each record, in the order of the frequency table, with removed records last.

        The order does not depend on the recoding, so two recodings can be compared record by record.
        """
        table = self.classes.table
        if self.over == self.TUPLES:
            return np.repeat(self.values, table.counts)
        if self.over is None:
            body = np.repeat(self.values[self.classes.index], table.counts)
        else:
            source, entries = table.values_of(self.over), self.classes.values(self.over)
            width = len(source.domain.labels)
            keys = entries.class_of * width + entries.values
            wanted = self.classes.index[source.tuple_of].astype(np.int64) * width + source.values
            body = np.repeat(self.values[np.searchsorted(keys, wanted)], source.counts)
        return np.append(body, np.repeat(self.values[-1], table.removed))
