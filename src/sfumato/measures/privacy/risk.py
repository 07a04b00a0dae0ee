"""Measures of re-identification risk: households in a class, prosecutor, journalist, marketer and individual risk.

Journalist risk is never estimated without a table of the population. Marketer risk is that of a match with the
population if there is a table of it, else with the file itself.

>>> from sfumato.measures.oracle import six_rows
>>> HOUSEHOLDS.available(six_rows())
'needs a household column'
>>> PROSECUTOR_RISK.value(six_rows()), PROSECUTOR_RISK.property(six_rows()).mean()
(1.0, 0.5)
>>> JOURNALIST_RISK.available(six_rows())
'needs a population table'
>>> MARKETER_RISK.value(six_rows())  # 3 classes, 6 records
0.5

Individual risk is for surveys. The number F of people in the population who match a record is unknown. Its estimate F̂
is the sum of the weights of the f records in the class, and p = f/F̂. In the negative binomial model of Benedetti and
Franconi, the expectation of 1/F is p^f / f · ₂F₁(f, f; f + 1; 1 − p). It has a closed form for f of 1, 2 and 3. Above
that, p/(f − 1 + p) is close.

>>> INDIVIDUAL_RISK.available(six_rows())
'needs a weight column'
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from sfumato.base.arrays import Counts64, Floats
from sfumato.measures.classes import ClassTable
from sfumato.measures.measure import Measure, all_records
from sfumato.measures.oracle import Records
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
    return replace(classes.per_class(single, hidden=0.0), units=each)


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
    return replace(classes.per_class(worst, hidden=0.0), units=each)


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


of_households = partial(Measure, kind="privacy", direction="min", reads="household", fold="mean", monotone="falls")
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


risk = partial(Measure, kind="privacy", direction="min", monotone="falls")


def prosecutor_risk(classes: ClassTable) -> Property:
    return classes.per_class(1.0 / classes.size, hidden=0.0)


def prosecutor_risk_oracle(records: Records, record: int) -> float:
    return 1.0 / float(records.people(records.crowd(record)))


PROSECUTOR_RISK = risk(
    "prosecutor_risk", prosecutor_risk, prosecutor_risk_oracle, reads="sizes", fold="worst", bound="own_budget"
)


def match_risk(classes: ClassTable) -> Property:
    """Return one over the people with the same values, of the population if there is a table of it."""
    people = classes.size if classes.population is None else classes.population
    return classes.per_class(1.0 / people, hidden=0.0)


def journalist_risk_oracle(records: Records, record: int) -> float:
    return 1.0 / records.population(record)


JOURNALIST_RISK = risk(
    "journalist_risk", match_risk, journalist_risk_oracle, reads="population", fold="worst", bound="own_budget"
)


def marketer_risk_oracle(records: Records, record: int) -> float:
    return 1.0 / (records.population(record) or records.people(records.crowd(record)))


MARKETER_RISK = risk("marketer_risk", match_risk, marketer_risk_oracle, reads="sizes", fold="mean")


def individual_risk(classes: ClassTable) -> Property:
    return classes.per_class(class_risks(classes), hidden=0.0)


def class_risks(classes: ClassTable) -> Floats:
    """Return the expected 1/F of each class."""
    weights = classes.table.weights if classes.table.weights is not None else np.zeros(classes.table.tuples)
    people = np.bincount(classes.index, weights=weights, minlength=len(classes.rows))
    if classes.pairs is not None:
        np.add.at(people, classes.pairs[0], np.bincount(classes.index, weights=weights)[classes.pairs[1]])
    present = people * classes.size / classes.crowd  # a unit with several rows counts with their mean weight
    # With weights below 1 the estimate would be fewer people than the sample has.
    share = np.clip(classes.size / np.maximum(present, 1e-12), 0.0, 1.0)
    return expected_risk(classes.size.astype(np.float64), share)


def expected_risk(size: Floats, share: Floats) -> Floats:
    """Return the expected 1/F of classes with `size` sampled records that are a `share` of the people.

    >>> expected_risk(np.array([1.0, 2.0, 3.0, 9.0]), np.array([1.0, 1.0, 1.0, 1.0])).round(6).tolist()
    [1.0, 0.5, 0.333333, 0.111111]
    """
    f, p = np.asarray(size, dtype=np.float64), np.asarray(share, dtype=np.float64)
    result = p / (f - 1.0 + p)
    rest = 1.0 - p
    inner = (rest > 1e-2) & (p > 0)  # near p = 1 the closed forms lose digits, and the approximation is exact
    with np.errstate(divide="ignore", invalid="ignore"):
        log = np.log(p)
        closed = {
            1: -p / rest * log,
            2: p / rest**2 * (p * log + rest),
            3: p / (2 * rest**3) * (rest * (3 * rest - 2) - 2 * p**2 * log),
        }
    for number, value in closed.items():
        result = np.where(inner & (f == number), value, result)
    return result


def individual_risk_oracle(records: Records, record: int) -> float:
    crowd = records.crowd(record)
    weights = records.table.weights
    if weights is None:
        return 0.0
    each = np.repeat(weights / records.table.counts, records.table.counts)
    people = records.people(crowd)
    share = min(people / max(each[crowd].mean() * people, 1e-12), 1.0)
    return float(expected_risk(np.array([people]), np.array([share]))[0])


INDIVIDUAL_RISK = risk(
    "individual_risk", individual_risk, individual_risk_oracle, reads="weights", fold="mean", monotone=None
)
