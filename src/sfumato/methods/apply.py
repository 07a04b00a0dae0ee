"""Apply a published or found plan to another table, for example to the data of the next year."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sfumato.base.files import refuse_existing_folder
from sfumato.data.engine import open_engine
from sfumato.data.frame import is_frame
from sfumato.data.settings import EngineOptions
from sfumato.errors import InputError, counted
from sfumato.front import Front, Objective, Point
from sfumato.hierarchies import ROOT, Hierarchy
from sfumato.measures.classes import classify
from sfumato.measures.registry import GENERAL_LOSS, K
from sfumato.measures.suppression import suppress_by_plan
from sfumato.methods.apply_options import (
    Applying,
    UnknownValues,
    inherited_acceptances,
    limit_warnings,
    unknown_error,
    unknown_values,
)
from sfumato.methods.registry import VERIFIERS, load_front, system_named
from sfumato.methods.system import System
from sfumato.plans.recodings import LevelPlan
from sfumato.release.columns import Naming, naming_from
from sfumato.release.manifest import MANIFEST, RUN, distances_of, load_hierarchies, read_manifest
from sfumato.release.publish import Release, publish, publish_draft
from sfumato.release.readback import loss_of, reading, require_source, table_of
from sfumato.release.recoding import named_plan
from sfumato.release.verify import study_of, verifier_of
from sfumato.study import SearchSettings, Study, read, without_trees
from sfumato.study.sections import Acceptance
from sfumato.tables.frequency import FrequencyTable


@dataclass(frozen=True)
class SavedPlan:
    """A plan with everything that it needs on other data: the study, the saved hierarchies, levels and limits.

    `names` are the names of the groups in the release; the new release uses them too.
    """

    study: Study
    trees: Mapping[str, Hierarchy]
    distances: Mapping[str, str]
    plan: LevelPlan
    names: Mapping[str, Naming]


def apply_plan(
    folder: str | Path,
    new_file: Any,
    target: str | Path,
    *,
    point: int | None = None,
    unseen: str = "error",
    reason: str = "",
    accept: Mapping[str, str] | Sequence[Acceptance] = (),
    state: str | Path | None = None,
    engine: str = "duckdb",
    engine_options: EngineOptions | None = None,
    run: str | Path | None = None,
) -> Release:
    """Publish another table with the plan of a release folder, or with a point of a front's folder.

    The result is a release like any other. It is measured on its file, checked against the policy, entered in the
    ledger and can be verified. The acceptances of the earlier release remain valid, unless a figure is worse than
    there: then a new reason is needed. A reason for the rule `earlier` is never valid for another table. Values that
    the plan's hierarchies do not know are an error, or with `unseen="star"` they are released as `*`. `run` is a run
    file of the caller, required for a front that was made elsewhere.

    Args:
        folder: a release, or a front.
        new_file: the other table: a path, or a table in memory.
        target: a folder that does not exist yet.
        point: the id of a point, for a front.
        unseen: how values that the hierarchies do not know are treated: "error" or "star".
        reason: why, for the internal report.
        accept: rules that the release may break, each with a reason.
        state: the folder of the ledger.
        engine: where rows are recoded.
        engine_options: its memory limit and threads.
        run: a run file of the caller.

    Returns:
        The release.
    """
    if unseen not in ("error", "star"):
        raise InputError(f'unseen = "{unseen}"', expected='"error" or "star"')
    table = new_file if is_frame(new_file) else str(new_file)
    options = engine_options or EngineOptions()
    own = _system_of(Path(folder), run).apply
    if own is not None:
        refuse_existing_folder(Path(target).absolute())
        draft = own(Applying(Path(folder), point, table, unseen, accept, engine, options, run))
        return publish_draft(draft, target, reason=reason, state=state)
    saved = saved_plan(folder, point, run)
    kept, inherited = inherited_acceptances(Path(folder), saved.study)
    study = reading(kept, table).replace(engine=engine, engine_options=options)
    with open_engine(study.engine, study.engine_options) as opened:
        unknown = unknown_values(opened, study.source(), study, saved.trees)
    if unknown and unseen == "error":
        raise unknown_error(unknown)
    trees, plan, names = dict(saved.trees), saved.plan, dict(saved.names)
    for values in unknown:
        names.pop(values.column, None)  # its groups are named anew
        level = plan.levels[values.column]
        trees[values.column] = with_stars(trees[values.column], level, values.values)
        if level == 0:
            plan = replace(plan, levels={**plan.levels, values.column: 1})
    counts = study.table(trees=trees, distances=saved.distances)
    front = _front(study, counts, plan)
    warnings = [*_star_warnings(unknown), *limit_warnings(saved.study, front)]
    return publish(
        front,
        0,
        target,
        reason=reason,
        accept=accept,
        state=state,
        table=counts,
        names=names,
        warnings=warnings,
        inherited=inherited,
    )


def _system_of(folder: Path, run: str | Path | None) -> System:
    """Return the system that made a release or a front."""
    if (folder / MANIFEST).is_file():
        manifest = read_manifest(folder)
        verifier_of(VERIFIERS, manifest)
        return system_named(manifest["system"])
    return system_named(load_front(folder, run).system)


def saved_plan(folder: str | Path, point: int | None = None, run: str | Path | None = None) -> SavedPlan:
    """Return the plan of a release folder, or of a point in a front's folder."""
    folder = Path(folder)
    if not (folder / MANIFEST).is_file():
        front = load_front(folder, run)
        _require_applicable(folder, front.system, VERIFIERS[front.system].own_records)
        return _front_plan(front, point)
    manifest = read_manifest(folder)
    _require_applicable(folder, manifest["system"], verifier_of(VERIFIERS, manifest).own_records)
    if point is not None and point != manifest["point"]["id"]:
        raise InputError(
            f"the release is point {manifest['point']['id']}, not {point}",
            expected="the point that was published",
            remedy="leave the point out, or name the folder of the front",
        )
    trees = load_hierarchies(folder, manifest["hierarchies"])
    saved = manifest["point"]
    levels, limits = manifest["own"]["levels"], saved.get("limits", {})
    plan = LevelPlan(levels, saved["suppress_below"], saved.get("diversity_below", 0), limits)
    released = read(folder / RUN).columns
    distances = {name: column.distance for name, column in released.items() if column.distance is not None}
    study = without_trees(study_of(manifest))
    names = {
        name: naming_from(entry["named"], trees[name], manifest["own"]["levels"][name], study.columns[name])
        for name, entry in manifest["hierarchies"].items()
        if entry["named"] is not None
    }
    return SavedPlan(study, trees, distances, plan, names)


