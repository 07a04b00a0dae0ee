"""Sample of rows for the search for dependences, with each cell as a code, and as a number where it is one.

A table of a million rows and a hundred columns has thousands of pairs of columns. They are examined on some rows, and
those near a threshold are counted on all rows. In a sample, the values of a column with very many values do not repeat.
For such a column, all rows of some of its values are drawn.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from sfumato.base.arrays import Codes, Flags, Floats
from sfumato.data.cells import cleaned, numeric
from sfumato.data.engine import Engine
from sfumato.data.source import Source, quoted

Hashes = npt.NDArray[np.int64]
SAMPLE = 20_000  # rows looked at
BY_VALUE = 60_000  # rows drawn by value, for all columns with many values together
EACH = 10  # rows that a sample of rows should hold of a value, on average
NUMERIC = 0.95  # the share of a column's cells that must be numbers, or dates
COMMON = 0.005  # a value with this share of the rows is shown well enough by a sample of rows


@dataclass(frozen=True)
class Look:
    """Some rows of the table. `codes` number the different cells of a column, `hashes` identify the cell of a code."""

    rows: int
    codes: Mapping[str, Codes]
    hashes: Mapping[str, Hashes]
    missing: Mapping[str, Flags]
    numbers: Mapping[str, Floats]


@dataclass(frozen=True)
class Looks:
    """The drawn rows of a table with `total` rows: a sample, and rows by value for columns with many values."""

    total: int
    sample: Look
    by_value: Mapping[str, Look]
    dates: frozenset[str]

    @property
    def whole(self) -> bool:
        """Whether the sample is the whole table."""
        return self.sample.rows == self.total

    def given(self, name: str) -> Look:
        """Return the rows on which something can be guessed from the values of a column."""
        return self.by_value.get(name, self.sample)

    def numeric(self, name: str) -> bool:
        """Return whether nearly all cells of a column that are not missing are numbers, or dates."""
        present = ~self.sample.missing[name]
        numbers = np.isfinite(self.sample.numbers[name][present])
        return len(numbers) > 0 and float(numbers.mean()) >= NUMERIC


DATES = ("____-__-__%", "__/__/____", "__.__.____")  # how a date is written: the year first, or last


def number_sql(source: Source, cell: str, date: bool) -> str:
    """Return a cleaned cell as a number, or NULL; a date is the number of its day."""
    if date:
        return _day_sql(cell)
    plain = numeric(source, cell)
    return f"CASE WHEN {plain} BETWEEN -1e300 AND 1e300 THEN {plain} END"


def _day_sql(cell: str) -> str:
    turned = [
        f"substr({cell}, 7, 4) || '-' || substr({cell}, {month}, 2) || '-' || substr({cell}, {day}, 2)"
        for day, month in ((1, 4), (4, 1))
    ]
    date = (
        f"CASE WHEN {cell} LIKE '{DATES[0]}' THEN TRY_CAST(substr({cell}, 1, 10) AS DATE) "
        f"WHEN {cell} LIKE '{DATES[1]}' OR {cell} LIKE '{DATES[2]}' "
        f"THEN coalesce({', '.join(f'TRY_CAST({text} AS DATE)' for text in turned)}) END"
    )
    year = f"(year({date}) - 1)"
    days = f"365 * {year} + floor({year} / 4) - floor({year} / 100) + floor({year} / 400) + dayofyear({date})"
    return f"CAST({days} AS DOUBLE)"


@dataclass(frozen=True)
class Cells:
    """The columns of a search, by position, and the rows that count.

    `rows` is a condition on the columns of the view `raw`, as which the source is attached; columns that are `made` are
    text expressions of them.
    """

    source: Source
    names: Sequence[str]
    rows: str = "1 = 1"
    raw: str = "raw"
    made: Mapping[str, str] = field(default_factory=dict)

    def untouched(self, index: int) -> str:
        """Return a cell as it is: enough to draw rows by, and cheaper than a clean one."""
        name = self.names[index]
        return self.made.get(name) or self.source.column(name).sql

    @property
    def clean(self) -> str:
        """All cells, cleaned, as t0, t1, …; a missing one is the empty text."""
        cells = [self.made.get(name) or cleaned(self.source, self.source.column(name)) for name in self.names]
        return ", ".join(f"coalesce({cell}, '') AS t{i}" for i, cell in enumerate(cells))

    def view(self, engine: Engine) -> None:
        """Make the view `searched` of all rows that count."""
        engine.run(
            f"CREATE OR REPLACE TEMP VIEW searched AS SELECT r, {self.clean} FROM {self.raw}_numbered WHERE {self.rows}"
        )

    def pick(self, engine: Engine, condition: str, more: str = "") -> None:
        """Make the table `picked` of some rows with their raw cells, because an engine would clean all rows first."""
        engine.run(
            f"CREATE OR REPLACE TEMP TABLE picked AS SELECT *{more} FROM {self.raw}_numbered "
            f"WHERE ({self.rows}) AND ({condition})"
        )


def look_at(engine: Engine, cells: Cells) -> Looks:
    """Make the view `searched` of all rows to search, and return a sample with its numbers and dates."""
    cells.view(engine)
    names, drawn = cells.names, engine.hashed(["r"])
    total = int(engine.rows("SELECT count(*) FROM searched")[0][0])
    every = max(math.ceil(total / SAMPLE), 1)
    cells.pick(engine, f"{drawn} % {every} = 0")
    engine.run(f"CREATE OR REPLACE TEMP TABLE sampled AS SELECT {drawn} AS o, {cells.clean} FROM picked")
    hashed = ", ".join(f"{engine.hashed([f't{i}'])} AS h{i}" for i in range(len(names)))
    arrays = engine.arrays(f"SELECT {hashed} FROM sampled ORDER BY o")
    empty = signed(engine.arrays(f"SELECT {engine.hashed([quoted('')])} AS h")["h"])[0]
    numbers, dates = _numbers(engine, cells.source, names)
    sample = _coded({name: signed(arrays[f"h{i}"]) for i, name in enumerate(names)}, empty, numbers)
    many = [i for i, n in enumerate(names) if every > 1 and EACH * len(sample.hashes[n]) > sample.rows]
    by_value = _drawn_by_value(engine, cells, many, empty, sample.rows, total) if many else {}
    return Looks(total, sample, by_value, dates)


def _numbers(engine: Engine, source: Source, names: Sequence[str]) -> tuple[dict[str, Floats], frozenset[str]]:
    """Return the cells of the sample as numbers, NaN where they are none, and the columns whose cells are dates."""
    dated = [" OR ".join(f"t{i} LIKE '{pattern}'" for pattern in DATES) for i in range(len(names))]
    counted = [f"count(CASE WHEN {dated[i]} THEN 1 END), count(NULLIF(t{i}, ''))" for i in range(len(names))]
    counts = engine.rows(f"SELECT {', '.join(counted)} FROM sampled")[0]
    dates = [0 < counts[2 * i] >= NUMERIC * counts[2 * i + 1] for i in range(len(names))]
    cells = [number_sql(source, f"t{i}", date) for i, date in enumerate(dates)]
    listed = ", ".join(f"coalesce({cell}, CAST('NaN' AS DOUBLE)) AS x{i}" for i, cell in enumerate(cells))
    values = engine.arrays(f"SELECT {listed} FROM sampled ORDER BY o")
    numbers = {name: np.asarray(values[f"x{i}"], dtype=np.float64) for i, name in enumerate(names)}
    return numbers, frozenset(name for name, date in zip(names, dates, strict=True) if date)


def _drawn_by_value(
    engine: Engine, cells: Cells, many: Sequence[int], empty: np.int64, sampled: int, total: int
) -> dict[str, Look]:
    """Draw all rows of some values, for columns with many values that the sample does not represent well."""
    each = max(BY_VALUE // len(many), 1)
    chosen = {}
    for i in many:
        value = engine.hashed([cells.untouched(i)])
        counted = f"SELECT {value} AS h, count(*) AS n FROM picked GROUP BY {value}"
        common = engine.rows(f"SELECT h, n FROM ({counted}) AS t WHERE n > {COMMON * sampled:.1f}")
        rest = total * (1 - sum(int(n) for _, n in common) / sampled)
        outside = f" AND {value} NOT IN ({', '.join(str(h) for h, _ in common)})" if common else ""
        chosen[i] = f"({value} % {max(math.ceil(rest / each), 1)} = 0{outside})"
    flags = "".join(f", CASE WHEN {condition} THEN 1 ELSE 0 END AS b{i}" for i, condition in chosen.items())
    cells.pick(engine, " OR ".join(chosen.values()), flags)
    columns = [f"{engine.hashed([f't{i}'])} AS h{i}" for i in range(len(cells.names))]
    marks = [f"b{i}" for i in many]
    arrays = engine.arrays(
        f"SELECT {', '.join([*columns, *marks])} FROM (SELECT {cells.clean}, {', '.join(marks)} FROM picked) AS t"
    )
    hashes = {name: signed(arrays[f"h{i}"]) for i, name in enumerate(cells.names)}
    looks = {}
    for i in many:
        mine = np.asarray(arrays[f"b{i}"]) == 1
        if mine.any():
            looks[cells.names[i]] = _coded({name: column[mine] for name, column in hashes.items()}, empty, {})
    return looks


def signed(values: npt.ArrayLike) -> Hashes:
    """Return hashes as signed numbers, because some engines return unsigned ones."""
    hashes: Hashes = np.asarray(values).astype(np.uint64 if np.asarray(values).dtype == np.uint64 else np.int64)
    return hashes.view(np.int64)


def _coded(cells: Mapping[str, Hashes], empty: np.int64, numbers: Mapping[str, Floats]) -> Look:
    coded = {name: np.unique(column, return_inverse=True) for name, column in cells.items()}
    return Look(
        rows=len(next(iter(cells.values()))),
        codes={name: codes.astype(np.int32) for name, (_, codes) in coded.items()},
        hashes={name: different for name, (different, _) in coded.items()},
        missing={name: column == empty for name, column in cells.items()},
        numbers=numbers,
    )
