"""Measures of re-identification risk: prosecutor, journalist, marketer and individual risk.

Journalist risk is never estimated without a table of the population. Marketer risk is that of a match with the
population if there is a table of it, else with the file itself.

>>> from sfumato.measures.oracle import six_rows
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

from functools import partial

import numpy as np

from sfumato.base.arrays import Floats
from sfumato.measures.classes import ClassTable
from sfumato.measures.measure import Measure
from sfumato.measures.oracle import Records
from sfumato.measures.property import Property

risk = partial(Measure, kind="privacy", direction="min", monotone="falls")


def prosecutor_risk(classes: ClassTable) -> Property:
    return classes.per_class(1.0 / classes.size, hidden=0.0)


def prosecutor_risk_oracle(records: Records, record: int) -> float:
    return 1.0 / float(records.people(records.crowd(record)))


PROSECUTOR_RISK = risk(
    "prosecutor_risk", prosecutor_risk, prosecutor_risk_oracle, reads="sizes", fold="worst", bound="own_budget"
)


def journalist_risk(classes: ClassTable) -> Property:
    people = classes.population if classes.population is not None else classes.size
    return classes.per_class(1.0 / people, hidden=0.0)


def journalist_risk_oracle(records: Records, record: int) -> float:
    return 1.0 / records.population(record)


JOURNALIST_RISK = risk(
    "journalist_risk", journalist_risk, journalist_risk_oracle, reads="population", fold="worst", bound="own_budget"
)


def marketer_risk(classes: ClassTable) -> Property:
    people = classes.size if classes.population is None else classes.population
    return classes.per_class(1.0 / people, hidden=0.0)


def marketer_risk_oracle(records: Records, record: int) -> float:
    return 1.0 / (records.population(record) or records.people(records.crowd(record)))


MARKETER_RISK = risk("marketer_risk", marketer_risk, marketer_risk_oracle, reads="sizes", fold="mean")


def individual_risk(classes: ClassTable) -> Property:
    return classes.per_class(class_risks(classes), hidden=0.0)


def class_risks(classes: ClassTable) -> Floats:
    """Return the expected 1/F of each class."""
    weights = classes.table.weights if classes.table.weights is not None else np.zeros(classes.table.tuples)
    people = np.bincount(classes.index, weights=weights, minlength=len(classes.rows))
    if classes.pairs is not None:
        np.add.at(people, classes.pairs[0], np.bincount(classes.index, weights=weights)[classes.pairs[1]])
    present = people * classes.size / classes.crowd  # a unit with several rows counts with their mean weight
    share = np.clip(
        classes.size / np.maximum(present, 1e-12), 0.0, 1.0
    )  # with weights below 1 the estimate would be fewer people than the sample has
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
