"""Enhanced β-likeness: the gain of every value must stay within β and within −ln p, value by value.

The figure is the least β that holds. When a gain exceeds its own −ln p no β helps, and the figure is infinite.

>>> from sfumato.measures.example import six_rows
>>> MEASURE.value(six_rows()), sorted(set(MEASURE.property(six_rows()).records().round(3).tolist()))
(inf, [0.333, inf])
"""

from __future__ import annotations

import numpy as np

from sfumato.measures.classes import ClassTable
from sfumato.measures.criteria import Criterion
from sfumato.measures.facts import PerClass
from sfumato.measures.measure import Measure
from sfumato.measures.oracle import Records
from sfumato.measures.property import Property

SLACK = 1e-12  # rounding must not break the bound


def gain(classes: ClassTable, column: str) -> Property:
    values = classes.values(column)
    whole = classes.references(column)[0]
    with np.errstate(divide="ignore"):  # a suppressed class may hold values that no kept one does
        relative = values.held / values.size[values.class_of] / whole[values.values] - 1.0
        allowed = -np.log(whole[values.values]) + SLACK
    broken = values.fold(np.logical_or, relative > allowed) > 0
    result = np.maximum(values.fold(np.maximum, relative), 0.0)
    return classes.per_class(np.where(broken, np.inf, result), hidden=0.0)


def oracle(records: Records, record: int, column: str) -> float:
    share, whole = records.held(column, records.crowd(record)), records.held(column, records.kept)
    gains = [(float((q - p) / p), -float(np.log(p))) for q, p in zip(share, whole, strict=True) if q > p]
    return float("inf") if any(g > cap + SLACK for g, cap in gains) else max((g for g, _ in gains), default=0.0)


MEASURE = Measure(
    name="enhanced_beta",
    title="enhanced β-likeness",
    kind="privacy",
    direction="min",
    reads="sensitive",
    function=gain,
    oracle=oracle,
    fold="worst",
    monotone="falls",
    sentence="As basic β-likeness, and frequent values may gain less: at most −ln of their share.",
    citation="Cao and Karras 2012, enhanced β-likeness",
    formula="as β;  infinite if any gain exceeds −ln p of its own value",
    use="As basic β-likeness, where frequent values need a bound as well.",
    elsewhere={"ARX": "enhanced β-likeness", "anjana, pycanon": "enhanced_beta_likeness"},
    per_class=PerClass(Criterion.ENHANCED_BETA, whole=True),
)
