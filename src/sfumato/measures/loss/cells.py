"""Losses that sum over cells: general loss and its parts, precision, loss by width, non-uniform entropy, ARX's Loss.

A suppressed record loses 1 for each column. The loss by width is for numeric columns, others count leaves.

>>> from sfumato.measures.oracle import six_rows
>>> round(GENERAL_LOSS.value(six_rows()), 4)  # age: 6 · 1/3; zip: 3 · 1/2 + 3 · 0
3.5
>>> round(GENERALIZATION_LOSS.value(six_rows()), 4)  # 3.5 of 2 columns · 6 records
0.2917
>>> from sfumato.measures.suppression import suppress_below
>>> round(SUPPRESSION_LOSS.value(suppress_below(six_rows(), 2)), 4)  # one record of six
0.1667
>>> PRECISION.value(six_rows())  # level 1 of 2 in both columns
0.5
>>> round(WIDTH_LOSS.value(six_rows()), 4)  # age 24..51: 4 · 11/27 + 2 · 4/27; zip 47602..47905: 3 · 76/303
2.6784
>>> round(NON_UNIFORM_ENTROPY.value(six_rows()), 4)  # age: 4 · 1 + 2 · 1; zip: log₂ 3 + 2 · log₂ 1.5
8.7549

ARX's Loss is the quality model of ARX 3.9.2 with the geometric mean, for comparison with projects in ARX. The share of
leaves under the label of a record in column j (1 for a suppressed record) has the sum A_j over all records, and the
column has D_j leaves. Then L_j = (A_j − N/D_j)/(N − N/D_j), at least 0 and cut to ten decimals, and the loss is
(Π (L_j + 1))^(1/m) − 1.

>>> round(ARX_LOSS.value(six_rows()), 6)  # L = 1/3 and 1/4
0.290994
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from sfumato.measures.classes import ClassTable
from sfumato.measures.measure import Measure
from sfumato.measures.oracle import Records
from sfumato.measures.property import Property

cell_loss = partial(Measure, kind="loss", direction="min", reads="cells", monotone="rises")


def loss_of_cells(classes: ClassTable) -> Property:
    share = (classes.covers - 1) / np.maximum(classes.leaves - 1, 1)[:, None]
    return classes.per_class(classes.attribute_weights @ share, hidden=float(classes.attribute_weights.sum()))


def general_loss_oracle(records: Records, record: int) -> float:
    total = 0.0
    for j, (part, domain) in enumerate(zip(records.recoding, records.table.domains, strict=True)):
        covered = part.covers[records.labels[j, record]]
        total += (covered - 1) / (domain.leaves - 1) if domain.leaves > 1 else 0.0
    return total


def all_cells(classes: ClassTable) -> float:
    """Return the loss if nothing is released."""
    return float(classes.attribute_weights.sum()) * classes.records


GENERAL_LOSS = cell_loss(
    "general_loss", loss_of_cells, general_loss_oracle, fold="sum", bound="unsuppressed", most=all_cells
)


def generalization_of_cells(classes: ClassTable) -> Property:
    part = (classes.covers - 1) / np.maximum(classes.leaves - 1, 1)[:, None]
    weights = classes.attribute_weights
    return classes.per_class(weights @ part / weights.sum(), hidden=0.0)


def generalization_loss_oracle(records: Records, record: int) -> float:
    return general_loss_oracle(records, record) / len(records.recoding)


GENERALIZATION_LOSS = cell_loss(
    "generalization_loss", generalization_of_cells, generalization_loss_oracle, fold="mean", suppressed="nothing"
)


def loss_of_suppressed(classes: ClassTable) -> Property:
    return classes.per_class(np.zeros(len(classes.rows)), hidden=1.0)


def suppression_loss_oracle(records: Records, record: int) -> float:
    return 0.0 if record < len(records.kept) else 1.0


SUPPRESSION_LOSS = cell_loss(
    "suppression_loss", loss_of_suppressed, suppression_loss_oracle, reads="sizes", fold="mean", monotone="falls"
)


def precision_of_cells(classes: ClassTable) -> Property:
    depths = np.stack([part.depths[groups] for part, groups in zip(classes.recoding, classes.groups, strict=True)])
    weights = classes.attribute_weights / classes.attribute_weights.sum()
    return classes.per_class(1.0 - weights @ depths, hidden=0.0)


def precision_oracle(records: Records, record: int) -> float:
    depths = [part.depths[records.labels[j, record]] for j, part in enumerate(records.recoding)]
    return 1.0 - float(np.mean(depths))


PRECISION = cell_loss(
    "precision",
    precision_of_cells,
    precision_oracle,
    direction="max",
    fold="mean",
    monotone="falls",
    bound="unsuppressed",
)


def widths_of_cells(classes: ClassTable) -> Property:
    total, share = np.zeros(len(classes.rows)), (classes.covers - 1) / np.maximum(classes.leaves - 1, 1)[:, None]
    for j, (part, weight) in enumerate(zip(classes.recoding, classes.attribute_weights, strict=True)):
        total += weight * (share[j] if part.spans is None else part.spans[classes.groups[j]])
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


WIDTH_LOSS = cell_loss(
    "width_loss", widths_of_cells, width_loss_oracle, fold="sum", bound="unsuppressed", most=all_cells
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


NON_UNIFORM_ENTROPY = cell_loss(
    "non_uniform_entropy",
    entropy_of_cells,
    non_uniform_entropy_oracle,
    reads="originals",
    fold="sum",
    bound="unsuppressed",
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


ARX_LOSS = cell_loss("arx_loss", arx_loss_of_records, arx_loss_oracle, fold=geometric_mean, bound="unsuppressed")
