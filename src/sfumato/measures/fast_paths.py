"""The faster ways to compute measures: one table by the name of the measure, and the figures that they read.

Measures that are not in the table are computed from class tables, which is slower and always correct.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np

from sfumato.base.arrays import Codes, Counts64, Floats
from sfumato.measures.criteria import Criterion
from sfumato.tables.frequency import FrequencyTable


class Form(StrEnum):
    """The figures that follow from a histogram of classes by size and diversity, for every suppression."""

    SIZE = "k"
    DIVERSITY = "l"
    MEAN_SIZE = "weighted_k"
    MEAN_DIVERSITY = "weighted_l"

    @property
    def mean(self) -> bool:
        """Return whether the figure is a mean over records, not a minimum over classes."""
        return self in (Form.MEAN_SIZE, Form.MEAN_DIVERSITY)


def _none() -> Counts64:
    return np.empty(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class NodeFigures:
    """The counts of releases of nodes of a lattice, or of nodes without suppression, one entry for each.

    The number of released records is `kept`. The leaves that their labels cover, for each node and column, are `sums`.
    Without suppression both follow from the margins of the table. The other counts need a visit of the node. They are
    the sum over records of class sizes, the sum over records of how often their own sensitive value occurs in the
    class, and the number of records whose label is not the most frequent one of their class.
    """

    table: FrequencyTable
    weights: Floats
    nodes: Codes
    kept: Counts64
    sums: Counts64
    size_sum: Counts64 = field(default_factory=_none)
    own_sum: Counts64 = field(default_factory=_none)
    mislabelled: Counts64 = field(default_factory=_none)


@dataclass(frozen=True, eq=False)
class CutFigures:
    """The counts of cuts. The losses are shares of the highest loss, which is `full`.

    The rule of suppression decides which of `least_size`, `least_distinct` and `mean` (of sizes, or of diversities) are
    known.
    """

    least_size: Floats
    least_distinct: Floats
    mean: Floats
    generalized: Floats
    suppressed: Floats
    full: float


@dataclass(frozen=True)
class Fast:
    """The faster ways to compute one measure, each of which may be missing.

    It is a figure of the `histogram` of classes. It is the worst of the classes by a `criterion` that compiled loops
    compute for each class. They read the parameter of the measure that is named in `parameter`. With `whole`, a class
    is compared with the distribution of the table, which is that of the input when classes are selected for
    suppression. With `risk`, the measure is one over the criterion. It follows from the counts of the compiled walk
    over a lattice (`walk`), or from the margins of the table alone (`margins`). It follows from the figures of `cuts`,
    where a search over real values compares losses in steps of `resolution`, a share of the highest value.
    """

    histogram: Form | None = None
    criterion: Criterion | None = None
    parameter: str = ""
    whole: bool = False
    risk: bool = False
    walk: Callable[[NodeFigures], Floats | Counts64] | None = None
    margins: bool = False
    cuts: Callable[[CutFigures], Floats] | None = None
    resolution: float = 0.0


def loss_of_nodes(nodes: NodeFigures) -> Floats:
    """Return the general loss from the covered leaves of kept records, exactly up to the last division."""
    total = (nodes.table.records - nodes.kept) * float(nodes.weights.sum())
    for j, (domain, weight) in enumerate(zip(nodes.table.domains, nodes.weights, strict=True)):
        # Column by column, because a matrix product rounds differently for different numbers of nodes.
        total = total + weight * ((nodes.sums[:, j] - nodes.kept) / max(domain.leaves - 1, 1))
    return np.asarray(total)


def precision_of_nodes(nodes: NodeFigures) -> Floats:
    share = np.ones(len(nodes.nodes))
    weights = nodes.weights / nodes.weights.sum()
    for j, (domain, weight) in enumerate(zip(nodes.table.domains, weights, strict=True)):
        share = share - weight * nodes.nodes[:, j] / domain.hierarchy.height
    return np.asarray(share * nodes.kept / nodes.table.records)


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


def discernibility_of_nodes(nodes: NodeFigures) -> Counts64:
    return nodes.size_sum + (nodes.table.records - nodes.kept) * nodes.table.records


NONE = Fast()
FAST = {
    "k": Fast(Form.SIZE, Criterion.SIZE, cuts=lambda cuts: cuts.least_size),
    "weighted_k": Fast(
        Form.MEAN_SIZE, walk=lambda nodes: nodes.size_sum / nodes.table.persons, cuts=lambda cuts: cuts.mean
    ),
    "sum_k": Fast(Form.MEAN_SIZE, walk=lambda nodes: nodes.size_sum),
    "prosecutor_risk": Fast(Form.SIZE, Criterion.SIZE, risk=True),
    "journalist_risk": Fast(criterion=Criterion.PEOPLE, risk=True),
    "distinct_l": Fast(Form.DIVERSITY, Criterion.DISTINCT, cuts=lambda cuts: cuts.least_distinct),
    "weighted_l": Fast(Form.MEAN_DIVERSITY, cuts=lambda cuts: cuts.mean),
    "sum_l": Fast(walk=lambda nodes: nodes.own_sum),
    "frequency_l": Fast(criterion=Criterion.FREQUENCY),
    "entropy_l": Fast(criterion=Criterion.ENTROPY),
    "recursive_l": Fast(criterion=Criterion.RECURSIVE_L, parameter="c"),
    "recursive_c": Fast(criterion=Criterion.RECURSIVE_C, parameter="l"),
    "t_closeness": Fast(criterion=Criterion.CLOSENESS, whole=True),
    "alpha_k": Fast(criterion=Criterion.ALPHA),
    "beta_likeness": Fast(criterion=Criterion.BETA, whole=True),
    "enhanced_beta": Fast(criterion=Criterion.ENHANCED_BETA, whole=True),
    "delta_disclosure": Fast(criterion=Criterion.DELTA, parameter="absent", whole=True),
    "general_loss": Fast(
        walk=loss_of_nodes,
        margins=True,
        cuts=lambda cuts: (cuts.generalized + cuts.suppressed) * cuts.full,
        resolution=5e-4,
    ),
    "generalization_loss": Fast(cuts=lambda cuts: cuts.generalized, resolution=2.5e-3),
    "suppression_loss": Fast(cuts=lambda cuts: cuts.suppressed, resolution=2.5e-3),
    "precision": Fast(walk=precision_of_nodes, margins=True),
    "arx_loss": Fast(walk=arx_loss_of_nodes, margins=True),
    "discernibility": Fast(walk=discernibility_of_nodes),
    "classification_metric": Fast(walk=lambda nodes: nodes.mislabelled + nodes.table.removed),
}
