"""The format of a released file, and how its rows are written.

A file keeps the format of its source unless the publisher chooses another. In another format, a missing value is
written in the way of that format, because the codes that meant missing are not declared in the new file.

The dictionary describes how a released text file is written: separator, quotes, decimal mark, header line. A .csv file
with commas, double quotes, decimal points and a header line needs no such entry, and `layout_in` returns it by default.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from sfumato.base.files import Scratch, new_file
from sfumato.data.cells import cleaned
from sfumato.data.csv import Dialect, detect
from sfumato.data.engine import Engine
from sfumato.data.labelled_write import Written, write_labelled
from sfumato.data.settings import LABELLED
from sfumato.data.source import Column, Source
from sfumato.errors import InputError, StudyError, nearest

Entry = Mapping[str, Any]  # an entry of a data dictionary or a manifest, as JSON
FORMATS = ("csv", "parquet", "sav", "dta", "xlsx")
ENDINGS = {".csv": "csv", ".csv.gz": "csv", ".parquet": "parquet", ".sav": "sav", ".dta": "dta", ".xlsx": "xlsx"}
INSTEAD = {"sas7bdat": "sav"}  # what cannot be written, and the nearest that holds labels
PLAIN = Dialect(",", '"', ".", "utf-8", header=True)


def format_of(source: Source, name: str | None = None, asked: str | None = None) -> str:
    """Return the format of a release: the chosen one, or by the ending of its name, or that of the source."""
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
    """Return a source as its release is written: the same columns in another format."""
    if kind == source.format:
        return source
    book = source.codebook.without_formats()
    return replace(source, format=kind, dialect=PLAIN if kind == "csv" else None, codebook=book)


def plain_missing(source: Source, target: Source) -> bool:
    """Return whether missing values are written in the way of the target, which declares no codes for them."""
    declared = source.codebook.declares_missing and target.format not in ("sav", "dta")
    return source.format != target.format or declared


def raw_cell(source: Source, column: Column, target: Source) -> str:
    """Return the SQL of a source cell that is released unchanged."""
    if not plain_missing(source, target):
        return column.sql
    if target.format == "csv" and not column.is_text:  # an engine writes numbers in its own way
        return f"{cleaned(source, column)} AS {column.sql}"
    return f"CASE WHEN {cleaned(source, column)} IS NULL THEN NULL ELSE {column.sql} END AS {column.sql}"


def write_rows(
    engine: Engine, sql: str, path: Path, target: Source, names: Sequence[str], coded: Collection[str] = ()
) -> Written:
    """Write rows in the target's format and return how to read them. `coded` are columns of categories."""
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


def same_text(source: Source, written: Source) -> Callable[[int], str]:
    """Return how cells of a written file are compared: exactly, or as text if the formats differ.

    Another format writes numbers in one way only and has no blanks at the end of a text.
    """
    exact = source.format == written.format and written.format not in LABELLED
    empty = source.dialect is not None or written.dialect is not None or not exact

    def cell(position: int) -> str:
        text = f"CAST(c{position} AS STRING)"
        if not exact:
            text = f"rtrim(regexp_replace({text}, '^(-?[0-9]+)\\.0$', '\\1'))"
        return f"coalesce({text}, '') AS c{position}" if empty else f"{text} AS c{position}"

    return cell


TEXT_ENDINGS = (".csv", ".csv.gz")
SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab", " ": "blank", "|": "vertical bar", ":": "colon"}
QUOTES = {'"': "double quotes", "'": "single quotes"}
ENCODING = "UTF-8"  # every engine writes it, whatever the source had


def layout_of(written: Source, file: str) -> dict[str, object]:
    """Return the dictionary entry about a text file, empty if its name implies all of it, and for other formats."""
    if written.dialect is None:
        return {}
    layout = _entry(written.dialect)
    if written.dialect.header and written.settings.names and written.files:
        heads = [cell.strip() for cell in detect(written.files[0], written.settings)[1][0]]
        layout |= {"header_names": heads} if heads != list(written.names) else {}
    plain = layout == _entry(PLAIN) and file.endswith(TEXT_ENDINGS)
    return {} if plain else {**layout, "words": layout_words(layout)}


def layout_in(dictionary: Entry) -> Entry:
    """Return the layout of the file that a dictionary describes, empty if it is not a text file.

    >>> layout_in({"file": "data.csv"})["separator"], layout_in({"file": "data.parquet"})
    (',', {})
    """
    if "layout" in dictionary:
        return dict(dictionary["layout"])
    if not str(dictionary["file"]).endswith(TEXT_ENDINGS):
        return {}
    plain = _entry(PLAIN)
    return {**plain, "words": layout_words(plain)}


def layout_words(layout: Entry) -> str:
    """Return the layout in sentences for readers of the file.

    >>> layout_words(_entry(Dialect(" ", "", ".", "utf-8", header=False)))[:60]
    'Fields are separated by blanks and never quoted. There is no'
    """
    sign = layout["quote"]
    marks = QUOTES.get(sign, f"the sign {sign}")
    quoted = (
        f". Fields that need it, such as those that hold the separator, are quoted with {marks}; quotes inside a field "
        "are doubled"
        if sign
        else " and never quoted"
    )
    if "header_names" in layout:
        header = "The first line names the columns, some of them with other names than here"
    else:
        header = "The first line has the names of the columns" if layout["header"] else "There is no header line"
    name = SEPARATORS.get(layout["separator"])
    separators = f"{name}s" if name else f"the sign {layout['separator']}"
    decimal = {".": "a point", ",": "a comma"}.get(layout["decimal"], f"the sign {layout['decimal']}")
    return (
        f"Fields are separated by {separators}{quoted}. {header}; columns are in the order in which they are listed "
        f"here. Decimals are written with {decimal}. The text is encoded in {layout['encoding']}."
    )


def file_type(layout: Entry, packed: bool) -> str:
    """Return the kind of a text file in a few words.

    >>> file_type(_entry(Dialect("|", '"', ".", "utf-8", header=False)), packed=True)
    'text separated by vertical bars, without a header line, compressed by gzip'
    """
    name = SEPARATORS.get(layout["separator"])
    kind = f"{name}-separated text" if name and " " not in name else ""
    kind = kind or f"text separated by {f'{name}s' if name else layout['separator']}"
    return kind + ("" if layout["header"] else ", without a header line") + (", compressed by gzip" if packed else "")


def media_type(layout: Entry) -> str:
    """Return the media type of an unpacked text file: one by whose rules all columns are found, or plain text."""
    if not read_by_name(layout):
        return "text/plain"
    return "text/csv" if layout["separator"] == "," else "text/tab-separated-values"


def read_by_name(layout: Entry) -> bool:
    """Return whether a reader who knows only commas or tabs, double quotes and a header line finds the columns."""
    return bool(layout["header"]) and layout["quote"] == '"' and layout["separator"] in (",", "\t")


def _entry(dialect: Dialect) -> dict[str, object]:
    return {
        "separator": dialect.separator,
        "quote": dialect.quote,
        "decimal": dialect.decimal,
        "header": dialect.header,
        "encoding": ENCODING,
    }
