"""p-sensitive k-anonymity: the fewest different values of any sensitive column in a class.

For one column it is distinct ℓ-diversity; with several, p is the least over all of them.

>>> from sfumato.measures.example import six_rows
>>> MEASURE.value(six_rows())
1.0
"""

from __future__ import annotations

import numpy as np

from sfumato.measures.classes import ClassTable
from sfumato.measures.measure import Measure
from sfumato.measures.oracle import Records
from sfumato.measures.property import Property


def distinct(classes: ClassTable, column: str) -> Property:
    return classes.per_class(np.diff(classes.values(column).start), hidden=0.0)


def oracle(records: Records, record: int, column: str) -> float:
    return float(np.count_nonzero(np.bincount(records.values(column)[records.crowd(record)])))


MEASURE = Measure(
    name="p_sensitive",
    title="p-sensitive k-anonymity",
    kind="privacy",
    direction="max",
    reads="sensitive",
    function=distinct,
    oracle=oracle,
    fold="worst",
    monotone="rises",
    bound="own_budget",
    sentence="Every class holds at least p different values of every sensitive column.",
    citation="Truta and Vinay 2006, p-sensitive k-anonymity",
)
