"""Losses that depend on classes, not on labels: average class size, discernibility, classification metric.

>>> from sfumato.measures.oracle import six_rows
>>> AVERAGE_CLASS_SIZE.value(six_rows())  # 6 records, 3 classes
2.0
>>> DISCERNIBILITY.value(six_rows())  # 9 + 1 + 4
14.0
>>> CLASSIFICATION_METRIC.value(six_rows())  # one of the three, none of the one, one of the two
2.0
"""

from __future__ import annotations

from functools import partial

import numpy as np

from sfumato.measures.classes import ClassTable
from sfumato.measures.measure import Measure, all_pairs, all_records
from sfumato.measures.oracle import Records
from sfumato.measures.property import Property

class_loss = partial(Measure, kind="loss", direction="min", monotone="rises")


def matching_records(classes: ClassTable) -> Property:
    return classes.per_class(classes.crowd, hidden=float(classes.records))


def matching_records_oracle(records: Records, record: int) -> float:
    return float(records.crowd(record).sum())


def records_per_class(classes: ClassTable, values: Property) -> float:  # noqa: ARG001
    return classes.records / max(int(classes.kept.sum()), 1)


AVERAGE_CLASS_SIZE = class_loss(
    "average_class_size",
    matching_records,
    matching_records_oracle,
    reads="sizes",
    fold=records_per_class,
    most=all_records,
)


DISCERNIBILITY = class_loss(
    "discernibility",
    matching_records,
    matching_records_oracle,
    reads="sizes",
    fold="sum",
    bound="unsuppressed",
    most=all_pairs,
)


def misclassified(classes: ClassTable, column: str) -> Property:
    values = classes.values(column)
    order = np.lexsort((values.values, -values.counts, values.class_of))
    penalty = np.ones(len(order))
    penalty[order[values.start[:-1]]] = 0.0  # the most frequent label of each class, the first of several
    return classes.per_value(column, penalty, hidden=1.0)


def classification_metric_oracle(records: Records, record: int, column: str) -> float:
    return float(records.values(column)[record] != np.argmax(records.shares(column, records.crowd(record))))


CLASSIFICATION_METRIC = class_loss(
    "classification_metric",
    misclassified,
    classification_metric_oracle,
    reads="label",
    fold="sum",
    bound="unsuppressed",
    most=all_records,
    ties=True,
)
