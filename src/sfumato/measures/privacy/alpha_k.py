"""(α, k)-anonymity: the largest share that any sensitive value has in any class.

>>> from sfumato.measures.example import six_rows
>>> MEASURE.value(six_rows()), sorted(set(MEASURE.property(six_rows()).records().round(3).tolist()))
(1.0, [0.5, 0.667, 1.0])
"""

from __future__ import annotations

from sfumato.measures.classes import ClassTable
from sfumato.measures.criteria import Criterion
from sfumato.measures.facts import PerClass
from sfumato.measures.known import largest_share
from sfumato.measures.measure import Measure
from sfumato.measures.oracle import Records
from sfumato.measures.property import Property


def commonest(classes: ClassTable, column: str) -> Property:
    return classes.per_class(largest_share(classes, column), hidden=0.0)


def oracle(records: Records, record: int, column: str) -> float:
    return records.largest_harmful_share(column, records.crowd(record))


MEASURE = Measure(
    name="alpha_k",
    title="α of (α, k)-anonymity",
    kind="privacy",
    direction="min",
    reads="sensitive",
    function=commonest,
    oracle=oracle,
    fold="worst",
    monotone="falls",
    highest=lambda classes: 1.0,
    sentence="No sensitive value has a share above α in any class; k is reported separately.",
    citation="Wong et al. 2006, (α, k)-anonymity",
    formula="α = max over classes and values of q",
    use="As frequency ℓ, said as a share: nobody's value can be guessed with more certainty than α.",
    elsewhere={"anjana, pycanon": "alpha_k_anonymity"},
    unit="share",
    per_class=PerClass(Criterion.ALPHA),
)
