"""The share of a record's own sensitive value in its class: what a guesser who knows the class gets right, on average.

>>> from sfumato.measures.example import six_rows
>>> round(MEASURE.value(six_rows()), 6)  # (2·2/3 + 1/3 + 1 + 2·1/2) / 6
0.611111
"""

from __future__ import annotations

from sfumato.measures.classes import ClassTable
from sfumato.measures.measure import Measure
from sfumato.measures.oracle import Records
from sfumato.measures.property import Property


def share(classes: ClassTable, column: str) -> Property:
    values = classes.values(column)
    return classes.per_value(column, values.held / values.size[values.class_of], hidden=0.0)


def oracle(records: Records, record: int, column: str) -> float:
    return float(records.held(column, records.crowd(record))[records.values(column)[record]])


MEASURE = Measure(
    name="own_share",
    title="share of own value",
    kind="privacy",
    direction="min",
    reads="sensitive",
    function=share,
    oracle=oracle,
    fold="mean",
    monotone="falls",
    highest=lambda classes: 1.0,
    sentence="The mean share of a record's own sensitive value in its class.",
    citation="Dewri, Ray, Ray, Whitley 2010, property P₂ as a share",
    formula="1/N · sum over released records of the share of the record's own value in its class",
    use="The expected success of guessing everybody's value from the class.",
    unit="share",
)
