"""Edits of a hierarchy, each a function from paths to paths: rename, join, move, add and remove a level.

A path is `(value, label of level 1, …, root)`. Values themselves are never changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sfumato.errors import HierarchyError, nearest, shortened
from sfumato.hierarchies.hierarchy import check_paths

Paths = list[tuple[str, ...]]


def edited(name: str, paths: Sequence[Sequence[str]], change: Mapping[str, Any]) -> Paths:
    """Return the paths after one change, checked.

    >>> paths = [("F", "*"), ("M", "*"), ("X", "*")]
    >>> paths = edited("sex", paths, {"do": "add_level", "level": 1})
    >>> edited("sex", paths, {"do": "join", "level": 1, "labels": ["F", "X"], "to": "F or X"})
    [('F', 'F or X', '*'), ('M', 'M', '*'), ('X', 'F or X', '*')]
    """
    check_paths(name, paths)
    changes = {"rename": rename, "join": join, "move": move, "add_level": add_level, "remove_level": remove_level}
    do = str(change.get("do"))
    if do not in changes:
        raise HierarchyError(f'unknown change "{do}"', expected="a change", remedy=nearest(do, changes))
    level = int(change.get("level", 0))
    _refuse_level(paths, level, top=do not in ("rename", "join", "move"))
    labels, to = [str(label) for label in change.get("labels", ())], str(change.get("to", "")).strip()
    changed = changes[do]([tuple(path) for path in paths], level, labels, to)
    check_paths(name, changed)
    return changed


def rename(paths: Paths, level: int, labels: Sequence[str], to: str) -> Paths:
    """Give a label of a level another name, also on the levels above where the same label is repeated."""
    old = _known(paths, level, labels)[0]
    _refuse_name(paths, level, to, {old})
    return [tuple(_renamed(path, level, old, to)) for path in paths]


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


def _renamed(path: tuple[str, ...], level: int, old: str, to: str) -> list[str]:
    renamed = list(path)
    for above in range(level, len(path) - 1):
        if renamed[above] != old:
            break
        renamed[above] = to
    return renamed


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


def _refuse_level(paths: Sequence[Sequence[str]], level: int, *, top: bool) -> None:
    last = len(paths[0]) - (1 if top else 2)
    first = 1 if top else 0
    if not first <= level <= last:
        raise HierarchyError(f"level {level}", expected=f"a level from {first} to {last}")
