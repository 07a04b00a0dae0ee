"""Workbooks whose cells reach far: refused before memory is taken for all cells up to the last one."""

from __future__ import annotations

import resource
import subprocess
import sys
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import xlsxwriter
from tests.labelled.test_reading import opened, rows

from sfumato.cli import run
from sfumato.data import labelled_read
from sfumato.errors import DataError

LAST = (1_048_575, 16_383)
SHEET = "xl/worksheets/sheet1.xml"


def workbook(path: Path, *far: tuple[int, int], value: str | None = "x", second: bool = False) -> Path:
    """A table of two columns, with further cells; `second` puts them on another sheet."""
    with xlsxwriter.Workbook(path) as book:
        sheet, bold = book.add_worksheet("people"), book.add_format({"bold": True})
        for row, cells in enumerate([("age", "pay"), (39, 10), (40, 20)]):
            for column, cell in enumerate(cells):
                sheet.write(row, column, cell)
        other = book.add_worksheet("other") if second else sheet
        for row, column in far:
            other.write(row, column, value, bold)
    return path


def rewritten(path: Path, change: Callable[[str], str], part: str = SHEET) -> Path:
    with zipfile.ZipFile(path) as packed:
        parts = {name: packed.read(name) for name in packed.namelist()}
    text = parts[part].decode()
    parts[part] = change(text).encode()
    assert parts[part] != text.encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, raw in parts.items():
            packed.writestr(name, raw)
    return path


def small_declared(text: str) -> str:
    return text.replace('<dimension ref="A1:XFD1048576"/>', '<dimension ref="A1:B3"/>')


@pytest.mark.parametrize(
    "change",
    [
        None,
        small_declared,
        lambda text: text.replace('<dimension ref="A1:XFD1048576"/>', ""),
        lambda text: text.replace('r="XFD1048576"', "r = 'XFD1048576'"),
        lambda text: text.replace('r="XFD1048576"', 'r="xfd1048576"'),
    ],
)
def test_a_far_cell_is_refused(change: Callable[[str], str] | None, tmp_path: Path) -> None:
    path = workbook(tmp_path / "far.xlsx", LAST)
    if change is not None:
        rewritten(path, change)
    assert path.stat().st_size < 10_000
    with pytest.raises(DataError, match="1,048,576 rows and 16,384 columns, which are 17,179,869,184 cells"):
        opened(path)


@pytest.mark.parametrize(
    ("reference", "size"), [("ZZZZZ3", "12,356,630 columns"), ("A99999999", "99,999,999 rows"), ("ABCDEFG2", "columns")]
)
def test_a_reference_beyond_the_format_is_refused(reference: str, size: str, tmp_path: Path) -> None:
    """The reader takes memory for columns and rows that no workbook has; few rows of many columns are few cells."""
    path = rewritten(workbook(tmp_path / "far.xlsx", LAST), lambda text: text.replace("XFD1048576", reference))
    with pytest.raises(DataError, match=size):
        opened(path)


def test_many_far_cells_that_are_far_only_together(tmp_path: Path) -> None:
    path = workbook(tmp_path / "far.xlsx", (LAST[0], 0), (0, LAST[1]))
    with pytest.raises(DataError, match="17,179,869,184 cells"):
        opened(path)


def test_the_command_ends_with_a_sentence_in_little_memory(tmp_path: Path) -> None:
    """It ended with exit code 134 and a trace of 108 lines."""
    path = workbook(tmp_path / "far.xlsx", LAST)
    call = [sys.executable, "-m", "sfumato", "inspect", str(path), "-o", str(tmp_path / "run.toml")]
    limit = 4 << 30
    little = partial(resource.setrlimit, resource.RLIMIT_DATA, (limit, limit))
    ended = subprocess.run(
        call,
        capture_output=True,
        check=False,
        preexec_fn=little,
    )
    assert ended.returncode == 2
    said = ended.stderr.decode()
    assert said.startswith('error: the sheet "people" of far.xlsx has cells in 1,048,576 rows')
    assert len(said.splitlines()) == 3


@pytest.mark.parametrize(
    "made",
    [
        lambda path: workbook(path),
        lambda path: workbook(path, LAST, value=None),  # a format without a value
        lambda path: workbook(path, LAST, second=True),  # on a sheet that is not read
        lambda path: rewritten(workbook(path), lambda text: text.replace('ref="A1:B3"', 'ref="A1:XFD1048576"')),
        lambda path: rewritten(workbook(path), lambda text: text.replace(' r="A', ' s="0" r="A')),
    ],
)
def test_what_only_seems_far_is_read(made: Callable[[Path], Path], tmp_path: Path) -> None:
    source = opened(made(tmp_path / "near.xlsx"))
    assert source.names == ("age", "pay")
    assert rows(source) == [["39", "10"], ["40", "20"]]


def test_the_sheet_that_is_asked_for_is_looked_at(tmp_path: Path) -> None:
    path = workbook(tmp_path / "far.xlsx", LAST, second=True)
    with pytest.raises(DataError, match='the sheet "other" of'):
        opened(path, sheet="other")


def test_rows_far_down_within_the_limit_are_read(tmp_path: Path) -> None:
    source = opened(workbook(tmp_path / "near.xlsx", (300_000, 0), value="41"))
    assert rows(source) == [["39", "10"], ["40", "20"], ["41", None]]


def test_what_the_range_does_not_show_is_refused_by_the_memory_of_its_reader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Just within the limit on cells, but not within that on memory: the process that reads it ends, and not ours."""
    monkeypatch.setattr(labelled_read, "MOST_MEMORY", 1 << 30)
    path = workbook(tmp_path / "far.xlsx", (LAST[0], 46))
    assert run(["inspect", str(path), "-o", str(tmp_path / "run.toml")]) == 2
    assert "far.xlsx needs more than 1 GB of memory to be read" in capsys.readouterr().err


CONTENT = """<?xml version="1.0" encoding="UTF-8"?><office:document-content
xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0"
xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"
xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0"><office:body><office:spreadsheet><table:table
table:name="people">{rows}</table:table></office:spreadsheet></office:body></office:document-content>"""
CELL = '<table:table-cell office:value-type="string"{more}><text:p>{text}</text:p></table:table-cell>'


def ods(path: Path, more: str, row: str = "") -> Path:
    cells = [
        "<table:table-row>" + "".join(CELL.format(text=t, more="") for t in pair) + "</table:table-row>"
        for pair in (("age", "pay"), ("39", "10"))
    ]
    last = f"<table:table-row{row}>" + CELL.format(text="x", more=more) + "</table:table-row>"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        packed.writestr(
            "META-INF/manifest.xml",
            '<m:manifest xmlns:m="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"/>',
        )
        packed.writestr("content.xml", CONTENT.format(rows="".join([*cells, last])))
    return path


def test_repeated_cells_of_an_open_document(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = opened(ods(tmp_path / "near.ods", ""))
    assert rows(source) == [["39", "10"], ["x", None]]
    monkeypatch.setattr(labelled_read, "MOST_MEMORY", 1 << 30)
    many = ods(tmp_path / "far.ods", ' table:number-columns-repeated="16384"', ' table:number-rows-repeated="1048576"')
    with pytest.raises(DataError, match=r"far.ods (needs more than 1 GB of memory|cannot be read as a workbook)"):
        opened(many)
