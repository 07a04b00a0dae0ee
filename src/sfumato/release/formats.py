"""In which format a release is written, and how its rows get there.

A file keeps the format of its source unless another is asked for. Where formats differ, a missing value is written as
the new format's own, because the codes that meant it are declared nowhere in the new file.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from sfumato.errors import InputError, StudyError, nearest
from sfumato.runtime.atomic import new_file
from sfumato.runtime.scratch import Scratch
from sfumato.sources.cells import cleaned
from sfumato.sources.dialect import Dialect
from sfumato.sources.engines.engine import Engine
from sfumato.sources.labelled.extra import LABELLED
from sfumato.sources.labelled.writing import Written, write_labelled
from sfumato.sources.source import Column, Source

FORMATS = ("csv", "parquet", "sav", "dta", "xlsx")
ENDINGS = {".csv": "csv", ".csv.gz": "csv", ".parquet": "parquet", ".sav": "sav", ".dta": "dta", ".xlsx": "xlsx"}
INSTEAD = {"sas7bdat": "sav"}  # what cannot be written, and the nearest that holds labels
PLAIN = Dialect(",", '"', ".", "utf-8", header=True)


def format_of(source: Source, name: str | None = None, asked: str | None = None) -> str:
    """The format of a release: as asked for, else by the ending of its name, else that of the source."""
    if asked is not None and asked not in FORMATS:
        raise InputError(
            f'a release cannot be written as "{asked}"', expected=", ".join(FORMATS), remedy=nearest(asked, FORMATS)
        )
    ending = next((kind for end, kind in ENDINGS.items() if name is not None and name.lower().endswith(end)), None)
    if asked is not None and ending not in (None, asked):
        raise InputError(
            f'the file is to be called "{name}" and to be written as {asked}', expected=f"a name that ends in .{asked}"
        )
    return asked or ending or INSTEAD.get(source.format, source.format)


def target_of(source: Source, kind: str) -> Source:
    """A source as its release is written: the same columns in another format."""
    if kind == source.format:
        return source
    book = source.codebook.without_formats()
    return replace(source, format=kind, dialect=PLAIN if kind == "csv" else None, codebook=book)


def plain_missing(source: Source, target: Source) -> bool:
    """Whether missing values are written as the target's own, because it does not say which codes mean missing."""
    declared = source.codebook.declares_missing and target.format not in ("sav", "dta")
    return source.format != target.format or declared


def raw_cell(source: Source, column: Column, target: Source) -> str:
    """A cell of the source as it is released unchanged."""
    if not plain_missing(source, target):
        return column.sql
    if target.format == "csv" and not column.is_text:  # an engine writes numbers in its own way
        return f"{cleaned(source, column)} AS {column.sql}"
    return f"CASE WHEN {cleaned(source, column)} IS NULL THEN NULL ELSE {column.sql} END AS {column.sql}"


def write_rows(
    engine: Engine, sql: str, path: Path, target: Source, names: Sequence[str], coded: Collection[str] = ()
) -> Written:
    """Write rows in the target's format; `coded` are columns of categories. How they are read back comes out."""
    if target.format not in LABELLED:
        engine.write(sql, path, target, names)
        return Written()
    if engine.name != "duckdb":
        raise StudyError(
            f"the engine {engine.name} writes CSV and Parquet, and the release is to be a {target.format} file",
            expected='engine = "duckdb", or format csv or parquet',
        )
    with Scratch() as scratch:
        rows = scratch.path / "rows.parquet"
        engine.write(sql, rows, replace(target, dialect=None), [f"c{position}" for position in range(len(names))])
        with new_file(path, overwrite=True) as part:
            return write_labelled(rows, part, target.format, names, target.codebook, coded)


def same_text(source: Source, written: Source) -> Any:
    """How cells of a written file are compared with what was meant: exactly, or as text where formats differ in more.

    Another format has one way to write a number and no way to write blanks at the end of a text.
    """
    exact = source.format == written.format and written.format not in LABELLED
    empty = source.dialect is not None or written.dialect is not None or not exact

    def cell(position: int) -> str:
        text = f"CAST(c{position} AS STRING)"
        if not exact:
            text = f"rtrim(regexp_replace({text}, '^(-?[0-9]+)\\.0$', '\\1'))"
        return f"coalesce({text}, '') AS c{position}" if empty else f"{text} AS c{position}"

    return cell
