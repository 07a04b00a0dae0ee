"""The suppression that a plan says: classes below a size, below a diversity, or short of another criterion's limit."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from sfumato.errors import StudyError
from sfumato.measures.classes import ClassTable
from sfumato.measures.privacy import prosecutor_risk
from sfumato.measures.registry import measure
from sfumato.measures.standard import DISTINCT_L, K
from sfumato.measures.suppression import suppress_planned
from sfumato.measures.thresholds import is_criterion, suppress_failing
from sfumato.plans.levels import LevelPlan
from sfumato.plans.plan import RecodingPlan


def suppress_by_plan(
    classes: ClassTable, plan: RecodingPlan, settings: Mapping[str, Mapping[str, Any]] | None = None
) -> ClassTable:
    """Suppress what a plan says; `settings` are the parameters that a run file gives measures."""
    limits = plan.limits if isinstance(plan, LevelPlan) else {}
    known = {name: measure(name).with_settings(settings or {}) for name in limits}
    strange = [name for name, result in known.items() if not is_criterion(result)]
    if strange:
        raise StudyError(f"a threshold on {strange[0]}", expected="a measure that each class has on its own")
    result = suppress_planned(classes, plan.suppress_below, plan.diversity_below)
    return suppress_failing(result, limits, known)


def thresholds_of(limits: Mapping[str, float]) -> dict[str, Any]:
    """The thresholds of a plan from limits by the name of the criterion.

    >>> thresholds_of({"k": 5.0, "distinct_l": 2, "t_closeness": 0.4})
    {'suppress_below': 5, 'diversity_below': 2, 'limits': {'t_closeness': 0.4}}
    """
    rest = dict(limits)
    size, risk = rest.pop(K.name, 0.0), rest.pop(prosecutor_risk.MEASURE.name, 0.0)
    below = max(size, 1.0 / risk if risk else 0.0)
    return {
        "suppress_below": math.ceil(below - 1e-9),
        "diversity_below": math.ceil(rest.pop(DISTINCT_L.name, 0.0) - 1e-9),
        "limits": rest,
    }
