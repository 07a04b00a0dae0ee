"""Weighted ℓ: the number of different sensitive values in the class of an average record.

>>> from sfumato.measures.example import six_rows
>>> round(MEASURE.value(six_rows()), 4)  # (3·2 + 1·1 + 2·2) / 6
1.8333
"""

from __future__ import annotations

from sfumato.measures.facts import Form
from sfumato.measures.measure import Measure
from sfumato.measures.privacy.distinct_l import distinct, oracle

MEASURE = Measure(
    name="weighted_l",
    title="weighted ℓ",
    kind="privacy",
    direction="max",
    reads="sensitive",
    function=distinct,
    oracle=oracle,
    fold="mean",
    monotone="rises",
    bound="unsuppressed",
    sentence="How many different sensitive values an average record's class holds; suppressed records count as 0.",
    citation="Dewri et al., privacy versus data quality as multi-objective problems, problem 1 for ℓ-diversity",
    formula="1/N · sum over released records of the number of different values in the class",
    use="To compare releases with the same ℓ.",
    short="weighted ℓ",
    histogram=Form.MEAN_DIVERSITY,
    tallied=lambda cuts: cuts.mean,
)
