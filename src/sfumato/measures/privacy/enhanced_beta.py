"""Enhanced β-likeness: the gain of every value must stay within β and within −ln p, value by value.

The figure is the least β that holds. When a gain exceeds its own −ln p no β helps, and the figure is infinite.

>>> from sfumato.measures.example import six_rows
>>> MEASURE.value(six_rows()), sorted(set(MEASURE.property(six_rows()).records().round(3).tolist()))
(inf, [0.333, inf])
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

SLACK = 1e-12  # rounding must not break the bound


def gain(classes: ClassTable, column: str) -> Property:
    return classes.per_class(worst(classes, _gains(classes, column), 0.0), hidden=0.0)


def _gains(classes: ClassTable, column: str) -> Iterator[tuple[Way, Floats]]:
    for way in ways(classes, column):
        there = way.held[way.values.values]
        with np.errstate(divide="ignore", invalid="ignore"):  # a suppressed class may hold values no kept one does
            relative = np.where(way.harmful, way.share / there - 1.0, 0.0)
            allowed = -np.log(there) + SLACK
        broken = way.values.fold(np.logical_or, way.harmful & (relative > allowed)) > 0
        yield way, np.where(broken, np.inf, way.values.fold(np.maximum, relative))


def oracle(records: Records, record: int, column: str) -> float:
    pairs = [(q, p) for q, p in records.harmful_shares(column, records.crowd(record)) if q > p]
    gains = [(float((q - p) / p), -float(np.log(p))) for q, p in pairs]
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
