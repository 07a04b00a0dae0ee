"""Used range of a sheet, which is found before a reader allocates memory for all cells up to the last one.

The parts of an .xlsx file are read as streams. The size that a sheet states is not trusted. Cells without a value do
not count, because a format may be applied to whole columns.
"""

from __future__ import annotations

import posixpath
import re
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from xml.parsers import expat

from sfumato.errors import DataError, counted

MOST_CELLS = 50_000_000  # from the first cell of a sheet to its last; a full sheet has 47 columns then
MOST_ROWS, MOST_COLUMNS = 1_048_576, 16_384  # of the format; a reader takes memory for references beyond, too
MOST_SHEETS = 10_000
BLOCK = 1 << 20
OVERLAP = 64  # a reference that is cut in two by a block has fewer bytes
BOOK, LINKS = "xl/workbook.xml", "xl/_rels/workbook.xml.rels"
REFERENCE = re.compile(rb"""\sr\s*=\s*["']\s*([A-Za-z]{0,7})0*([0-9]{1,12})["']""")
Attributes = dict[str, str]


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
