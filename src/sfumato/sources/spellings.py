"""Numbers of persons and households that are written in several ways, so that one person would count as several."""

from __future__ import annotations

from sfumato.errors import DataError, counted
from sfumato.sources.engines.engine import Engine


def refuse_spellings(engine: Engine, cell: str, view: str, column: str, kind: str) -> None:
    """Raise if two values of a cell of a view differ only in case, in blanks, or in how a number is written."""
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
