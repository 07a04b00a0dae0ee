"""Recursive (c, ℓ)-diversity: the largest ℓ for which the most frequent value of every class is rarer than c times
the values from the ℓ-th on together, r₁ < c·(r_ℓ + … + r_m).

>>> from sfumato.measures.example import six_rows
>>> MEASURE.value(six_rows()), MEASURE.with_parameters({"c": 0.5}).value(six_rows())
(1.0, 0.0)
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sfumato.measures.classes import ClassTable, ClassValues
from sfumato.measures.criteria import Criterion
from sfumato.measures.facts import PerClass
from sfumato.measures.known import Way, ways, worst
from sfumato.measures.measure import Measure
from sfumato.measures.oracle import Records
from sfumato.measures.property import Property
from sfumato.runtime.arrays import Floats

SLACK = 1 - 1e-9  # shares of units are rounded: a tie must not pass


def ranked(values: ClassValues) -> tuple[Floats, Floats]:
    """The counts of each class's values, largest first, and at each place the sum from there on."""
    order = np.lexsort((-values.weight, values.class_of))
    counts = values.weight[order].astype(np.float64)
    before = np.cumsum(counts) - counts
    within = before - before[values.start[:-1]][values.class_of]
    return counts, values.size[values.class_of] - within


def places(classes: ClassTable, column: str, c: float) -> Property:
    return classes.per_class(-worst(classes, _places(classes, column, c), -np.inf), hidden=0.0)


def _places(classes: ClassTable, column: str, c: float) -> Iterator[tuple[Way, Floats]]:
    for way in ways(classes, column):
        counts, rest = ranked(way.values)
        largest = counts[way.values.start[:-1]][way.values.class_of]
        yield way, -way.values.fold(np.add, (largest < c * rest * SLACK).astype(np.int64))


def oracle(records: Records, record: int, column: str, c: float) -> float:
    found = []
    for some in records.ways(column, records.crowd(record)):
        counts = sorted((float(share) for share in records.shares(column, some) if share), reverse=True)
        held = (l + 1 for l in range(len(counts)) if counts[0] < c * sum(counts[l:]) * SLACK)
        found.append(float(max(held, default=0)))
    return min(found)


MEASURE = Measure(
    name="recursive_l",
    title="recursive (c, ℓ)-diversity",
    kind="privacy",
    direction="max",
    reads="sensitive",
    function=places,
    oracle=oracle,
    fold="worst",
    monotone="rises",
    parameters={"c": 3.0},
    sentence="In every class the commonest sensitive value is rarer than c times the ℓ-th and rarer ones together.",
    citation="Machanavajjhala et al. 2007, recursive (c, ℓ)-diversity",
    formula="largest ℓ with  r₁ < c·(r_ℓ + … + r_m)  in every class,   r₁ ≥ r₂ ≥ … the counts of its values",
    use="The commonest value may be common, but not overwhelming; c says how much.",
    elsewhere={
        "ARX": "recursive-(c, ℓ)-diversity",
        "sdcMicro": "Recursive_Ldiversity",
        "pycanon": "recursive_c_l_diversity",
    },
    unit="count",
    per_class=PerClass(Criterion.RECURSIVE_L, parameter="c"),
)