def _require_applicable(folder: Path, system: str, reason: str) -> None:
    """Raise if the plans of a system are about the records of one table."""
    if reason:
        general = [name for name, verifier in VERIFIERS.items() if not verifier.own_records]
        raise InputError(
            f"{folder} is of the {system} system, whose plan serves no other table: {reason}",
            expected=f"a release or a front of a recoding: {' or '.join(general)}",
        )


def _front_plan(front: Front, point: int | None) -> SavedPlan:
    if point is None:
        raise InputError(
            "a front has many plans",
            expected=f"which point to apply: an id from 0 to {len(front.points) - 1}",
        )
    require_source(
        table_of(front.study), front.fingerprint, remedy="apply a release folder instead: it holds its hierarchies"
    )
    plan, table = front.point(point).recoding_plan, front.study.table()
    named = named_plan(front.study, table, plan)
    limits = plan.limits if isinstance(plan, LevelPlan) else {}
    applied = LevelPlan(named.levels, plan.suppress_below, plan.diversity_below, limits)
    return SavedPlan(front.study, named.trees, distances_of(table), applied, named.names)


def with_stars(tree: Hierarchy, level: int, values: Sequence[str]) -> Hierarchy:
    """Return the tree with unknown values, each suppressed from level 1 on.

    A column that is released unchanged (level 0) gets a new level above, at which the known values stay as they are.

    >>> from sfumato.hierarchies.hierarchy import flat
    >>> with_stars(flat("sex", ["F", "M"]), 0, ["X"]).paths
    [('F', 'F', '*'), ('M', 'M', '*'), ('X', '*', '*')]
    """
    paths = [(path[0], *path) if level == 0 else tuple(path) for path in tree.paths]
    height = len(paths[0]) - 1
    stars = [(value, *([ROOT] * (height - 1)), tree.root) for value in values]
    if height == 1:  # nothing between value and root: hidden is hidden
        stars = [(value, tree.root) for value in values]
    return Hierarchy.from_paths(tree.name, [*paths, *stars])


def _front(study: Study, table: FrequencyTable, plan: LevelPlan) -> Front:
    """Return a front of one point: the plan, measured on the new table."""
    study = study.model_copy(update={"search": SearchSettings(weights=study.search.weights)})
    classes = classify(table, plan.recoding(table), study.weights_for(table))
    classes = suppress_by_plan(classes, plan, study.measures)
    measures = [K, GENERAL_LOSS]
    values = {measure.name: measure.value(classes) for measure in measures}
    units = None if classes.table.units is None else classes.suppressed_units
    point = Point(0, values, loss_of(classes), classes.suppressed_rows, plan, suppressed_units=units)
    objectives = tuple(Objective(measure.name, measure.direction) for measure in measures)
    about = (1, 1, 0.0, table.fingerprint, table.records, None if table.units is None else table.persons)
    front = Front(study, objectives, (point,), "applied", False, *about)
    return replace(front, left_out=table.left_out)  # the loss was measured as that of the source


def _star_warnings(unknown: Sequence[UnknownValues]) -> list[str]:
    return [
        f"{unseen.column} has {counted(len(unseen.values), 'value')} that the plan does "
        f"not know, in {counted(unseen.records, 'record')}: hidden as {ROOT}, or "
        "suppressed where too few records share them."
        for unseen in unknown
    ]
