"""The part of verification that only releases by classes need."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.auditing.uniqueness import whole_file
from sfumato.base.text import number
from sfumato.data.engine import open_engine
from sfumato.errors import counted
from sfumato.measures.registry import K
from sfumato.release.classes import (
    Beside,
    Pages,
    floor_differences,
    labels_per_value,
    nothing,
    released_values,
    smallest,
    table_figures,
)
from sfumato.release.classes_readback import classes_in, dictionary_of, released_loss
from sfumato.release.classes_rows import FILE, Assigned, box_rows
from sfumato.release.downcoding import downcode
from sfumato.release.format import target_of
from sfumato.release.manifest import EXTERNAL, MANIFEST, Content, Manifest, load_hierarchies
from sfumato.release.persons import (
    NO_HOLDERS,
    Holders,
    box_holders,
    figure_differences,
    in_persons,
    may_count_persons,
    person_classes,
    person_figures,
)
from sfumato.release.readback import exempt_classes, figure_value, figures_of, loss_of, same, table_of
from sfumato.release.recoding import release_findings
from sfumato.release.rows import differing_rows
from sfumato.release.verify import Again, Check, Difference, Verifier, rows_read_differences
from sfumato.study import Study

Details = Callable[[Study, Assigned, Mapping[str, Any]], Mapping[str, Any]]


def no_details(*_: object) -> Mapping[str, Any]:
    """Return no entries: the details of a point do not follow from its plan."""
    return {}


def measure_again(check: Check, beside: Beside, details: Details) -> Again:
    """Measure the data file: its figures, its dictionary, its classes, and what violates the policy."""
    manifest, data, own = check.manifest, check.data, check.own
    plan = Assigned.load(check.folder)
    suppressed = int(manifest["suppressed"])
    classes = classes_in(own, plan.columns, suppressed)
    figures = {**figures_of(own, classes, None), **table_figures(plan), **beside(check.study, plan)}
    if may_count_persons(check.study):
        stated = in_persons(manifest["figures"])
        over = K.name in stated and figure_value(stated[K.name]) > figure_value(figures[K.name])
        figures |= stated if not over else {}  # a class has no more persons than rows
    differences = [
        Difference(data, f"its {name} is not the {_shown(entry)} of the manifest")
        for name, entry in manifest["figures"].items()
        if name not in figures or not _agree(entry, figures[name])
    ]
    removed = int(check.study.data.removed or 0)
    agree = {
        (data, f"its loss is not the {manifest['loss']:.10g} of the manifest"): same(
            manifest["loss"], loss_of(classes)
        ),
        (EXTERNAL, "its loss is not that of the file"): manifest["own"]["released_loss"]
        == released_loss(classes, plan.columns, released_values(plan)),
        (data, f"it represents {classes.records} records, not {manifest['records']}"): classes.records
        == manifest["records"],
        (data, "its records in classes exempt from ℓ are not those of the manifest"): manifest["own"].get("exempt")
        == exempt_classes(check.study, classes),
        (data, "its classes are not those of the release"): len(classes.rows) == plan.classes
        and sorted(classes.rows.tolist()) == sorted(_rows(plan)),
        (MANIFEST, "its classes are not those of the release"): (
            manifest["own"]["classes"],
            manifest["own"]["divided"],
            manifest["own"]["labels_per_value"],
            manifest["own"]["downcoding"],
        )
        == (
            plan.classes,
            len(plan.split),
            round(labels_per_value(plan), 3),
            downcode(plan, classes.attribute_weights, smallest(classes)).as_dict(),
        ),
        (FILE, "its records are not those of the manifest"): (plan.records + removed, plan.suppressed + removed)
        == (manifest["records"], suppressed),
    }
    differences += [Difference(file, what) for (file, what), fine in agree.items() if not fine]
    written = own.source()
    with open_engine(own.engine, own.engine_options) as engine:
        engine.attach(written, "written")
        whole = whole_file(engine, own, written)
    left_out = manifest["dictionary"]["columns_left_out"]
    return Again(
        whole=whole,
        dictionary=dictionary_of(check.study, written.names, plan.columns, Path(data).name, left_out, classes),
        findings=release_findings(check.study, figures, whole, suppressed, classes, Holders.stated(manifest["own"])),
        differences=[*differences, *_point(manifest), *_details(manifest, details(check.study, plan, figures))],
    )


def _shown(entry: Mapping[str, Any]) -> str:
    return "“not computed”" if _not_computed(entry) else f"{figure_value(entry):.10g}"


def _not_computed(entry: Mapping[str, Any]) -> bool:
    return entry["value"] is None and "infinite" not in entry


def _agree(stated: Mapping[str, Any], measured: Mapping[str, Any]) -> bool:
    """Return whether two figures agree. A figure that was not computed must be missing in both."""
    if _not_computed(stated) or _not_computed(measured):
        return _not_computed(stated) and _not_computed(measured)
    return same(figure_value(stated), figure_value(measured))


def _rows(plan: Assigned) -> list[int]:
    inside = plan.owner >= 0
    counted = np.bincount(plan.owner[inside], weights=plan.count[inside], minlength=plan.classes)
    return [int(rows) for rows in counted]


def _point(manifest: Manifest) -> list[Difference]:
    """Compare the values of the manifest's point with its figures."""
    point, figures = manifest["point"], manifest["figures"]
    values = {name: (value, figure_value(figures[name])) for name, value in point["values"].items()}
    values |= {"loss": (point["loss"], manifest["loss"]), "suppressed": (point["suppressed"], manifest["suppressed"])}
    differing = [
        f"its point and its figures differ in {name}"
        for name, (stated, measured) in values.items()
        if not same(stated, measured)
    ]
    return [
        Difference(MANIFEST, what)
        for what in (*differing, *floor_differences(point, manifest["loss"], manifest["records"], manifest["left_out"]))
    ]


