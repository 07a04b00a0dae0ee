"""A hierarchy drawn as a tree in text, with how many records stand under each label."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from sfumato.errors import counted
from sfumato.hierarchies.hierarchy import Hierarchy
from sfumato.runtime.arrays import Counts64


def draw(
    hierarchy: Hierarchy,
    counts: Mapping[str, int] | None = None,
    children: int = 12,
    shown: Mapping[str, str] | None = None,
) -> str:
    """The tree from the root down. A node with more than `children` children shows the first ones and a count.

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
    leaf = np.array([counts.get(label, 0) for label in hierarchy.leaves], dtype=np.int64)
    totals = []
    for labels, leaf_map in zip(hierarchy.levels, hierarchy.maps, strict=True):
        sums = np.zeros(len(labels), dtype=np.int64)
        np.add.at(sums, leaf_map, leaf)
        totals.append(sums)
    return totals


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
