"""S_ℓ: how often each record's own sensitive value occurs in its class, added up.

The paper maximises it, which rewards classes of one value; the default direction here is to minimise, and a run file
may set it (docs/readings.md, 1.6).

>>> from sfumato.measures.example import six_rows
>>> MEASURE.value(six_rows())  # 2 + 2 + 1, 1, 1 + 1
8.0
"""

from __future__ import annotations

from sfumato.measures.classes import ClassTable
from sfumato.measures.facts import Walked
from sfumato.measures.measure import Measure
from sfumato.measures.oracle import Records
from sfumato.measures.property import Property


def own_count(classes: ClassTable, column: str) -> Property:
    return classes.per_value(column, classes.values(column).held, hidden=0.0)


def oracle(records: Records, record: int, column: str) -> float:
    values = records.values(column)
    same = records.crowd(record) & (values == values[record])
    return float(len(set(records.holders(column)[same].tolist())))


MEASURE = Measure(
    name="sum_l",
    title="sum of own-value counts",
    kind="privacy",
    direction="min",
    reads="sensitive",
    function=own_count,
    oracle=oracle,
    fold="sum",
    monotone="rises",
    bound="unsuppressed",
    bound_direction="max",  # suppressing lowers it, so turned round nothing is known
    highest=lambda classes: float(classes.records) ** 2,
    sentence="How often each record's own sensitive value occurs in its class, added up.",
    citation="Dewri, Ray, Ray, Whitley 2010, property-based generalizations, S_ℓ",
    formula="sum over released records of the count of the record's own value in its class",
    use="Only to reproduce published figures.",
    scale="log",
    unit="count",
    walked=Walked(lambda nodes: nodes.own_sum),
)
