"""S_k: the class sizes of all records, added up.

>>> from sfumato.measures.example import six_rows
>>> MEASURE.value(six_rows())  # 3 + 3 + 3 + 1 + 2 + 2
14.0
"""

from __future__ import annotations

from sfumato.measures.facts import Form, Walked
from sfumato.measures.measure import Measure
from sfumato.measures.privacy.k import oracle, size

MEASURE = Measure(
    name="sum_k",
    title="sum of class sizes",
    kind="privacy",
    direction="max",
    reads="sizes",
    function=size,
    oracle=oracle,
    fold="sum",
    monotone="rises",
    bound="unsuppressed",
    highest=lambda classes: float(classes.records) ** 2,
    sentence="The class sizes of all records added up; suppressed records count as 0.",
    citation="Dewri, Ray, Ray, Whitley 2010, property-based generalizations, S_k",
    formula="sum over released records of n  =  N · weighted k",
    use="Only to reproduce published figures; weighted k says the same.",
    scale="log",
    unit="count",
    histogram=Form.MEAN_SIZE,
    walked=Walked(lambda nodes: nodes.size_sum),
)
