"""Domain generalization hierarchies: labels by level, integer maps from leaf to label, files, and drawings as text.

Level tables are read with a header or without one (as those of ARX and anjana), and leaf-to-root paths may have unequal
length. Level tables are written with a header. Each edit is a function from paths to paths, which never changes values.
"""

from __future__ import annotations

import csv
import gzip
import io
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile
from pathlib import Path

import numpy as np

from sfumato.base.arrays import Codes, Counts64
from sfumato.base.files import write_text
from sfumato.base.trust import note_input
from sfumato.errors import HierarchyError, counted, nearest, shortened

ROOT = "*"
MOST_LEVELS = 64
Paths = list[tuple[str, ...]]  # for each value its labels from the value to the root
MAX_BYTES = 256 << 20  # unpacked: rows for millions of values
HEADER = re.compile(r"level[ _-]?\d+$", re.IGNORECASE)


@dataclass(frozen=True, eq=False, repr=False)
class Hierarchy:
    """A tree of labels in which every leaf has the same height.

    `levels[0]` are the leaves in leaf order; `maps[l][leaf]` is the position of the leaf's label in `levels[l]`.

    >>> h = Hierarchy.from_paths("marital", [("single", "alone", "*"), ("widowed", "alone", "*"), ("wed", "wed", "*")])
    >>> h.height, h.levels[1], h.maps[1].tolist(), h.sizes[1].tolist()
    (2, ('alone', 'wed'), [0, 0, 1], [2, 1])
    """

    name: str
    levels: tuple[tuple[str, ...], ...]
    maps: tuple[Codes, ...]

    def __repr__(self) -> str:
        return f"<Hierarchy of {self.name}: {counted(len(self.leaves), 'value')}, {counted(self.height + 1, 'level')}>"

    @classmethod
    def from_paths(cls, name: str, paths: Sequence[Sequence[str]]) -> Hierarchy:
        """Make a hierarchy from one leaf-to-root path for each leaf. Raise with the reason if it is none.

        Args:
            name: the column.
            paths: for each leaf its labels from the leaf to the root.

        Returns:
            The hierarchy.
        """
        check_paths(name, paths)
        levels, maps = [], []
        for column in zip(*paths, strict=True):
            codes: dict[str, int] = {}
            maps.append(np.array([codes.setdefault(label, len(codes)) for label in column], dtype=np.int32))
            levels.append(tuple(codes))
        return cls(name, tuple(levels), tuple(maps))

    @property
    def leaves(self) -> tuple[str, ...]:
        return self.levels[0]

    @property
    def height(self) -> int:
        """The number of generalization steps: level 0 is the value itself, level `height` the root."""
        return len(self.levels) - 1

    @property
    def root(self) -> str:
        return self.levels[-1][0]

    @cached_property
    def sizes(self) -> tuple[Codes, ...]:
        """Leaves under each label, per level."""
        return tuple(
            np.bincount(m, minlength=len(g)).astype(np.int32) for m, g in zip(self.maps, self.levels, strict=True)
        )

    @cached_property
    def parents(self) -> tuple[Codes, ...]:
        """For each level but the last, the position of each label's parent one level up."""
        parents = []
        for below, above, labels in zip(self.maps, self.maps[1:], self.levels, strict=False):
            parent = np.zeros(len(labels), dtype=np.int32)
            parent[below] = above
            parents.append(parent)
        return tuple(parents)

    @cached_property
    def nodes(self) -> dict[str, tuple[int, int]]:
        """The first level and position of each label, lowest level first."""
        nodes: dict[str, tuple[int, int]] = {}
        for level, labels in enumerate(self.levels):
            for position, label in enumerate(labels):
                nodes.setdefault(label, (level, position))
        return nodes

    @property
    def paths(self) -> list[tuple[str, ...]]:
        """One leaf-to-root path per leaf: the rows of its file."""
        return [
            tuple(labels[m[leaf]] for labels, m in zip(self.levels, self.maps, strict=True))
            for leaf in range(len(self.leaves))
        ]

    def with_leaf(self, label: str) -> Hierarchy:
        """Return the same hierarchy with one more leaf, which has no labels but itself below the root.

        A missing value without a leaf in the file becomes a category in this way.

        Args:
            label: the new leaf.

        Returns:
            A new hierarchy.
        """
        return Hierarchy.from_paths(self.name, [*self.paths, (*[label] * self.height, self.root)])


