"""Reading of a sheet of a workbook (.xlsx, .xls, .xlsb, .ods), with names from its header row and typed columns.

The used range of a sheet is found before a reader allocates memory for all cells up to the last one. The parts of an
.xlsx file are read as streams for it. The size that a sheet states is not trusted. Cells without a value do not count,
because a format may be applied to whole columns.
"""

from __future__ import annotations

import posixpath
import re
import zipfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from pathlib import Path
from xml.parsers import expat

import pyarrow

from sfumato.data.codebook import code_text
from sfumato.data.csv import looks_headless
from sfumato.data.settings import TITLES, DataSettings
from sfumato.data.statistical import needed, private_parquet
from sfumato.errors import DataError, counted, nearest, shortened

Cell = str | float | bool | date | datetime | time | timedelta
MOST_BYTES = 1 << 30  # of a workbook when it is unpacked; a full sheet of twenty columns has less
MOST_CELLS = 50_000_000  # from the first cell of a sheet to its last; a full sheet has 47 columns then
MOST_ROWS, MOST_COLUMNS = 1_048_576, 16_384  # of the format; a reader takes memory for references beyond, too
MOST_SHEETS = 10_000
BLOCK = 1 << 20
OVERLAP = 64  # a reference that is cut in two by a block has fewer bytes
BOOK, LINKS = "xl/workbook.xml", "xl/_rels/workbook.xml.rels"
REFERENCE = re.compile(rb"""\sr\s*=\s*["']\s*([A-Za-z]{0,7})0*([0-9]{1,12})["']""")
Attributes = dict[str, str]


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
    with private_parquet(target, [column.type for column in columns]) as write:
        write(columns)
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


def _named(rows: list[list[Cell]], settings: DataSettings, path: Path) -> tuple[list[str], list[list[Cell]]]:
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
            remedy="header_row under [data] if the names are in another row",
        )
    return names, body[1:]


def _letters(position: int) -> str:
    """Return the letters of a column, as the program shows them.

    >>> _letters(0), _letters(27)
    ('A', 'AB')
    """
    return (_letters(position // 26 - 1) if position >= 26 else "") + chr(ord("A") + position % 26)


def _column(cells: Sequence[Cell]) -> pyarrow.Array:
    """Return a column as Arrow: numbers, days, moments or truth values where all cells are such; else text."""
    present = {type(cell) for cell in cells if cell != ""}
    whole = [None if cell == "" else cell for cell in cells]
    if present and present <= {int, float}:
        numbers = [float(cell) if isinstance(cell, int | float) else None for cell in cells]
        return pyarrow.array(numbers, pyarrow.float64())
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


@dataclass
class Range:
    """The number of rows and columns from the first cell of a sheet to the last one."""

    rows: int = 0
    columns: int = 0

    @property
    def cells(self) -> int:
        return self.rows * self.columns

    @property
    def far(self) -> bool:
        return self.cells > MOST_CELLS or self.rows > MOST_ROWS or self.columns > MOST_COLUMNS

    def reach(self, row: int, column: int) -> None:
        self.rows, self.columns = max(self.rows, row), max(self.columns, column)


def refuse_far(path: Path, sheet: str) -> None:
    """Raise if the cells of a sheet reach too far to be read. Files of other formats are not looked into."""
    if not zipfile.is_zipfile(path):
        return
    try:
        with zipfile.ZipFile(path) as packed:
            part = _part(packed, sheet)
            if part is None or not _written(packed, part).far:
                return
            used = _with_values(packed, part)
    except (expat.ExpatError, zipfile.BadZipFile, KeyError, EOFError, NotImplementedError, RuntimeError):
        return  # the reader says what is wrong with it
    if used.far:
        raise DataError(
            f'the sheet "{sheet}" of {path.name} has cells in '
            f"{counted(used.rows, 'row')} and {counted(used.columns, 'column')}, which "
            f"are {used.cells:,} cells from the first to the last",
            expected=f"at most {MOST_CELLS:,} cells, in at most {MOST_ROWS:,} rows and {MOST_COLUMNS:,} columns",
            remedy="delete what is in cells far from the table, or save the table as CSV",
        )


def column_number(letters: str) -> int:
    """Return the number of a column by its letters.

    >>> column_number("A"), column_number("XFD")
    (1, 16384)
    """
    number = 0
    for letter in letters.upper():
        number = number * 26 + ord(letter) - ord("A") + 1
    return number


def _part(packed: zipfile.ZipFile, sheet: str) -> str | None:
    """Return the part of a file that holds a sheet; None where the file is no .xlsx."""
    if not {BOOK, LINKS} <= set(packed.namelist()):
        return None
    names: Attributes = {}
    targets: Attributes = {}

    def book(name: str, given: Attributes) -> None:
        if name == "sheet" and len(names) < MOST_SHEETS:
            link = next((value for key, value in given.items() if key.split(":")[-1] == "id" and ":" in key), "")
            names.setdefault(given.get("name", ""), link)

    def link(name: str, given: Attributes) -> None:
        if name == "Relationship" and len(targets) < MOST_SHEETS:
            targets[given.get("Id", "")] = given.get("Target", "")

    _elements(packed, BOOK, book)
    _elements(packed, LINKS, link)
    target = targets.get(names.get(sheet, ""), "")
    part = target.lstrip("/") if target.startswith("/") else posixpath.normpath(posixpath.join("xl", target))
    return part if part in packed.namelist() else None


def _written(packed: zipfile.ZipFile, part: str) -> Range:
    """Return how far references reach, of cells with and without values: quick, and enough for ordinary sheets."""
    found, columns, rest = Range(), set[bytes](), b""
    with packed.open(part) as stream:
        while block := stream.read(BLOCK):
            block = rest + block
            pairs = REFERENCE.findall(block)
            columns |= {letters for letters, _ in pairs}
            found.reach(max((int(row) for _, row in pairs), default=0), 0)
            rest = block[-OVERLAP:]
    found.reach(0, max((column_number(letters.decode("ascii")) for letters in columns), default=0))
    return found


def _with_values(packed: zipfile.ZipFile, part: str) -> Range:
    """Return how far cells with values reach, one after another as the format numbers them."""
    found, row, column, inside = Range(), 0, 0, False

    def start(name: str, given: Attributes) -> None:
        nonlocal row, column, inside
        if name == "row":
            row, column = int(given.get("r", row + 1)), 0
        elif name == "c":
            inside = True
            match = re.fullmatch(r"([A-Za-z]{1,7})0*(\d{1,12})", given.get("r", ""))
            column = column_number(match[1]) if match else column + 1
            row = int(match[2]) if match else row
        elif inside and name in ("v", "is"):
            found.reach(row, column)
            inside = False

    _elements(packed, part, start)
    return found


def _elements(packed: zipfile.ZipFile, part: str, start: Callable[[str, Attributes], None]) -> None:
    """Call a function with each element of a part, by its name without a prefix; no declared entity is followed."""

    def declared(*_: object) -> None:
        raise expat.ExpatError("a document type")

    parser = expat.ParserCreate()
    parser.StartElementHandler = lambda name, given: start(name.split(":")[-1], given)
    parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = declared
    with packed.open(part) as stream:
        while block := stream.read(BLOCK):
            parser.Parse(block, False)
    parser.Parse(b"", True)
