"""Released rows as a whole: written in an order that tells nothing, and compared with the file that holds them."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import Protocol

from sfumato.errors import DataError, counted
from sfumato.release.formats import same_text, write_rows
from sfumato.sources.engines.engine import Engine, quoted
from sfumato.sources.labelled.writing import Written
from sfumato.sources.source import Source


class Rows(Protocol):
    """Rows to be released: a query whose columns are `c0`, `c1`, …, their names, and the source they are from.

    `target` is the source as it is written, `coded` the columns whose cells are categories.
    """

    @property
    def source(self) -> Source: ...

    @property
    def target(self) -> Source: ...

    @property
    def coded(self) -> frozenset[str]: ...

    @property
    def names(self) -> list[str]: ...

    def sql(self) -> str: ...


def write_mixed(engine: Engine, rows: Rows, path: Path) -> Written:
    """Write rows in the order of a hash of their cells and a salt that is never kept; how they are read back.

    Row numbers are not used: the order tells nothing of the source's, and an engine that makes some rows again
    makes them the same.
    """
    cells = [quoted(os.urandom(16).hex()), *(f"c{position}" for position in range(len(rows.names)))]
    ordered = f"SELECT * FROM ({rows.sql()}) AS t ORDER BY {engine.hashed(cells)}"
    return write_rows(engine, ordered, path, rows.target, rows.names, rows.coded)


def differing_rows(engine: Engine, rows: Rows, written: Source) -> int:
    """How many rows stand in one of the two only: the file that was written, and what was to be written.

    Rows are compared by sums of SHA-256 over their cells and a key that is drawn now, so that no file can be made whose
    sums agree; where they differ, rows are set side by side. The engine's own hash would not do: texts that it hashes
    alike are found in seconds, and remain alike behind any other cell.
    """
    engine.attach(written, "written")
    cell = same_text(rows.source, written)  # in text, an empty cell and a missing one are the same
    cells = ", ".join(cell(position) for position in range(len(rows.names)))
    keys = [f"c{position}" for position in range(len(rows.names))]
    sides = [f"SELECT {cells} FROM ({rows.sql()}) AS a", f"SELECT {cells} FROM written AS b"]
    # A cell is written with its length, so that the text of a row is that of no other.
    text_of_row = " || ".join(f"coalesce(CAST(length({key}) AS STRING) || ':' || {key}, '-')" for key in keys)
    digests = f"digest('{secrets.token_hex(32)}' || {text_of_row})"
    sums = ", ".join(f"sum(CAST(hex_number(substr(d, {start}, 16)) AS DECIMAL(38, 0)))" for start in (1, 17))
    first, second = (
        engine.rows(f"SELECT count(*), {sums} FROM (SELECT {digests} AS d FROM ({side}) AS s) AS t")[0]
        for side in sides
    )
    if first == second:
        return 0
    both = f"SELECT *, 1 AS side FROM ({sides[0]}) AS s UNION ALL SELECT *, -1 AS side FROM ({sides[1]}) AS s"
    counted = f"SELECT sum(side) AS n FROM ({both}) AS t GROUP BY {', '.join(keys)}"
    return int(engine.rows(f"SELECT CAST(coalesce(sum(abs(n)), 0) AS BIGINT) FROM ({counted}) AS d")[0][0])


def refuse_torn(rows: int) -> None:
    """Raise if rows of a file do not read back as they were written."""
    if rows:
        raise DataError(
            f"{counted(rows, 'row of the written file does', 'rows of the written file do')} not read back as intended",
            expected="cells that can be written with the file's separator and quote",
            remedy="""quote = '"' under [data] if the file quotes its values""",
        )
