"""Losses that sum over cells: general loss and its parts, precision, loss by width, non-uniform entropy, ARX's Loss.

The general loss of a cell is (leaves under its label − 1)/(leaves of the domain − 1). A suppressed record loses 1 for
each column.

>>> from sfumato.measures.oracle import six_rows
>>> round(GENERAL_LOSS.value(six_rows()), 4)  # age: 6 · 1/3; zip: 3 · 1/2 + 3 · 0
3.5

Generalization loss is the general loss of released records, as a share of the highest loss.

>>> from sfumato.measures.oracle import six_rows
>>> round(GENERALIZATION_LOSS.value(six_rows()), 4)  # 3.5 of 2 columns · 6 records
0.2917

Suppression loss is the general loss of suppressed records, as a share of the highest loss.

>>> from sfumato.measures.oracle import six_rows
>>> from sfumato.measures.suppression import suppress_below
>>> round(SUPPRESSION_LOSS.value(suppress_below(six_rows(), 2)), 4)  # one record of six
0.1667

Precision is one minus the mean level of a cell, as a share of its hierarchy's height.

>>> from sfumato.measures.oracle import six_rows
>>> PRECISION.value(six_rows())  # level 1 of 2 in both columns
0.5

The loss by width is a general loss in which numeric columns count the width of a label, not its leaves.

>>> from sfumato.measures.oracle import six_rows
>>> round(WIDTH_LOSS.value(six_rows()), 4)  # age 24..51: 4 · 11/27 + 2 · 4/27; zip 47602..47905: 3 · 76/303
2.6784

Non-uniform entropy is the number of bits needed to identify the original value under a label, −log₂ (n_v / n_label).

>>> from sfumato.measures.oracle import six_rows
>>> round(NON_UNIFORM_ENTROPY.value(six_rows()), 4)  # age: 4 · 1 + 2 · 1; zip: log₂ 3 + 2 · log₂ 1.5
8.7549

ARX's Loss is the quality model of ARX 3.9.2 with the geometric mean, for comparison with projects in ARX. The share of
leaves under the label of a record in column j (1 for a suppressed record) has the sum A_j over all records, and the
column has D_j leaves. Then L_j = (A_j − N/D_j)/(N − N/D_j), at least 0 and cut to ten decimals, and the loss is
(Π (L_j + 1))^(1/m) − 1.

>>> from sfumato.measures.oracle import six_rows
>>> round(ARX_LOSS.value(six_rows()), 6)  # L = 1/3 and 1/4
0.290994
"""

from __future__ import annotations

import math

import numpy as np

from sfumato.base.arrays import Floats
from sfumato.measures.classes import ClassTable
from sfumato.measures.measure import Measure, NodeFigures, Walked
from sfumato.measures.oracle import Records
from sfumato.measures.property import Property


def loss_of_cells(classes: ClassTable) -> Property:
    share = (classes.covers - 1) / np.maximum(classes.leaves - 1, 1)[:, None]
    return classes.per_class(classes.attribute_weights @ share, hidden=float(classes.attribute_weights.sum()))


def general_loss_oracle(records: Records, record: int) -> float:
    total = 0.0
    for j, (part, domain) in enumerate(zip(records.recoding, records.table.domains, strict=True)):
        covered = part.covers[records.labels[j, record]]
        total += (covered - 1) / (domain.leaves - 1) if domain.leaves > 1 else 0.0
    return total


def loss_of_nodes(nodes: NodeFigures) -> Floats:
    """Return the general loss from the covered leaves of kept records, exactly up to the last division."""
    total = (nodes.table.records - nodes.kept) * float(nodes.weights.sum())
    for j, (domain, weight) in enumerate(zip(nodes.table.domains, nodes.weights, strict=True)):
        # Column by column, because a matrix product rounds differently for different numbers of nodes.
        total = total + weight * ((nodes.sums[:, j] - nodes.kept) / max(domain.leaves - 1, 1))
    return np.asarray(total)


GENERAL_LOSS = Measure(
    name="general_loss",
    title="general loss",
    kind="loss",
    direction="min",
    reads="cells",
    function=loss_of_cells,
    oracle=general_loss_oracle,
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
    walked=Walked(loss_of_nodes, from_margins=True),
    tallied=lambda cuts: (cuts.generalized + cuts.suppressed) * cuts.full,
    resolution=5e-4,
)


def generalization_of_cells(classes: ClassTable) -> Property:
    part = (classes.covers - 1) / np.maximum(classes.leaves - 1, 1)[:, None]
    weights = classes.attribute_weights
    return classes.per_class(weights @ part / weights.sum(), hidden=0.0)


