"""δ-disclosure: the largest |ln(q/p)| between a value's share in a class (q) and in the table (p).

A value of the table that is absent from a class makes δ infinite: the class tells that its members do not have it.
`absent = "ignored"` looks at the values present only, as pycanon does.

>>> from sfumato.measures.example import six_rows
>>> MEASURE.value(six_rows()), round(MEASURE.with_parameters({"absent": "ignored"}).value(six_rows()), 6)
(inf, 1.098612)
"""

from __future__ import annotations

import numpy as np

from sfumato.measures.classes import ClassTable
from sfumato.measures.criteria import Criterion
from sfumato.measures.facts import PerClass
from sfumato.measures.measure import Measure
from sfumato.measures.oracle import Records
from sfumato.measures.property import Property


def log_ratio(classes: ClassTable, column: str, absent: str) -> Property:
    values = classes.values(column)
    whole = classes.references(column)[0]
    with np.errstate(divide="ignore"):  # a suppressed class may hold values that no kept one does
        ratio = np.abs(np.log(values.held / values.size[values.class_of] / whole[values.values]))
    result = values.fold(np.maximum, ratio)
    if absent == "infinite":
        result = np.where(np.diff(values.start) < np.count_nonzero(whole), np.inf, result)
    return classes.per_class(result, hidden=0.0)


def oracle(records: Records, record: int, column: str, absent: str) -> float:
    share, whole = records.held(column, records.crowd(record)), records.held(column, records.kept)
    there = whole > 0
    if absent == "infinite" and np.any(share[there] == 0):
        return float("inf")
    there &= share > 0
    return float(np.abs(np.log(share[there] / whole[there])).max())


MEASURE = Measure(
    name="delta_disclosure",
    title="δ-disclosure",
    kind="privacy",
    direction="min",
    reads="sensitive",
    function=log_ratio,
    oracle=oracle,
    fold="worst",
    monotone="falls",
    parameters={"absent": "infinite"},
    choices=("infinite", "ignored"),
    sentence="No class changes the share of a sensitive value by more than a factor of e to the δ.",
    citation="Brickell and Shmatikov 2008, δ-disclosure privacy",
    formula="δ = max over classes and values of |ln(q/p)|;   infinite if a class lacks a value",
    use="The strictest of the family: absence of a value tells as much as its presence. Rarely reachable.",
    elsewhere={
        "ARX": "δ-disclosure privacy (logarithm to base 2, values present only)",
        "anjana, pycanon": "delta_disclosure",
    },
    per_class=PerClass(Criterion.DELTA, parameter="absent", whole=True),
)
