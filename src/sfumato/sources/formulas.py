"""Cells that a spreadsheet takes for formulas when a CSV file is opened in it: a mark before them makes them text."""

from __future__ import annotations

import re

NUMBER = re.compile(r"[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?")
STARTS = ("=", "+", "-", "@", "\t", "\r")


def neutralised(cell: str) -> str:
    """A cell that no spreadsheet runs; numbers, and a lone dash, stay as they are.

    >>> neutralised("=1+1"), neutralised("-5"), neutralised("plain")
    ("'=1+1", '-5', 'plain')
    """
    plain = not cell.startswith(STARTS) or len(cell) < 2 or NUMBER.fullmatch(cell)
    return cell if plain else f"'{cell}"


def neutralised_sql(cell: str) -> str:
    """The same in SQL, for a cell of text; every engine reads it alike."""
    first = f"substr({cell}, 1, 1)"
    starts = f"{first} IN ('=', '+', '-', '@', chr(9), chr(13)) AND length({cell}) > 1"
    pattern = "^[+-]?([0-9]+([.,][0-9]*)?|[.,][0-9]+)([eE][+-]?[0-9]+)?$"
    number = f"regexp_replace({cell}, '{pattern}', '') = ''"
    return f"CASE WHEN {starts} AND NOT {number} THEN '''' || {cell} ELSE {cell} END"
