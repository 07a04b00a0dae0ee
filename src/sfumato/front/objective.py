"""What a search seeks: a measure, and whether more or less of it is better."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sfumato.measures.classes import ClassTable
from sfumato.measures.measure import Measure
from sfumato.measures.registry import known_measures
from sfumato.runtime.arrays import Floats


@dataclass(frozen=True)
class Objective:
    """A measure, the way that is better, and whether it is of the released table or of the one before suppression.

    `title`, `privacy` and `scale` are given where the measure is a system's own and stands in no register.
    """

    name: str
    direction: str
    taken: str = "released"
    title: str = ""
    privacy: bool | None = None
    scale: str = ""

    @property
    def sign(self) -> float:
        """What makes less of it better."""
        return -1.0 if self.direction == "max" else 1.0

    def value(self, measure: Measure, classes: ClassTable) -> float:
        """The value of its measure on the classes of a release, taken where it is taken.

        "released" are the rows that are left; "input" compares them with the distribution of the whole input; anything
        else is the table before suppression.
        """
        if self.taken == "input":
            classes = replace(classes, reference="input")
        elif self.taken != "released":
            classes = classes.with_suppressed(np.zeros_like(classes.suppressed))
        return float(measure.value(classes))

    @property
    def protects(self) -> bool:
        """Whether it says how well people are protected; otherwise it says what that costs."""
        return known_measures()[self.name].kind == "privacy" if self.privacy is None else self.privacy

    @property
    def logarithmic(self) -> bool:
        """Its scale: unless it says so itself, what is to be large is on a logarithm and what is to be small is not."""
        return (self.scale or ("log" if self.direction == "max" else "linear")) == "log"

    def gain(self, values: Floats) -> Floats:
        """Values on a scale where equal steps are worth the same and more is better."""
        values = np.asarray(values, dtype=np.float64)
        return np.asarray(-self.sign * (np.log(np.maximum(values, 1e-9)) if self.logarithmic else values))

    @property
    def label(self) -> str:
        """Its name for readers."""
        return self.title or known_measures()[self.name].title

    def as_dict(self) -> dict[str, Any]:
        """`taken` tells where it is measured, if not on what is released.

        Returns:
            A dictionary.
        """
        entries: dict[str, Any] = {"name": self.name, "direction": self.direction}
        entries |= {} if self.taken == "released" else {"taken": self.taken}
        return entries | (
            {} if self.privacy is None else {"title": self.title, "privacy": self.privacy, "scale": self.scale}
        )
