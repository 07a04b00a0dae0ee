"""δ-disclosure: the largest |ln(q/p)| between a value's share in a class (q) and in the table (p).

A value of the table that is absent from a class makes δ infinite: the class tells that its members do not have it.
`absent = "ignored"` looks at the values present only, as pycanon does.

>>> from sfumato.measures.example import six_rows
>>> MEASURE.value(six_rows()), round(MEASURE.with_parameters({"absent": "ignored"}).value(six_rows()), 6)
(inf, 1.098612)
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sfumato.measures.classes import ClassTable
from sfumato.measures.criteria import Criterion
from sfumato.measures.facts import PerClass
from sfumato.measures.known import Way, exempt, kinds_of, ways, worst
from sfumato.measures.measure import Measure
from sfumato.measures.oracle import Records
from sfumato.measures.property import Property
from sfumato.runtime.arrays import Floats
from sfumato.tables.domain import HARMFUL


def log_ratio(classes: ClassTable, column: str, absent: str) -> Property:
    result = worst(classes, _ratios(classes, column), 0.0)
    if absent == "infinite":
        values, whole = classes.values(column), classes.references(column)[0]
        held = values.fold(np.add, kinds_of(values, HARMFUL).astype(np.int64))
        lacking = held < np.count_nonzero(whole[values.domain.harm == HARMFUL])
        result = np.where(lacking & ~exempt(values), np.inf, result)
    return classes.per_class(result, hidden=0.0)


def _ratios(classes: ClassTable, column: str) -> Iterator[tuple[Way, Floats]]:
    for way in ways(classes, column):
        with np.errstate(divide="ignore", invalid="ignore"):  # a suppressed class may hold values no kept one does
            ratio = np.where(way.harmful, np.abs(np.log(way.share / way.held[way.values.values])), 0.0)
        yield way, way.values.fold(np.maximum, ratio)


def oracle(records: Records, record: int, column: str, absent: str) -> float:
    crowd = records.crowd(record)
    if not records.learnable(column, crowd)[0]:
        return 0.0
    worst_of = 0.0
    for q, p in records.harmful_shares(column, crowd):
        if q > 0:
            worst_of = max(worst_of, abs(float(np.log(q / p))))
        elif absent == "infinite":
            return float("inf")
    return worst_of


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
