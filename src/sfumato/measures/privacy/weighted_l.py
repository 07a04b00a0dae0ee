"""Weighted ℓ: the number of different sensitive values in the class of an average record.

>>> from sfumato.measures.example import six_rows
>>> round(MEASURE.value(six_rows()), 4)  # (3·2 + 1·1 + 2·2) / 6
1.8333
"""

from __future__ import annotations

import numpy as np

from sfumato.measures.bits import EXEMPT
from sfumato.measures.classes import ClassTable
from sfumato.measures.facts import Form
from sfumato.measures.known import alternatives
from sfumato.measures.measure import Measure
from sfumato.measures.oracle import Records
from sfumato.measures.privacy import distinct_l
from sfumato.measures.property import Property


def different(classes: ClassTable, column: str) -> Property:
    """The values of each class; a class that is exempt from ℓ counts as one value."""
    held = alternatives(classes, column)
    return classes.per_class(np.where(held >= EXEMPT, 1.0, held), hidden=0.0)


def oracle(records: Records, record: int, column: str) -> float:
    held = distinct_l.oracle(records, record, column)
    return 1.0 if held >= EXEMPT else held


MEASURE = Measure(
    name="weighted_l",
    title="weighted ℓ",
    kind="privacy",
    direction="max",
    reads="sensitive",
    function=different,
    oracle=oracle,
    fold="mean",
    monotone="rises",
    bound="unsuppressed",
    sentence="How many different sensitive values an average record's class holds; suppressed records count as 0.",
    citation="Dewri et al., privacy versus data quality as multi-objective problems, problem 1 for ℓ-diversity",
    formula="1/N · sum over released records of the number of different values in the class",
    use="To compare releases with the same ℓ.",
    short="weighted ℓ",
    histogram=Form.MEAN_DIVERSITY,
    tallied=lambda cuts: cuts.mean,
)
