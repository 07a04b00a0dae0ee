"""Write a workbook of Excel: the rows on one sheet, the labels of what occurs on another. Text stays text."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sfumato.errors import InputError
from sfumato.sources.codebook import Codebook, code_text, group_label
from sfumato.sources.labelled.extra import needed

SHEET, LABELS = "data", "labels"
MOST_ROWS, MOST_COLUMNS, MOST_TEXT = 1_048_575, 16_384, 32_767
FIRST_DAY = dt.date(1900, 3, 1)  # before it the program counts a day that never was
WRITTEN = dt.datetime(1970, 1, 1)


def write_workbook(path: Path, names: Sequence[str], columns: Sequence[Sequence[Any]], book: Codebook) -> None:
    """Write columns of cells; None is an empty one. No text is taken for a formula or a link."""
    writer = needed("xlsxwriter", "writing a workbook of Excel")
    rows = len(columns[0])
    if rows > MOST_ROWS or len(names) > MOST_COLUMNS:
        raise InputError(
            f"a sheet of Excel takes {MOST_ROWS:,} rows and {MOST_COLUMNS:,} columns, and there are {rows:,} and "
            f"{len(names):,}",
            expected="a smaller table, or another format",
        )
    columns = [_cells(column) for column in columns]
    options = {"constant_memory": True, "strings_to_formulas": False, "strings_to_urls": False}
    with writer.Workbook(str(path), options) as out:
        out.set_properties({"created": WRITTEN})
        formats: dict[type, Any] = {dt.date: out.add_format({"num_format": "yyyy-mm-dd"})}
        formats[dt.datetime] = out.add_format({"num_format": "yyyy-mm-dd hh:mm:ss"})
        sheet = out.add_worksheet(SHEET)
        for position, name in enumerate(names):
            sheet.write_string(0, position, name)
        for row in range(rows):
            for position, column in enumerate(columns):
                _write(sheet, row + 1, position, column[row], formats, names[position])
        _labels(out, names, columns, book)


def _cells(column: Sequence[Any]) -> Sequence[Any]:
    """A column whose days or moments the program cannot count exactly is written as text."""
    days = [cell for cell in column if isinstance(cell, dt.date)]
    early = any((cell.date() if isinstance(cell, dt.datetime) else cell) < FIRST_DAY for cell in days)
    fine = any(isinstance(cell, dt.datetime) and cell.microsecond for cell in days)
    if not early and not fine:
        return column
    return [
        cell.isoformat(" ") if isinstance(cell, dt.datetime) else str(cell) if cell is not None else None
        for cell in column
    ]


def _write(sheet: Any, row: int, position: int, cell: Any, formats: dict[type, Any], name: str) -> None:
    if cell is None:
        return
    if isinstance(cell, bool):
        sheet.write_boolean(row, position, cell)
    elif isinstance(cell, int | float):
        sheet.write_number(row, position, cell)
    elif isinstance(cell, dt.date):
        sheet.write_datetime(row, position, cell, formats[type(cell)])
    else:
        text = str(cell)
        if len(text) > MOST_TEXT:
            raise InputError(
                f"{name} holds text of {len(text):,} characters, and a cell of Excel takes {MOST_TEXT:,}",
                expected="shorter texts, or another format",
            )
        sheet.write_string(row, position, text)


def _labels(out: Any, names: Sequence[str], columns: Sequence[Sequence[Any]], book: Codebook) -> None:
    """The labels of columns, and of values that occur."""
    lines = []
    for name, column in zip(names, columns, strict=True):
        about = book.column(name)
        if about.label:
            lines.append((name, "", about.label))
        if about.values:
            values = {
                code_text(float(c)) if isinstance(c, int | float) else str(c) for c in set(column) if c is not None
            }
            labelled = ((value, group_label(value, about.values)) for value in sorted(values))
            lines += [(name, value, label) for value, label in labelled if label]
    if not lines:
        return
    sheet = out.add_worksheet(LABELS)
    for row, line in enumerate([("column", "value", "label"), *lines]):
        for position, text in enumerate(line):
            sheet.write_string(row, position, text)