def flat(name: str, labels: Sequence[str]) -> Hierarchy:
    """Return the hierarchy that keeps a value or hides it.

    >>> flat("sex", ["F", "M"]).paths
    [('F', '*'), ('M', '*')]
    """
    return Hierarchy.from_paths(name, [(label, ROOT) for label in labels])


def check_paths(name: str, paths: Sequence[Sequence[str]]) -> None:
    """Raise unless the paths make a hierarchy: equal lengths, leaves once, nested levels, one root."""
    if not paths:
        raise HierarchyError(f"the hierarchy of {name} has no rows", expected="one row per value")
    width = len(paths[0])
    uneven = [i for i, path in enumerate(paths) if len(path) != width]
    if uneven:
        raise HierarchyError(
            f"the hierarchy of {name} has {counted(len(uneven), 'row')} without {width} levels; the first is "
            f"row {uneven[0] + 1}",
            expected=f"{width} levels in every row",
        )
    if width > MOST_LEVELS:
        raise HierarchyError(
            f"the hierarchy of {name} has {width} levels", expected=f"at most {MOST_LEVELS}", remedy="leave out levels"
        )
    if width < 2:
        raise HierarchyError(
            f"the hierarchy of {name} has only the values themselves",
            expected="at least two levels, the last with one root",
            remedy=f'check the separator, or add a last column of "{ROOT}"',
        )
    _check_leaves(name, [path[0] for path in paths])
    _check_nesting(name, paths)
    roots = sorted({path[-1] for path in paths})
    if len(roots) > 1:
        raise HierarchyError(
            f"the hierarchy of {name} has {len(roots)} roots: {shortened(roots, 3)}",
            expected="one value in the last column",
            remedy=f'add a last column of "{ROOT}"',
        )


def _check_leaves(name: str, leaves: Sequence[str]) -> None:
    """Check that each value is there once, and none is the label that means hidden."""
    if ROOT in leaves:
        raise HierarchyError(
            f'"{ROOT}" is a value of {name}',
            expected=f'values other than "{ROOT}", which means hidden',
            remedy=f'declare it as missing, na = ["{ROOT}"], or give the value another name',
        )
    if len(set(leaves)) < len(leaves):
        seen: set[str] = set()
        repeated = [leaf for leaf in leaves if leaf in seen or seen.add(leaf)]  # type: ignore[func-returns-value]
        raise HierarchyError(
            f"the hierarchy of {name} has {counted(len(repeated), 'duplicate leaf', 'duplicate leaves')}: "
            f"{shortened(repeated, 3)}",
            expected="one row per value",
            remedy="delete the repeated rows",
        )


def _check_nesting(name: str, paths: Sequence[Sequence[str]]) -> None:
    """Check that each level is a coarsening of the one below, so that a label has one parent."""
    for level in range(len(paths[0]) - 1):
        parent: dict[str, str] = {}
        torn: dict[str, set[str]] = {}
        for path in paths:
            above = parent.setdefault(path[level], path[level + 1])
            if above != path[level + 1]:
                torn.setdefault(path[level], {above}).add(path[level + 1])
        if torn:
            label, above_labels = next(iter(torn.items()))
            raise HierarchyError(
                f"the hierarchy of {name} is not nested: "
                f"{counted(len(torn), 'label has', 'labels have')} several parents on level {level}; "
                f'the first is "{label}", under {shortened(sorted(map(repr, above_labels)), 3)}',
                expected=f"one label of level {level + 1} for each label of level {level}",
                remedy=f'give the parts of "{label}" different names, or the same parent',
            )


