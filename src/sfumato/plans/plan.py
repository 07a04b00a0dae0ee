"""The kinds of plan that recode a table, and how one is read back from what a front saves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sfumato.plans.cuts import CutPlan
from sfumato.plans.levels import LevelPlan

Plan = LevelPlan | CutPlan


def plan_from(system: str, found: Mapping[str, Any]) -> Plan:
    """The plan of a point as it was saved.

    >>> plan_from("lattice", {"plan": {"age": 2}, "suppress_below": 5})
    LevelPlan(levels={'age': 2}, suppress_below=5, diversity_below=0)
    """
    if system == "cuts":
        cuts = {name: tuple(starts) for name, starts in found["plan"].items()}
        return CutPlan(cuts, found["suppress_below"], found["diversity_below"])
    return LevelPlan(found["plan"], found["suppress_below"], found.get("diversity_below", 0))
