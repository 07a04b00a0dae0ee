"""Tiny tables for local recoding, by hand and at random."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import strategies as st

from sfumato.methods.local.model import Cells, Column, Labels, labels_of

TREE = ((0, 1), (1, 2), (2, 3), (3, 4), (0, 2), (2, 4), (0, 4))
COLUMNS = (
    Column([1, 1, 1, 1]),
    Column([1, 1, 1, 1], TREE),
    Column([1, 1]),
    Column([1, 2, 1], alone=True),
    Column([1, 1, 1], ((0, 1), (1, 2), (2, 3), (0, 3))),
)
Rows = tuple[tuple[int, ...], ...]


def cells_of(rows: Rows) -> Cells:
    """Records as distinct cells with counts."""
    counts = Counter(rows)
    return Cells(np.array(sorted(counts), np.int32), np.array([counts[row] for row in sorted(counts)], np.int64))


def in_order(cells: Cells, order: list[int]) -> Rows:
    """The records of cells in an order, one by one."""
    return tuple(tuple(cells.codes[c].tolist()) for c in order for _ in range(int(cells.counts[c])))


@st.composite
def tiny_tables(draw: st.DrawFn, least: int = 4, most: int = 7) -> tuple[Labels, Rows]:
    columns = draw(st.lists(st.sampled_from(COLUMNS), min_size=1, max_size=3))
    weights = draw(st.lists(st.sampled_from([0.5, 1.0, 3.0]), min_size=len(columns), max_size=len(columns)))
    cell = st.tuples(*(st.integers(0, len(column.leaves) - 1) for column in columns))
    rows = draw(st.lists(cell, min_size=least, max_size=most))
    return labels_of(columns, weights), tuple(sorted(rows))
