"""Precision (Prec): one minus the mean share of its hierarchy's height that a cell was generalized.

>>> from sfumato.measures.example import six_rows
>>> MEASURE.value(six_rows())  # level 1 of 2 in both columns
0.5
"""

from __future__ import annotations

import numpy as np

from sfumato.measures.classes import ClassTable
from sfumato.measures.facts import NodeFigures, Walked
from sfumato.measures.measure import Measure
from sfumato.measures.oracle import Records
from sfumato.measures.property import Property
from sfumato.runtime.arrays import Floats


def kept_height(classes: ClassTable) -> Property:
    depths = np.stack([part.depths[groups] for part, groups in zip(classes.recoding, classes.groups, strict=True)])
    weights = classes.attribute_weights / classes.attribute_weights.sum()
    return classes.per_class(1.0 - weights @ depths, hidden=0.0)


def oracle(records: Records, record: int) -> float:
    depths = [part.depths[records.labels[j, record]] for j, part in enumerate(records.recoding)]
    return 1.0 - float(np.mean(depths))


def of_nodes(nodes: NodeFigures) -> Floats:
    share = np.ones(len(nodes.nodes))
    weights = nodes.weights / nodes.weights.sum()
    for j, (domain, weight) in enumerate(zip(nodes.table.domains, weights, strict=True)):
        share = share - weight * nodes.nodes[:, j] / domain.hierarchy.height
    return np.asarray(share * nodes.kept / nodes.table.records)


MEASURE = Measure(
    name="precision",
    title="precision",
    kind="loss",
    direction="max",
    reads="cells",
    function=kept_height,
    oracle=oracle,
    fold="mean",
    monotone="falls",
    bound="unsuppressed",
    highest=lambda classes: 1.0,
    sentence="How much of the hierarchies' height is kept: 1 is the raw table, 0 a table of stars.",
    citation="Sweeney 2002, Prec",
    formula="1 − 1/(d·N) · Σ over cells of (level of the label)/(height of the hierarchy);   0 for a suppressed record",
    use="To compare with papers of the 2000s. It depends on how many levels a file has, not on what they cover.",
    elsewhere={"ARX": "Precision"},
    unit="share",
    walked=Walked(of_nodes, from_margins=True),
)
