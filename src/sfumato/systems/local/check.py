"""An independent check of a floor: that no box has to pay more than it costs. It shares no code with the search.

The label model is worked out here from the columns of the study, the tuples and counts are those of the table itself;
only the prices are taken from the front. It walks over all boxes of the label model with plain numpy: column by column,
every allowed label. A branch ends where fewer than k records are left, or where what is decided already costs as much
as the mean of the k highest prices left, because no box inside can then have to pay more. So every box is either looked
at or lies in a branch that ends for a reason that is checked again here. For intervals and tree nodes alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.errors import DataError, InputError
from sfumato.front import PRICE_UNIT, Front
from sfumato.measures.standard import K
from sfumato.plans.segments import Segment, segments_of
from sfumato.runtime.arrays import Codes, Counts64, Floats
from sfumato.tables.frequency import FrequencyTable

ROUNDING = 1e-9
BLOCK = 1 << 22  # records times labels that are looked at together
PRICED = 'a front of local recodings that were searched with method = "boxes"'


@dataclass(frozen=True, eq=False)
class LabelModel:
    """What the labels are: for each column its allowed labels as runs of units with what each costs a record."""

    runs: Sequence[Sequence[tuple[int, int]]]
    costs: Sequence[Sequence[float]]


def label_model(segments: Sequence[Segment], weights: Sequence[float]) -> LabelModel:
    """Nodes of the tree where a column keeps to it, else runs of neighbours; missing values join all or nobody."""
    runs, costs = [], []
    for segment, weight in zip(segments, weights, strict=True):
        units, leaves = segment.units, int(segment.leaves.sum())
        own = [(node.low, node.high) for node in segment.nodes]
        if not own:
            every = [(a, b) for a in range(units) for b in range(a + 1, units + 1)]
            own = [(a, b) for a, b in every if not segment.guarded or b < units or a in (0, units - 1)]
        share = weight / sum(weights) if sum(weights) > 0 else 1 / len(segments)
        runs.append(own)
        costs.append([(int(segment.leaves[a:b].sum()) - 1) / max(leaves - 1, 1) * share for a, b in own])
    return LabelModel(runs, costs)


def check_front(front: Front, table: FrequencyTable) -> dict[int, float]:
    """What the saved prices of a front prove, for each k of its floor; an error if that is less than it says, if a
    loss is below it, or if the front is one whose floors have no prices.

    Args:
        front: a front of local recodings, as it was saved.
        table: the frequency table of its study.

    Returns:
        The loss of the source that no recoding can go below, for each k.
    """
    refuse_unpriced(front)
    if table.fingerprint != front.fingerprint:
        raise DataError("the table is not the one that the front is of", expected="the table that was searched")
    segments = segments_of(front.study, table)
    model = label_model(segments, front.study.weights_for(table))
    codes = np.stack([s.unit_of[c] for s, c in zip(segments, table.codes, strict=True)], axis=1)
    proven = {}
    for point in front.points:
        if "floor" not in point.details:
            continue
        k = int(point.values[K.name])
        if k not in front.prices:
            raise DataError(f"the front has no prices for its floor at k = {k}", expected="a front with its prices")
        persons = None if table.units is None else table.units.per_tuple
        prices = front.prices[k] / PRICE_UNIT
        proven[k] = front.loss_of_source(check_floor(model, codes, table.counts, k, prices, persons))
        if float(point.details["floor"]) > proven[k] * (1 + ROUNDING):
            raise DataError(
                f"the front says more at k = {k} than its prices prove", expected="a floor as its prices prove it"
            )
        if point.loss < proven[k] * (1 - ROUNDING) - ROUNDING**2:
            raise DataError(
                f"the front has a loss at k = {k} that is below the floor that its prices prove",
                expected="a loss as the search measured it",
                remedy="search again",
            )
    return proven


def refuse_unpriced(front: Front) -> None:
    """Raise if a front has no floor that prices could prove, and say why."""
    if front.system == "cells":
        raise InputError(
            "a front of suppressed cells has no floor with prices: its bound is that of an integer program or of the "
            "search, and no certificate is saved with it",
            expected=PRICED,
        )
    if front.system != "local":
        raise InputError(f"a front of {front.system} has no floor", expected=PRICED)
    if any("floor" in point.details for point in front.points):
        return
    if front.study.local.method == "runs":
        raise InputError(
            'the front has no floor: method = "runs" proves none', expected=PRICED, remedy='method = "boxes" in [local]'
        )
    raise InputError("the front has no floor: none was computed for this table", expected=PRICED)


def check_floor(
    model: LabelModel, codes: Codes, counts: Counts64, k: int, prices: Floats, persons: Counts64 | None = None
) -> float:
    """The loss that prices prove; an error if some box that holds k records has to pay more than it costs.

    `persons` are those of each tuple, where rows belong to persons. A class then has a row of each of k persons and any
    further rows, and the mean price of all of them may not exceed the cost of the box.
    """
    if len(prices) != len(counts) or not np.all((prices >= 0) & (prices <= 1)) or k < 1:
        raise DataError("the prices of a floor are not between 0 and 1, one for each tuple", expected="a certificate")
    order = np.argsort(-prices, kind="stable")
    codes, rows, values = codes[order], counts[order], prices[order]
    weights = rows if persons is None else persons[order]
    labels = [
        (np.array(costs)[cheap], np.array(runs)[cheap])
        for costs, runs in zip(model.costs, model.runs, strict=True)
        for cheap in [np.argsort(costs, kind="stable")]
    ]
    dearest = sorted(range(len(labels)), key=lambda j: -min((cost for cost in labels[j][0] if cost > 0), default=0.0))

    def walk(depth: int, some: Counts64, cost: float, pay: float) -> None:
        """All boxes inside of a branch: `some` records are left, the dearest k of which have to pay `pay` on average;
        the labels decided cost `cost`."""
        column = dearest[depth]
        own = codes[some, column][:, None]
        dues, runs = labels[column]
        possible = int((pay > (cost + dues) * (1 + ROUNDING) + ROUNDING**2).sum())  # the labels to come cost no less
        step = max(BLOCK // len(some), 1)
        seen: dict[bytes, float] = {}
        for first in range(0, possible, step):
            part = slice(first, min(first + step, possible))
            inside = (own >= runs[part, 0]) & (own < runs[part, 1])
            held = np.minimum(np.cumsum(inside * weights[some, None], axis=0), k)
            due = cost + dues[part]
            taken = np.diff(held, axis=0, prepend=0)
            pays = values[some] @ taken / k
            if persons is not None:  # with the further rows of the first 1, 2, … tuples
                further = inside * rows[some, None] - taken
                total = pays * k + np.cumsum(further * values[some, None], axis=0)
                pays = np.maximum(pays, (total / (k + np.cumsum(further, axis=0))).max(axis=0))
            for i in np.flatnonzero((held[-1] >= k) & (pays > due * (1 + ROUNDING) + ROUNDING**2)).tolist():
                if depth + 1 == len(labels):
                    raise DataError(
                        "a box of the label model has to pay more than it costs",
                        expected="a certificate in which every box that holds k records can pay for the dearest k",
                    )
                members = some[inside[:, i]]
                if seen.setdefault(members.tobytes(), due[i]) == due[i]:  # the cheapest of equal contents
                    walk(depth + 1, members, float(due[i]), float(pays[i]))

    walk(0, np.arange(len(counts)), 0.0, 1.0)
    return float((prices * counts).sum()) / float(counts.sum())
