"""Measures of households: their number in a class, records whose class has one household, and household risk.

>>> from sfumato.measures.oracle import six_rows
>>> [measure.available(six_rows()) for measure in MEASURES][0]
'needs a household column'
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from sfumato.base.arrays import Counts64, Floats
from sfumato.measures.classes import ClassTable
from sfumato.measures.measure import Measure, all_records
from sfumato.measures.oracle import Records
from sfumato.measures.privacy.risk import class_risks, individual_risk_oracle, prosecutor_risk_oracle
from sfumato.measures.property import Property
from sfumato.tables.units import Units

of_households = partial(Measure, kind="privacy", direction="min", reads="household", fold="mean", monotone="falls")


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


HOUSEHOLDS = of_households(
    "households",
    number,
    oracle_number,
    direction="max",
    fold="worst",
    monotone="rises",
    bound="own_budget",
    most=all_records,
)
HOUSEHOLDS_ALONE = of_households("household_uniques", alone, oracle_alone)
HOUSEHOLD_RISK = of_households("household_risk", of_sample, oracle_risk)
HOUSEHOLD_POPULATION_RISK = of_households(
    "household_individual_risk",
    of_population,
    oracle_population_risk,
    monotone=None,
    unfit=lambda classes: None if classes.table.weights is not None else "needs a weight column",
)
MEASURES = (HOUSEHOLDS, HOUSEHOLDS_ALONE, HOUSEHOLD_RISK, HOUSEHOLD_POPULATION_RISK)
