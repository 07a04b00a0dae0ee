"""Apply a published or found plan to another table, for example to the data of the next year."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sfumato.base.files import refuse_existing_folder
from sfumato.base.text import percent
from sfumato.data.cells import MISSING
from sfumato.data.engine import Engine, open_engine
from sfumato.data.frame import is_frame
from sfumato.data.settings import EngineOptions, Role
from sfumato.data.source import Source
from sfumato.data.value_counts import cell_sql
from sfumato.errors import DataError, InputError, counted, shortened
from sfumato.front import Front, Objective, Point
from sfumato.hierarchies import ROOT, Hierarchy
from sfumato.measures.classes import classify
from sfumato.measures.registry import GENERAL_LOSS, K
from sfumato.measures.suppression import suppress_by_plan
from sfumato.methods.registry import MODULES, load_front, system_named
from sfumato.methods.system import Applying, System
from sfumato.plans.recodings import LevelPlan
from sfumato.release.columns import Naming, naming_from
from sfumato.release.manifest import MANIFEST, RUN, distances_of, load_hierarchies, read_manifest
from sfumato.release.policy import Inherited, acceptances, inherited_from
from sfumato.release.publish import Release, publish_draft
from sfumato.release.readback import loss_of, reading, require_source, table_of
from sfumato.release.recoding import RECODINGS, RecodingDraft, level_plan, named_plan
from sfumato.release.rows import complete_rows
from sfumato.release.verify import study_of
from sfumato.study import SearchSettings, Study, read, without_trees
from sfumato.study.sections import Acceptance
from sfumato.tables.domain import missing_leaf
from sfumato.tables.frequency import FrequencyTable


@dataclass(frozen=True)
class UnknownValues:
    """Values of a column that the plan's hierarchy does not know, and the number of records with one of them."""

    column: str
    values: tuple[str, ...]
    records: int


def unknown_values(
    engine: Engine, source: Source, study: Study, trees: Mapping[str, Hierarchy]
) -> tuple[UnknownValues, ...]:
    """Return the values of quasi-identifiers that the hierarchies do not know, in rows that the missing rule keeps."""
    engine.attach(source, "raw")
    complete = complete_rows(source, study)
    unknown = []
    for name in study.named(Role.QUASI_IDENTIFIER):
        tree, wildcard = trees[name], study.missing_rule(name) == "wildcard"
        keeps = missing_leaf(tree, study.data.na, wildcard=wildcard) is not None
        engine.upload("known", {"label": [*tree.leaves, *([MISSING] if keeps else [])]})
        rows = engine.rows(
            f"SELECT v, n FROM (SELECT {cell_sql(source, name)} AS v, count(*) AS n FROM raw WHERE {complete} "
            "GROUP BY 1) AS t WHERE v NOT IN (SELECT label FROM known) ORDER BY v"
        )
        if rows:
            unknown.append(UnknownValues(name, tuple(str(value) for value, _ in rows), sum(int(n) for _, n in rows)))
    return tuple(unknown)


def inherited_acceptances(folder: Path, study: Study) -> tuple[Study, tuple[Inherited, ...]]:
    """Return the study of an applied plan, and the acceptances that it inherits.

    From a release the rules that its file broke are inherited, with the figures, and no other acceptance of its run
    file. From a front the acceptances of its run file are inherited. The rule `earlier` is about the persons of one
    table, so its acceptance is never inherited.
    """
    if (folder / MANIFEST).is_file():
        accepted: Any = read_manifest(folder)["accepted"]
        return study.replace(policy={"accept": ()}), inherited_from(accepted)
    return study.replace(policy={"accept": [one for one in study.policy.accept if one.rule != "earlier"]}), ()


def limit_warnings(study: Study, front: Front) -> list[str]:
    """Return a warning if more records are suppressed than the search allowed."""
    share, limit = front.points[0].suppressed / max(front.rows, 1), study.search.max_suppression
    if share <= limit:
        return []
    return [f"{percent(share)} of the records are suppressed; the search that found the plan allowed {percent(limit)}."]


