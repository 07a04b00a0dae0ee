"""General loss (GLM): for each cell, the share of the domain's other values that its label covers, added up.

A cell loses (leaves under its label − 1)/(leaves of the domain − 1); a suppressed record loses 1 per column.

>>> from sfumato.measures.example import six_rows
>>> round(MEASURE.value(six_rows()), 4)  # age: 6 · 1/3; zip: 3 · 1/2 + 3 · 0
3.5
"""

from __future__ import annotations

import numpy as np

from sfumato.measures.classes import ClassTable
from sfumato.measures.facts import NodeFigures, Walked
from sfumato.measures.measure import Measure
from sfumato.measures.oracle import Records
from sfumato.measures.property import Property
from sfumato.runtime.arrays import Floats


def cells(classes: ClassTable) -> Property:
    share = (classes.covers - 1) / np.maximum(classes.leaves - 1, 1)[:, None]
    return classes.per_class(classes.attribute_weights @ share, hidden=float(classes.attribute_weights.sum()))


def oracle(records: Records, record: int) -> float:
    total = 0.0
    for j, (part, domain) in enumerate(zip(records.recoding, records.table.domains, strict=True)):
        covered = part.covers[records.labels[j, record]]
        total += (covered - 1) / (domain.leaves - 1) if domain.leaves > 1 else 0.0
    return total


def of_nodes(nodes: NodeFigures) -> Floats:
    """From the covered leaves of the kept records: exact whole numbers until the last division."""
    total = (nodes.table.records - nodes.kept) * float(nodes.weights.sum())
    for j, (domain, weight) in enumerate(zip(nodes.table.domains, nodes.weights, strict=True)):
        # Column by column: a product of matrices rounds differently for different numbers of nodes.
        total = total + weight * ((nodes.sums[:, j] - nodes.kept) / max(domain.leaves - 1, 1))
    return np.asarray(total)


MEASURE = Measure(
    name="general_loss",
    title="general loss",
    kind="loss",
    direction="min",
    reads="cells",
    function=cells,
    oracle=oracle,
    fold="sum",
    monotone="rises",
    bound="unsuppressed",
    highest=lambda classes: float(classes.attribute_weights.sum()) * classes.records,
    sentence="The share of its column's values that each cell can no longer be distinguished from, summed over "
    "all cells.",
    citation="Iyengar 2002, general loss metric; Dewri et al. 2010, GLM",
    formula="Σ over cells of (leaves under the label − 1)/(leaves of the column − 1);   d for a suppressed record",
    use="The default. Divided by d·N it is the *loss* that every page shows, from 0 (raw) to 1 (nothing left).",
    elsewhere={"Iyengar": "LM", "Dewri et al.": "GLM"},
    usual=True,
    walked=Walked(of_nodes, from_margins=True),
    tallied=lambda cuts: (cuts.generalized + cuts.suppressed) * cuts.full,
    resolution=5e-4,
)
