"""What each quasi-identifier adds to the risk: the figures with the column, and with it left out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.measures.classes import ClassTable, classify
from sfumato.plans.recoding import without


@dataclass(frozen=True)
class Contribution:
    """How much of the risk goes away when one column is left out."""

    column: str
    uniques: float
    marketer_risk: float
    k_without: int


def contributions(classes: ClassTable) -> list[Contribution]:
    """For each column, how far the shares of uniques and of right matches fall when it is hidden.

    >>> from sfumato.measures.example import six_rows
    >>> [(c.column, round(c.uniques, 3), round(c.marketer_risk, 3), c.k_without) for c in contributions(six_rows())]
    [('age', 0.167, 0.167, 3), ('zip', 0.167, 0.167, 2)]
    """
    uniques, matches = _risks(classes)
    found = []
    for place, column in enumerate(classes.table.columns):
        rest = classify(classes.table, without(classes.recoding, place))
        # A row that was suppressed stays so, whatever is hidden.
        flags = np.zeros(len(rest.rows), dtype=np.bool_)
        flags[rest.index[classes.suppressed[classes.index]]] = classes.suppressed.any()
        rest = rest.with_suppressed(flags)
        uniques_left, matches_left = _risks(rest)
        least = int(rest.size[rest.kept].min()) if rest.kept.any() else 0
        found.append(Contribution(column, uniques - uniques_left, matches - matches_left, least))
    return found


def _risks(classes: ClassTable) -> tuple[float, float]:
    rows, size = classes.rows[classes.kept], classes.size[classes.kept]
    return float(rows[size == 1].sum()) / classes.records, float((rows / size).sum()) / classes.records
