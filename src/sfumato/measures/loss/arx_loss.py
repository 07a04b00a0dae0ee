"""ARX 3.9.2's Loss with its geometric mean, so that users can compare.

With s_j the share of the hierarchy file's leaves under a label (1 for a suppressed record), A_j its sum over records
and D_j the leaves of the file: L_j = (A_j − N/D_j)/(N − N/D_j), floored at 0 and cut to ten decimals;
Loss = (Π (L_j + 1))^(1/m) − 1.

>>> from sfumato.measures.example import six_rows
>>> round(MEASURE.value(six_rows()), 6)  # L = 1/3 and 1/4
0.290994
"""

from __future__ import annotations

import math

import numpy as np

from sfumato.measures.classes import ClassTable
from sfumato.measures.facts import NodeFigures, Walked
from sfumato.measures.measure import Measure
from sfumato.measures.oracle import Records
from sfumato.measures.property import Property
from sfumato.runtime.arrays import Floats


def shares(classes: ClassTable) -> Property:
    """The same for each record on its own."""
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


def oracle(records: Records, record: int) -> float:
    product = 1.0
    for j, (part, domain) in enumerate(zip(records.recoding, records.table.domains, strict=True)):
        if domain.leaves > 1:
            share, least = part.covers[records.labels[j, record]] / domain.leaves, 1 / domain.leaves
            product *= 1.0 + float((share - least) / (1 - least))
    return float(product ** (1 / len(records.recoding))) - 1.0


def of_nodes(nodes: NodeFigures) -> Floats:
    """From the covered leaves of the kept records."""
    records = nodes.table.records
    product = np.ones(len(nodes.sums))
    for j, domain in enumerate(nodes.table.domains):
        if domain.leaves > 1:
            least = records / domain.leaves
            total = nodes.sums[:, j] / domain.leaves + (records - nodes.kept)
            product *= np.floor(np.maximum((total - least) / (records - least), 0.0) * 1e10) / 1e10 + 1.0
    return np.asarray(product ** (1.0 / len(nodes.table.domains)) - 1.0)


MEASURE = Measure(
    name="arx_loss",
    title="ARX's Loss",
    kind="loss",
    direction="min",
    reads="cells",
    function=shares,
    oracle=oracle,
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
    walked=Walked(of_nodes, from_margins=True),
)
