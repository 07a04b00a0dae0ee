"""Declare what each column is, and see at once what that means for the raw table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, get_args

from sfumato.auditing.audit import Audit
from sfumato.auditing.audit import audit as audited
from sfumato.base.json_types import Json
from sfumato.data.open import open_source
from sfumato.data.settings import DataSettings, Role, located
from sfumato.errors import InputError, counted, shortened
from sfumato.hierarchies.recipes import HierarchyFile
from sfumato.measures.registry import GENERAL_LOSS, K, known_measures
from sfumato.methods.registry import MODULES as REGISTERED
from sfumato.methods.registry import system_named
from sfumato.methods.system import check_measures, goal_of
from sfumato.study import SearchSettings, Study
from sfumato.study.census_mapping import vital_columns
from sfumato.study.groups import with_recipe
from sfumato.tables.frequency import FrequencyTable
from sfumato.web.api.hierarchies import counted_in, joined
from sfumato.web.api.shelf import (
    checked,
    dumped,
    keep_study,
    refuse_changed,
    refuse_stale,
    run_file,
    study_of,
    table_of,
    table_of_now,
    undecided_columns,
)
from sfumato.web.workspace import Places, read_json, write_json

GROUP_PARTS = {
    "vital": "the column and the values that say who is in the group",
    "area": "the columns that distinguish areas",
    "attributes": "the characteristics that both files have",
}
SECTIONS = ("data", "columns", "search", "measures", "groups")


def get(places: Places, study: str) -> Json:
    """Return a study as it is declared."""
    return run_file(places, study)


def put(places: Places, study: str, version: str, **changes: Any) -> Json:
    """Change what is declared. A section that is given replaces the one before; the table stays the same."""
    refuse_stale(places, study, version)
    before = study_of(places, study)
    settings = dumped(before)
    for file in (settings.get("groups") or {}).get("auxiliary", ()):
        file["path"] = located(file["path"], before.folder)
    for section in SECTIONS:
        if changes.get(section) is not None:
            settings[section] = changes[section]
    if changes.get("groups") is not None:
        _rooted_groups(places, settings["groups"])
    settings["data"] = {**settings["data"], "path": located(before.data.path, before.folder)}
    book = settings["data"].get("codebook")
    if changes.get("data") is not None and isinstance(book, str):
        settings["data"]["codebook"] = str(places.allowed(book))
    for column in settings["columns"].values():
        _rooted(places, column)
    _populated(places, before, settings, changes.get("population"))
    if changes.get("columns") is not None:  # a column that is no longer generalized no longer has a weight
        weights, keys = settings["search"].get("weights", {}), _generalized(settings)
        settings["search"] = settings["search"] | {"weights": {n: w for n, w in weights.items() if n in keys}}
    after = checked(places, Study(**settings))
    undecided = undecided_columns(after)
    if changes.get("reviewed"):
        refuse_undecided(undecided)
    _refuse_measures(after)
    _refuse_weights(after)
    if changes.get("groups") is not None:
        _refuse_groups(after)
    for name, column in after.columns.items():
        if (column.order, column.breaks) != (None, None) and column != before.columns.get(name):
            joined(after, name)
    keep_study(places, study, after)
    file = places.study(study) / "study.json"
    about = read_json(file)
    about |= {name: changes[name] for name in ("name", "reviewed") if changes.get(name) is not None}
    about |= {"undecided": undecided} | ({"reviewed": False} if undecided else {})
    if changes.get("accept_table"):
        about |= {"table": table_of_now(after), "reviewed": False}
    write_json(file, about)
    return run_file(places, study)


def ready(places: Places, study: str, version: str) -> None:
    """Raise unless a study can be searched: as it was read, with confirmed roles and the same table."""
    refuse_stale(places, study, version)
    about = read_json(places.study(study) / "study.json")
    refuse_changed(study_of(places, study), about)
    refuse_undecided(about.get("undecided", []))
    if not about.get("reviewed"):
        raise InputError(
            "the roles of this table are suggestions that have not been confirmed",
            expected="confirmed roles",
            remedy="go to Declare, check the column roles, and confirm them",
        )


def refuse_undecided(columns: Sequence[str]) -> None:
    """Raise while columns have no role: nothing is searched, and no roles are confirmed."""
    if columns:
        raise InputError(
            f"{counted(len(columns), 'column')} {'has' if len(columns) == 1 else 'have'} no role yet: "
            f"{shortened(columns, 12)}",
            expected="a role for every column",
            remedy="go to Declare and choose one for each",
        )


def same_table(places: Places, study: str) -> None:
    """Raise if the table is no longer the one that the study was declared for."""
    refuse_changed(study_of(places, study), read_json(places.study(study) / "study.json"))


def audit(places: Places, study: str) -> Json:
    """Return the risk of the raw table: every measure, class sizes, which columns add most.

    A column without a role counts as a quasi-identifier until it is declared as something else.
    """
    declared = study_of(places, study)
    undecided = undecided_columns(declared)
    measured: Audit = audited(counted_in(declared))
    risk, share = measured.risk_curve()
    step = max(len(risk) // 300, 1)
    curve = {"risk": risk[::step].tolist(), "share": share[::step].tolist()}
    return measured.as_dict() | {"risk_curve": curve, "undecided": undecided}


def measures(places: Places) -> list[Json]:  # noqa: ARG001
    """Return every measure with its facts, whether it is an objective by default, and whether it is the loss."""
    sought = {objective.name for objective in SearchSettings().named}
    return [
        measure.as_dict() | {"default": measure.name in sought, "loss_of_points": measure is GENERAL_LOSS}
        for measure in known_measures().values()
    ]


def systems(places: Places) -> list[Json]:  # noqa: ARG001
    """Return every registered system: what its plans are called, and which settings of a search it reads."""
    return [
        {
            "name": name,
            "plans": system_named(name).plans,
            "reads": _read_by(name),
            "algorithms": _accepted(name, "algorithm"),
            "problems": _accepted(name, "problem"),
            "resumable": system_named(name).abilities.resumable,
            "estimated": system_named(name).abilities.space is not None,
        }
        for name in REGISTERED
    ]


def _read_by(system: str) -> list[str]:
    """Return the settings under [search] that a system takes, by trying each."""
    usual = {n: field.get_default(call_default_factory=True) for n, field in SearchSettings.model_fields.items()}
    given = {name: value for name, value in usual.items() if name != "system" and value is not None}
    return [name for name, value in given.items() if _takes(system, name, value)]


def _accepted(system: str, setting: str) -> list[object]:
    """Return the values of a setting that a method takes, by trying each that a run file can name."""
    known = get_args(get_args(SearchSettings.model_fields[setting].annotation)[0])
    return [value for value in known if _takes(system, setting, value)]


def _takes(system: str, setting: str, value: object) -> bool:
    try:
        SearchSettings.checked(**{"system": system, setting: value})
    except InputError:
        return False
    return True


def estimate(places: Places, study: str) -> Json:
    """Estimate the size of the space and the cost of the search: of a lattice at most, if every node is tried."""
    from sfumato.prediction import predict_search

    declared = study_of(places, study)
    table = table_of(declared)
    abilities = system_named(declared.search.system).abilities
    sizes = {
        "tuples": len(table.counts),
        "records": table.records,
        "bytes": sum(int(codes.nbytes) for codes in table.codes),
        "unit": abilities.space or "nodes",
    }
    if abilities.space is None:  # what they cost shows only while they run
        return {**sizes, "space": None, "seconds": None, "limit": None}
    if abilities.bounded:
        unknown = _without_estimate(declared, table)
        if unknown is not None:
            return {**sizes, **unknown}
    cost = predict_search(declared, table)
    return {
        **sizes,
        "space": cost.space if abilities.bounded else float(cost.space),
        "seconds": cost.cpu_seconds,
        "at_most": abilities.bounded,
    }


def _without_estimate(declared: Study, table: FrequencyTable) -> Json | None:
    """Return what is known of a search that cannot be complete: too large for its algorithm, or without a proof."""
    from sfumato.methods.lattice.search import LIMITS, Search

    prepared, limit = Search.prepare(declared, table), LIMITS.get(declared.search.method)
    space = prepared.problem.space
    if limit is not None and space <= limit:
        return None
    names = [objective.name for objective in prepared.objectives]
    few = len(names) == 1 or (len(names) == 2 and K.name in names)
    return {"space": space, "seconds": None, "limit": limit, "instead": "best_first" if few else "pbg_ea"}


def _generalized(settings: Json) -> list[str]:
    return [name for name, column in settings["columns"].items() if column.get("role") == Role.QUASI_IDENTIFIER]


def _rooted(places: Places, column: Json) -> None:
    """The page calls files by their place in the allowed folder; a run file needs the whole path."""
    tree = column.get("hierarchy") if isinstance(column, dict) else None
    if isinstance(tree, str):
        column["hierarchy"] = str(places.allowed(tree))
    elif isinstance(tree, dict) and isinstance(tree.get("path"), str):
        column["hierarchy"] = HierarchyFile.checked(**{**tree, "path": str(places.allowed(tree["path"]))}).model_dump(
            exclude_none=True
        )


def _rooted_groups(places: Places, groups: Json) -> None:
    """The files that attackers learn from are called by their place in the allowed folder."""
    for file in groups.get("auxiliary") or ():
        if isinstance(file, dict) and isinstance(file.get("path"), str):
            file["path"] = str(places.table(file["path"]))


def _populated(places: Places, before: Study, settings: Json, given: Json | None) -> None:
    """The table of the population: as it was, another that can be read, or none."""
    if given == {}:
        settings.pop("population", None)
    elif given is not None:
        path = str(places.table(str(given.get("path", ""))))
        settings["population"] = {**given, "path": path}
        people = open_source(DataSettings.checked(**settings["population"]), places.root)
        absent = [name for name in _generalized(settings) if name not in people.names]
        if absent:
            raise InputError(
                f"the population table lacks {shortened(absent)}",
                expected="every quasi-identifier of the table, under the same name",
                remedy="another file, or the role other for those columns",
            )
    elif before.population is not None:
        settings["population"]["path"] = located(before.population.path, before.folder)


def _refuse_groups(study: Study) -> None:
    """Raise unless a group is declared as far as an attack and a protection need it, before a job is started."""
    from sfumato.methods.groups.swapped import withheld_columns

    groups = study.groups
    if groups is None:
        return
    declared = with_recipe(groups)
    lacking = [says for name, says in GROUP_PARTS.items() if not getattr(declared, name)]
    lacking += [] if groups.auxiliary else ["the file that the attacker learns from"]
    if lacking:
        raise InputError(
            f"the group is not complete; it lacks {shortened(lacking)}",
            expected="the members, the areas, the common characteristics and a file that the attacker learns from",
            remedy="fill in the form of the group",
        )
    source = open_source(study.data, study.folder)
    files = [(source.title, source, groups.mapping())]
    files += [(one.title, open_source(one, study.folder), groups.mapping(one)) for one in groups.auxiliary]
    for title, file, mapping in files:
        needed = {*vital_columns(mapping), *mapping.area, *(n for a in mapping.attributes.values() for n in a.columns)}
        if absent := sorted(needed - set(file.names)):
            raise InputError(
                f"{title} has no column {shortened(absent)}",
                expected="the columns of the group, of the areas and of the characteristics in both files",
                remedy="choose columns that both files have, or another file",
            )
    withheld_columns(study, groups, source)


def _refuse_weights(study: Study) -> None:
    for name, weight in study.search.weights.items():
        if name not in study.named(Role.QUASI_IDENTIFIER) or not 0 <= weight < math.inf:
            raise InputError(
                f"a weight of {weight:g} for {name[:80]}",
                expected="a number of 0 or more for a quasi-identifier",
                remedy="leave the weight out, which counts as 1",
            )


def _refuse_measures(study: Study) -> None:
    check_measures(study)
    for objective in study.search.named:
        goal_of(study, objective.name, objective.direction)
    for name, limit in study.search.constraints.items():
        goal = goal_of(study, name, None, limit)
        facts = goal.measure
        lowest, highest = (
            (0.0, 1.0) if facts.about.unit == "share" else (1.0 if facts.about.scale == "log" else 0.0, math.inf)
        )
        if not lowest <= limit <= highest:
            raise InputError(
                f"a limit of {limit:g} on {facts.about.title}",
                expected=f"a number from {lowest:g} to {highest:g}" if highest < math.inf else f"{lowest:g} or more",
                remedy="leave the limit out, or give one that releases can meet or miss",
            )