def draw(
    hierarchy: Hierarchy,
    counts: Mapping[str, int] | None = None,
    children: int = 12,
    shown: Mapping[str, str] | None = None,
) -> str:
    """Return the tree from the root down. A node with more than `children` children shows the first ones and a count.

    `shown` is how some labels are shown, where a codebook says what they mean.

    >>> h = Hierarchy.from_paths("marital", [("single", "alone", "*"), ("widowed", "alone", "*"), ("wed", "wed", "*")])
    >>> print(draw(h, {"single": 4, "wed": 5}))
    *  9 records
    ├── alone  4
    │   ├── single  4
    │   └── widowed  0
    └── wed  5
    """
    totals = _totals(hierarchy, counts) if counts is not None else None
    top = hierarchy.height
    head = hierarchy.root + (
        f"  {counted(totals[top][0], 'record')}" if totals else f"  {counted(len(hierarchy.leaves), 'value')}"
    )
    return "\n".join([head, *_branches(hierarchy, totals, top, 0, "", children, shown or {})])


def _totals(hierarchy: Hierarchy, counts: Mapping[str, int]) -> list[Counts64]:
    leaf = [counts.get(label, 0) for label in hierarchy.leaves]
    levels = zip(hierarchy.maps, hierarchy.levels, strict=True)
    return [np.bincount(m, weights=leaf, minlength=len(labels)).astype(np.int64) for m, labels in levels]


def _branches(
    hierarchy: Hierarchy,
    totals: list[Counts64] | None,
    level: int,
    node: int,
    indent: str,
    limit: int,
    names: Mapping[str, str],
) -> Iterator[str]:
    if level == 0:
        return
    children = np.flatnonzero(hierarchy.parents[level - 1] == node)
    if len(children) == 1 and hierarchy.levels[level][node] == hierarchy.levels[level - 1][children[0]]:
        # A label that only repeats itself is one node, not a chain.
        yield from _branches(hierarchy, totals, level - 1, int(children[0]), indent, limit, names)
        return
    shown = children if len(children) <= limit + 1 else children[:limit]
    for number, child in enumerate(shown):
        last = number == len(children) - 1
        label = hierarchy.levels[level - 1][child]
        figure = f"  {totals[level - 1][child]:,}" if totals else ""
        yield f"{indent}{'└── ' if last else '├── '}{names.get(label, label)}{figure}"
        below = indent + ("    " if last else "│   ")
        yield from _branches(hierarchy, totals, level - 1, int(child), below, limit, names)
    if len(shown) < len(children):
        rest = children[len(shown) :]
        figure = f"  {int(totals[level - 1][rest].sum()):,}" if totals else ""
        yield f"{indent}└── … {len(rest)} more{figure}"


def load(
    path: str | Path, *, name: str | None = None, header: bool | None = None, separator: str | None = None
) -> Hierarchy:
    """Read a hierarchy file. Separator and header (`level0`, `level1`, …) are detected unless given."""
    path = Path(path)
    name = name or path.name.split(".")[0]
    rows = _rows(_text(path), "\t" if separator == "\\t" else separator)
    if header is None:
        # If only the first row ends differently, it names the levels.
        other = len(rows) > 2 and len({row[-1] for row in rows[1:]}) == 1 and rows[0][-1] != rows[1][-1]
        header = bool(rows) and (all(HEADER.match(cell) for cell in rows[0]) or other)
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
            remedy="correct that line",
        ) from error
    for row in lines:
        cells = [cell.strip() for cell in row]
        while cells and not cells[-1]:  # a path that ends early may be padded with empty cells
            cells.pop()
        if cells:
            rows.append(cells)
    return rows