def _details(manifest: Manifest, measured: Mapping[str, Any]) -> list[Difference]:
    """Compare the details of the point with those that follow from the plan in the folder."""
    stated = manifest["point"].get("details", {})
    return [
        Difference(MANIFEST, f"the {name} of its point do not follow from its classes")
        for name, value in measured.items()
        if name not in stated or stated[name] != value
    ]


def rows_again(check: Check, study: Study) -> list[Difference]:
    """Assign the records of the source to their classes and compare the tuples and the rows, in any order."""
    plan = Assigned.load(check.folder)
    trees = load_hierarchies(check.folder, check.manifest["hierarchies"])
    distances = {name: column.distance for name, column in check.own.columns.items() if column.distance is not None}
    table = study.table(trees={**trees, **plan.trees()}, distances=distances)
    if not np.array_equal(table.codes, plan.codes) or not np.array_equal(table.counts, plan.counts):
        return [Difference(FILE, "its tuples are not those of the source")]
    with open_engine(study.engine, study.engine_options) as engine:
        source = table_of(study)
        target = target_of(source, check.written.format)
        rows, holders = box_rows(engine, source, study, plan, target), NO_HOLDERS
        torn = differing_rows(engine, rows, check.written)
        if table.counts_units:
            classes = person_classes(study, table, plan.of, plan.owner, plan.classes)
            holders = box_holders(engine, study, rows, classes)
    differ = f"{counted(torn, 'row differs', 'rows differ')} from the source put into classes again"
    differences = [Difference(check.data, differ)] if torn else []
    differences += rows_read_differences(check.manifest, rows.rows_read)
    found = {}
    if table.counts_units:
        found = person_figures(study, person_classes(study, table, plan.of, plan.owner, plan.classes))
    for name in holders.differ(check.manifest["own"]):
        differences.append(Difference(MANIFEST, f"its figures of {name} are not those of the source"))
    wrong = figure_differences(check.manifest["figures"], found)
    return [*differences, *(Difference(MANIFEST, f"its {name} is not that of the source") for name in wrong)]


def says(manifest: Content) -> str:
    """Return the size of the smallest class as a clause."""
    return f"{K.label} {number(manifest['figures'][K.name]['value'])}"


def box_verifier(
    pages: Pages, beside: Beside = nothing, details: Details = no_details, own_records: str = ""
) -> Verifier:
    """Return the verifier of releases by classes.

    Args:
        pages: draws the reports of the method.
        beside: returns the figures that only this method has.
        details: returns the details of a point that follow from the plan in the folder and its figures.
        own_records: the reason why a plan cannot be applied to another table, empty if it can.

    Returns:
        The verifier.
    """
    return Verifier(
        pages=pages,
        measure=partial(measure_again, beside=beside, details=details),
        rows=rows_again,
        says=says,
        files=lambda _: (FILE,),
        own_records=own_records,
    )
