"""General loss by width: as general loss, but a numeric column counts the width of a label, not its leaves.

>>> from sfumato.measures.example import six_rows
>>> round(MEASURE.value(six_rows()), 4)  # age 24..51: 4 · 11/27 + 2 · 4/27; zip 47602..47905: 3 · 76/303
2.6784
"""

from __future__ import annotations

import numpy as np

from sfumato.measures.classes import ClassTable
from sfumato.measures.measure import Measure
from sfumato.measures.oracle import Records
from sfumato.measures.property import Property


def cells(classes: ClassTable) -> Property:
    total = np.zeros(len(classes.rows))
    parts = zip(
        classes.recoding,
        classes.groups,
        classes.covers,
        classes.leaves,
        classes.attribute_weights,
        strict=True,
    )
    for part, groups, covers, leaves, weight in parts:
        share = (covers - 1) / max(leaves - 1, 1) if part.spans is None else part.spans[groups]
        total += weight * share
    return classes.per_class(total, hidden=float(classes.attribute_weights.sum()))


def oracle(records: Records, record: int) -> float:
    total = 0.0
    for j, (part, domain) in enumerate(zip(records.recoding, records.table.domains, strict=True)):
        group = records.labels[j, record]
        value = domain.values()
        if value is None or np.isnan(value).all():
            total += (part.covers[group] - 1) / (domain.leaves - 1) if domain.leaves > 1 else 0.0
            continue
        inside = [v for leaf, v in enumerate(value) if part.groups[leaf] == group and not np.isnan(v)]
        extent = np.nanmax(value) - np.nanmin(value)
        total += float((max(inside) - min(inside)) / extent) if inside and extent > 0 else 0.0
    return total


MEASURE = Measure(
    name="width_loss",
    title="general loss by width",
    kind="loss",
    direction="min",
    reads="cells",
    function=cells,
    oracle=oracle,
    fold="sum",
    monotone="rises",
    bound="unsuppressed",
    highest=lambda classes: float(classes.attribute_weights.sum()) * classes.records,
    sentence="As general loss, with the width of an interval over the width of the domain for numeric columns.",
    citation="Iyengar 2002, general loss metric for numeric columns",
    formula="as general loss, with (width of the interval)/(width of the domain) for numbers",
    use="Numeric columns whose values are spread unevenly: a wide interval with few values costs more.",
    elsewhere={"Iyengar": "LM for numeric columns"},
)
