"""Counts of the combinations of values of a few columns, by one grouped query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sfumato.data.cells import MISSING, cleaned
from sfumato.data.engine import Engine
from sfumato.data.source import Source, quoted
from sfumato.errors import DataError, counted, nearest


@dataclass(frozen=True)
class Tally:
    """Values of the columns with their counts, sorted; `dropped` rows had a missing value where none may be."""

    columns: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]
    counts: tuple[int, ...]
    dropped: int = 0

    @property
    def records(self) -> int:
        return sum(self.counts)


def tally(
    engine: Engine, source: Source, columns: Sequence[str], complete: Sequence[str] = (), unit: str | None = None
) -> Tally:
    """Count the rows by their cleaned values. Rows that miss a value of a column in `complete` are left out.

    With a column of persons (`unit`) the counts are of persons, once for each combination that a person has.
    """
    require(source, columns)
    engine.attach(source, "raw")
    cells = ", ".join(f"{cell_sql(source, name)} AS k{i}" for i, name in enumerate(columns))
    keys = ", ".join(f"k{i}" for i in range(len(columns)))
    person = "1" if unit is None else cell_sql(source, unit)
    number = "count(*)" if unit is None else "count(DISTINCT u)"
    result = engine.rows(
        f"SELECT {keys}, {number}, count(*) FROM (SELECT {cells}, {person} AS u FROM raw) AS t "
        f"GROUP BY {keys} ORDER BY {keys}"
    )
    places = [columns.index(name) for name in complete]
    kept = [row for row in result if all(row[position] != MISSING for position in places)]
    dropped = sum(int(row[-1]) for row in result) - sum(int(row[-1]) for row in kept)
    cells_kept = tuple(tuple(map(str, row[:-2])) for row in kept)
    return Tally(tuple(columns), cells_kept, tuple(int(row[-2]) for row in kept), dropped)


def cell_sql(source: Source, name: str) -> str:
    """Return a cleaned cell as text, missing values as the empty text."""
    return f"coalesce({cleaned(source, source.column(name))}, {quoted(MISSING)})"


def require(source: Source, columns: Sequence[str]) -> None:
    """Raise unless the source has the columns."""
    absent = [name for name in columns if name not in source.names]
    if absent:
        raise DataError(
            f'{source.title} has no column "{absent[0]}"',
            expected="a column of the table",
            remedy=nearest(absent[0], source.names),
        )


def first_row(engine: Engine, source: Source, columns: Sequence[str], cells: Sequence[tuple[str, ...]]) -> int:
    """Return the first row, from 1, of the view raw with one of the combinations, or 0 if rows have no order."""
    if not engine.ordered:
        return 0
    keys = ", ".join(f"{cell_sql(source, name)} AS k{i}" for i, name in enumerate(columns))
    names = ", ".join(f"k{i}" for i in range(len(columns)))
    wanted = ", ".join(f"({', '.join(map(quoted, cell))})" for cell in cells[:1000])
    query = f"SELECT min(r) FROM (SELECT r, {keys} FROM raw_numbered) AS t WHERE ({names}) IN ({wanted})"
    return int(engine.rows(query)[0][0] or 0)


def refuse_spellings(engine: Engine, cell: str, view: str, column: str, kind: str) -> None:
    """Raise if two values of a cell of a view differ only in case, in blanks, or in how a number is written.

    One person would count as several.
    """
    text = f"lower(trimmed({cell}))"
    folded = f"coalesce(CAST(TRY_CAST({text} AS DECIMAL(38, 10)) AS STRING), {text})"
    values = f"SELECT {folded} AS folded, {cell} AS written FROM {view} WHERE {cell} IS NOT NULL"
    several = f"SELECT 1 AS one FROM ({values}) AS v GROUP BY folded HAVING min(written) <> max(written)"
    number = int(engine.rows(f"SELECT count(*) FROM ({several}) AS s")[0][0])
    if number:
        raise DataError(
            f"{counted(number, 'value')} of {column}, the {kind} column, "
            f"{'is' if number == 1 else 'are'} written in several ways, so one {kind} would count as several",
            expected=f"one way to write the number of a {kind}: the same case and blanks, and 7 or 007 but not both",
            remedy="write each number in one way",
        )
