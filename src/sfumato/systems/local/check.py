"""An independent check of a floor: that no box has to pay more than it costs. It shares no code with the search.

It walks over all boxes of the label model with plain numpy: column by column, every allowed label. A branch ends where
fewer than k records are left, or where what is decided already costs as much as the mean of the k highest prices left,
because no box inside can then have to pay more. So every box is either looked at or lies in a branch that ends for a
reason that is checked again here. For intervals and tree nodes alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.errors import DataError
from sfumato.runtime.arrays import Codes, Counts64, Floats

ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class LabelModel:
    """What the labels are: for each column its allowed labels as runs of units with what each costs a record."""

    runs: Sequence[Sequence[tuple[int, int]]]
    costs: Sequence[Sequence[float]]


def check_floor(model: LabelModel, codes: Codes, counts: Counts64, k: int, prices: Floats) -> float:
    """The loss that prices prove; an error if some box that holds k records has to pay more than it costs."""
    if not np.all((prices >= 0) & (prices <= 1)) or len(prices) != len(counts) or k < 1:
        raise DataError("the prices of a floor are not between 0 and 1, one for each tuple", expected="a certificate")
    order = np.argsort(-prices, kind="stable")
    codes, weights, values = codes[order], counts[order], prices[order]

    def mean_of_highest(some: Counts64) -> float:
        held = np.minimum(np.cumsum(weights[some]), k)
        return float(np.diff(held, prepend=0) @ values[some]) / k

    def walk(depth: int, some: Counts64, cost: float) -> None:
        if int(weights[some].sum()) < k or mean_of_highest(some) <= cost * (1 + ROUNDING) + ROUNDING**2:
            return
        if depth == len(model.runs):
            raise DataError(
                "a box of the label model has to pay more than it costs",
                expected="a certificate in which every box that holds k records can pay for the dearest k",
            )
        own = codes[some, depth]
        seen: dict[bytes, float] = {}
        for (low, high), price in sorted(zip(model.runs[depth], model.costs[depth], strict=True), key=lambda p: p[1]):
            inside = some[(own >= low) & (own < high)]
            if seen.setdefault(inside.tobytes(), price) == price and len(inside):  # the cheapest of equal contents
                walk(depth + 1, inside, cost + price)

    walk(0, np.arange(len(counts)), 0.0)
    return float((prices * counts).sum()) / float(counts.sum())
