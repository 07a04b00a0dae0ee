"""What a measure says of itself beside its definition: how it is shown, and which fast ways there are to its value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np

from sfumato.measures.criteria import Criterion
from sfumato.runtime.arrays import Codes, Counts64, Floats
from sfumato.tables.frequency import FrequencyTable


class Form(StrEnum):
    """The figures that follow from a histogram of classes by size and diversity, under any suppression."""

    SIZE = "k"
    DIVERSITY = "l"
    MEAN_SIZE = "weighted_k"
    MEAN_DIVERSITY = "weighted_l"

    @property
    def mean(self) -> bool:
        """Whether it is a mean over records, not the least of the classes."""
        return self in (Form.MEAN_SIZE, Form.MEAN_DIVERSITY)


class Headline(NamedTuple):
    """A figure that an audit shows first: its position, the words below the number, and whether it marks a danger."""

    position: int
    says: str
    warns: bool = False


def _none() -> Counts64:
    return np.empty(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class NodeFigures:
    """What is counted of releases of nodes of a lattice, one entry each; or of nodes with nothing suppressed.

    `kept` are the records released and `sums`, for each node and column, the leaves that their labels cover; both
    follow from the margins of the table where nothing is suppressed. The others need a visit: the sums over records of
    class sizes and of how often their own sensitive value occurs in the class, and the records whose label is not the
    commonest of their class.
    """

    table: FrequencyTable
    weights: Floats
    nodes: Codes
    kept: Counts64
    sums: Counts64
    size_sum: Counts64 = field(default_factory=_none)
    own_sum: Counts64 = field(default_factory=_none)
    mislabelled: Counts64 = field(default_factory=_none)


@dataclass(frozen=True)
class Walked:
    """How the compiled walk over a lattice gives a measure: from its figures, or already from the margins."""

    value: Callable[[NodeFigures], Any]
    from_margins: bool = False


@dataclass(frozen=True)
class PerClass:
    """How compiled loops give what one class has of a measure that is the worst of the classes.

    `parameter` is the name of the measure's own parameter that they read; `whole` says that it compares a class with
    the distribution of the table, which for the choice of what is suppressed is that of the whole input; `risk` that
    it is one over what is counted.
    """

    criterion: Criterion
    parameter: str = ""
    whole: bool = False
    risk: bool = False

    def value(self, counted: Any) -> Any:
        """The measure from what is counted, and the other way round."""
        return 1.0 / counted if self.risk else counted


@dataclass(frozen=True, eq=False)
class CutFigures:
    """What is counted of cuts: losses as shares of all that could be lost, and `full`, which that is.

    `least_size`, `least_distinct` and `mean` (of sizes, or of diversities) are there as the rule of suppression has it.
    """

    least_size: Floats
    least_distinct: Floats
    mean: Floats
    generalized: Floats
    suppressed: Floats
    full: float