def unknown_error(unknown: Sequence[UnknownValues]) -> DataError:
    """Return the error for values that a plan does not know."""
    listed = "; ".join(
        f"{unseen.column}: {len(unseen.values)} {'value' if len(unseen.values) == 1 else 'values'} in {unseen.records} "
        f"{'record' if unseen.records == 1 else 'records'}, such as "
        f"{shortened((repr(value) if value != MISSING else '(missing)' for value in unseen.values), 3)}"
        for unseen in unknown
    )
    return DataError(
        f"the plan does not know values of {len(unknown)} {'column' if len(unknown) == 1 else 'columns'}: {listed}",
        expected="values that the plan's hierarchies hold",
        remedy='unseen = "star" hides them, or search again with hierarchies that hold them',
    )


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
    there: then a new reason is needed. A reason for the rule `earlier` is never valid for another table.

    Args:
        folder: a release, or a front.
        new_file: the other table: a path, or a table in memory.
        target: a folder that does not exist yet.
        point: the id of a point, for a front.
        unseen: what happens to values that the hierarchies do not know: "error", or "star" releases them as `*`.
        reason: why, for the internal report.
        accept: rules that the release may break, each with a reason.
        state: the folder of the ledger.
        engine: where rows are recoded.
        engine_options: its memory limit and threads.
        run: a run file of the caller, required for a front that was made elsewhere.

    Returns:
        The release.
    """
    if unseen not in ("error", "star"):
        raise InputError(f'unseen = "{unseen}"', expected='"error" or "star"')
    table = new_file if is_frame(new_file) else str(new_file)
    options = engine_options or EngineOptions()
    refuse_existing_folder(Path(target).absolute())
    system = _system_of(Path(folder), run)
    if system.apply is not None:
        draft = system.apply(Applying(Path(folder), point, table, unseen, accept, engine, options, run))
        return publish_draft(draft, target, reason=reason, state=state)
    _refuse_own_records(Path(folder), system)
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
    front = replace(front, study=front.study.with_accepted(acceptances(accept)))
    draft = RecodingDraft.of(
        front,
        front.point(0),
        RECODINGS,
        given=counts,
        earlier=names,
        noted=[*_star_warnings(unknown), *limit_warnings(saved.study, front)],
        inherited=inherited,
    )
    return publish_draft(draft, target, reason=reason, state=state)


def _system_of(folder: Path, run: str | Path | None) -> System:
    """Return the system that made a release or a front."""
    if (folder / MANIFEST).is_file():
        return system_named(read_manifest(folder)["system"])
    return system_named(load_front(folder, run).system)


def saved_plan(folder: str | Path, point: int | None = None, run: str | Path | None = None) -> SavedPlan:
    """Return the plan of a release folder, or of a point in a front's folder."""
    folder = Path(folder)
    if not (folder / MANIFEST).is_file():
        return _front_plan(load_front(folder, run), point)
    manifest = read_manifest(folder)
    if point is not None and point != manifest["point"]["id"]:
        raise InputError(
            f"the release is point {manifest['point']['id']}, not {point}",
            expected="the point that was published",
            remedy="leave the point out, or name the folder of the front",
        )
    trees = load_hierarchies(folder, manifest["hierarchies"])
    released = read(folder / RUN).columns
    distances = {name: column.distance for name, column in released.items() if column.distance is not None}
    study = without_trees(study_of(manifest))
    names = {
        name: naming_from(entry["named"], trees[name], manifest["own"]["levels"][name], study.columns[name])
        for name, entry in manifest["hierarchies"].items()
        if entry["named"] is not None
    }
    return SavedPlan(study, trees, distances, level_plan(manifest), names)


def _refuse_own_records(folder: Path, system: System) -> None:
    """Raise if the plans of a system are about the records of one table."""
    reason = system.verifier.own_records
    if reason:
        general = [name for name in MODULES if not system_named(name).verifier.own_records]
        raise InputError(
            f"{folder} is of the {system.name} system, whose plan serves no other table: {reason}",
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
