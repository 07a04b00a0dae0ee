"""Draw the reports: each value is replaced by one drawn from its column of the matrix, and the rows are shuffled.

Rows stream through the engine in batches. Random numbers come from the operating system, batch by batch, and are not
recorded. Rows are written in random order, because a file sorted by the disguised column would reveal it.

The module also counts a disguised file that is read back, and tests whether the channel can have made it. Given the
true values, the reports of a group of records are independent draws. So the count of a report is a sum of independent
Bernoulli variables, whose tails are lighter than those of the binomial distribution with the same mean (Hoeffding
1956). Binomial tails, multiplied by the number of counts compared, therefore bound the probability of a false alarm for
a file of any size.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from sfumato.base.arrays import Counts64, Floats
from sfumato.data.cells import MISSING, cleaned
from sfumato.data.csv import Dialect
from sfumato.data.engine import Engine
from sfumato.data.source import Source, quoted
from sfumato.data.value_counts import Tally, cell_sql, first_row, require
from sfumato.errors import DataError, counted
from sfumato.plans.channel import Channel
from sfumato.tables.domain import present

if TYPE_CHECKING:
    import pyarrow

TEST_COLUMN = "sfumato_test_seed"
BETWEEN = "\x1f"

Bits = npt.NDArray[np.uint64]
Draw = Callable[[int], Bits]


def check_known(engine: Engine, source: Source, channel: Channel, counted_cells: Tally, reports: bool = False) -> None:
    """Raise if a value is not a category, or not a report. The value is not printed."""
    names = [channel.name] if reports else channel.columns
    known: set[tuple[str, ...]] = set(channel.output_cells if reports else channel.cells)
    places = [counted_cells.columns.index(name) for name in names]
    cells = [tuple(cell[place] for place in places) for cell in counted_cells.cells]
    strange = sorted(set(cells) - known)
    if strange:
        rows = sum(n for cell, n in zip(cells, counted_cells.counts, strict=True) if cell not in known)
        first = first_row(engine, source, names, strange)
        where = f"; the first is in row {first}" if first else ""
        made = "a column that was disguised with this channel" if reports else "the categories the channel was made for"
        check = "that file and channel belong together" if reports else "how missing values are declared"
        raise DataError(
            f"{counted(len(strange), 'value')} of {channel.name} unknown to the channel, in "
            f"{counted(rows, 'row')}{where}",
            expected=made,
            remedy=f"check {check}" if reports else f"search again with this table, or check {check}",
        )


def reading(
    source: Source, channels: Sequence[Channel], kept: Sequence[str], complete: Sequence[str], unit: str | None = None
) -> str:
    """Return the query for the rows to disguise: true values, plain columns, and the person that a row belongs to."""
    between = f" || chr({ord(BETWEEN)}) || "
    parts = [f"{between.join(cell_sql(source, n) for n in one.columns)} AS t{i}" for i, one in enumerate(channels)]
    parts += [f"{cleaned(source, source.column(name))} AS k{i}" for i, name in enumerate(kept)]
    parts += [f"{cell_sql(source, unit)} AS person"] if unit is not None else []
    kept_rows = present(cleaned(source, source.column(name)) for name in complete)
    return f"SELECT {', '.join(parts)} FROM raw WHERE {kept_rows}"


def changer(
    channels: Sequence[Channel],
    kept: int,
    draw: Draw,
    keep_order: bool,
    test_seed: int | None,
    secret: bytes | None = None,
) -> Callable[[pyarrow.RecordBatch], pyarrow.RecordBatch]:
    """Return the function that disguises a batch: coded true values, drawn reports, positions in the new order.

    With a `secret` the last column identifies the person, who has one report for each different value.
    """
    import pyarrow.compute

    truths = [pyarrow.array([BETWEEN.join(cell) for cell in channel.cells]) for channel in channels]
    labels = [pyarrow.array(channel.outputs) for channel in channels]
    steps = [thresholds(channel.matrix) for channel in channels]
    seen = 0

    def change(batch: pyarrow.RecordBatch) -> pyarrow.RecordBatch:
        nonlocal seen
        arrays, size = [], batch.num_rows
        for position, (known, names, own) in enumerate(zip(truths, labels, steps, strict=True)):
            found = pyarrow.compute.index_in(batch.column(position), known)
            codes = np.asarray(found.to_numpy(zero_copy_only=False), dtype=np.int64)
            if secret is None:
                bits = draw(size)
            else:
                bits = drawn_once(secret, position, codes, batch.column(len(channels) + kept))
            arrays.append(names.take(pyarrow.array(reported(codes, own, bits))))
        arrays += [batch.column(len(channels) + position) for position in range(kept)]
        if test_seed is not None:
            arrays.append(pyarrow.array([str(test_seed)] * size, pyarrow.string()))
        order = np.arange(seen, seen + size) if keep_order else (draw(size) >> np.uint64(1))
        seen += size
        columns = [f"x{position}" for position in range(len(arrays))]
        return pyarrow.record_batch([*arrays, pyarrow.array(order.astype(np.int64))], names=[*columns, "place"])

    return change


def thresholds(matrix: Floats) -> Floats:
    """Return for each true value (row) the cumulative probabilities; the last report that is possible has infinity."""
    running = np.cumsum(matrix, axis=0).T.copy()
    for row, column in zip(running, matrix.T, strict=True):
        row[np.flatnonzero(column)[-1] :] = np.inf  # rounding must not lead to a report of probability 0
    return running


def reported(codes: Counts64, steps: Floats, bits: Bits) -> Counts64:
    """Return the report of each true value from 64 random bits: the number of thresholds below a number in [0, 1)."""
    uniform = (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53
    reports = np.empty(len(codes), dtype=np.int64)
    for truth in range(len(steps)):
        here = np.flatnonzero(codes == truth)
        reports[here] = np.searchsorted(steps[truth], uniform[here], side="right")
    return reports


def drawn_once(secret: bytes, channel: int, codes: Counts64, persons: pyarrow.Array) -> Bits:
    """Return 64 bits for each row by a keyed hash of person and value, so that the same pair has the same report.

    The key comes from the operating system and is not recorded, so only the file shows what was drawn.
    """
    listed = persons.dictionary_encode()
    held = listed.dictionary.to_pylist()
    numbers = np.asarray(listed.indices.to_numpy(zero_copy_only=False), dtype=np.int64)
    size = int(codes.max(initial=0)) + 1
    pairs, place = np.unique(numbers * size + codes, return_inverse=True)
    bits = np.empty(len(pairs), dtype=np.uint64)
    for row, pair in enumerate(pairs.tolist()):
        text = f"{channel}{BETWEEN}{pair % size}{BETWEEN}{held[pair // size]}".encode()
        bits[row] = int.from_bytes(blake2b(text, digest_size=8, key=secret).digest(), "little")
    return np.asarray(bits[place.ravel()])


def secret(test_seed: int | None) -> bytes:
    """Return the key of one publication."""
    return os.urandom(32) if test_seed is None else test_seed.to_bytes(32, "little", signed=True)


def system_draw(count: int) -> Bits:
    return np.frombuffer(os.urandom(8 * count), dtype=np.uint64)


def seeded_draw(seed: int) -> Draw:
    rng = np.random.default_rng(seed)
    return lambda count: rng.integers(0, 2**64, count, dtype=np.uint64)


def plain_file(source: Source, path: Path) -> Source:
    """Return a source for Parquet or plain CSV, by the name of the file; a recipient needs no run file."""
    if path.suffix in (".parquet", ".pq"):
        return replace(source, format="parquet", dialect=None)
    return replace(source, format="csv", dialect=Dialect(",", '"', ".", "utf-8", header=True))


LEVEL = 1e-6  # probability that a genuine file is refused
MOST_VALUES = 200  # reports are compared within the values of plain columns that have at most this many
EVERYBODY = ""


@dataclass(frozen=True, eq=False)
class Truth:
    """The rows of each category, and the reports that were drawn for it.

    A person has one report for each different value, which is repeated in all rows with that value. `draws` are the
    persons with a value, `squares` the sum of their squared numbers of rows, `most` the largest such number. Where rows
    do not belong to persons, every row has its own draw.
    """

    rows: Floats
    draws: Floats
    squares: Floats
    most: int = 1

    @classmethod
    def of_rows(cls, rows: Floats) -> Truth:
        """Return counts where every row has its own draw."""
        return cls(rows, rows, rows)

    @property
    def effective(self) -> float:
        """The effective number of independent rows of an estimate from all rows: (Σn)²/Σn² over the draws."""
        return float(self.rows.sum() ** 2 / max(self.squares.sum(), 1.0))

    @property
    def repeated(self) -> bool:
        """Whether some draw occurs in several rows."""
        return self.most > 1

    def same(self, other: Truth) -> bool:
        """Return whether two are equal in every number."""
        pairs = ((self.rows, other.rows), (self.draws, other.draws), (self.squares, other.squares))
        return self.most == other.most and all(np.array_equal(one, two) for one, two in pairs)


@dataclass(frozen=True)
class Persons:
    """The number of persons, and the largest number of reports of one person: one for each different value."""

    number: int
    most_reports: int


Counts = Mapping[str, Truth]


@dataclass(frozen=True)
class Rows:
    """Rows of a table as the engine reads them, without those that miss a value of a column in `complete`.

    The column `unit` identifies the person that a row belongs to.
    """

    engine: Engine
    source: Source
    view: str
    complete: tuple[str, ...] = ()
    unit: str | None = None

    def attach(self) -> Rows:
        """Make the table available to the engine."""
        self.engine.attach(self.source, self.view)
        return self

    def sql(self, columns: Sequence[str]) -> str:
        """Return a query for the cleaned cells `k0`, `k1`, … of the rows that count."""
        cells = ", ".join(f"{cell_sql(self.source, name)} AS k{i}" for i, name in enumerate(columns)) or "1 AS k0"
        kept = present(cleaned(self.source, self.source.column(name)) for name in self.complete)
        return f"SELECT {cells} FROM {self.view} WHERE {kept}"

    def count(self) -> int:
        return int(self.engine.rows(f"SELECT count(*) FROM ({self.sql(())}) AS t")[0][0])

    def few_values(self, columns: Sequence[str]) -> list[str]:
        """Return those of the columns that have at most MOST_VALUES different values."""
        if not columns:
            return []
        listed = ", ".join(f"count(DISTINCT k{i})" for i in range(len(columns)))
        counts = self.engine.rows(f"SELECT {listed} FROM ({self.sql(columns)}) AS t")[0]
        return [name for name, count in zip(columns, counts, strict=True) if int(count) <= MOST_VALUES]

    def counts(self, columns: Sequence[str], cells: Sequence[tuple[str, ...]], beside: str | None = None) -> Counts:
        """Return how often each of the cells occurs with each value of a column, or in all rows."""
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
        """Return how often each of the cells occurs among all rows."""
        return self.counts(columns, cells).get(EVERYBODY, Truth.of_rows(np.zeros(len(cells))))

    def persons(self, columns: Sequence[str]) -> Persons | None:
        """Return the persons in the rows, if their column is declared; raise if a row has none."""
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
    """Return the number of rows that only one of two tables has, by the given columns."""
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
    """Whether reports can be those of the channel: the least probability of a count, times the number of counts."""

    chance: float
    compared: int
    level: float = LEVEL

    @property
    def holds(self) -> bool:
        return self.chance >= self.level

    def as_dict(self) -> dict[str, float]:
        return {"chance": self.chance, "compared": self.compared, "level": self.level}


def agreement(source: Rows, written: Rows, channels: Sequence[Channel], kept: Sequence[str]) -> Agreement:
    """Compare the reports of a file with those that the channels imply, for all rows and within plain columns.

    Within the values of a plain column, reports that were exchanged between rows or forged become visible, even if the
    counts over all rows agree.
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
    """Return the least probability, over the reports, of a count as far from its mean; 0 if a count is impossible.

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
    """Return the same where a draw occurs in several rows: Bernstein's bound for weighted Bernoulli variables."""
    off = np.abs(reports - matrix @ truth.rows)
    variance = (matrix * (1.0 - matrix)) @ truth.squares
    room = 2.0 * (variance + truth.most * off / 3.0)
    power = np.divide(off**2, room, out=np.zeros_like(off), where=room > 0)
    return float(min(2.0 * np.exp(-power).min(), 1.0))
