"""One plan of a front with its figures."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sfumato.errors import InputError
from sfumato.front.objective import Objective
from sfumato.notebook.card import short
from sfumato.plans.cuts import CutPlan
from sfumato.plans.levels import LevelPlan
from sfumato.plans.plan import Plan, RecodingPlan

PlanReader = Callable[[Mapping[str, Any]], Plan]


@dataclass(frozen=True, repr=False)
class Point:
    """One plan of a front. `loss` is in [0, 1]; `values` are the measures in their own units.

    `bound` is what no plan can go below in the front's last objective, where that is known; `details` is what else its
    system says of it. `suppressed` counts records; `suppressed_units` counts units, where the table has any.
    """

    id: int
    values: Mapping[str, float]
    loss: float
    suppressed: int
    plan: Plan
    bound: float | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    suppressed_units: int | None = None

    def __repr__(self) -> str:
        values = ", ".join(f"{name} = {short(value)}" for name, value in self.values.items())
        return f"<Point {self.id}: {values}, loss {100 * self.loss:.1f} %, {self.suppressed:,} suppressed>"

    @property
    def recoding_plan(self) -> RecodingPlan:
        """The plan, where it is one that recodes the table."""
        if isinstance(self.plan, LevelPlan | CutPlan):
            return self.plan
        raise InputError("the plans of this front do not recode the table", expected="a front of lattice or cuts")

    def as_dict(self) -> dict[str, Any]:
        """JSON lacks infinities: they are null, and their names are listed.

        Returns:
            A dictionary.
        """
        endless = [name for name, value in self.values.items() if not math.isfinite(value)]
        return self._entries() | self.plan.entries() | ({"infinite": endless} if endless else {})

    def saved(self) -> dict[str, Any]:
        """All that is needed to make the point again."""
        return self._entries() | self.plan.saved()

    def _entries(self) -> dict[str, Any]:
        values = {name: value if math.isfinite(value) else None for name, value in self.values.items()}
        entries: dict[str, Any] = {"id": self.id, "values": values, "loss": self.loss, "suppressed": self.suppressed}
        entries |= {} if self.suppressed_units is None else {"suppressed_units": self.suppressed_units}
        entries |= {} if self.bound is None else {"bound": self.bound}
        return entries | ({"details": dict(self.details)} if self.details else {})


def numbered(points: Sequence[Point], first: Objective) -> tuple[Point, ...]:
    """Points sorted by the first objective and numbered from 0; ties by their plan, so the order is always the same."""
    ordered = sorted(points, key=lambda p: (p.values[first.name], p.loss, p.plan.rank))
    return tuple(replace(point, id=number) for number, point in enumerate(ordered))


def point_from(saved: Mapping[str, Any], read_plan: PlanReader) -> Point:
    """A point as it was saved. JSON lacks infinities: a value of null is one."""
    values = {name: math.inf if value is None else value for name, value in saved["values"].items()}
    if not all(isinstance(number, int | float) for number in (*values.values(), saved["loss"], saved["suppressed"])):
        raise ValueError("figures are numbers")
    plan, details, units = read_plan(saved), dict(saved.get("details", {})), saved.get("suppressed_units")
    if not (units is None or isinstance(units, int)):
        raise ValueError("figures are numbers")
    return Point(saved["id"], values, saved["loss"], saved["suppressed"], plan, saved.get("bound"), details, units)
