"""Measures in units: their texts if persons are counted, and class sizes if units have records in several tuples.

The number of distinct units of a class is not the sum of the numbers of its parts. So the counts of a recoding do not
follow from those of a finer one, and each recoding is counted from the tuples: its classes, the distinct units of each
class, and the smallest class of each unit. A threshold above the size of that class suppresses the unit.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sfumato.base.arrays import Codes, Counts64, Index
from sfumato.base.compiled import compiled
from sfumato.errors import MeasureError
from sfumato.measures.classes import ClassTable, flattened, folded
from sfumato.measures.kernels import class_index
from sfumato.measures.measure import Measure, Texts
from sfumato.measures.thresholds import CONSTRAINT, OBJECTIVE
from sfumato.plans.recodings import Recoding, as_it_stands
from sfumato.tables.frequency import FrequencyTable

WORDS = (("records", "persons"), ("(?<!survey )record", "person"))
IN_PERSONS = ("sizes", "sensitive")  # the `reads` of measures that count persons; losses always count records


def texts_of(measure: Measure, persons: bool) -> Texts:
    """Return the texts of a measure, for counts of persons or of records.

    >>> from sfumato.measures.registry import measure
    >>> texts_of(measure("uniques"), persons=True).title, texts_of(measure("uniques"), persons=False).title
    ('unique persons, share', 'unique records, share')
    >>> texts_of(measure("k"), persons=True).sentence
    'Every released person has the same quasi-identifiers as at least k − 1 others.'
    >>> texts_of(measure("own_share"), persons=True).sentence
    "The mean share of a person's own sensitive value in its class."
    """
    about = measure.about
    if not persons or not counts_persons(measure):
        return about
    return replace(about, title=in_persons(about.title), sentence=in_persons(about.sentence))


def counts_persons(measure: Measure) -> bool:
    """Return whether a measure counts persons if the table has the person of each row."""
    return measure.kind == "privacy" and measure.reads in IN_PERSONS


def in_persons(text: str) -> str:
    """Change a text about records into one about persons."""
    for word, other in WORDS:
        text = re.sub(rf"\b{word}\b", other, text)
    return text


def class_table(table: FrequencyTable, owner: Counts64, count: int, weights: Sequence[float]) -> ClassTable:
    """Return a class table in which tuple t is in class `owner[t]`, or suppressed if that is -1.

    This serves recodings whose labels differ from class to class. The suppressed records are the last class.
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


@compiled
def count_units(
    index: Index, classes: int, tuple_of: Counts64, start: Counts64, sizes: Counts64, least: Counts64
) -> None:
    """Return the number of distinct units of each class, and the size of the smallest class of each unit.

    Unit u has the tuples `tuple_of[start[u]:start[u + 1]]`.
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
    """Return the releases of one node, its best k, and the number of its units below the limit.

    A release is a row of k, suppressed units, suppressed records, and for each column the leaves under suppressed
    labels. The label of code c in column j covers `covers[cover_start[j] + c]` leaves.
    """
    classes, columns = len(first), codes.shape[0]
    rows, sizes = np.zeros(classes, np.int64), np.zeros(classes, np.int64)
    least = np.empty(len(unit_start) - 1, np.int64)
    for t in range(len(index)):
        rows[index[t]] += counts[t]
    count_units(index, classes, tuple_of, unit_start, sizes, least)
    # A class that is suppressed has at most as many units as the budget, so only such sizes are counted and sorted.
    cap = limit if mode == CONSTRAINT else (budget + 1 if mode == OBJECTIVE else 0)
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
    # At most the first `reached` classes in that order are suppressed, by one of `levels` thresholds.
    reached, levels, gone, at = 0, 0, np.int64(0), 0
    while at < small:
        size = sizes[order[at]]
        end = at
        while end < small and sizes[order[end]] == size:
            end += 1
        gone += short[size]
        fits = size < limit if mode == CONSTRAINT else (gone <= budget and mode == OBJECTIVE)
        if not fits or (mode != CONSTRAINT and end == classes):
            break
        reached, at = end, end
        levels += 1
    number = levels + 1 if mode == OBJECTIVE and every else 1
    result = np.zeros((number, 3 + columns), np.int64)
    total = np.zeros(2 + columns, np.int64)
    at, line = 0, number - 1
    while True:
        if at == reached or (mode == OBJECTIVE and every):
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
    failing = result[0, 1] if mode == CONSTRAINT else 0
    return result, int(result[0, 0]), int(failing)


def releases_of(
    table: FrequencyTable, recoding: Recoding, mode: int, least: int, budget: int, every: bool
) -> tuple[Counts64, int, int]:
    """Return the releases of one recoding, its best k, and the number of its units below the limit.

    The release with the most suppression is the first. A release is a row: the smallest class left (0 if none is), the
    suppressed units and records, and for each column the leaves under the labels of suppressed records. If the mode is
    `OBJECTIVE`, every threshold within the budget is a release, or only the highest without `every`. If the mode is
    `CONSTRAINT`, classes below `least` are suppressed.
    """
    units = table.units
    if units is None:
        raise MeasureError("units of a table that has none", expected="a unit column")
    tuple_of, unit_start = units.by_unit
    groups, start, radix = flattened(recoding)
    index, first = class_index(*folded(table.packed), groups, start, radix)
    covers = np.concatenate([part.covers[part.groups] for part in recoding]).astype(np.int64)
    return node_releases(
        index, first, table.codes, table.counts, tuple_of, unit_start, covers, start, mode, least, budget, every
    )
