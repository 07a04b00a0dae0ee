"""Hierarchy files. Read: level tables with a header, ARX's and anjana's without one, leaf-to-root paths of
unequal length. Written: level tables with a header."""

from __future__ import annotations

import csv
import gzip
import io
import re
from collections.abc import Sequence
from pathlib import Path

from sfumato.data.hierarchies.hierarchy import Hierarchy
from sfumato.errors import HierarchyError

HEADER = re.compile(r"level[ _-]?\d+$", re.IGNORECASE)


def load(
    path: str | Path, *, name: str | None = None, header: bool | None = None, separator: str | None = None
) -> Hierarchy:
    """Read a hierarchy file. Separator and header (`level0`, `level1`, …) are detected unless given."""
    path = Path(path)
    name = name or path.name.split(".")[0]
    rows = _rows(_text(path), separator)
    if header is None:
        header = bool(rows) and all(HEADER.match(cell) for cell in rows[0])
    return Hierarchy.from_paths(name, level(rows[1:] if header else rows))


def save(hierarchy: Hierarchy, path: str | Path) -> None:
    """Write a hierarchy as a level table with a header."""
    path = Path(path)
    part = path.with_name(path.name + ".part")
    with part.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([f"level{i}" for i in range(hierarchy.height + 1)])
        writer.writerows(hierarchy.paths)
    part.replace(path)


def level(paths: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
    """Paths of unequal length, aligned at the root: a short path repeats its leaf at the levels below.

    A node has one distance to the root, so this keeps every node on one level; and a leaf near the root
    stays itself as long as it can, which loses least.

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
        raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        return raw.decode("utf-8-sig")
    except (OSError, EOFError) as error:
        raise HierarchyError(f"cannot read {path.name}: {error}", expected="a CSV file") from error
    except UnicodeDecodeError as error:
        raise HierarchyError(
            f"{path.name} is not UTF-8 (byte {error.start})",
            expected="a CSV file in UTF-8",
            remedy="save it as UTF-8",
        ) from error


def _rows(text: str, separator: str | None) -> list[list[str]]:
    """The rows as trimmed cells; the separator is the one that splits most rows, `;` before `,`."""
    if separator is None:
        candidates = [_parse(text, mark) for mark in (";", ",", "\t", "|")]
        return max(candidates, key=lambda rows: sum(len(row) > 1 for row in rows))
    return _parse(text, separator)


def _parse(text: str, separator: str) -> list[list[str]]:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    rows = []
    for row in reader:
        cells = [cell.strip() for cell in row]
        while cells and not cells[-1]:  # a path that ends early may be padded with empty cells
            cells.pop()
        if cells:
            rows.append(cells)
    return rows
