"""Marketer risk: the share of records that a matcher gets right when all are matched at once.

Against the population where there is a table of it, else against the file itself: classes over records.

>>> from sfumato.measures.example import six_rows
>>> MEASURE.value(six_rows())  # 3 classes, 6 records
0.5
"""

from __future__ import annotations

from sfumato.measures.classes import ClassTable
from sfumato.measures.facts import Headline
from sfumato.measures.measure import Measure
from sfumato.measures.oracle import Records
from sfumato.measures.property import Property


def risk(classes: ClassTable) -> Property:
    people = classes.size if classes.population is None else classes.population
    return classes.per_class(1.0 / people, hidden=0.0)


def oracle(records: Records, record: int) -> float:
    return 1.0 / (records.population(record) or records.people(records.crowd(record)))


MEASURE = Measure(
    name="marketer_risk",
    title="marketer risk",
    kind="privacy",
    direction="min",
    reads="sizes",
    function=risk,
    oracle=oracle,
    fold="mean",
    monotone="falls",
    highest=lambda classes: 1.0,
    sentence="The share of all records that would be matched to the correct person.",
    citation="El Emam 2013, guide to the de-identification of personal health information",
    formula="1/N · sum over released records of 1/n  =  released classes / N",
    use="The attacker wants many matches and accepts mistakes; the expected share of correct ones.",
    elsewhere={
        "ARX": "estimated marketer risk, which is taken over the records left",
        "sdcMicro": "expected re-identification rate, without weights",
    },
    unit="share",
    headline=Headline(3, "of all records would be matched correctly"),
    usual=True,
    attacker="marketer",
)
