"""Sfumato: the whole trade-off between privacy and information loss of a table about people.

Of a table in memory (pandas, polars, pyarrow, …):

>>> import pyarrow, sfumato as sf
>>> people = pyarrow.table({"age": [31, 33, 35, 62, 64, 68], "ill": ["flu", "none", "flu", "none", "none", "flu"]})
>>> study = sf.Study(people, quasi_identifiers=["age"], sensitive=["ill"]).with_hierarchies(age=sf.intervals(20))
>>> sf.pick(sf.search(study), min_k=3).apply(people).to_pydict()["age"]
['20-39', '20-39', '20-39', '60-79', '60-79', '60-79']

Of a run file:

>>> study = sf.read(sf.sample("adult"))
>>> audit = sf.audit(study)
>>> audit.rows, audit.figures["k"].value
(32561, 1.0)
>>> front = sf.search(study)
>>> choice = sf.pick(front, max_loss=0.30)
>>> len(front.points), choice.point.values["k"]
(55, 4)
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from sfumato.version import __version__ as __version__

if TYPE_CHECKING:
    from sfumato.auditing.audit import Audit, audit
    from sfumato.auditing.inspect import Inspection, inspect
    from sfumato.base.progress import ProgressBar
    from sfumato.data.settings import Role
    from sfumato.decide.ask import Answer
    from sfumato.decide.pick import Choice, Preset
    from sfumato.errors import (
        DataError,
        HierarchyError,
        InputError,
        MeasureError,
        SfumatoError,
        StudyError,
        UnreachableError,
    )
    from sfumato.estimator import Anonymizer
    from sfumato.front import Front, Objective, Point, compare_fronts
    from sfumato.hierarchies import Hierarchy
    from sfumato.hierarchies.recipes import (
        breaks,
        dates,
        flat,
        hierarchy_file,
        intervals,
        prefixes,
        quantiles,
        rare_values,
        top_bottom,
    )
    from sfumato.measures.classes import ClassTable, classify
    from sfumato.measures.registry import known_measures, measure
    from sfumato.methods.apply import apply_plan
    from sfumato.methods.channel.estimate import estimate
    from sfumato.methods.channel.release import disguise
    from sfumato.methods.groups.attack.attack import attack
    from sfumato.methods.publish import draw, publish, verify
    from sfumato.methods.registry import load_front
    from sfumato.methods.search import ask, search
    from sfumato.papers.baselines import Cost, Costs, baselines
    from sfumato.papers.baselines_page import draw_baselines
    from sfumato.plans.channel import Channel, load_channel
    from sfumato.plans.recodings import LevelPlan
    from sfumato.prediction import predict
    from sfumato.release.publish import Release
    from sfumato.samples.samples import sample
    from sfumato.study import Study, read
    from sfumato.tables.frequency import FrequencyTable


# Names load when they are first used, so that `sfumato --help` does not wait for compilers and databases.
_HOMES = {
    "Anonymizer": "estimator",
    "Answer": "decide.ask",
    "Audit": "auditing.audit",
    "Channel": "plans.channel",
    "Choice": "decide.pick",
    "ClassTable": "measures.classes",
    "Cost": "papers.baselines",
    "Costs": "papers.baselines",
    "DataError": "errors",
    "FrequencyTable": "tables.frequency",
    "Front": "front",
    "Hierarchy": "hierarchies",
    "HierarchyError": "errors",
    "InputError": "errors",
    "Inspection": "auditing.inspect",
    "LevelPlan": "plans.recodings",
    "MeasureError": "errors",
    "Objective": "front",
    "Point": "front",
    "Preset": "decide.pick",
    "ProgressBar": "base.progress",
    "Release": "release.publish",
    "Role": "data.settings",
    "SfumatoError": "errors",
    "Study": "study",
    "StudyError": "errors",
    "UnreachableError": "errors",
    "apply_plan": "methods.apply",
    "ask": "methods.search",
    "attack": "methods.groups.attack.attack",
    "audit": "auditing.audit",
    "baselines": "papers.baselines",
    "breaks": "hierarchies.recipes",
    "classify": "measures.classes",
    "compare_fronts": "front",
    "dates": "hierarchies.recipes",
    "disguise": "methods.channel.release",
    "draw": "methods.publish",
    "draw_baselines": "papers.baselines_page",
    "estimate": "methods.channel.estimate",
    "flat": "hierarchies.recipes",
    "hierarchy_file": "hierarchies.recipes",
    "inspect": "auditing.inspect",
    "intervals": "hierarchies.recipes",
    "known_measures": "measures.registry",
    "load_channel": "plans.channel",
    "load_front": "methods.registry",
    "measure": "measures.registry",
    "pick": "decide.pick",
    "predict": "prediction",
    "prefixes": "hierarchies.recipes",
    "presets": "decide.pick",
    "publish": "methods.publish",
    "quantiles": "hierarchies.recipes",
    "rare_values": "hierarchies.recipes",
    "read": "study",
    "sample": "samples.samples",
    "search": "methods.search",
    "top_bottom": "hierarchies.recipes",
    "verify": "methods.publish",
}

__all__ = [
    "Anonymizer",
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
    "ProgressBar",
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
    "breaks",
    "classify",
    "compare_fronts",
    "dates",
    "disguise",
    "draw",
    "draw_baselines",
    "estimate",
    "flat",
    "hierarchy_file",
    "inspect",
    "intervals",
    "known_measures",
    "load_channel",
    "load_front",
    "measure",
    "measures",
    "pick",
    "predict",
    "prefixes",
    "presets",
    "publish",
    "quantiles",
    "rare_values",
    "read",
    "sample",
    "search",
    "top_bottom",
    "verify",
]


def __getattr__(name: str) -> Any:
    if name == "measures":  # a module of public functions: sf.measures.k(df, ["age", "zip"])
        return importlib.import_module(f"{__name__}.measures")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