def generalization_loss_oracle(records: Records, record: int) -> float:
    return general_loss_oracle(records, record) / len(records.recoding)


GENERALIZATION_LOSS = Measure(
    name="generalization_loss",
    title="generalization loss",
    kind="loss",
    direction="min",
    reads="cells",
    function=generalization_of_cells,
    oracle=generalization_loss_oracle,
    fold="mean",
    monotone="rises",
    highest=lambda classes: 1.0,
    sentence="The loss of released records by generalization, as a share of all cells of all records.",
    citation="Dewri et al., privacy versus data quality as multi-objective problems, GL",
    formula="1/(d·N) · Σ over cells of released records of the cell's general loss",
    use="To see how much of the loss is recoding; the rest is suppression loss.",
    unit="share",
    tallied=lambda cuts: cuts.generalized,
    resolution=2.5e-3,
    suppressed="nothing",
)


def loss_of_suppressed(classes: ClassTable) -> Property:
    return classes.per_class(np.zeros(len(classes.rows)), hidden=1.0)


def suppression_loss_oracle(records: Records, record: int) -> float:
    return 0.0 if record < len(records.kept) else 1.0


SUPPRESSION_LOSS = Measure(
    name="suppression_loss",
    title="suppression loss",
    kind="loss",
    direction="min",
    reads="sizes",
    function=loss_of_suppressed,
    oracle=suppression_loss_oracle,
    fold="mean",
    monotone="falls",
    highest=lambda classes: 1.0,
    sentence="The share of records that are not released: each loses every cell.",
    citation="Dewri et al., privacy versus data quality as multi-objective problems, SL",
    formula="suppressed records / N",
    use="To see how much of the loss is suppression.",
    elsewhere={"ARX": "share of suppressed records"},
    unit="share",
    tallied=lambda cuts: cuts.suppressed,
    resolution=2.5e-3,
)


def precision_of_cells(classes: ClassTable) -> Property:
    depths = np.stack([part.depths[groups] for part, groups in zip(classes.recoding, classes.groups, strict=True)])
    weights = classes.attribute_weights / classes.attribute_weights.sum()
    return classes.per_class(1.0 - weights @ depths, hidden=0.0)


def precision_oracle(records: Records, record: int) -> float:
    depths = [part.depths[records.labels[j, record]] for j, part in enumerate(records.recoding)]
    return 1.0 - float(np.mean(depths))


def precision_of_nodes(nodes: NodeFigures) -> Floats:
    share = np.ones(len(nodes.nodes))
    weights = nodes.weights / nodes.weights.sum()
    for j, (domain, weight) in enumerate(zip(nodes.table.domains, weights, strict=True)):
        share = share - weight * nodes.nodes[:, j] / domain.hierarchy.height
    return np.asarray(share * nodes.kept / nodes.table.records)


PRECISION = Measure(
    name="precision",
    title="precision",
    kind="loss",
    direction="max",
    reads="cells",
    function=precision_of_cells,
    oracle=precision_oracle,
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
    walked=Walked(precision_of_nodes, from_margins=True),
)


def widths_of_cells(classes: ClassTable) -> Property:
    total = np.zeros(len(classes.rows))
    parts = zip(
        classes.recoding,
        classes.groups,
        classes.covers,
        classes.leaves,
        classes.attribute_weights,
        strict=True,
    )
    for part, groups, covers, leaves, weight in parts:
        share = (covers - 1) / max(leaves - 1, 1) if part.spans is None else part.spans[groups]
        total += weight * share
    return classes.per_class(total, hidden=float(classes.attribute_weights.sum()))


def width_loss_oracle(records: Records, record: int) -> float:
    total = 0.0
    for j, (part, domain) in enumerate(zip(records.recoding, records.table.domains, strict=True)):
        group = records.labels[j, record]
        value = domain.values()
        if value is None or np.isnan(value).all():
            total += (part.covers[group] - 1) / (domain.leaves - 1) if domain.leaves > 1 else 0.0
            continue
        inside = [v for leaf, v in enumerate(value) if part.groups[leaf] == group and not np.isnan(v)]
        extent = np.nanmax(value) - np.nanmin(value)
        total += float((max(inside) - min(inside)) / extent) if inside and extent > 0 else 0.0
    return total


