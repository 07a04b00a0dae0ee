"""Sfumato: the whole trade-off between privacy and information loss of a table about people.

>>> import sfumato as sf
>>> study = sf.read(sf.sample("adult"))
>>> audit = sf.audit(study)
>>> audit.rows, audit.figures["k"].value
(30162, 1.0)
>>> front = sf.search(study)
>>> choice = sf.pick(front, max_loss=0.30)
>>> len(front.points), choice.point.values["k"]
(52, 5)
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from sfumato.version import __version__ as __version__

if TYPE_CHECKING:
    from sfumato.auditing.audit import Audit, audit
    from sfumato.auditing.inspection import Inspection, inspect
    from sfumato.comparisons.baselines import baselines
    from sfumato.comparisons.cost import Cost, Costs
    from sfumato.comparisons.page import draw_baselines
    from sfumato.decide import Answer, Choice, Preset, ask, pick, presets
    from sfumato.errors import (
        DataError,
        HierarchyError,
        InputError,
        MeasureError,
        SfumatoError,
        StudyError,
        UnreachableError,
    )
    from sfumato.front import Front, Objective, Point, compare_fronts
    from sfumato.hierarchies import Hierarchy
    from sfumato.measures.classes import ClassTable, classify
    from sfumato.measures.registry import known_measures, measure
    from sfumato.plans.channel import Channel, load_channel
    from sfumato.plans.levels import LevelPlan
    from sfumato.prediction.cost import predict
    from sfumato.release.publish import Release
    from sfumato.samples.bundled import sample
    from sfumato.sources.roles import Role
    from sfumato.study import Study, read
    from sfumato.systems.apply import apply_plan
    from sfumato.systems.channel.disguise import disguise
    from sfumato.systems.channel.estimate import estimate
    from sfumato.systems.draw import draw
    from sfumato.systems.groups.attack.attack import attack
    from sfumato.systems.publish import publish
    from sfumato.systems.registry import load_front
    from sfumato.systems.search import search
    from sfumato.systems.verify import verify
    from sfumato.tables.frequency import FrequencyTable

# Names load when they are first used, so that `sfumato --help` does not wait for compilers and databases.
_HOMES = {
    "Answer": "decide",
    "Audit": "auditing.audit",
    "Channel": "plans.channel",
    "Choice": "decide",
    "ClassTable": "measures.classes",
    "Cost": "comparisons.cost",
    "Costs": "comparisons.cost",
    "DataError": "errors",
    "FrequencyTable": "tables.frequency",
    "Front": "front",
    "Hierarchy": "hierarchies",
    "HierarchyError": "errors",
    "InputError": "errors",
    "Inspection": "auditing.inspection",
    "LevelPlan": "plans.levels",
    "MeasureError": "errors",
    "Objective": "front",
    "Point": "front",
    "Preset": "decide",
    "Release": "release.publish",
    "Role": "sources.roles",
    "SfumatoError": "errors",
    "Study": "study",
    "StudyError": "errors",
    "UnreachableError": "errors",
    "apply_plan": "systems.apply",
    "ask": "decide",
    "attack": "systems.groups.attack.attack",
    "audit": "auditing.audit",
    "baselines": "comparisons.baselines",
    "classify": "measures.classes",
    "compare_fronts": "front",
    "disguise": "systems.channel.disguise",
    "draw": "systems.draw",
    "draw_baselines": "comparisons.page",
    "estimate": "systems.channel.estimate",
    "inspect": "auditing.inspection",
    "known_measures": "measures.registry",
    "load_channel": "plans.channel",
    "load_front": "systems.registry",
    "measure": "measures.registry",
    "pick": "decide",
    "predict": "prediction.cost",
    "presets": "decide",
    "publish": "systems.publish",
    "read": "study",
    "sample": "samples.bundled",
    "search": "systems.search",
    "verify": "systems.verify",
}

__all__ = [
    "Answer",
    "Audit",
    "Channel",
    "Choice",
    "ClassTable",
    "Cost",
    "Costs",
    "DataError",
    "FrequencyTable",
    "Front",
    "Hierarchy",
    "HierarchyError",
    "InputError",
    "Inspection",
    "LevelPlan",
    "MeasureError",
    "Objective",
    "Point",
    "Preset",
    "Release",
    "Role",
    "SfumatoError",
    "Study",
    "StudyError",
    "UnreachableError",
    "apply_plan",
    "ask",
    "attack",
    "audit",
    "baselines",
    "classify",
    "compare_fronts",
    "disguise",
    "draw",
    "draw_baselines",
    "estimate",
    "inspect",
    "known_measures",
    "load_channel",
    "load_front",
    "measure",
    "pick",
    "predict",
    "presets",
    "publish",
    "read",
    "sample",
    "search",
    "verify",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
