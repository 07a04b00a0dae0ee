"""Suppression loss: the part of the general loss that suppressed records have, as a share of all that could be lost.

>>> from sfumato.measures.example import six_rows
>>> from sfumato.measures.suppression import suppress_below
>>> round(MEASURE.value(suppress_below(six_rows(), 2)), 4)  # one record of six
0.1667
"""

from __future__ import annotations

import numpy as np

from sfumato.measures.classes import ClassTable
from sfumato.measures.measure import Measure
from sfumato.measures.oracle import Records
from sfumato.measures.property import Property


def gone(classes: ClassTable) -> Property:
    return classes.per_class(np.zeros(len(classes.rows)), hidden=1.0)


def oracle(records: Records, record: int) -> float:
    return 0.0 if record < len(records.kept) else 1.0


MEASURE = Measure(
    name="suppression_loss",
    title="suppression loss",
    kind="loss",
    direction="min",
    reads="sizes",
    function=gone,
    oracle=oracle,
    fold="mean",
    monotone="falls",
    highest=lambda classes: 1.0,
    sentence="The share of records that are not released: each loses every cell.",
    citation="Dewri et al., privacy versus data quality as multi-objective problems, SL",
    formula="suppressed records / N",
    use="To see how much of the loss is suppression.",
    elsewhere={"ARX": "share of suppressed records"},
    unit="share",
    tallied=lambda cuts: cuts.suppressed,
    resolution=2.5e-3,
)
