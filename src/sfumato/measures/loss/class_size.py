"""Losses that depend on classes, not on labels: average class size, discernibility, classification metric.

The average class size is the number of original records per released class.

>>> from sfumato.measures.oracle import six_rows
>>> AVERAGE_CLASS_SIZE.value(six_rows())  # 6 records, 3 classes
2.0

Discernibility is the sum over records of the number of records that match it, which is N for a suppressed record.

>>> from sfumato.measures.oracle import six_rows
>>> DISCERNIBILITY.value(six_rows())  # 9 + 1 + 4
14.0

The classification metric is the number of records that are suppressed or whose label is not the most frequent one of
their class.

>>> from sfumato.measures.oracle import six_rows
>>> CLASSIFICATION_METRIC.value(six_rows())  # one of the three, none of the one, one of the two
2.0
"""

from __future__ import annotations

import numpy as np

from sfumato.base.arrays import Counts64
from sfumato.measures.classes import ClassTable
from sfumato.measures.measure import Measure, NodeFigures, Walked
from sfumato.measures.oracle import Records
from sfumato.measures.property import Property


def matching_records(classes: ClassTable) -> Property:
    return classes.per_class(classes.crowd, hidden=float(classes.records))


def matching_records_oracle(records: Records, record: int) -> float:
    return float(records.crowd(record).sum())


def records_per_class(classes: ClassTable, values: Property) -> float:  # noqa: ARG001
    return classes.records / max(int(classes.kept.sum()), 1)


AVERAGE_CLASS_SIZE = Measure(
    name="average_class_size",
    title="average class size",
    kind="loss",
    direction="min",
    reads="sizes",
    function=matching_records,
    oracle=matching_records_oracle,
    fold=records_per_class,
    monotone="rises",
    lowest=1.0,
    highest=lambda classes: float(classes.records),
    sentence="Original records per released class.",
    citation="LeFevre, DeWitt, Ramakrishnan 2006, average equivalence class size",
    formula="N / number of released classes",
    use="To compare with published figures.",
    elsewhere={"ARX": "Average equivalence class size", "LeFevre": "C_avg is this divided by k"},
)


def discernibility_of_nodes(nodes: NodeFigures) -> Counts64:
    suppressed = nodes.table.records - nodes.kept
    return nodes.size_sum + suppressed * nodes.table.records


DISCERNIBILITY = Measure(
    name="discernibility",
    title="discernibility",
    kind="loss",
    direction="min",
    reads="sizes",
    function=matching_records,
    oracle=matching_records_oracle,
    fold="sum",
    monotone="rises",
    bound="unsuppressed",
    highest=lambda classes: float(classes.records) ** 2,
    sentence="For each record, the number of records it cannot be distinguished from; a suppressed record "
    "counts as the whole table.",
    citation="Bayardo and Agrawal 2005, discernibility metric",
    formula="Σ over classes of n²  +  N · suppressed records",
    use="To compare with published figures; it prefers many small classes, whatever they cover.",
    elsewhere={"ARX": "Discernibility"},
    unit="count",
    usual=True,
    walked=Walked(discernibility_of_nodes),
)


def misclassified(classes: ClassTable, column: str) -> Property:
    values = classes.values(column)
    order = np.lexsort((values.values, -values.counts, values.class_of))
    penalty = np.ones(len(order))
    penalty[order[values.start[:-1]]] = 0.0  # the most frequent label of each class, the first of several
    return classes.per_value(column, penalty, hidden=1.0)


def classification_metric_oracle(records: Records, record: int, column: str) -> float:
    return float(records.values(column)[record] != np.argmax(records.shares(column, records.crowd(record))))


CLASSIFICATION_METRIC = Measure(
    name="classification_metric",
    title="classification metric",
    kind="loss",
    direction="min",
    reads="label",
    function=misclassified,
    oracle=classification_metric_oracle,
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
