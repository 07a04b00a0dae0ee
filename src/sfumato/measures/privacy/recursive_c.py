"""Recursive (c, ℓ)-diversity from its other side: the c that a table needs for a given ℓ, the largest
r₁ / (r_ℓ + … + r_m). Any c above it holds; infinite when a class has fewer than ℓ values.

>>> from sfumato.measures.example import six_rows
>>> MEASURE.value(six_rows()), sorted(set(MEASURE.property(six_rows()).records().tolist()))
(inf, [1.0, 2.0, inf])
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
from sfumato.measures.privacy.recursive_l import ranked
from sfumato.measures.property import Property
from sfumato.runtime.arrays import Floats


def ratio(classes: ClassTable, column: str, l: float) -> Property:
    return classes.per_class(worst(classes, _needed(classes, column, int(l)), 0.0), hidden=0.0)


def _needed(classes: ClassTable, column: str, l: int) -> Iterator[tuple[Way, Floats]]:
    for way in ways(classes, column):
        (counts, rest), start = ranked(way.values), way.values.start
        enough = np.diff(start) > l - 1
        at = np.where(enough, start[:-1] + l - 1, 0)
        yield way, np.where(enough, counts[start[:-1]] / rest[at], np.inf)


def oracle(records: Records, record: int, column: str, l: float) -> float:
    found = []
    for some in records.ways(column, records.crowd(record)):
        counts = sorted((float(share) for share in records.shares(column, some) if share), reverse=True)
        rest = sum(counts[int(l) - 1 :])
        found.append(counts[0] / rest if rest else float("inf"))
    return max(found)


MEASURE = Measure(
    name="recursive_c",
    title="c of recursive (c, ℓ)-diversity",
    kind="privacy",
    direction="min",
    reads="sensitive",
    function=ratio,
    oracle=oracle,
    fold="worst",
    monotone="falls",
    parameters={"l": 2},
    sentence="Any c above this makes the table recursively (c, ℓ)-diverse.",
    citation="Machanavajjhala et al. 2007, recursive (c, ℓ)-diversity",
    formula="max over classes of  r₁ / (r_ℓ + … + r_m)   for a given ℓ",
    use="To know which c of recursive (c, ℓ)-diversity a table keeps.",
    elsewhere={"pycanon": "c of recursive_c_l_diversity (cut to a whole number)"},
    per_class=PerClass(Criterion.RECURSIVE_C, parameter="l"),
)
