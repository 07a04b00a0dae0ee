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
from sfumato.sources.cells import MISSING, cleaned
from sfumato.sources.engines.engine import Engine, quoted
from sfumato.sources.source import Source
from sfumato.sources.value_counts import cell_sql, require
from sfumato.tables.missing import present

LEVEL = 1e-6  # the chance that a file which the channel did make is refused
MOST_VALUES = 200  # the reports are compared beside each value of a plain column with no more values than this
EVERYBODY = ""


@dataclass(frozen=True, eq=False)
class Truth:
    """What is known of each category: its rows, and the reports that were drawn for it.

    A person gets one report for each different value; it is repeated in all rows with that value. `draws` are the
    persons with a value, `squares` the sum of their squared numbers of rows, `most` the largest such number. Where rows
    are not of persons, every row has a draw of its own.
    """

    rows: Floats
    draws: Floats
    squares: Floats
    most: int = 1

    @classmethod
    def of_rows(cls, rows: Floats) -> Truth:
        """Every row a draw of its own."""
        return cls(rows, rows, rows)

    @property
    def effective(self) -> float:
        """How many independent rows an estimate from all rows is worth: (Σn)²/Σn² over the draws."""
        return float(self.rows.sum() ** 2 / max(self.squares.sum(), 1.0))

    @property
    def repeated(self) -> bool:
        """Whether some draw is in several rows."""
        return self.most > 1

    def same(self, other: Truth) -> bool:
        """Whether two are equal in every number."""
        pairs = ((self.rows, other.rows), (self.draws, other.draws), (self.squares, other.squares))
        return self.most == other.most and all(np.array_equal(one, two) for one, two in pairs)


@dataclass(frozen=True)
class Persons:
    """How many persons the rows are of, and the most reports that one has: one for each different value."""

    number: int
    most_reports: int


Counts = Mapping[str, Truth]


@dataclass(frozen=True)
class Rows:
    """Rows of a table as the engine knows them; those that miss a value of a column in `complete` do not count.

    `unit` is the column with the person that a row belongs to.
    """

    engine: Engine
    source: Source
    view: str
    complete: tuple[str, ...] = ()
    unit: str | None = None

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
        persons = f", k{len(names)}" if self.unit else ""
        drawn = f"SELECT {keys}, count(*) AS n FROM ({self.sql([*names, *self.units])}) AS t GROUP BY {keys}{persons}"
        sums = "sum(n), count(*), sum(n * n), max(n)" if self.unit else "sum(n), sum(n), sum(n), 1"
        places = {cell: position for position, cell in enumerate(cells)}
        counted: dict[str, Floats] = {}
        most: dict[str, int] = {}
        strange = 0
        for row in self.engine.rows(f"SELECT {keys}, {sums} FROM ({drawn}) AS d GROUP BY {keys}"):
            position = places.get(tuple(map(str, row[: len(columns)])))
            if position is None:
                strange += int(row[-4])
                continue
            value = str(row[-5]) if beside else EVERYBODY
            counted.setdefault(value, np.zeros((3, len(cells))))[:, position] += [int(n) for n in row[-4:-1]]
            most[value] = max(most.get(value, 1), int(row[-1]))
        if strange:
            raise DataError(
                f"{strange} rows have a value of {', '.join(columns)} that the channel does not know",
                expected="only what the channel knows",
            )
        return {value: Truth(n[0], n[1], n[2], most[value]) for value, n in counted.items()}

    def everybody(self, columns: Sequence[str], cells: Sequence[tuple[str, ...]]) -> Truth:
        """How often each of the cells occurs among all rows."""
        return self.counts(columns, cells).get(EVERYBODY, Truth.of_rows(np.zeros(len(cells))))

    def persons(self, columns: Sequence[str]) -> Persons | None:
        """The persons in the rows, if their column is declared; raise where a row names none."""
        if self.unit is None:
            return None
        own = len(columns)
        cell = ", ".join(f"k{i}" for i in range(own))
        rows = self.sql([*columns, self.unit])
        without = int(self.engine.rows(f"SELECT count(*) FROM ({rows}) AS t WHERE k{own} = {quoted(MISSING)}")[0][0])
        if without:
            raise DataError(
                f"{without:,} rows have no value in {self.unit}, the unit column",
                expected="the number of a person in every row",
                remedy="complete the column, or leave these rows out of the table",
            )
        pairs = f"SELECT DISTINCT {cell}, k{own} FROM ({rows}) AS t"
        values = f"SELECT k{own}, count(*) AS n FROM ({pairs}) AS d GROUP BY k{own}"
        number, most = self.engine.rows(f"SELECT count(*), coalesce(max(n), 0) FROM ({values}) AS p")[0]
        return Persons(int(number), int(most))

    @property
    def units(self) -> tuple[str, ...]:
        """The column of the person, if there is one."""
        return () if self.unit is None else (self.unit,)


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
            none = Truth.of_rows(np.zeros(len(channel.outputs)))
            chances = [
                chance_of(reports.get(value, none).rows, counts, channel.matrix) for value, counts in truth.items()
            ]
            least = min([least, *chances]) if set(reports) <= set(truth) else 0.0
            compared += len(truth) * len(channel.outputs)
    return Agreement(min(least * compared, 1.0), compared)


def chance_of(reports: Floats, truth: Truth, matrix: Floats) -> float:
    """The least chance, over the reports, of a count as far from its mean as this one; 0 if it cannot be at all.

    >>> coin = np.array([[0.75, 0.25], [0.25, 0.75]])
    >>> truth = Truth.of_rows(np.array([500.0, 500.0]))
    >>> chance_of(np.array([500.0, 500.0]), truth, coin)
    1.0
    >>> chance_of(np.array([700.0, 300.0]), truth, coin) < 1e-30
    True
    """
    from scipy.stats import binom

    records = truth.rows.sum()
    if reports.sum() != records:
        return 0.0
    if truth.repeated:
        return _chance_of_repeated(reports, truth, matrix)
    expected = np.clip(matrix @ truth.rows / records, 0.0, 1.0)
    tails = np.minimum(binom.cdf(reports, records, expected), binom.sf(reports - 1, records, expected))
    return float(min(2.0 * tails.min(), 1.0))


def _chance_of_repeated(reports: Floats, truth: Truth, matrix: Floats) -> float:
    """The same where a draw is in several rows: Bernstein's bound for a sum of coins with different weights."""
    off = np.abs(reports - matrix @ truth.rows)
    variance = (matrix * (1.0 - matrix)) @ truth.squares
    room = 2.0 * (variance + truth.most * off / 3.0)
    power = np.divide(off**2, room, out=np.zeros_like(off), where=room > 0)
    return float(min(2.0 * np.exp(-power).min(), 1.0))
