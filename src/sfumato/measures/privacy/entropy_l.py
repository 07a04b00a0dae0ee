"""Entropy ℓ-diversity: e to the least entropy of the sensitive values in a class, not cut to a whole number.

>>> from sfumato.measures.example import six_rows
>>> MEASURE.value(six_rows()), max(MEASURE.property(six_rows()).records().round(6).tolist())
(1.0, 2.0)
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sfumato.measures.classes import ClassTable
from sfumato.measures.criteria import Criterion
from sfumato.measures.facts import PerClass
from sfumato.measures.known import Way, ways, worst
from sfumato.measures.measure import Measure
from sfumato.measures.oracle import Records
from sfumato.measures.property import Property
from sfumato.runtime.arrays import Floats


def effective_values(classes: ClassTable, column: str) -> Property:
    return classes.per_class(-worst(classes, _effective(classes, column), -np.inf), hidden=0.0)


def _effective(classes: ClassTable, column: str) -> Iterator[tuple[Way, Floats]]:
    for way in ways(classes, column):
        share = way.values.weight / way.values.size[way.values.class_of]
        yield way, -np.exp(-way.values.fold(np.add, share * np.log(share)))


def oracle(records: Records, record: int, column: str) -> float:
    found = []
    for some in records.ways(column, records.crowd(record)):
        shares = records.shares(column, some)
        found.append(float(np.exp(-sum(share * np.log(share) for share in shares if share > 0))))
    return min(found)


MEASURE = Measure(
    name="entropy_l",
    title="entropy ℓ-diversity",
    kind="privacy",
    direction="max",
    reads="sensitive",
    function=effective_values,
    oracle=oracle,
    fold="worst",
    monotone="rises",
    sentence="The sensitive values of every class are as uncertain as ℓ equally likely ones.",
    citation="Machanavajjhala et al. 2007, entropy ℓ-diversity",
    formula="ℓ = exp( min over classes of  −Σ q·ln q )",
    use="A skewed sensitive column: counts frequent values less than distinct ℓ does.",
    elsewhere={
        "ARX": "Shannon-entropy-ℓ-diversity",
        "sdcMicro": "Entropy_Ldiversity",
        "pycanon": "entropy_l_diversity (cut to a whole number)",
    },
    per_class=PerClass(Criterion.ENTROPY),
)