WIDTH_LOSS = Measure(
    name="width_loss",
    title="general loss by width",
    kind="loss",
    direction="min",
    reads="cells",
    function=widths_of_cells,
    oracle=width_loss_oracle,
    fold="sum",
    monotone="rises",
    bound="unsuppressed",
    highest=lambda classes: float(classes.attribute_weights.sum()) * classes.records,
    sentence="As general loss, with the width of an interval over the width of the domain for numeric columns.",
    citation="Iyengar 2002, general loss metric for numeric columns",
    formula="as general loss, with (width of the interval)/(width of the domain) for numbers",
    use="Numeric columns whose values are spread unevenly: a wide interval with few values costs more.",
    elsewhere={"Iyengar": "LM for numeric columns"},
)


def entropy_of_cells(classes: ClassTable) -> Property:
    table = classes.table
    result, full = np.zeros(table.tuples), np.zeros(table.tuples)
    parts = zip(table.domains, classes.recoding, table.codes, classes.attribute_weights, strict=True)
    for domain, part, codes, weight in parts:
        label = np.bincount(part.groups, weights=domain.counts, minlength=part.radix)
        share = domain.counts[codes] / label[part.groups[codes]]
        result -= weight * np.log2(share)
        full -= weight * np.log2(domain.counts[codes] / domain.counts.sum())
    return classes.per_tuple(result, hidden=full)


def non_uniform_entropy_oracle(records: Records, record: int) -> float:
    total = 0.0
    for j in range(len(records.recoding)):
        value = np.sum(records.originals[j] == records.originals[j, record])
        label = np.sum(records.labels[j] == records.labels[j, record])
        total -= float(np.log2(value / label))
    return total


NON_UNIFORM_ENTROPY = Measure(
    name="non_uniform_entropy",
    title="non-uniform entropy",
    kind="loss",
    direction="min",
    reads="originals",
    function=entropy_of_cells,
    oracle=non_uniform_entropy_oracle,
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


def arx_loss_of_records(classes: ClassTable) -> Property:
    """Return ARX's Loss of each record alone."""
    least = 1.0 / classes.leaves[:, None]
    share = classes.covers / classes.leaves[:, None]
    normal = np.where(least < 1.0, np.maximum(share - least, 0.0) / np.maximum(1.0 - least, 1e-300), 0.0)
    return classes.per_class(np.exp(np.log1p(normal).mean(axis=0)) - 1.0, hidden=1.0)


def geometric_mean(classes: ClassTable, values: Property) -> float:  # noqa: ARG001
    records = classes.records
    product = 1.0
    rows = np.where(classes.kept, classes.rows, 0)
    for covers, leaves in zip(classes.covers, classes.leaves, strict=True):
        if leaves > 1:
            total = float(rows @ covers) / leaves + classes.suppressed_rows
            least = records / leaves
            normal = max((total - least) / (records - least), 0.0)
            product *= math.floor(normal * 1e10) / 1e10 + 1.0
    return float(product ** (1.0 / len(classes.recoding))) - 1.0


def arx_loss_oracle(records: Records, record: int) -> float:
    product = 1.0
    for j, (part, domain) in enumerate(zip(records.recoding, records.table.domains, strict=True)):
        if domain.leaves > 1:
            share, least = part.covers[records.labels[j, record]] / domain.leaves, 1 / domain.leaves
            product *= 1.0 + float((share - least) / (1 - least))
    return float(product ** (1 / len(records.recoding))) - 1.0


def arx_loss_of_nodes(nodes: NodeFigures) -> Floats:
    """Return ARX's Loss from the covered leaves of kept records."""
    records = nodes.table.records
    product = np.ones(len(nodes.sums))
    for j, domain in enumerate(nodes.table.domains):
        if domain.leaves > 1:
            least = records / domain.leaves
            total = nodes.sums[:, j] / domain.leaves + (records - nodes.kept)
            product *= np.floor(np.maximum((total - least) / (records - least), 0.0) * 1e10) / 1e10 + 1.0
    return np.asarray(product ** (1.0 / len(nodes.table.domains)) - 1.0)


ARX_LOSS = Measure(
    name="arx_loss",
    title="ARX's Loss",
    kind="loss",
    direction="min",
    reads="cells",
    function=arx_loss_of_records,
    oracle=arx_loss_oracle,
    fold=geometric_mean,
    monotone="rises",
    bound="unsuppressed",
    highest=lambda classes: 1.0,
    sentence="ARX's Loss (geometric mean over the columns), for comparison with ARX.",
    citation="Prasser et al. 2020, ARX 3.9.2, quality model Loss",
    formula="L_j = (A_j − N/D_j)/(N − N/D_j);   Loss = (Π (L_j + 1))^(1/d) − 1",
    use="To compare with a project in ARX: the same figure to 1e-9.",
    elsewhere={"ARX": "Loss, geometric mean"},
    unit="share",
    usual=True,
    walked=Walked(arx_loss_of_nodes, from_margins=True),
)
