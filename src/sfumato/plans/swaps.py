"""A plan of swaps: pairs of records that exchange their areas. It is secret, because it reverses the protection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from sfumato.base.arrays import Codes, Counts64
from sfumato.errors import InputError
from sfumato.plans.recodings import JsonObject


@dataclass(frozen=True)
class SwapPlan:
    """Pairs of rows of the source (from 0), the cost of the swaps, and a lower bound of the cost of every plan.

    `exact` says that no plan within the same limits has a lower cost.

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
            raise InputError("a record is listed twice in a plan of swaps", expected="each record in at most one pair")

    @property
    def swaps(self) -> int:
        return len(self.givers)

    @property
    def rank(self) -> tuple[int, ...]:
        return (self.swaps, *self.givers.tolist(), *self.takers.tolist())

    def entries(self) -> dict[str, object]:
        """Return what may be shown. The pairs are secret, because they reverse the protection."""
        return {"swaps": self.swaps, "exact": self.exact}

    def saved(self) -> dict[str, object]:
        pairs = {"givers": self.givers.tolist(), "takers": self.takers.tolist()}
        return {"plan": pairs | {"cost": self.cost, "bound": self.bound, "exact": self.exact}}

    @classmethod
    def from_saved(cls, saved: JsonObject) -> Self:
        """Return the plan of a saved point. Raise ValueError if the entries are not those of a plan."""
        plan = saved["plan"]
        givers, takers = (np.array(plan[name], dtype=np.int64).reshape(-1) for name in ("givers", "takers"))
        figures = [plan["cost"], *([] if plan["bound"] is None else [plan["bound"]])]
        rows = [*plan["givers"], *plan["takers"]]
        if not all(isinstance(row, int) and row >= 0 for row in rows) or not isinstance(plan["exact"], bool):
            raise ValueError("swaps are pairs of rows")
        if not all(isinstance(figure, int | float) and 0 <= figure < np.inf for figure in figures):
            raise ValueError("costs are numbers")
        return cls(givers, takers, float(plan["cost"]), plan["bound"], plan["exact"])

    def moved(self, area_of: Codes, rows: Counts64) -> Codes:
        """Return the areas of records after the swaps. `rows` has the row of each record in the source, ascending."""
        one, two = np.searchsorted(rows, self.givers), np.searchsorted(rows, self.takers)
        result = area_of.copy()
        result[one], result[two] = area_of[two], area_of[one]
        return result