def edited(
    name: str, paths: Sequence[Sequence[str]], do: str, *, level: int = 0, labels: Sequence[str] = (), to: str = ""
) -> Paths:
    """Return the paths after one change, checked.

    >>> paths = edited("sex", [("F", "*"), ("M", "*"), ("X", "*")], "add_level", level=1)
    >>> edited("sex", paths, "join", level=1, labels=["F", "X"], to="F or X")
    [('F', 'F or X', '*'), ('M', 'M', '*'), ('X', 'F or X', '*')]
    """
    check_paths(name, paths)
    changes = {"rename": rename, "join": join, "move": move, "add_level": add_level, "remove_level": remove_level}
    if do not in changes:
        raise HierarchyError(f'unknown change "{do}"', expected="a change", remedy=nearest(do, changes))
    first, last = (0, len(paths[0]) - 2) if do in ("rename", "join", "move") else (1, len(paths[0]) - 1)
    if not first <= level <= last:
        raise HierarchyError(f"level {level}", expected=f"a level from {first} to {last}")
    changed = changes[do]([tuple(path) for path in paths], level, labels, to.strip())
    check_paths(name, changed)
    return changed


def rename(paths: Paths, level: int, labels: Sequence[str], to: str) -> Paths:
    """Give a label of a level another name, also on the levels above where the same label is repeated."""
    old = _known(paths, level, labels)[0]
    _refuse_name(paths, level, to, {old})
    renamed = []
    for path in paths:
        repeats = list(takewhile(lambda label: label == old, path[level:-1]))
        renamed.append((*path[:level], *([to] * len(repeats)), *path[level + len(repeats) :]))
    return renamed


def join(paths: Paths, level: int, labels: Sequence[str], to: str) -> Paths:
    """Join several labels of a level to one, at the position of the first of them."""
    joined = set(_known(paths, level, labels))
    _refuse_name(paths, level, to, joined)
    above = next(path[level + 1 :] for path in paths if path[level] == labels[0])
    # A label that only repeats itself one level up would keep the old name there.
    above = tuple(
        to if label == labels[0] and level_above < len(above) - 1 else label for level_above, label in enumerate(above)
    )
    return [(*path[:level], to, *above) if path[level] in joined else path for path in paths]


def move(paths: Paths, level: int, labels: Sequence[str], to: str) -> Paths:
    """Put labels of a level (0: values) under another label of the level above."""
    moved = set(_known(paths, level, labels))
    target = [path for path in paths if path[level + 1] == to]
    if not target:
        known = {path[level + 1] for path in paths}
        raise HierarchyError(
            f'there is no label "{to}" on level {level + 1}',
            expected="a label of the level above",
            remedy=nearest(to, known),
        )
    return [(*path[: level + 1], *target[0][level + 1 :]) if path[level] in moved else path for path in paths]


def add_level(paths: Paths, level: int, labels: Sequence[str] = (), to: str = "") -> Paths:  # noqa: ARG001
    """Return a new level under one that is there, at first with the labels of the level below it."""
    return [(*path[:level], path[level - 1], *path[level:]) for path in paths]


def remove_level(paths: Paths, level: int, labels: Sequence[str] = (), to: str = "") -> Paths:  # noqa: ARG001
    """Leave a level out."""
    if level == len(paths[0]) - 1:
        raise HierarchyError("the last level is the root", expected="a level between the values and the root")
    return [(*path[:level], *path[level + 1 :]) for path in paths]


def _known(paths: Paths, level: int, labels: Sequence[str]) -> Sequence[str]:
    there = {path[level] for path in paths}
    absent = [label for label in labels if label not in there]
    if absent or not labels:
        raise HierarchyError(
            f"no label {shortened(map(repr, absent), 3)} on level {level}" if absent else "no label was given",
            expected="labels of that level",
            remedy=shortened(sorted(there)),
        )
    return labels


def _refuse_name(paths: Paths, level: int, to: str, joined: set[str]) -> None:
    if not to:
        raise HierarchyError("a label without a name", expected="a name")
    if level == 0:
        raise HierarchyError(
            "values of the table keep their names", expected="a label of level 1 or higher", remedy="add a level first"
        )
    if to in {path[level] for path in paths} - joined:
        raise HierarchyError(
            f'"{to}" is another label of level {level}', expected="a new name", remedy="join the two, or choose another"
        )
