"""Journalist risk: the chance to pick the right person of the population for a record, at worst.

It needs a table of the population; without one it is refused, not guessed.

>>> from sfumato.measures.example import six_rows
>>> MEASURE.available(six_rows())
'needs a population table'
"""

from __future__ import annotations

from sfumato.measures.classes import ClassTable
from sfumato.measures.criteria import Criterion
from sfumato.measures.facts import PerClass
from sfumato.measures.measure import Measure
from sfumato.measures.oracle import Records
from sfumato.measures.property import Property


def risk(classes: ClassTable) -> Property:
    people = classes.population if classes.population is not None else classes.size
    return classes.per_class(1.0 / people, hidden=0.0)


def oracle(records: Records, record: int) -> float:
    return 1.0 / records.population(record)


MEASURE = Measure(
    name="journalist_risk",
    title="journalist risk",
    kind="privacy",
    direction="min",
    reads="population",
    function=risk,
    oracle=oracle,
    fold="worst",
    monotone="falls",
    bound="own_budget",
    highest=lambda classes: 1.0,
    sentence="The probability of finding the right person in the population: one over the number of people with "
    "the same values, at worst.",
    citation="El Emam 2013, guide to the de-identification of personal health information",
    formula="max over released records of 1/F,   F the people of the population table with the same values",
    use="The table is a sample, a table of the population exists, and the attacker does not know who was sampled.",
    elsewhere={"ARX": "highest journalist risk; k-map is its inverse"},
    unit="share",
    attacker="journalist",
    per_class=PerClass(Criterion.PEOPLE, risk=True),
)
