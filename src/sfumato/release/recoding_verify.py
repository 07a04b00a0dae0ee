"""The part of verification that only releases of a recoding need, by the method lattice or cuts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from sfumato.auditing.uniqueness import whole_file
from sfumato.base.text import number
from sfumato.data.engine import open_engine
from sfumato.data.settings import Role
from sfumato.measures.classes import ClassTable, classify
from sfumato.measures.registry import K
from sfumato.measures.suppression import suppress_by_plan
from sfumato.plans.recodings import LevelPlan
from sfumato.release.columns import ColumnRecode, column_recodes
from sfumato.release.dictionary import data_dictionary, labels_in
from sfumato.release.format import target_of
from sfumato.release.manifest import EXTERNAL, MANIFEST, Content, Manifest, load_hierarchies
from sfumato.release.persons import NO_HOLDERS, Holders, with_stated
from sfumato.release.readback import (
    exempt_classes,
    figure_value,
    figures_of,
    loss_of,
    measures_of,
    released_classes,
    released_loss,
    same,
    table_of,
)
from sfumato.release.recoding import pages_of, recoded_holders, release_findings
from sfumato.release.rows import Below, differing_rows, recode
from sfumato.release.verify import Again, Check, Difference, Verifier, rows_read_differences
from sfumato.study import Study


def measure_again(check: Check, agrees: Callable[[ColumnRecode, Any], bool]) -> Again:
    """Measure the data file of the manifest: its figures, its dictionary, and what violates the policy.

    `agrees` returns whether the plan of a column in the manifest's point is the recoding of that column.
    """
    manifest, data, own = check.manifest, check.data, check.own
    columns = columns_of(check)
    classes = released_classes(own, columns, int(manifest["suppressed"]))
    figures = with_stated(figures_of(own, classes, None), manifest["figures"])
    pairs = {name: (entry, figures.get(name)) for name, entry in manifest["figures"].items()}
    differences = [
        Difference(data, f"its {name} is not the {figure_value(entry):.10g} of the manifest")
        for name, (entry, again) in pairs.items()
        if entry["measured_on"] == "file" and (again is None or not same(figure_value(entry), figure_value(again)))
    ]
    if not same(manifest["loss"], loss_of(classes)):
        differences.append(Difference(data, f"its loss is not the {manifest['loss']:.10g} of the manifest"))
    if manifest["own"]["released_loss"] != released_loss(classes, columns, manifest["hierarchies"]):
        differences.append(Difference(EXTERNAL, "its loss is not that of the file"))
    if manifest["own"].get("exempt") != exempt_classes(check.study, classes):
        differences.append(Difference(data, "its records in classes exempt from ℓ are not those of the manifest"))
    if classes.records != manifest["records"]:
        differences.append(Difference(data, f"it represents {classes.records} records, not {manifest['records']}"))
    written = own.source()
    with open_engine(own.engine, own.engine_options) as engine:
        engine.attach(written, "written")
        whole = whole_file(engine, own, written)
    return Again(
        whole=whole,
        dictionary=data_dictionary(
            check.study,
            written.names,
            {column.name: column for column in columns},
            Path(data).name,
            manifest["dictionary"]["columns_left_out"],
            labels_in(classes),
        ),
        findings=release_findings(
            check.study, figures, whole, manifest["suppressed"], classes, Holders.stated(manifest["own"])
        ),
        differences=[*differences, *_point(manifest), *_plan(manifest, columns, agrees)],
    )


def rows_again(check: Check, study: Study) -> list[Difference]:
    """Recode the source and compare the rows, in any order, and the figures that are measured on the source."""
    columns = columns_of(check)
    classes = classes_again(check, study, columns)
    plan = _level_plan(check)
    below = Below(plan.suppress_below, plan.diversity_below) if classes is None else Below.of(plan, classes, columns)
    holders = NO_HOLDERS
    with open_engine(study.engine, study.engine_options) as engine:
        source = table_of(study)
        target = target_of(source, check.written.format)
        recoded = recode(engine, source, study, columns, below, target)
        torn = differing_rows(engine, recoded, check.written)
        if classes is not None:
            holders = recoded_holders(engine, study, recoded, columns, classes)
    differences = [Difference(check.data, f"{torn} rows differ from the source recoded again")] if torn else []
    for name in holders.differ(check.manifest["own"]):
        differences.append(Difference(MANIFEST, f"its figures of {name} are not those of the source"))
    differences += rows_read_differences(check.manifest, recoded.rows_read)
    return differences if classes is None else [*differences, *_figures_on_source(check, study, classes)]


def _figures_on_source(check: Check, study: Study, classes: ClassTable) -> list[Difference]:
    """Compare the figures that need the source with those of its classes."""
    differences = []
    for name, chosen in measures_of(study).items():
        entry = check.manifest["figures"].get(name)
        if entry is None or entry["measured_on"] != "source":
            continue
        if chosen.available(classes) is not None or not same(figure_value(entry), chosen.value(classes)):
            differences.append(Difference(MANIFEST, f"its {name} is not that of the source"))
    return differences


def _level_plan(check: Check) -> LevelPlan:
    point = check.manifest["point"]
    levels, limits = check.manifest["own"]["levels"], point.get("limits", {})
    return LevelPlan(levels, point["suppress_below"], point.get("diversity_below", 0), limits)


def classes_again(check: Check, study: Study, columns: Sequence[ColumnRecode]) -> ClassTable | None:
    """Return the classes of the source under the published plan, if the engine alone cannot count them."""
    plan = _level_plan(check)
    declared = study.named(Role.UNIT) or study.named(Role.HOUSEHOLD)
    on_source = any(entry["measured_on"] == "source" for entry in check.manifest["figures"].values())
    wild = any(column.wild_group >= 0 for column in columns)
    special = plan.diversity_below > 1 and any(
        study.columns[name].harmless is not None or study.missing_rule(name) != "drop"
        for name in study.named(Role.SENSITIVE)
    )
    if not (plan.limits or wild or declared or on_source or special):
        return None
    distances = {name: result.distance for name, result in check.own.columns.items() if result.distance is not None}
    table = study.table(trees={column.name: column.tree for column in columns}, distances=distances)
    classes = classify(table, plan.recoding(table), study.weights_for(table))
    return suppress_by_plan(classes, plan, study.measures)


def columns_of(check: Check) -> tuple[ColumnRecode, ...]:
    """Return the recoding of each quasi-identifier under the published plan."""
    trees = load_hierarchies(check.folder, check.manifest["hierarchies"])
    return column_recodes(check.study, check.manifest["own"]["levels"], trees)


def _point(manifest: Manifest) -> list[Difference]:
    """Compare the values of the manifest's point with its figures."""
    point, figures = manifest["point"], manifest["figures"]
    taken = {objective["name"] for objective in manifest["own"]["objectives"] if "taken" in objective}
    values = {
        name: (value, figure_value(figures[name])) for name, value in point["values"].items() if name not in taken
    }
    values |= {"loss": (point["loss"], manifest["loss"]), "suppressed": (point["suppressed"], manifest["suppressed"])}
    return [
        Difference(MANIFEST, f"its point and its figures differ in {name}")
        for name, (stated, measured) in values.items()
        if not same(stated, measured)
    ]


