"""Table error: the mean difference of the two-way tables of the release from those of the source.

>>> from sfumato.measures.oracle import six_rows
>>> round(TABLE_ERROR.value(six_rows()), 4)  # (3 · 0.25 + 0.75 + 2 · 0.5) / 2 of 6 records
0.2083
"""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations

import numpy as np

from sfumato.base.arrays import Counts64, Floats
from sfumato.base.compiled import compiling
from sfumato.measures.classes import ClassTable, flattened
from sfumato.measures.measure import Measure
from sfumato.measures.oracle import Records
from sfumato.measures.property import Property
from sfumato.measures.two_way import MOST_VALUES, grouped_errors, plain_errors, source_tables
from sfumato.tables.frequency import FrequencyTable


@lru_cache(maxsize=4)
def _source(table: FrequencyTable) -> tuple[Floats, Counts64]:
    """Return the two-way tables one after the other, and the number of values of each column."""
    widths = [len(domain.labels) for domain in table.domains]
    tables = source_tables(table.codes, table.counts, widths)
    flat = np.concatenate([shares.ravel() for shares in tables.values()]) if tables else np.zeros(0)
    return flat, np.array(widths, dtype=np.int64)


def errors(classes: ClassTable) -> Property:
    shares, widths = _source(classes.table)
    group, start, radix = flattened(classes.recoding)
    rows = np.where(classes.kept, classes.rows, 0)
    if compiling():
        errors = grouped_errors(shares, widths, group, start, radix, classes.groups, rows)
    else:
        errors = plain_errors(shares, widths, group, start, radix, classes.groups, rows)
    mean = float(errors.mean()) if len(errors) else 0.0
    return classes.per_class(np.full(len(classes.rows), mean), hidden=mean)


def too_wide(classes: ClassTable) -> str | None:
    """Return why the tables are not computed: a column has too many values."""
    wide = [domain.name for domain in classes.table.domains if len(domain.labels) > MOST_VALUES]
    return f"is not computed: {wide[0]} has more than {MOST_VALUES:,} values" if wide else None


def oracle(records: Records, record: int) -> float:  # noqa: ARG001
    columns, kept = records.originals.shape[0], np.flatnonzero(records.kept)
    result = []
    for i, j in combinations(range(columns), 2):
        groups = records.recoding[i].groups, records.recoding[j].groups
        difference = np.zeros((len(groups[0]), len(groups[1])))
        for a, b in zip(records.originals[i], records.originals[j], strict=True):
            difference[a, b] += 1 / records.originals.shape[1]
        for one in kept:
            inside = np.outer(groups[0] == records.labels[i, one], groups[1] == records.labels[j, one])
            difference -= inside / inside.sum() / len(kept)
        result.append(np.abs(difference).sum() / 2)
    return float(np.mean(result)) if result else 0.0


TABLE_ERROR = Measure(
    "table_error",
    errors,
    oracle,
    kind="loss",
    direction="min",
    reads="originals",
    fold="mean",
    monotone=None,
    unfit=too_wide,
    suppressed="own",
)
