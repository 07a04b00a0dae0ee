"""Average class size: original records per released class.

>>> from sfumato.measures.oracle import six_rows
>>> AVERAGE_CLASS_SIZE.value(six_rows())  # 6 records, 3 classes
2.0

Discernibility: how many records each record cannot be told from; for a suppressed one, all of them.

>>> from sfumato.measures.oracle import six_rows
>>> DISCERNIBILITY.value(six_rows())  # 9 + 1 + 4
14.0

Classification metric (CM): records that are suppressed or whose label is not the commonest of their class.

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


def size_of_classes(classes: ClassTable) -> Property:
    return classes.per_class(classes.crowd, hidden=float(classes.records))


def per_class(classes: ClassTable, values: Property) -> float:  # noqa: ARG001
    return classes.records / max(int(classes.kept.sum()), 1)


def average_class_size_oracle(records: Records, record: int) -> float:
    return float(records.crowd(record).sum())


AVERAGE_CLASS_SIZE = Measure(
    name="average_class_size",
    title="average class size",
    kind="loss",
    direction="min",
    reads="sizes",
    function=size_of_classes,
    oracle=average_class_size_oracle,
    fold=per_class,
    monotone="rises",
    lowest=1.0,
    highest=lambda classes: float(classes.records),
    sentence="Original records per released class.",
    citation="LeFevre, DeWitt, Ramakrishnan 2006, average equivalence class size",
    formula="N / number of released classes",
    use="To compare with published figures.",
    elsewhere={"ARX": "Average equivalence class size", "LeFevre": "C_avg is this divided by k"},
)


def size_or_table(classes: ClassTable) -> Property:
    return classes.per_class(classes.crowd, hidden=float(classes.records))


def discernibility_oracle(records: Records, record: int) -> float:
    return float(records.crowd(record).sum())


def of_nodes(nodes: NodeFigures) -> Counts64:
    gone = nodes.table.records - nodes.kept
    return nodes.size_sum + gone * nodes.table.records


DISCERNIBILITY = Measure(
    name="discernibility",
    title="discernibility",
    kind="loss",
    direction="min",
    reads="sizes",
    function=size_or_table,
    oracle=discernibility_oracle,
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
    walked=Walked(of_nodes),
)


def penalties(classes: ClassTable, column: str) -> Property:
    values = classes.values(column)
    order = np.lexsort((values.values, -values.counts, values.class_of))
    penalty = np.ones(len(order))
    penalty[order[values.start[:-1]]] = 0.0  # the commonest label of each class; of several, the first
    return classes.per_value(column, penalty, hidden=1.0)


def classification_metric_oracle(records: Records, record: int, column: str) -> float:
    return float(records.values(column)[record] != np.argmax(records.shares(column, records.crowd(record))))


CLASSIFICATION_METRIC = Measure(
    name="classification_metric",
    title="classification metric",
    kind="loss",
    direction="min",
    reads="label",
    function=penalties,
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