def _plan(
    manifest: Manifest, columns: Sequence[ColumnRecode], agrees: Callable[[ColumnRecode, Any], bool]
) -> list[Difference]:
    """Compare the plan of the manifest's point with its hierarchies and levels."""
    return [
        Difference(MANIFEST, f"its point and its hierarchies differ in {column.name}")
        for column in columns
        if not agrees(column, manifest["point"]["plan"].get(column.name))
    ]


def _same_level(column: ColumnRecode, level: Any) -> bool:
    return bool(level == column.level)


def _same_groups(column: ColumnRecode, starts: Any) -> bool:
    """Return whether the groups of a column start at the values that a cut lists."""
    groups = dict(zip(column.tree.leaves, column.groups, strict=True))
    return sorted(groups.get(start, -1) for start in starts or ()) == sorted(set(groups.values()))


def says(manifest: Content) -> str:
    """Return the size of the smallest class as a clause."""
    return f"{K.label} {number(manifest['figures'][K.name]['value'])}"


def _verifier(agrees: Callable[[ColumnRecode, Any], bool]) -> Verifier:
    return Verifier(pages=pages_of, measure=partial(measure_again, agrees=agrees), rows=rows_again, says=says)


LATTICE, CUTS = _verifier(_same_level), _verifier(_same_groups)
