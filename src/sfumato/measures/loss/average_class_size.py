"""Average class size: original records per released class.

>>> from sfumato.measures.example import six_rows
>>> MEASURE.value(six_rows())  # 6 records, 3 classes
2.0
"""

from __future__ import annotations

from sfumato.measures.classes import ClassTable
from sfumato.measures.measure import Measure
from sfumato.measures.oracle import Records
from sfumato.measures.property import Property


def size(classes: ClassTable) -> Property:
    return classes.per_class(classes.crowd, hidden=float(classes.records))


def per_class(classes: ClassTable, values: Property) -> float:  # noqa: ARG001
    return classes.records / max(int(classes.kept.sum()), 1)


def oracle(records: Records, record: int) -> float:
    return float(records.crowd(record).sum())


MEASURE = Measure(
    name="average_class_size",
    title="average class size",
    kind="loss",
    direction="min",
    reads="sizes",
    function=size,
    oracle=oracle,
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
