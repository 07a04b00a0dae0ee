"""The rows that a search for dependences looks at first: each cell as a code, and as a number where it is one.

A table of a million rows and a hundred columns has thousands of pairs of columns, so they are looked at on some rows,
and what comes near a threshold there is counted on all of them. A sample of rows says nothing about a column with more
values than the sample has rows: every value would be alone. For such a column rows are drawn by value, that is all rows
of some of its values.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.data.arrays import Codes, Flags, Floats
from sfumato.data.engine import Engine, quoted
from sfumato.data.rows import cleaned, numeric
from sfumato.data.source import Source

Hashes = npt.NDArray[np.int64]
SAMPLE = 20_000  # rows looked at
BY_VALUE = 60_000  # rows drawn by value, for all columns with many values together
EACH = 10  # rows that a sample of rows should hold of a value, on average
NUMERIC = 0.95  # the share of a column's cells that must be numbers, or dates
COMMON = 0.005  # a value with this share of the rows is shown well enough by a sample of rows


@dataclass(frozen=True)
class Look:
    """Some rows of the table. `codes` number the different cells of a column, `hashes` say which cell a code is."""

    rows: int
    codes: Mapping[str, Codes]
    hashes: Mapping[str, Hashes]
    missing: Mapping[str, Flags]
    numbers: Mapping[str, Floats]


@dataclass(frozen=True)
class Looks:
    """What was looked at of a table with `total` rows: a sample, and for columns with many values rows by value."""

    total: int
    sample: Look
    by_value: Mapping[str, Look]
    dates: frozenset[str] = frozenset()

    @property
    def whole(self) -> bool:
        """Whether the sample is the whole table."""
        return self.sample.rows == self.total

    def given(self, name: str) -> Look:
        """The rows on which something can be guessed from the values of a column."""
        return self.by_value.get(name, self.sample)

    def numeric(self, name: str) -> bool:
        """Whether nearly all cells of a column that are not missing are numbers, or dates."""
        present = ~self.sample.missing[name]
        numbers = np.isfinite(self.sample.numbers[name][present])
        return len(numbers) > 0 and float(numbers.mean()) >= NUMERIC


DATES = ("____-__-__%", "__/__/____", "__.__.____")  # how a date is written: the year first, or last


def number_sql(source: Source, cell: str, date: bool) -> str:
    """A cleaned cell as a number, or NULL; a date is the number of its day."""
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


def cells_view(
    engine: Engine,
    source: Source,
    names: Sequence[str],
    rows: str = "1 = 1",
    raw: str = "raw",
    made: Mapping[str, str] | None = None,
) -> None:
    """The view `searched`: the cleaned cells of some columns as t0, t1, …, where a missing one is the empty text.

    Columns that are `made` are expressions of the columns of `raw`.
    """
    made = made or {}
    whole = [made.get(name) or cleaned(source, source.column(name)) for name in names]
    cells = [f"coalesce({cell}, '') AS t{i}" for i, cell in enumerate(whole)]
    engine.run(f"CREATE OR REPLACE TEMP VIEW searched AS SELECT r, {', '.join(cells)} FROM {raw}_numbered WHERE {rows}")


def look_at(engine: Engine, source: Source, names: Sequence[str]) -> Looks:
    """Look at rows of the view `searched`, which has the columns `names` in order."""
    total = int(engine.rows("SELECT count(*) FROM searched")[0][0])
    every = max(math.ceil(total / SAMPLE), 1)
    drawn = engine.hashed(["r"])
    hashed = [engine.hashed([f"t{i}"]) for i in range(len(names))]
    columns = [f"{cell} AS h{i}" for i, cell in enumerate(hashed)]
    rows = f"FROM searched WHERE {drawn} % {every} = 0 ORDER BY {drawn}"
    found = engine.arrays(f"SELECT {', '.join(columns)} {rows}")
    empty = signed(engine.arrays(f"SELECT {engine.hashed([quoted('')])} AS h")["h"])[0]
    cells = {name: signed(found[f"h{i}"]) for i, name in enumerate(names)}
    numbers, dates = _numbers(engine, source, names, rows)
    sample = _coded(cells, empty, numbers)
    by_value = {} if every == 1 else _drawn_by_value(engine, names, hashed, empty, sample, total)
    return Looks(total, sample, by_value, dates)


def _numbers(
    engine: Engine, source: Source, names: Sequence[str], rows: str
) -> tuple[dict[str, Floats], frozenset[str]]:
    """The cells as numbers, NaN where they are none, and the columns whose cells are dates."""
    dated = [" OR ".join(f"t{i} LIKE '{pattern}'" for pattern in DATES) for i in range(len(names))]
    flags = ", ".join(f"CASE WHEN {condition} THEN 1 ELSE 0 END AS d{i}" for i, condition in enumerate(dated))
    known = ", ".join(f"CASE WHEN t{i} <> '' THEN 1 ELSE 0 END AS p{i}" for i in range(len(names)))
    found = engine.arrays(f"SELECT {flags}, {known} {rows}")
    counts = [(int(found[f"d{i}"].sum()), int(found[f"p{i}"].sum())) for i in range(len(names))]
    dates = [count > 0 and count >= NUMERIC * present for count, present in counts]
    cells = [number_sql(source, f"t{i}", date) for i, date in enumerate(dates)]
    listed = ", ".join(f"coalesce({cell}, CAST('NaN' AS DOUBLE)) AS x{i}" for i, cell in enumerate(cells))
    values = engine.arrays(f"SELECT {listed} {rows}")
    numbers = {name: np.asarray(values[f"x{i}"], dtype=np.float64) for i, name in enumerate(names)}
    return numbers, frozenset(name for name, date in zip(names, dates, strict=True) if date)


def _drawn_by_value(
    engine: Engine, names: Sequence[str], hashed: Sequence[str], empty: np.int64, sample: Look, total: int
) -> dict[str, Look]:
    """For each column with many values, all rows of some of those values that the sample does not show well."""
    different = engine.rows(
        f"SELECT {', '.join(f'approx_count_distinct(t{i})' for i in range(len(names)))} FROM searched"
    )
    many = [i for i, values in enumerate(different[0]) if EACH * int(values) > sample.rows]
    if not many:
        return {}
    each = max(BY_VALUE // len(many), 1)
    chosen = {}
    for i in many:
        counts = np.bincount(sample.codes[names[i]])
        common = sample.hashes[names[i]][counts > COMMON * sample.rows]
        rest = total * (1 - counts[counts > COMMON * sample.rows].sum() / sample.rows)
        outside = " AND ".join(f"{hashed[i]} <> {_literal(engine, int(h))}" for h in common.tolist()) or "1 = 1"
        chosen[i] = f"({hashed[i]} % {max(math.ceil(rest / each), 1)} = 0 AND {outside})"
    columns = [f"{cell} AS h{i}" for i, cell in enumerate(hashed)]
    columns += [f"CASE WHEN {condition} THEN 1 ELSE 0 END AS b{i}" for i, condition in chosen.items()]
    found = engine.arrays(f"SELECT {', '.join(columns)} FROM searched WHERE {' OR '.join(chosen.values())}")
    cells = {name: signed(found[f"h{i}"]) for i, name in enumerate(names)}
    looks = {}
    for i in many:
        mine = np.asarray(found[f"b{i}"]) == 1
        looks[names[i]] = _coded({name: column[mine] for name, column in cells.items()}, empty, {})
    return looks


def _literal(engine: Engine, value: int) -> str:
    """A hash as the engine writes it: unsigned in one, signed in the other."""
    return str(value % 2**64 if engine.name == "duckdb" else value)


def signed(values: Any) -> Hashes:
    """Hashes as numbers of one type: one engine gives them unsigned."""
    found: Hashes = np.asarray(values).astype(np.uint64 if np.asarray(values).dtype == np.uint64 else np.int64)
    return found.view(np.int64)


def _coded(cells: Mapping[str, Hashes], empty: np.int64, numbers: Mapping[str, Floats]) -> Look:
    coded = {name: np.unique(column, return_inverse=True) for name, column in cells.items()}
    return Look(
        rows=len(next(iter(cells.values()))),
        codes={name: codes.astype(np.int32) for name, (_, codes) in coded.items()},
        hashes={name: different for name, (different, _) in coded.items()},
        missing={name: column == empty for name, column in cells.items()},
        numbers=numbers,
    )
