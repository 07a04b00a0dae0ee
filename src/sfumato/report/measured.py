"""Values of measures as people write them. Beside `figures`, which knows numbers only and is quick to import."""

from __future__ import annotations

from collections.abc import Mapping

from sfumato.measures.measure import Measure
from sfumato.measures.registry import measure
from sfumato.measures.standard import GENERAL_LOSS
from sfumato.runtime.figures import number, percent


def figures_of(values: Mapping[str, float]) -> str:
    """The figures of a point in a clause; its loss is told beside it.

    >>> figures_of({"k": 20, "distinct_l": 4, "general_loss": 90592.67})
    'k 20, ℓ 4'
    """
    figures = {name: value for name, value in values.items() if name != GENERAL_LOSS.name}
    return ", ".join(f"{measure(name).label} {number(value)}" for name, value in figures.items())


def shown(measure: Measure, value: float | None) -> str:
    """A value of a measure for people: a share as a percentage.

    >>> shown(measure("uniques"), 0.2931), shown(measure("t_closeness"), 0.2931), shown(measure("k"), None)
    ('29.3 %', '0.2931', '–')
    """
    return percent(value) if value is not None and measure.unit == "share" else number(value)
