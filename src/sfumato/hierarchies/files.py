"""Reading and writing of hierarchy files.

Level tables are read with a header or without one (as those of ARX and anjana), and leaf-to-root paths may have unequal
length. Level tables are written with a header.
"""

from __future__ import annotations

import csv
import gzip
import io
import re
import zlib
from collections.abc import Sequence
from pathlib import Path

from sfumato.base.files import write_text
from sfumato.base.trust import note_input
from sfumato.errors import HierarchyError, counted
from sfumato.hierarchies.hierarchy import Hierarchy

MAX_BYTES = 256 << 20  # unpacked: rows for millions of values
HEADER = re.compile(r"level[ _-]?\d+$", re.IGNORECASE)


def load(
    path: str | Path, *, name: str | None = None, header: bool | None = None, separator: str | None = None
) -> Hierarchy:
    """Read a hierarchy file. Separator and header (`level0`, `level1`, …) are detected unless given."""
    path = Path(path)
    name = name or path.name.split(".")[0]
    rows = _rows(_text(path), "\t" if separator == "\\t" else separator)
    if header is None:
        header = bool(rows) and (all(HEADER.match(cell) for cell in rows[0]) or _other_root(rows))
    body = rows[1:] if header else rows
    blank = [number for number, row in enumerate(body, start=1) if "" in row]
    if blank:
        raise HierarchyError(
            f"the hierarchy of {name} has {counted(len(blank), 'row')} with an empty label; the first is row "
            f"{blank[0]}",
            expected="a label at every level up to the root",
            remedy="repeat the label of the level below where nothing changes",
        )
    return Hierarchy.from_paths(name, level(body))


def save(hierarchy: Hierarchy, path: str | Path, *, overwrite: bool = True) -> None:
    """Write a hierarchy as a level table with a header."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([f"level{i}" for i in range(hierarchy.height + 1)])
    writer.writerows(hierarchy.paths)
    write_text(path, text.getvalue(), overwrite=overwrite, private=True)


def level(paths: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
    """Align paths of unequal length at the root: a short path repeats its leaf at the levels below.

    A node has one distance to the root, so every node is on one level. A leaf near the root is generalized last, which
    loses least.

    >>> level([("Private", "*"), ("Self-emp-inc", "Self-employed", "*")])
    [('Private', 'Private', '*'), ('Self-emp-inc', 'Self-employed', '*')]
    """
    height = max((len(path) for path in paths), default=0)
    return [(path[0],) * (height - len(path)) + tuple(path) for path in paths if path]


def _text(path: Path) -> str:
    if path.is_dir() or not path.exists():
        kind = "a folder" if path.is_dir() else "not there"
        raise HierarchyError(f"the hierarchy file {path} is {kind}", expected="a CSV file, one row per value")
    try:
        with note_input(path).open("rb") as file, gzip.open(file) if path.suffix == ".gz" else file as stream:
            raw = stream.read(MAX_BYTES + 1)
        if len(raw) > MAX_BYTES:
            raise HierarchyError(f"{path.name} is larger than {MAX_BYTES >> 20} MB", expected="a row for each value")
        return raw.decode("utf-8-sig")
    except (OSError, EOFError, zlib.error) as error:
        raise HierarchyError(
            f"cannot read {path.name}: {error}",
            expected="a CSV file",
            remedy="check that it is complete and that you may read it",
        ) from error
    except UnicodeDecodeError as error:
        raise HierarchyError(
            f"{path.name} is not UTF-8 (byte {error.start})",
            expected="a CSV file in UTF-8",
            remedy="save it as UTF-8",
        ) from error


def _other_root(rows: list[list[str]]) -> bool:
    """Return whether only the first row ends differently: then it names the levels."""
    return len(rows) > 2 and len({row[-1] for row in rows[1:]}) == 1 and rows[0][-1] != rows[1][-1]


def _rows(text: str, separator: str | None) -> list[list[str]]:
    """Return the rows as trimmed cells; the separator is one that leaves few roots and splits most rows."""
    if separator is not None:
        return _parse(text, separator)
    candidates = [_parse(text, mark) for mark in (";", ",", "\t", "|")]
    split = [rows for rows in candidates if any(len(row) > 1 for row in rows)]
    if not split:
        return candidates[0]
    return min(split, key=lambda rows: (len({row[-1] for row in rows}), -sum(len(row) > 1 for row in rows)))


def _parse(text: str, separator: str) -> list[list[str]]:
    if len(separator) != 1:
        raise HierarchyError(f"{separator!r} is no separator", expected="one character", remedy='separator = ";"')
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    rows = []
    try:
        lines = list(reader)
    except csv.Error as error:
        raise HierarchyError(
            f"line {reader.line_num} is not valid CSV: {error}",
            expected="short cells in closed quotes",
            remedy="mend that line",
        ) from error
    for row in lines:
        cells = [cell.strip() for cell in row]
        while cells and not cells[-1]:  # a path that ends early may be padded with empty cells
            cells.pop()
        if cells:
            rows.append(cells)
    return rows
