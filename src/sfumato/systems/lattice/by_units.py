"""The releases of nodes where units have records in several tuples and class sizes in units alone decide.

Such counts do not add up from node to node, so each node is counted from the tuples: the classes, the distinct units of
each class, and for each unit the smallest of its classes, below which the unit is suppressed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from sfumato.errors import MeasureError
from sfumato.measures.classes import folded
from sfumato.measures.kernels import class_index
from sfumato.runtime.arrays import Codes, Counts64, Index
from sfumato.runtime.compiled import compiled
from sfumato.systems.lattice.rule import DEMANDED, SOUGHT
from sfumato.tables.frequency import FrequencyTable


class UnitReleases(NamedTuple):
    """The releases of nodes, the one that suppresses most first; `start[i]:start[i + 1]` are those of node i.

    Of each release the smallest class that is left (0 if none is), the units and records suppressed, and in each column
    the leaves that labels of suppressed records cover. Of each node the highest size within reach, and the units that
    fall short of a demanded one.
    """

    start: Counts64
    k: Counts64
    units: Counts64
    records: Counts64
    hidden: Counts64
    best: Counts64
    failing: Counts64


@compiled
def count_units(
    index: Index, classes: int, tuple_of: Counts64, start: Counts64, sizes: Counts64, least: Counts64
) -> None:
    """The distinct units of each class, and for each unit the smallest of its classes.

    `tuple_of[start[u]:start[u + 1]]` are the tuples of unit u.
    """
    last = np.full(classes, -1, np.int64)
    for u in range(len(start) - 1):
        for p in range(start[u], start[u + 1]):
            c = index[tuple_of[p]]
            if last[c] != u:
                last[c] = u
                sizes[c] += 1
    for u in range(len(start) - 1):
        smallest = np.int64(1) << 62
        for p in range(start[u], start[u + 1]):
            smallest = min(smallest, sizes[index[tuple_of[p]]])
        least[u] = smallest


@compiled
def node_releases(
    index: Index,
    first: Index,
    codes: Codes,
    counts: Counts64,
    tuple_of: Counts64,
    unit_start: Counts64,
    covers: Counts64,
    cover_start: Counts64,
    mode: int,
    limit: int,
    budget: int,
    every: bool,
) -> tuple[Counts64, int, int]:
    """The releases of one node: rows of (k, units, records, hidden leaves per column); its best k, its failing units.

    `covers[cover_start[j] + code]` are the leaves under the label of a code in column j.
    """
    classes, columns = len(first), codes.shape[0]
    rows, sizes = np.zeros(classes, np.int64), np.zeros(classes, np.int64)
    least = np.empty(len(unit_start) - 1, np.int64)
    for t in range(len(index)):
        rows[index[t]] += counts[t]
    count_units(index, classes, tuple_of, unit_start, sizes, least)
    # A class that goes within the budget has no more units than the budget, so only such sizes are counted and sorted.
    cap = limit if mode == DEMANDED else (budget + 1 if mode == SOUGHT else 0)
    short = np.zeros(cap + 1, np.int64)
    for u in range(len(least)):
        if least[u] <= cap:
            short[least[u]] += 1
    small, larger = 0, np.int64(0)
    few = np.empty(classes, np.int64)
    for c in range(classes):
        if sizes[c] <= cap:
            few[small] = c
            small += 1
        elif larger == 0 or sizes[c] < larger:
            larger = sizes[c]
    few = few[:small]
    order = few[np.argsort(sizes[few])]
    # `reached` of the classes in that order go at most; `levels` thresholds lie on the way.
    reached, levels, gone, at = 0, 0, np.int64(0), 0
    while at < small:
        size = sizes[order[at]]
        end = at
        while end < small and sizes[order[end]] == size:
            end += 1
        gone += short[size]
        fits = size < limit if mode == DEMANDED else (gone <= budget and mode == SOUGHT)
        if not fits or (mode != DEMANDED and end == classes):
            break
        reached, at = end, end
        levels += 1
    number = levels + 1 if mode == SOUGHT and every else 1
    result = np.zeros((number, 3 + columns), np.int64)
    total = np.zeros(2 + columns, np.int64)
    at, line = 0, number - 1
    while True:
        if at == reached or (mode == SOUGHT and every):
            result[line, 0] = sizes[order[at]] if at < small else larger
            for f in range(2 + columns):
                result[line, 1 + f] = total[f]
            line -= 1
        if at == reached:
            break
        size = sizes[order[at]]
        total[0] += short[size]
        while at < small and sizes[order[at]] == size:
            c = order[at]
            total[1] += rows[c]
            for j in range(columns):
                total[2 + j] += rows[c] * covers[cover_start[j] + codes[j, first[c]]]
            at += 1
    failing = result[0, 1] if mode == DEMANDED else 0
    return result, int(result[0, 0]), int(failing)


def releases_in_units(
    table: FrequencyTable, nodes: Codes, mode: int, limit: float, budget: int, every: bool
) -> UnitReleases:
    """The releases of some nodes, in the order they are given."""
    units = table.units
    if units is None:
        raise MeasureError("units of a table that has none", expected="a unit column")
    tuple_of, unit_start = units.by_unit
    trees = [domain.hierarchy for domain in table.domains]
    start = np.concatenate([[0], np.cumsum([len(tree.leaves) for tree in trees])[:-1]]).astype(np.int64)
    least = int(np.ceil(limit)) if np.isfinite(limit) else 0
    parts: list[Counts64] = []
    best, failing = [], []
    given = folded(table.packed)
    for node in nodes.tolist():
        groups, covers, radix = _at(table, node)
        index, first = class_index(*given, groups, start, radix)
        found, most, short = node_releases(
            index,
            first,
            table.codes,
            table.counts,
            tuple_of,
            unit_start,
            covers,
            start,
            mode,
            least,
            budget,
            every,
        )
        parts.append(found)
        best.append(most)
        failing.append(short)
    every_part = np.concatenate(parts) if parts else np.empty((0, 3 + len(trees)), dtype=np.int64)
    return UnitReleases(
        np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.int64),
        every_part[:, 0],
        every_part[:, 1],
        every_part[:, 2],
        every_part[:, 3:],
        np.array(best, dtype=np.int64),
        np.array(failing, dtype=np.int64),
    )


def _at(table: FrequencyTable, node: Sequence[int]) -> tuple[Index, Counts64, Counts64]:
    """The groups of all codes at a node, the leaves under each, and the groups of each column."""
    trees = [domain.hierarchy for domain in table.domains]
    maps = [tree.maps[level] for tree, level in zip(trees, node, strict=True)]
    sizes = [tree.sizes[level] for tree, level in zip(trees, node, strict=True)]
    covers = np.concatenate([size[part] for size, part in zip(sizes, maps, strict=True)]).astype(np.int64)
    radix = np.array([len(size) for size in sizes], dtype=np.int64)
    return np.concatenate(maps).astype(np.uint32), covers, radix
