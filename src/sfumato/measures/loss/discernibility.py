"""Discernibility: how many records each record cannot be told from; for a suppressed one, all of them.

>>> from sfumato.measures.example import six_rows
>>> MEASURE.value(six_rows())  # 9 + 1 + 4
14.0
"""

from __future__ import annotations

from sfumato.measures.classes import ClassTable
from sfumato.measures.facts import NodeFigures, Walked
from sfumato.measures.measure import Measure
from sfumato.measures.oracle import Records
from sfumato.measures.property import Property
from sfumato.runtime.arrays import Counts64


def size(classes: ClassTable) -> Property:
    return classes.per_class(classes.crowd, hidden=float(classes.records))


def oracle(records: Records, record: int) -> float:
    return float(records.crowd(record).sum())


def of_nodes(nodes: NodeFigures) -> Counts64:
    gone = nodes.table.records - nodes.kept
    return nodes.size_sum + gone * nodes.table.records


MEASURE = Measure(
    name="discernibility",
    title="discernibility",
    kind="loss",
    direction="min",
    reads="sizes",
    function=size,
    oracle=oracle,
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
