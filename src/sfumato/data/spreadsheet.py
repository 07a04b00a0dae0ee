"""Reading of a sheet of a workbook (.xlsx, .xls, .xlsb, .ods), with names from its header row and typed columns."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Any

from sfumato.data.codebook import code_text
from sfumato.data.csv import looks_headless
from sfumato.data.settings import DataSettings
from sfumato.data.statistical import TITLES, PrivateParquet, needed
from sfumato.data.used_range import BLOCK, refuse_far
from sfumato.errors import DataError, nearest, shortened

MOST_BYTES = 1 << 30  # of a workbook when it is unpacked; a full sheet of twenty columns has less


def convert(path: Path, target: Path, settings: DataSettings) -> tuple[list[str], list[str], str]:
    """Write the rows of a sheet as Parquet to `target`; names and types of the columns, and the name of the sheet."""
    calamine = needed("python_calamine", f"a workbook of {TITLES['xlsx']}")
    try:
        with calamine.CalamineWorkbook.from_path(str(path)) as book:
            sheet = _sheet(book.sheet_names, settings.sheet, path)
            refuse_far(path, sheet)
            rows = book.get_sheet_by_name(sheet).to_python(skip_empty_area=False)
    except DataError:
        raise
    except (calamine.CalamineError, ValueError, OSError, OverflowError) as error:
        raise unreadable(path) from error
    except BaseException as error:  # a panic of the reader is no Exception
        if type(error).__name__ == "PanicException":
            raise unreadable(path) from None
        raise
    names, body = _named(rows, settings, path)
    columns = [
        _column([row[position] if position < len(row) else "" for row in body]) for position in range(len(names))
    ]
    with PrivateParquet(target, [column.type for column in columns]) as out:
        out.write(columns)
    return names, [str(column.type) for column in columns], sheet


def refuse_bomb(path: Path) -> None:
    """Raise if a workbook unpacks to more than the limit. The sizes in its directory are not trusted."""
    if not zipfile.is_zipfile(path):
        return
    size = 0
    try:
        with zipfile.ZipFile(path) as packed:
            for entry in packed.infolist():
                with packed.open(entry) as stream:
                    while block := stream.read(BLOCK):
                        size += len(block)
                        if size > MOST_BYTES:
                            raise DataError(
                                f"{path.name} unpacks to more than {MOST_BYTES >> 20:,} MB",
                                expected="a workbook of ordinary size",
                                remedy="save the sheet as CSV",
                            )
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError, ValueError):
        raise unreadable(path) from None


def unreadable(path: Path) -> DataError:
    return DataError(
        f"{path.name} cannot be read as a workbook of {TITLES['xlsx']}",
        expected="a complete .xlsx, .xls, .xlsb or .ods file without a password",
        remedy="check that it is complete, or save the sheet as CSV",
    )


def _sheet(names: Sequence[str], asked: str | None, path: Path) -> str:
    if not names:
        raise DataError(f"{path.name} has no sheets", expected="a workbook with a table")
    if asked is None:
        return names[0]
    if asked not in names:
        raise DataError(
            f'{path.name} has no sheet "{asked}"', expected="a sheet of the workbook", remedy=nearest(asked, names)
        )
    return asked


def _named(rows: list[list[Any]], settings: DataSettings, path: Path) -> tuple[list[str], list[list[Any]]]:
    """Return the names of the columns and the rows below them, without empty rows and columns around the table."""
    first = next((position for position, row in enumerate(rows) if any(cell != "" for cell in row)), None)
    if settings.header_row is not None:
        first = settings.header_row - 1
    if first is None or first >= len(rows):
        raise DataError(f"{path.name} is empty", expected="a sheet with a header and rows")
    body = [row for row in rows[first:] if any(cell != "" for cell in row)]
    if not body:
        raise DataError(f"{path.name} is empty", expected="a sheet with a header and rows")
    used = [any(cell != "" for cell in column) for column in zip(*body, strict=True)]
    left = used.index(True)
    width = len(used) - used[::-1].index(True)
    body = [row[left:width] for row in body]
    header = settings.header
    if header == "auto":
        header = not looks_headless([[_text(cell) or "" for cell in row] for row in body[:101]])
    if not header:
        return [f"column{position + 1}" for position in range(width - left)], body
    if len(body) < 2:
        raise DataError(f"{path.name} has a header and no rows", expected="a sheet with rows")
    names = [_text(cell) or "" for cell in body[0]]
    empty = [position for position, name in enumerate(names) if not name]
    if settings.names is None and empty:
        letters = [_letters(left + position) for position in empty]
        raise DataError(
            f"{path.name} has no name in its header for column {shortened(letters)}",
            expected="a name above every column",
            remedy="header_row under [data] if the names stand in another row",
        )
    return names, body[1:]


def _letters(position: int) -> str:
    """Return the letters of a column, as the program shows them.

    >>> _letters(0), _letters(27)
    ('A', 'AB')
    """
    return (_letters(position // 26 - 1) if position >= 26 else "") + chr(ord("A") + position % 26)


def _column(cells: Sequence[Any]) -> Any:
    """Return a column as Arrow: numbers, days, moments or truth values where all cells are such; else text."""
    import pyarrow

    present = {type(cell) for cell in cells if cell != ""}
    whole = [None if cell == "" else cell for cell in cells]
    if present and present <= {int, float}:
        return pyarrow.array([None if cell is None else float(cell) for cell in whole], pyarrow.float64())
    if present == {bool}:
        return pyarrow.array(whole, pyarrow.bool_())
    if present == {date}:
        return pyarrow.array(whole, pyarrow.date32())
    if present and present <= {date, datetime}:
        moments = [datetime(c.year, c.month, c.day) if type(c) is date else c for c in whole]
        return pyarrow.array(moments, pyarrow.timestamp("us"))
    return pyarrow.array([None if cell is None else _text(cell) for cell in whole], pyarrow.string())


def _text(cell: object) -> str | None:
    """Return a cell as text: whole numbers without a fraction, days as 2026-11-16, truth values as in the program."""
    if cell == "":
        return None
    if isinstance(cell, bool):
        return "TRUE" if cell else "FALSE"
    if isinstance(cell, int | float):
        return code_text(float(cell))
    if isinstance(cell, datetime):
        return cell.isoformat(" ")
    if isinstance(cell, date | time):
        return cell.isoformat()
    return str(cell) if isinstance(cell, timedelta) else str(cell).strip()
