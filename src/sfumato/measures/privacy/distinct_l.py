"""Distinct ℓ-diversity: the fewest different sensitive values in a class; the p of p-sensitive k-anonymity.

>>> from sfumato.measures.example import six_rows
>>> MEASURE.value(six_rows()), sorted(MEASURE.property(six_rows()).records().tolist())
(1.0, [1.0, 2.0, 2.0, 2.0, 2.0, 2.0])
"""

from __future__ import annotations

from sfumato.measures.bits import EXEMPT
from sfumato.measures.classes import ClassTable
from sfumato.measures.criteria import Criterion
from sfumato.measures.facts import Form, Headline, PerClass
from sfumato.measures.known import alternatives
from sfumato.measures.measure import Measure
from sfumato.measures.oracle import Records
from sfumato.measures.property import Property


def distinct(classes: ClassTable, column: str) -> Property:
    return classes.per_class(alternatives(classes, column), hidden=0.0)


def oracle(records: Records, record: int, column: str) -> float:
    crowd = records.crowd(record)
    harmful, harmless = records.learnable(column, crowd)
    if not harmful:
        return float(EXEMPT)
    if any(records.held(column, some)[value] == 1.0 for some in records.ways(column, crowd) for value in harmful):
        return 1.0
    return float(min(len(harmful) + harmless, len(set(records.holders(column)[crowd].tolist()))))


MEASURE = Measure(
    name="distinct_l",
    title="distinct ℓ-diversity",
    kind="privacy",
    direction="max",
    reads="sensitive",
    function=distinct,
    oracle=oracle,
    fold="worst",
    monotone="rises",
    bound="own_budget",
    sentence="Every class holds at least ℓ different sensitive values.",
    citation="Machanavajjhala et al. 2007, ℓ-diversity; Truta and Vinay 2006, p-sensitive k-anonymity",
    formula="ℓ = min over classes of the number of different sensitive values",
    use="Sensitive values of about the same frequency. A skewed column needs entropy ℓ, recursive ℓ or t.",
    elsewhere={"ARX": "distinct-ℓ-diversity", "sdcMicro": "Distinct_Ldiversity", "anjana, pycanon": "l_diversity"},
    aliases=("p_sensitive",),
    short="ℓ",
    unit="count",
    headline=Headline(4, "fewest sensitive values in a class (ℓ)"),
    usual=True,
    histogram=Form.DIVERSITY,
    per_class=PerClass(Criterion.DISTINCT),
    tallied=lambda cuts: cuts.least_distinct,
)
