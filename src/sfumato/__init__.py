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
    from sfumato.data.frequency import FrequencyTable
    from sfumato.data.hierarchies import Hierarchy
    from sfumato.data.roles import Role
    from sfumato.data.sample import sample
    from sfumato.decide import Answer, Choice, ask, pick
    from sfumato.errors import (
        DataError,
        HierarchyError,
        InputError,
        MeasureError,
        SfumatoError,
        StudyError,
        UnreachableError,
    )
    from sfumato.front import Front, Objective, Point, compare_fronts, load_front
    from sfumato.measures.audit import Audit, audit
    from sfumato.measures.classes import ClassTable, classify
    from sfumato.measures.cost import Cost, Costs
    from sfumato.measures.inspection import Inspection, inspect
    from sfumato.measures.registry import known_measures, measure
    from sfumato.plans.channel import Channel, load_channel
    from sfumato.plans.levels import LevelPlan
    from sfumato.release.publish import Release
    from sfumato.report.baselines_page import draw_baselines
    from sfumato.report.map import draw
    from sfumato.study import Study, read
    from sfumato.systems.apply import apply_plan
    from sfumato.systems.baselines import baselines
    from sfumato.systems.channel.disguise import disguise
    from sfumato.systems.channel.estimate import estimate
    from sfumato.systems.channel.front import ChannelFront, load_channel_front, pick_channel
    from sfumato.systems.channel.search import search_channel
    from sfumato.systems.groups.attack import attack
    from sfumato.systems.groups.protect import protect
    from sfumato.systems.publish import publish
    from sfumato.systems.search import search
    from sfumato.systems.verify import verify

# Names load when they are first used, so that `sfumato --help` does not wait for compilers and databases.
_HOMES = {
    "Answer": "decide",
    "Audit": "measures.audit",
    "Channel": "plans.channel",
    "ChannelFront": "systems.channel.front",
    "Choice": "decide",
    "ClassTable": "measures.classes",
    "Cost": "measures.cost",
    "Costs": "measures.cost",
    "DataError": "errors",
    "FrequencyTable": "data.frequency",
    "Front": "front",
    "Hierarchy": "data.hierarchies",
    "HierarchyError": "errors",
    "InputError": "errors",
    "Inspection": "measures.inspection",
    "LevelPlan": "plans.levels",
    "MeasureError": "errors",
    "Objective": "front",
    "Point": "front",
    "Release": "release.publish",
    "Role": "data.roles",
    "SfumatoError": "errors",
    "Study": "study",
    "StudyError": "errors",
    "UnreachableError": "errors",
    "apply_plan": "systems.apply",
    "ask": "decide",
    "attack": "systems.groups.attack",
    "audit": "measures.audit",
    "baselines": "systems.baselines",
    "classify": "measures.classes",
    "compare_fronts": "front",
    "disguise": "systems.channel.disguise",
    "draw": "report.map",
    "draw_baselines": "report.baselines_page",
    "estimate": "systems.channel.estimate",
    "inspect": "measures.inspection",
    "known_measures": "measures.registry",
    "load_channel": "plans.channel",
    "load_channel_front": "systems.channel.front",
    "load_front": "front",
    "measure": "measures.registry",
    "pick": "decide",
    "pick_channel": "systems.channel.front",
    "protect": "systems.groups.protect",
    "publish": "systems.publish",
    "read": "study",
    "sample": "data.sample",
    "search": "systems.search",
    "search_channel": "systems.channel.search",
    "verify": "systems.verify",
}

__all__ = [
    "Answer",
    "Audit",
    "Channel",
    "ChannelFront",
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
    "load_channel_front",
    "load_front",
    "measure",
    "pick",
    "pick_channel",
    "protect",
    "publish",
    "read",
    "sample",
    "search",
    "search_channel",
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
