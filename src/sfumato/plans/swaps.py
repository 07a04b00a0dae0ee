"""A plan of swaps: pairs of records that exchange their places. It is secret: it undoes the protection."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.data.arrays import Codes, Counts64
from sfumato.errors import InputError


@dataclass(frozen=True)
class SwapPlan:
    """Pairs of rows of the source (from 0), what exchanging them costs, and a bound that no plan beats.

    `exact` says that no plan within the same limits costs less.

    >>> plan = SwapPlan(np.array([0]), np.array([2]), 1.0, 1.0)
    >>> plan.moved(np.array([5, 6, 7], np.int32), np.arange(3)).tolist()
    [7, 6, 5]
    """

    givers: Counts64
    takers: Counts64
    cost: float
    bound: float | None = None
    exact: bool = False

    def __post_init__(self) -> None:
        rows = np.concatenate([self.givers, self.takers])
        if len(self.givers) != len(self.takers) or len(np.unique(rows)) != len(rows):
            raise InputError("a record stands twice in a plan of swaps", expected="each record in at most one pair")

    @property
    def swaps(self) -> int:
        return len(self.givers)

    def moved(self, area_of: Codes, rows: Counts64) -> Codes:
        """The areas of records after the swaps; `rows` is each record's place in the source, rising."""
        one, two = np.searchsorted(rows, self.givers), np.searchsorted(rows, self.takers)
        found = area_of.copy()
        found[one], found[two] = area_of[two], area_of[one]
        return found
