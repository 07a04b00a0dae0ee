"""What every plan can do, whatever it does to a table; and the plans that recode, which much of the code knows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, Self

from sfumato.plans.cuts import CutPlan
from sfumato.plans.levels import LevelPlan

RecodingPlan = LevelPlan | CutPlan


class Plan(Protocol):
    """What one point of a front does to a table: levels, cuts, a channel, or swaps."""

    @property
    def rank(self) -> tuple[Any, ...]:
        """What decides the order of points that are equally good, so that it is always the same."""

    def entries(self) -> dict[str, Any]:
        """What a point says of its plan, for people and programs that read a front."""

    def saved(self) -> dict[str, Any]:
        """The entries from which the plan can be made again: what its owner keeps."""

    @classmethod
    def from_saved(cls, saved: Mapping[str, Any]) -> Self:
        """The plan of a point that was saved; ValueError if it cannot be one."""
