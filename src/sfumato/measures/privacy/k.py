"""k-anonymity: the size of the smallest equivalence class.

>>> from sfumato.measures.example import six_rows
>>> MEASURE.value(six_rows()), sorted(MEASURE.property(six_rows()).records().tolist())
(1.0, [1.0, 2.0, 2.0, 3.0, 3.0, 3.0])
"""

from __future__ import annotations

from sfumato.measures.classes import ClassTable
from sfumato.measures.criteria import Criterion
from sfumato.measures.facts import Form, Headline, PerClass
from sfumato.measures.measure import Measure
from sfumato.measures.oracle import Records
from sfumato.measures.property import Property


def size(classes: ClassTable) -> Property:
    return classes.per_class(classes.size, hidden=0.0)


def oracle(records: Records, record: int) -> float:
    return float(records.people(records.crowd(record)))


MEASURE = Measure(
    name="k",
    title="k-anonymity",
    kind="privacy",
    direction="max",
    reads="sizes",
    function=size,
    oracle=oracle,
    fold="worst",
    monotone="rises",
    bound="own_budget",
    highest=lambda classes: float(classes.records),
    sentence="Every released record has the same quasi-identifiers as at least k − 1 others.",
    citation="Sweeney 2002, k-anonymity: a model for protecting privacy",
    formula="k = min over classes of n",
    use="Always. It answers the first question of every policy: how many records look alike, at least.",
    elsewhere={
        "ARX": "k-anonymity",
        "sdcMicro": 'kAnon, print(sdc, "kAnon")',
        "anjana, pycanon": "k_anonymity",
        "µ-Argus": "threshold of a combination",
    },
    short="k",
    scale="log",
    unit="count",
    headline=Headline(0, "smallest class (k)"),
    usual=True,
    histogram=Form.SIZE,
    per_class=PerClass(Criterion.SIZE),
    tallied=lambda cuts: cuts.least_size,
)
