"""SQL that turns raw cells into clean text: trimmed, with NULL for missing values.

A cell that a spreadsheet would take for a formula when it opens a CSV file becomes text by a mark in front.
"""

from __future__ import annotations

import re

from sfumato.data.source import Column, Source, quoted

MISSING = ""  # an empty cell is always missing, so the empty text represents every missing value
FLOATING = ("DOUBLE", "FLOAT")
END = 1e300  # a range beyond it is open, because SPSS writes its lowest and highest number


def cleaned(source: Source, column: Column) -> str:
    """Return a cell as text, or NULL where it is empty or a missing code of the codebook.

    Numbers that are whole are written without a fraction, so `39.0` in a Parquet file is the leaf `39`.
    """
    cell = column.sql
    if column.type in FLOATING or column.type.startswith("DECIMAL"):
        nothing = "1 = 0" if column.type.startswith("DECIMAL") else f"isnan({cell})"
        cell = (
            f"CASE WHEN {nothing} THEN NULL WHEN {cell} = floor(CASE WHEN abs({cell}) < 1e15 THEN {cell} END) "
            f"THEN CAST(TRY_CAST({cell} AS BIGINT) AS STRING) ELSE {_as_text(column)} END"
        )
    elif not column.is_text:
        cell = f"CAST({cell} AS STRING)"
    elif source.settings.trim:
        cell = f"trimmed({cell})"
    for value in dict.fromkeys(("", *source.settings.na)):
        cell = f"NULLIF({cell}, {quoted(value)})"
    return _declared(source, column, cell)


def as_seen(source: Source, column: Column) -> str:
    """Return a cell as a reader of a release sees it: as `cleaned`, but with the blanks at the ends of texts."""
    cell = cleaned(source, column)
    keeps = column.is_text and source.settings.trim
    return f"CASE WHEN {cell} IS NULL THEN NULL ELSE {column.sql} END" if keeps else cell


def _declared(source: Source, column: Column, cell: str) -> str:
    """Return the cell without what the codebook declares as missing in its column."""
    about = source.codebook.column(column.name)
    for value in about.missing:
        cell = f"NULLIF({cell}, {quoted(value)})"
    spans = []
    for low, high in about.ranges:
        ends = [(">=", low)] * (abs(low) < END) + [("<=", high)] * (abs(high) < END)
        spans.append(" AND ".join(f"{numeric(source, cell)} {sign} {end!r}" for sign, end in ends) or "1 = 1")
    return f"CASE WHEN {' OR '.join(spans)} THEN NULL ELSE {cell} END" if spans else cell


def _as_text(column: Column) -> str:
    """Return a number with a fraction as text, by our functions: each engine writes floating numbers differently."""
    if column.type not in FLOATING:
        return f"CAST({column.sql} AS STRING)"
    # Where the statistics of a file list no NaN, DuckDB does not test for it, so the written text is compared.
    return f"NULLIF({'float' if column.type == 'FLOAT' else 'double'}_text({column.sql}), 'nan')"


def numeric(source: Source, cell: str, type_: str = "DOUBLE") -> str:
    """Return a cleaned cell as a number, or NULL where it is not one."""
    if source.decimal == ",":
        cell = f"replace({cell}, ',', '.')"
    return f"TRY_CAST({cell} AS {type_})"


NUMBER = re.compile(r"[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?")
STARTS = ("=", "+", "-", "@", "\t", "\r")


def neutralised(cell: str) -> str:
    """Return a cell that no spreadsheet runs as a formula. Numbers and a single dash are unchanged.

    >>> neutralised("=1+1"), neutralised("-5"), neutralised("plain")
    ("'=1+1", '-5', 'plain')
    """
    plain = not cell.startswith(STARTS) or len(cell) < 2 or NUMBER.fullmatch(cell)
    return cell if plain else f"'{cell}"


def neutralised_sql(cell: str) -> str:
    """Return the same as SQL for a cell of text, with the same meaning on every engine."""
    first = f"substr({cell}, 1, 1)"
    starts = f"{first} IN ('=', '+', '-', '@', chr(9), chr(13)) AND length({cell}) > 1"
    pattern = "^[+-]?([0-9]+([.,][0-9]*)?|[.,][0-9]+)([eE][+-]?[0-9]+)?$"
    number = f"regexp_replace({cell}, '{pattern}', '') = ''"
    return f"CASE WHEN {starts} AND NOT {number} THEN '''' || {cell} ELSE {cell} END"
