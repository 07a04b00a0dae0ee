"""What a disguised file shows when it is read back, and whether the channel can have made it.

Given the truth, the reports of a group of records are independent draws, so how often one report occurs among them is
a sum of independent coins. Such a sum has lighter tails than the binomial one with the same mean (Hoeffding 1956), so
binomial tails, times the number of counts compared, bound the chance of a false alarm for a file of any size.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.errors import DataError
from sfumato.plans.channel import Channel
from sfumato.runtime.arrays import Floats
from sfumato.sources.cells import cleaned
from sfumato.sources.engines.engine import Engine
from sfumato.sources.source import Source
from sfumato.sources.value_counts import cell_sql, require
from sfumato.tables.missing import present

LEVEL = 1e-6  # the chance that a file which the channel did make is refused
MOST_VALUES = 200  # the reports are compared beside each value of a plain column with no more values than this
EVERYBODY = ""

Counts = Mapping[str, Floats]


@dataclass(frozen=True)
class Rows:
    """Rows of a table as the engine knows them; those that miss a value of a column in `complete` do not count."""

    engine: Engine
    source: Source
    view: str
    complete: tuple[str, ...] = ()

    def attach(self) -> Rows:
        """Make the table readable."""
        self.engine.attach(self.source, self.view)
        return self

    def sql(self, columns: Sequence[str]) -> str:
        """Cleaned cells `k0`, `k1`, … of the rows that count."""
        cells = ", ".join(f"{cell_sql(self.source, name)} AS k{i}" for i, name in enumerate(columns)) or "1 AS k0"
        kept = present(cleaned(self.source, self.source.column(name)) for name in self.complete)
        return f"SELECT {cells} FROM {self.view} WHERE {kept}"

    def count(self) -> int:
        return int(self.engine.rows(f"SELECT count(*) FROM ({self.sql(())}) AS t")[0][0])

    def few_values(self, columns: Sequence[str]) -> list[str]:
        """Those of the columns that have no more than MOST_VALUES different values."""
        if not columns:
            return []
        listed = ", ".join(f"count(DISTINCT k{i})" for i in range(len(columns)))
        counts = self.engine.rows(f"SELECT {listed} FROM ({self.sql(columns)}) AS t")[0]
        return [name for name, count in zip(columns, counts, strict=True) if int(count) <= MOST_VALUES]

    def counts(self, columns: Sequence[str], cells: Sequence[tuple[str, ...]], beside: str | None = None) -> Counts:
        """How often each of the cells occurs beside each value of a column; beside none, among everybody."""
        names = [*columns, *([beside] if beside else [])]
        keys = ", ".join(f"k{i}" for i in range(len(names)))
        places = {cell: position for position, cell in enumerate(cells)}
        counted: dict[str, Floats] = {}
        strange = 0
        for row in self.engine.rows(f"SELECT {keys}, count(*) FROM ({self.sql(names)}) AS t GROUP BY {keys}"):
            position = places.get(tuple(map(str, row[: len(columns)])))
            if position is None:
                strange += int(row[-1])
                continue
            counted.setdefault(str(row[-2]) if beside else EVERYBODY, np.zeros(len(cells)))[position] += int(row[-1])
        if strange:
            raise DataError(
                f"{strange} rows have a value of {', '.join(columns)} that the channel does not know",
                expected="only what the channel knows",
            )
        return counted

    def everybody(self, columns: Sequence[str], cells: Sequence[tuple[str, ...]]) -> Floats:
        """How often each of the cells occurs among all rows."""
        return self.counts(columns, cells).get(EVERYBODY, np.zeros(len(cells)))


def differing_rows(source: Rows, written: Rows, columns: Sequence[str]) -> int:
    """Rows that stand in one of the two only, looking at some columns."""
    require(written.source, columns)
    if not columns:
        return abs(source.count() - written.count())
    keys = ", ".join(f"k{i}" for i in range(len(columns)))
    both = " UNION ALL ".join(
        f"SELECT *, {side} AS side FROM ({rows.sql(columns)}) AS t" for rows, side in ((source, 1), (written, -1))
    )
    sides = f"SELECT sum(side) AS n FROM ({both}) AS t GROUP BY {keys}"
    return int(source.engine.rows(f"SELECT CAST(coalesce(sum(abs(n)), 0) AS BIGINT) FROM ({sides}) AS d")[0][0])


@dataclass(frozen=True)
class Agreement:
    """Whether reports can be the channel's: the least chance of any count, times how many counts were compared."""

    chance: float
    compared: int
    level: float = LEVEL

    @property
    def holds(self) -> bool:
        return self.chance >= self.level

    def as_dict(self) -> dict[str, float]:
        return {"chance": self.chance, "compared": self.compared, "level": self.level}


def agreement(source: Rows, written: Rows, channels: Sequence[Channel], kept: Sequence[str]) -> Agreement:
    """Compare the reports of a file with what the channels make of the truth, for all rows and beside plain columns.

    Beside the values of a plain column a report that belongs to another row, or none, shows; in the whole it may not.
    """
    beside = [None, *source.few_values(kept)]
    least, compared = 1.0, 0
    for channel in channels:
        for column in beside:
            truth = source.counts(channel.columns, channel.cells, column)
            reports = written.counts([channel.name], channel.output_cells, column)
            chances = [
                chance_of(reports.get(value, np.zeros(len(channel.outputs))), counts, channel.matrix)
                for value, counts in truth.items()
            ]
            least = min([least, *chances]) if set(reports) <= set(truth) else 0.0
            compared += len(truth) * len(channel.outputs)
    return Agreement(min(least * compared, 1.0), compared)


def chance_of(reports: Floats, truth: Floats, matrix: Floats) -> float:
    """The least chance, over the reports, of a count as far from its mean as this one; 0 if it cannot be at all.

    >>> coin = np.array([[0.75, 0.25], [0.25, 0.75]])
    >>> chance_of(np.array([500.0, 500.0]), np.array([500.0, 500.0]), coin)
    1.0
    >>> chance_of(np.array([700.0, 300.0]), np.array([500.0, 500.0]), coin) < 1e-30
    True
    """
    from scipy.stats import binom

    records = truth.sum()
    if reports.sum() != records:
        return 0.0
    expected = np.clip(matrix @ truth / records, 0.0, 1.0)
    tails = np.minimum(binom.cdf(reports, records, expected), binom.sf(reports - 1, records, expected))
    return float(min(2.0 * tails.min(), 1.0))
