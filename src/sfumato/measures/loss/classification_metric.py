"""Classification metric (CM): records that are suppressed or whose label is not the commonest of their class.

>>> from sfumato.measures.example import six_rows
>>> MEASURE.value(six_rows())  # one of the three, none of the one, one of the two
2.0
"""

from __future__ import annotations

import numpy as np

from sfumato.measures.classes import ClassTable
from sfumato.measures.facts import Walked
from sfumato.measures.measure import Measure
from sfumato.measures.oracle import Records
from sfumato.measures.property import Property


def penalties(classes: ClassTable, column: str) -> Property:
    values = classes.values(column)
    order = np.lexsort((values.values, -values.counts, values.class_of))
    penalty = np.ones(len(order))
    penalty[order[values.start[:-1]]] = 0.0  # the commonest label of each class; of several, the first
    return classes.per_value(column, penalty, hidden=1.0)


def oracle(records: Records, record: int, column: str) -> float:
    return float(records.values(column)[record] != np.argmax(records.shares(column, records.crowd(record))))


MEASURE = Measure(
    name="classification_metric",
    title="classification metric",
    kind="loss",
    direction="min",
    reads="label",
    function=penalties,
    oracle=oracle,
    fold="sum",
    monotone="rises",
    bound="unsuppressed",
    highest=lambda classes: float(classes.records),
    sentence="The records that a classifier by class majority would get wrong, suppressed ones included.",
    citation="Iyengar 2002, classification metric",
    formula="Σ over classes of (n − count of its commonest label)  +  suppressed records",
    use="The table is for training a classifier of the label column.",
    elsewhere={"Iyengar": "CM, times N"},
    unit="count",
    walked=Walked(lambda nodes: nodes.mislabelled + nodes.table.removed),
    ties=True,
)
