"""Classes that are given by the class of each tuple: those of recodings whose labels differ from class to class."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sfumato.measures.classes import ClassTable
from sfumato.plans.recoding import as_it_stands
from sfumato.runtime.arrays import Counts64
from sfumato.tables.frequency import FrequencyTable


def class_table(table: FrequencyTable, owner: Counts64, count: int, weights: Sequence[float]) -> ClassTable:
    """Classes of whole tuples as measures read them: `owner[t]` is the class of a tuple, -1 where it is suppressed.

    The suppressed records are the last class.
    """
    gone = owner < 0
    index = np.where(gone, count, owner).astype(np.uint32)
    some = count + int(gone.any())
    first = np.zeros(some, dtype=np.uint32)
    first[index[::-1]] = np.arange(table.tuples, dtype=np.uint32)[::-1]
    rows = np.bincount(index, weights=table.counts, minlength=some).astype(np.int64)
    size = rows if table.units is None else table.units.in_classes(index, some)
    suppressed = np.arange(some) >= count
    return ClassTable(table, as_it_stands(table), index, first, rows, rows, size, suppressed, weights=tuple(weights))
