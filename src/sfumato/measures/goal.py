"""A measure as a goal of a search: which way is better, and perhaps a limit."""

from __future__ import annotations

from dataclasses import dataclass

from sfumato.measures.measure import Measure


@dataclass(frozen=True)
class Goal:
    """A measure with the direction that is better here, and perhaps a limit."""

    measure: Measure
    direction: str
    limit: float | None = None

    @property
    def sign(self) -> float:
        """What turns its value into one that is minimised."""
        return -1.0 if self.direction == "max" else 1.0

    @property
    def bounded(self) -> bool:
        """Whether the measure's bound holds for this direction."""
        return self.measure.bound is not None and self.direction == (
            self.measure.bound_direction or self.measure.direction
        )

    @property
    def moves(self) -> str | None:
        """How the minimised bound moves when a node is generalized."""
        if not self.bounded or self.measure.monotone is None:
            return None
        turned = {"rises": "falls", "falls": "rises"}
        return turned[self.measure.monotone] if self.direction == "max" else self.measure.monotone
