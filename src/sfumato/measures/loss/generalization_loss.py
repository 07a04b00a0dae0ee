"""Generalization loss: the part of the general loss that released records have, as a share of all that could be lost.

>>> from sfumato.measures.example import six_rows
>>> round(MEASURE.value(six_rows()), 4)  # 3.5 of 2 columns · 6 records
0.2917
"""

from __future__ import annotations

import numpy as np

from sfumato.measures.classes import ClassTable
from sfumato.measures.loss.general_loss import oracle as cells_of
from sfumato.measures.measure import Measure
from sfumato.measures.oracle import Records
from sfumato.measures.property import Property


def share(classes: ClassTable) -> Property:
    part = (classes.covers - 1) / np.maximum(classes.leaves - 1, 1)[:, None]
    weights = classes.attribute_weights
    return classes.per_class(weights @ part / weights.sum(), hidden=0.0)


def oracle(records: Records, record: int) -> float:
    return cells_of(records, record) / len(records.recoding)


MEASURE = Measure(
    name="generalization_loss",
    title="generalization loss",
    kind="loss",
    direction="min",
    reads="cells",
    function=share,
    oracle=oracle,
    fold="mean",
    monotone="rises",
    highest=lambda classes: 1.0,
    sentence="The loss of released records by generalization, as a share of all cells of all records.",
    citation="Dewri et al., privacy versus data quality as multi-objective problems, GL",
    formula="1/(d·N) · Σ over cells of released records of the cell's general loss",
    use="To see how much of the loss is recoding; the rest is suppression loss.",
    unit="share",
    tallied=lambda cuts: cuts.generalized,
    resolution=2.5e-3,
    suppressed="nothing",
)
