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
    from sfumato.auditing.audit import Audit as Audit
    from sfumato.auditing.audit import audit as audit
    from sfumato.auditing.inspect import Inspection as Inspection
    from sfumato.auditing.inspect import inspect as inspect
    from sfumato.base.progress import ProgressBar as ProgressBar
    from sfumato.data.settings import Role as Role
    from sfumato.decide.ask import Answer as Answer
    from sfumato.decide.pick import Choice as Choice
    from sfumato.decide.pick import Preset as Preset
    from sfumato.decide.pick import pick as pick
    from sfumato.decide.pick import presets as presets
    from sfumato.errors import DataError as DataError
    from sfumato.errors import HierarchyError as HierarchyError
    from sfumato.errors import InputError as InputError
    from sfumato.errors import MeasureError as MeasureError
    from sfumato.errors import SfumatoError as SfumatoError
    from sfumato.errors import StudyError as StudyError
    from sfumato.errors import UnreachableError as UnreachableError
    from sfumato.estimator import Anonymizer as Anonymizer
    from sfumato.front import Front as Front
    from sfumato.front import Objective as Objective
    from sfumato.front import Point as Point
    from sfumato.front import compare_fronts as compare_fronts
    from sfumato.hierarchies import Hierarchy as Hierarchy
    from sfumato.hierarchies.recipes import breaks as breaks
    from sfumato.hierarchies.recipes import dates as dates
    from sfumato.hierarchies.recipes import flat as flat
    from sfumato.hierarchies.recipes import hierarchy_file as hierarchy_file
    from sfumato.hierarchies.recipes import intervals as intervals
    from sfumato.hierarchies.recipes import prefixes as prefixes
    from sfumato.hierarchies.recipes import quantiles as quantiles
    from sfumato.hierarchies.recipes import rare_values as rare_values
    from sfumato.hierarchies.recipes import top_bottom as top_bottom
    from sfumato.measures.classes import ClassTable as ClassTable
    from sfumato.measures.classes import classify as classify
    from sfumato.measures.registry import known_measures as known_measures
    from sfumato.measures.registry import measure as measure
    from sfumato.methods.apply import apply_plan as apply_plan
    from sfumato.methods.channel.estimate import estimate as estimate
    from sfumato.methods.channel.release import disguise as disguise
    from sfumato.methods.groups.attack.attack import attack as attack
    from sfumato.methods.publish import draw as draw
    from sfumato.methods.publish import publish as publish
    from sfumato.methods.publish import verify as verify
    from sfumato.methods.registry import load_front as load_front
    from sfumato.methods.search import ask as ask
    from sfumato.methods.search import search as search
    from sfumato.papers.baselines import Cost as Cost
    from sfumato.papers.baselines import Costs as Costs
    from sfumato.papers.baselines import baselines as baselines
    from sfumato.papers.baselines_page import draw_baselines as draw_baselines
    from sfumato.plans.channel import Channel as Channel
    from sfumato.plans.channel import load_channel as load_channel
    from sfumato.plans.recodings import LevelPlan as LevelPlan
    from sfumato.prediction import predict as predict
    from sfumato.release.publish import Release as Release
    from sfumato.samples.samples import sample as sample
    from sfumato.study import Study as Study
    from sfumato.study import read as read
    from sfumato.tables.frequency import FrequencyTable as FrequencyTable


# Names by module. They load when they are first used, so `sfumato --help` does not wait for compilers and databases.
_NAMES = {
    "auditing.audit": "Audit audit",
    "auditing.inspect": "Inspection inspect",
    "base.progress": "ProgressBar",
    "data.settings": "Role",
    "decide.ask": "Answer",
    "decide.pick": "Choice Preset pick presets",
    "errors": "DataError HierarchyError InputError MeasureError SfumatoError StudyError UnreachableError",
    "estimator": "Anonymizer",
    "front": "Front Objective Point compare_fronts",
    "hierarchies": "Hierarchy",
    "hierarchies.recipes": "breaks dates flat hierarchy_file intervals prefixes quantiles rare_values top_bottom",
    "measures.classes": "ClassTable classify",
    "measures.registry": "known_measures measure",
    "methods.apply": "apply_plan",
    "methods.channel.estimate": "estimate",
    "methods.channel.release": "disguise",
    "methods.groups.attack.attack": "attack",
    "methods.publish": "draw publish verify",
    "methods.registry": "load_front",
    "methods.search": "ask search",
    "papers.baselines": "Cost Costs baselines",
    "papers.baselines_page": "draw_baselines",
    "plans.channel": "Channel load_channel",
    "plans.recodings": "LevelPlan",
    "prediction": "predict",
    "release.publish": "Release",
    "samples.samples": "sample",
    "study": "Study read",
    "tables.frequency": "FrequencyTable",
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}
__all__ = sorted([*_HOMES, "measures"])


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
