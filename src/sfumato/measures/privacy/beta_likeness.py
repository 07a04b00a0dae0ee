"""Basic β-likeness: the largest relative gain (q − p)/p of a value's share in a class (q) over the table (p).

>>> from sfumato.measures.example import six_rows
>>> MEASURE.value(six_rows())  # ulcer: 1/2 against 1/6
2.0
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


def gain(classes: ClassTable, column: str) -> Property:
    return classes.per_class(worst(classes, _gains(classes, column), 0.0), hidden=0.0)


def _gains(classes: ClassTable, column: str) -> Iterator[tuple[Way, Floats]]:
    for way in ways(classes, column):
        with np.errstate(divide="ignore", invalid="ignore"):  # a suppressed class may hold values no kept one does
            relative = np.where(way.harmful, way.share / way.held[way.values.values] - 1.0, 0.0)
        yield way, way.values.fold(np.maximum, relative)


def oracle(records: Records, record: int, column: str) -> float:
    pairs = records.harmful_shares(column, records.crowd(record))
    return max((float((q - p) / p) for q, p in pairs if q > p), default=0.0)


MEASURE = Measure(
    name="beta_likeness",
    title="basic β-likeness",
    kind="privacy",
    direction="min",
    reads="sensitive",
    function=gain,
    oracle=oracle,
    fold="worst",
    monotone="falls",
    sentence="No class raises the share of a sensitive value by more than β times its share in the table.",
    citation="Cao and Karras 2012, β-likeness",
    formula="β = max over classes and values with q > p of  (q − p)/p",
    use="Rare sensitive values matter more than frequent ones: a gain is relative to how common a value is.",
    elsewhere={"ARX": "basic β-likeness", "anjana, pycanon": "basic_beta_likeness"},
    per_class=PerClass(Criterion.BETA, whole=True),
)
