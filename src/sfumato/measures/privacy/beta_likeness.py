"""Basic β-likeness: the largest relative gain (q − p)/p of a value's share in a class (q) over the table (p).

>>> from sfumato.measures.example import six_rows
>>> MEASURE.value(six_rows())  # ulcer: 1/2 against 1/6
2.0
"""

from __future__ import annotations

import numpy as np

from sfumato.measures.classes import ClassTable
from sfumato.measures.criteria import Criterion
from sfumato.measures.facts import PerClass
from sfumato.measures.measure import Measure
from sfumato.measures.oracle import Records
from sfumato.measures.property import Property


def gain(classes: ClassTable, column: str) -> Property:
    values = classes.values(column)
    whole = classes.references(column)[0]
    with np.errstate(divide="ignore"):  # a suppressed class may hold values that no kept one does
        relative = values.held / values.size[values.class_of] / whole[values.values] - 1.0
    return classes.per_class(np.maximum(values.fold(np.maximum, relative), 0.0), hidden=0.0)


def oracle(records: Records, record: int, column: str) -> float:
    share, whole = records.held(column, records.crowd(record)), records.held(column, records.kept)
    return max((float((q - p) / p) for q, p in zip(share, whole, strict=True) if q > p), default=0.0)


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
