"""Which few columns together single most records out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from sfumato.data.frequency import FrequencyTable
from sfumato.data.packing import pack
from sfumato.measures import kernels
from sfumato.measures.classes import folded

MOST_COLUMNS = 12


@dataclass(frozen=True)
class Combination:
    """Columns, and the share of records that nobody shares their values with."""

    columns: tuple[str, ...]
    unique: float


def combinations_that_single_out(table: FrequencyTable, sizes: Sequence[int] = (1, 2, 3)) -> list[Combination]:
    """For each number of columns, all combinations of that many, the most telling first.

    >>> from sfumato.measures.example import six_records
    >>> found = combinations_that_single_out(six_records(), sizes=(2,))
    >>> found[0].columns, round(found[0].unique, 3)
    (('age', 'zip'), 1.0)
    """
    width = min(len(table.domains), MOST_COLUMNS)
    found = []
    for size in sizes:
        for chosen in combinations(range(width), size):
            found.append(Combination(tuple(table.columns[j] for j in chosen), _unique(table, chosen)))
    return sorted(found, key=lambda c: (len(c.columns), -c.unique, c.columns))


def _unique(table: FrequencyTable, chosen: tuple[int, ...]) -> float:
    widths = np.array([len(table.domains[j].labels) for j in chosen], dtype=np.int64)
    start = np.concatenate([[0], np.cumsum(widths)[:-1]]).astype(np.int64)
    groups = np.concatenate([np.arange(width, dtype=np.uint32) for width in widths])
    packed = pack(table.codes[list(chosen)], widths.tolist())
    index, first = kernels.class_index(*folded(packed), groups, start, widths)
    rows = kernels.class_rows(index, table.counts, len(first))
    return float(np.sum(rows == 1)) / table.rows
