"""Weighted k: the class size an average record enjoys, Σ i·|E_i| / N.

>>> from sfumato.measures.example import six_rows
>>> round(MEASURE.value(six_rows()), 4)  # (3·3 + 1·1 + 2·2) / 6
2.3333
"""

from __future__ import annotations

from sfumato.measures.facts import Form, Walked
from sfumato.measures.measure import Measure
from sfumato.measures.privacy.k import oracle, size

MEASURE = Measure(
    name="weighted_k",
    title="weighted k",
    kind="privacy",
    direction="max",
    reads="sizes",
    function=size,
    oracle=oracle,
    fold="mean",
    monotone="rises",
    bound="unsuppressed",
    highest=lambda classes: float(classes.records),
    sentence="The mean class size over all records; suppressed records count as 0.",
    citation="Dewri et al., privacy versus data quality as multi-objective problems, problem 1",
    formula="1/N · sum over released records of n",
    use="To compare releases with the same k: how large the class of an average record is.",
    short="weighted k",
    scale="log",
    histogram=Form.MEAN_SIZE,
    walked=Walked(lambda nodes: nodes.size_sum / nodes.table.persons),
    tallied=lambda cuts: cuts.mean,
)
