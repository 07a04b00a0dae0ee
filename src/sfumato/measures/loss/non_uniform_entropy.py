"""Non-uniform entropy: the bits it takes to guess a cell's original value from its label, −log₂ (n_v / n_label).

>>> from sfumato.measures.example import six_rows
>>> round(MEASURE.value(six_rows()), 4)  # age: 4 · 1 + 2 · 1; zip: log₂ 3 + 2 · log₂ 1.5
8.7549
"""

from __future__ import annotations

import numpy as np

from sfumato.measures.classes import ClassTable
from sfumato.measures.measure import Measure
from sfumato.measures.oracle import Records
from sfumato.measures.property import Property


def bits(classes: ClassTable) -> Property:
    table = classes.table
    result, full = np.zeros(table.tuples), np.zeros(table.tuples)
    parts = zip(table.domains, classes.recoding, table.codes, classes.attribute_weights, strict=True)
    for domain, part, codes, weight in parts:
        label = np.bincount(part.groups, weights=domain.counts, minlength=part.radix)
        share = domain.counts[codes] / label[part.groups[codes]]
        result -= weight * np.log2(share)
        full -= weight * np.log2(domain.counts[codes] / domain.counts.sum())
    return classes.per_tuple(result, hidden=full)


def oracle(records: Records, record: int) -> float:
    total = 0.0
    for j in range(len(records.recoding)):
        value = np.sum(records.originals[j] == records.originals[j, record])
        label = np.sum(records.labels[j] == records.labels[j, record])
        total -= float(np.log2(value / label))
    return total


MEASURE = Measure(
    name="non_uniform_entropy",
    title="non-uniform entropy",
    kind="loss",
    direction="min",
    reads="originals",
    function=bits,
    oracle=oracle,
    fold="sum",
    monotone="rises",
    bound="unsuppressed",
    sentence="The bits needed to guess the original values back from the labels, added over all cells.",
    citation="Gionis and Tassa 2009, non-uniform entropy",
    formula="Σ over cells of −log₂( count of the value / count of its label )",
    use="What is lost should depend on how frequent values are, not on how many there are.",
    elsewhere={"ARX": "Non-uniform entropy"},
    suppressed="own",
)
