"""Individual risk of a survey record: the expected chance that it is found among the population, from survey weights.

The number of people F who look like a record is not known; its estimate is the sum of the weights of the f records in
its class. With p = f/F̂ the expected 1/F under the negative binomial model of Benedetti and Franconi is
p^f / f · ₂F₁(f, f; f + 1; 1 − p); for f of 1, 2 and 3 it has a closed form, above that p/(f − 1 + p) is close.

>>> from sfumato.measures.example import six_rows
>>> MEASURE.available(six_rows())
'needs a weight column'
"""

from __future__ import annotations

import numpy as np

from sfumato.measures.classes import ClassTable
from sfumato.measures.measure import Measure
from sfumato.measures.oracle import Records
from sfumato.measures.property import Property
from sfumato.runtime.arrays import Floats


def risk(classes: ClassTable) -> Property:
    return classes.per_class(class_risks(classes), hidden=0.0)


def class_risks(classes: ClassTable) -> Floats:
    """The expected 1/F of each class."""
    weights = classes.table.weights if classes.table.weights is not None else np.zeros(classes.table.tuples)
    people = np.bincount(classes.index, weights=weights, minlength=len(classes.rows))
    if classes.pairs is not None:
        np.add.at(people, classes.pairs[0], np.bincount(classes.index, weights=weights)[classes.pairs[1]])
    present = people * classes.size / classes.crowd  # of a unit with several rows, their mean weight
    share = np.clip(classes.size / np.maximum(present, 1e-12), 0.0, 1.0)  # weights below 1 would claim too few people
    return expected_risk(classes.size.astype(np.float64), share)


def expected_risk(size: Floats, share: Floats) -> Floats:
    """Expected 1/F for classes of `size` sampled records that are a `share` of their people.

    >>> expected_risk(np.array([1.0, 2.0, 3.0, 9.0]), np.array([1.0, 1.0, 1.0, 1.0])).round(6).tolist()
    [1.0, 0.5, 0.333333, 0.111111]
    """
    f, p = np.asarray(size, dtype=np.float64), np.asarray(share, dtype=np.float64)
    result = p / (f - 1.0 + p)
    rest = 1.0 - p
    inner = (rest > 1e-2) & (p > 0)  # nearer to p = 1 the closed forms cancel, and the approximation is exact
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


def oracle(records: Records, record: int) -> float:
    crowd = records.crowd(record)
    weights = records.table.weights
    if weights is None:
        return 0.0
    each = np.repeat(weights / records.table.counts, records.table.counts)
    people = records.people(crowd)
    share = min(people / max(each[crowd].mean() * people, 1e-12), 1.0)
    return float(expected_risk(np.array([people]), np.array([share]))[0])


MEASURE = Measure(
    name="individual_risk",
    title="individual risk",
    kind="privacy",
    direction="min",
    reads="weights",
    function=risk,
    oracle=oracle,
    fold="mean",
    monotone=None,
    highest=lambda classes: 1.0,
    sentence="The expected probability that a survey record is re-identified in the population, estimated from "
    "the weights.",
    citation="Benedetti and Franconi 1998; sdcMicro's individual risk",
    formula="mean over released records of E[1/F | f],   f = n,   F estimated by the sum of the weights of the class",
    use="A sample with survey weights and no table of the population.",
    elsewhere={
        "sdcMicro": "individual risk, freqCalc and indivRisk",
        "µ-Argus": "individual risk model (Benedetti–Franconi)",
    },
    unit="share",
)
