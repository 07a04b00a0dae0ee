"""Prosecutor risk: the chance to pick the right record for a person known to be in the table, at worst.

>>> from sfumato.measures.example import six_rows
>>> MEASURE.value(six_rows()), MEASURE.property(six_rows()).mean()
(1.0, 0.5)
"""

from __future__ import annotations

from sfumato.measures.classes import ClassTable
from sfumato.measures.criteria import Criterion
from sfumato.measures.facts import Form, PerClass
from sfumato.measures.measure import Measure
from sfumato.measures.oracle import Records
from sfumato.measures.property import Property


def risk(classes: ClassTable) -> Property:
    return classes.per_class(1.0 / classes.size, hidden=0.0)


def oracle(records: Records, record: int) -> float:
    return 1.0 / float(records.people(records.crowd(record)))


MEASURE = Measure(
    name="prosecutor_risk",
    title="prosecutor risk",
    kind="privacy",
    direction="min",
    reads="sizes",
    function=risk,
    oracle=oracle,
    fold="worst",
    monotone="falls",
    bound="own_budget",
    highest=lambda classes: 1.0,
    sentence="The probability of finding a person who is known to be in the table: one over the class size, at worst.",
    citation="El Emam 2013, guide to the de-identification of personal health information",
    formula="max over released records of 1/n  =  1/k",
    use="The attacker knows that the person is in the table (a survey of a whole school, a register).",
    elsewhere={"ARX": "highest prosecutor risk"},
    unit="share",
    attacker="prosecutor",
    histogram=Form.SIZE,
    per_class=PerClass(Criterion.SIZE, risk=True),
)
