"""Recursive (c, ℓ)-diversity: the largest ℓ for which the most frequent value of every class is rarer than c times
the values from the ℓ-th on together, r₁ < c·(r_ℓ + … + r_m).

>>> from sfumato.measures.example import six_rows
>>> MEASURE.value(six_rows()), MEASURE.with_parameters({"c": 0.5}).value(six_rows())
(1.0, 0.0)
"""

from __future__ import annotations

import numpy as np

from sfumato.measures.classes import ClassTable, ClassValues
from sfumato.measures.criteria import Criterion
from sfumato.measures.facts import PerClass
from sfumato.measures.measure import Measure
from sfumato.measures.oracle import Records
from sfumato.measures.property import Property
from sfumato.runtime.arrays import Floats

SLACK = 1 - 1e-9  # shares of units are rounded: a tie must not pass


def ranked(classes: ClassTable, column: str) -> tuple[ClassValues, Floats, Floats]:
    """The values of each class with their counts, largest first, and at each place the sum from there on."""
    values = classes.values(column)
    order = np.lexsort((-values.weight, values.class_of))
    counts = values.weight[order].astype(np.float64)
    before = np.cumsum(counts) - counts
    within = before - before[values.start[:-1]][values.class_of]
    return values, counts, values.size[values.class_of] - within


def places(classes: ClassTable, column: str, c: float) -> Property:
    values, counts, rest = ranked(classes, column)
    largest = counts[values.start[:-1]][values.class_of]
    return classes.per_class(values.fold(np.add, (largest < c * rest * SLACK).astype(np.int64)), hidden=0.0)


def oracle(records: Records, record: int, column: str, c: float) -> float:
    shares = records.shares(column, records.crowd(record))
    counts = sorted((float(share) for share in shares if share), reverse=True)
    return float(max((l + 1 for l in range(len(counts)) if counts[0] < c * sum(counts[l:]) * SLACK), default=0))


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
