"""Measures of households: their number in a class, records whose class has one household, and household risk.

>>> from sfumato.measures.oracle import six_rows
>>> [measure.available(six_rows()) for measure in MEASURES][0]
'needs a household column'
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sfumato.base.arrays import Counts64, Floats
from sfumato.measures.classes import ClassTable
from sfumato.measures.measure import Measure
from sfumato.measures.oracle import Records
from sfumato.measures.privacy.risk import class_risks, individual_risk_oracle, prosecutor_risk_oracle
from sfumato.measures.property import Property
from sfumato.tables.units import Units


def _households(classes: ClassTable) -> tuple[Units, Counts64]:
    households, sizes = classes.table.households, classes.households
    if households is None or sizes is None:
        raise AssertionError("available() asks for a household column")
    return households, sizes


def number(classes: ClassTable) -> Property:
    return classes.per_class(_households(classes)[1], hidden=0.0)


def alone(classes: ClassTable) -> Property:
    households, sizes = _households(classes)
    single = np.where(classes.kept, sizes == 1, False).astype(np.float64)
    each = np.zeros(households.number)
    np.maximum.at(each, households.unit, single[classes.index[households.tuple_of]])
    return classes.per_class(single, hidden=0.0).with_units(each)


def _of_members(classes: ClassTable, risks: Floats) -> Property:
    """Return 1 − Π(1 − r) over the members of each household, where r is the largest risk of a member's records."""
    households, _ = _households(classes)
    table, risks = classes.table, np.where(classes.kept, risks, 0.0)
    safe = np.ones(households.number)
    if table.units is None or table.household_of is None:
        np.multiply.at(safe, households.unit, (1.0 - risks[classes.index[households.tuple_of]]) ** households.rows)
    else:
        person = np.zeros(table.units.number)
        np.maximum.at(person, table.units.unit, risks[classes.index[table.units.tuple_of]])
        np.multiply.at(safe, table.household_of, 1.0 - person)
    each = 1.0 - safe
    worst = np.zeros(len(classes.rows))
    np.maximum.at(worst, classes.index[households.tuple_of], each[households.unit])
    return classes.per_class(worst, hidden=0.0).with_units(each)


def of_sample(classes: ClassTable) -> Property:
    return _of_members(classes, 1.0 / classes.size)


def of_population(classes: ClassTable) -> Property:
    return _of_members(classes, class_risks(classes))


def oracle_number(records: Records, record: int) -> float:
    return float(len(set(records.households[records.crowd(record)].tolist())))


def oracle_alone(records: Records, record: int) -> float:
    return float(oracle_number(records, record) == 1)


def oracle_risk(records: Records, record: int) -> float:
    """Return the largest risk of the households in the record's class."""
    return _largest(records, record, prosecutor_risk_oracle)


def oracle_population_risk(records: Records, record: int) -> float:
    return _largest(records, record, individual_risk_oracle)


def _largest(records: Records, record: int, risk: Callable[[Records, int], float]) -> float:
    present = set(records.households[records.crowd(record)].tolist())
    return max(records.household_risk(household, risk) for household in present)


HOUSEHOLDS = Measure(
    name="households",
    title="households in a class",
    kind="privacy",
    direction="max",
    reads="household",
    function=number,
    oracle=oracle_number,
    fold="worst",
    monotone="rises",
    bound="own_budget",
    highest=lambda classes: float(classes.records),
    sentence="The fewest distinct households in a class.",
    citation="sdcMicro and µ-Argus, household variables",
    formula="min over classes of the number of distinct households",
    use="A class of one family reveals the values of that family, however many members it has.",
    unit="count",
)
HOUSEHOLDS_ALONE = Measure(
    name="household_uniques",
    title="unique households, share",
    kind="privacy",
    direction="min",
    reads="household",
    function=alone,
    oracle=oracle_alone,
    fold="mean",
    monotone="falls",
    highest=lambda classes: 1.0,
    sentence="The share of households that are alone in a class.",
    citation="sdcMicro and µ-Argus, household variables",
    formula="households with a record in a class of one household, divided by the number of households",
    use="To see how many families are behind a class of one household.",
    unit="share",
)
HOUSEHOLD_RISK = Measure(
    name="household_risk",
    title="household risk in the sample",
    kind="privacy",
    direction="min",
    reads="household",
    function=of_sample,
    oracle=oracle_risk,
    fold="mean",
    monotone="falls",
    highest=lambda classes: 1.0,
    sentence="The probability that at least one member of a household is found by an attacker who knows that it is "
    "in the table, on average over households.",
    citation="Hundepool et al. 2012, Statistical Disclosure Control, household risk",
    formula="mean over households of  1 − Π (1 − 1/n)   over the members",
    use="A member who is found reveals the other members of the household.",
    unit="share",
)
HOUSEHOLD_POPULATION_RISK = Measure(
    name="household_individual_risk",
    title="household risk in the population",
    kind="privacy",
    direction="min",
    reads="household",
    function=of_population,
    oracle=oracle_population_risk,
    fold="mean",
    monotone=None,
    highest=lambda classes: 1.0,
    unfit=lambda classes: None if classes.table.weights is not None else "needs a weight column",
    sentence="The expected probability that at least one member of a household is found in the population, estimated "
    "from the weights, on average over households.",
    citation="Benedetti and Franconi 1998; sdcMicro's hierarchical risk",
    formula="mean over households of  1 − Π (1 − r)   over the members,   r the individual risk",
    use="A sample of households with survey weights.",
    elsewhere={"sdcMicro": "hierarchical risk"},
    unit="share",
)
MEASURES = (HOUSEHOLDS, HOUSEHOLDS_ALONE, HOUSEHOLD_RISK, HOUSEHOLD_POPULATION_RISK)
