"""A property of a table: one number per original record, and the ways to fold it into one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from sfumato.runtime.arrays import Codes, Counts64, Flags, Floats, Index
from sfumato.tables.frequency import FrequencyTable


class Entries(Protocol):
    """The values of one column in each class."""

    @property
    def values(self) -> Codes: ...

    @property
    def class_of(self) -> Counts64: ...


class Classes(Protocol):
    """What a property reads of a class table."""

    @property
    def table(self) -> FrequencyTable: ...

    @property
    def index(self) -> Index: ...

    def values(self, name: str) -> Entries: ...


@dataclass(frozen=True, eq=False)
class Property:
    """One number per record, stored once for each set of records that share it.

    Suppressed records are in it with the value their measure declares, those removed from the file too
    (docs/readings.md, 0). A worst case is taken over the kept records, a sum, mean or quantile over all.
    """

    TUPLES: ClassVar[str] = "\0tuples"

    classes: Classes
    over: str | None
    values: Floats
    rows: Counts64
    kept: Flags

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
        """The worst value of a released record: the least if more is better, else the largest."""
        seen = self.values[self.kept & (self.rows > 0)]
        if not len(seen):
            return float("nan")
        return float(seen.min() if direction == "max" else seen.max())

    def total(self) -> float:
        """The sum over all records."""
        there = self.rows > 0
        return float(np.sum(self.values[there] * self.rows[there]))

    def mean(self) -> float:
        return self.total() / max(int(self.rows.sum()), 1)

    def quantiles(self, shares: Sequence[float]) -> list[float]:
        """The values below which the given shares of the records lie."""
        there = self.rows > 0
        order = np.argsort(self.values[there], kind="stable")
        values, upto = self.values[there][order], np.cumsum(self.rows[there][order])
        places = [min(int(np.searchsorted(upto, share * upto[-1], side="left")), len(values) - 1) for share in shares]
        return [float(values[position]) for position in places]

    def records(self) -> Floats:
        """One number per record: in the order of the frequency table, removed records last.

        The order does not depend on the recoding, so two recodings compare record by record.
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
