"""Publish a point of a front: recode the source, read the file back, measure it, and keep it only if it is as said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.data.atomic import new_folder, refuse_existing_folder
from sfumato.data.engine import open_engine
from sfumato.data.frequency import FrequencyTable
from sfumato.data.policy import Acceptance
from sfumato.data.stages import Stage, recording, stage
from sfumato.errors import DataError, InputError, SfumatoError, shortened
from sfumato.front import Front, Point
from sfumato.measures.classes import ClassTable, classify
from sfumato.measures.registry import measure
from sfumato.measures.standard import K
from sfumato.measures.suppression import suppress_planned
from sfumato.measures.whole import whole_file
from sfumato.release import pack
from sfumato.release.columns import ColumnRecode, column_recodes
from sfumato.release.contents import Contents
from sfumato.release.dependences import dependence_findings
from sfumato.release.earlier import Comparison, check, entered
from sfumato.release.extremes import extreme_columns, extreme_warnings
from sfumato.release.labels import Naming, named_trees, namings
from sfumato.release.policy import acceptances, policy_findings, refuse_unaccepted
from sfumato.release.readback import (
    figure_value,
    figures_of,
    loss_of,
    released_classes,
    same,
    weights_of,
)
from sfumato.release.recode import Below, Recoded, recode
from sfumato.release.rows import differing_rows, write_mixed
from sfumato.release.shown import describe_recoding


@dataclass(frozen=True)
class Release:
    """A folder that was published: the file, its reports, its manifest; and what the publisher should know.

    What may leave stands in `public`; the rest stays with the publisher.
    """

    folder: Path
    data: Path
    manifest: Mapping[str, Any]
    warnings: tuple[str, ...] = ()
    stages: tuple[Stage, ...] = ()

    @property
    def public(self) -> Path:
        return self.folder / pack.PUBLIC

    def as_dict(self) -> dict[str, Any]:
        told = ("point", "records", "suppressed", "released", "loss", "figures", "whole", "accepted", "files")
        return {
            "folder": str(self.folder),
            "public": str(self.public),
            "data": str(self.data),
            **{name: self.manifest[name] for name in told if name in self.manifest},
            "warnings": list(self.warnings),
            "stages": [stage.as_dict() for stage in self.stages],
        }


def publish(
    front: Front,
    number: int,
    folder: str | Path,
    *,
    reason: str = "",
    accept: Mapping[str, str] | Sequence[Acceptance] = (),
    name: str | None = None,
    state: str | Path | None = None,
    table: FrequencyTable | None = None,
    names: Mapping[str, Naming] | None = None,
    warnings: Sequence[str] = (),
) -> Release:
    """Write point `number` of a front as a new release folder, whole or not at all.

    What the written file breaks of the study's policy is refused, unless `accept` gives a reason for the rule:
    `{"uniques": "the file stays in the safe room"}`. `name` is that of the released file, `data` unless given;
    `state` the folder of the ledger, the user's own unless given; `table` the source's frequency table where its
    hierarchies are not those that the study declares, and `names` how an earlier release named their groups;
    `warnings` what else the publisher should know.
    """
    folder = Path(folder).absolute()
    refuse_existing_folder(folder)
    point = front.point(number)
    front = replace(front, study=front.study.with_accepted(acceptances(accept)))
    _refuse_printed(front)
    _same_source(front)
    with ExitStack() as stack, new_folder(folder, private=False) as inside:
        with recording() as recorder:
            contents, comparison = _build(inside, front, point, reason, warnings, name, table, state, names or {})
            with stage("write the reports"):
                manifest = contents.write()
        _same_source(front)
        late = stack.enter_context(entered(comparison, folder))  # ends after the folder has its name
    return Release(folder, folder / contents.data, manifest, (*contents.warnings, *late), tuple(recorder.done))


def _refuse_printed(front: Front) -> None:
    """The rule that problem 4 prints keeps no promise, so nothing is released by it (docs/readings.md, 2.2)."""
    settings = front.study.search
    if front.system == "cuts" and settings.problem == 4 and settings.reproduction:
        raise InputError(
            "the front was found with the rule that the paper prints, which does not make a file (k, ℓ)-safe",
            expected="a front for release",
            remedy="search again without reproduction = true",
        )


def _same_source(front: Front) -> None:
    source = front.study.source()
    if source.fingerprint != front.fingerprint:
        raise InputError(
            f"{source.title} has changed since the search",
            expected="the table that was searched (its SHA-256 is in the front)",
            remedy="search again",
        )


def _build(
    folder: Path,
    front: Front,
    point: Point,
    reason: str,
    warnings: Sequence[str],
    name: str | None,
    table: FrequencyTable | None,
    state: str | Path | None,
    earlier: Mapping[str, Naming],
) -> tuple[Contents, Comparison]:
    """Everything in the folder: recode, write, read back, compare, check against the policy, report."""
    study, plan = front.study, point.recoding_plan
    table = study.table() if table is None else table
    weights = weights_of(study, table)
    with stage("classify"):
        planned = classify(table, plan.recoding(table), weights)
    planned = suppress_planned(planned, plan.suppress_below, plan.diversity_below)
    trees, levels = pack.trees_and_levels(study, table, plan)
    names = namings(study.columns, planned, trees, levels)
    names |= {name: earlier[name].with_values(names[name].values) for name in earlier if name in names}
    trees = named_trees(trees, names)
    columns = column_recodes(study, levels, trees)
    pack.make_parts(folder)
    files = pack.write_hierarchies(folder, trees)
    source = study.source()
    data = pack.data_name(source, name)
    with open_engine(study.engine, study.engine_options) as engine:
        with stage("count classes"):
            recoded = recode(engine, source, study, columns, Below.of(plan))
        with stage("compare with earlier releases"):
            described = describe_recoding(front.system, study, recoded, columns)
            comparison = check(engine, study, source, described, state=state)
        with stage("write the file"):
            write_mixed(engine, recoded, folder / data)
        own = pack.write_run_file(folder, study, pack.distances_of(table), recoded, data, files)
        written = own.source()
        with stage("compare every row"):
            refuse_torn(differing_rows(engine, recoded, written))
        with stage("look for extremes"):
            warnings = [*warnings, *comparison.warnings, *extreme_warnings(extreme_columns(engine, study, written))]
        with stage("measure all columns together"):
            whole = whole_file(engine, study, written)
        with stage("look for dependences"):
            dependences, in_vain = dependence_findings(engine, source, study, columns)
    with stage("measure the file"):
        after = released_classes(own, columns, recoded.suppressed)
        figures, loss = figures_of(study, after, planned), loss_of(after)
    compare(front, point, planned, recoded, figures, loss)
    findings = [*comparison.findings, *dependences]
    findings += policy_findings(
        study.policy,
        figures,
        whole,
        suppressed=recoded.suppressed,
        records=recoded.records,
        raw=recoded.suppressed == 0 and all(column.level == 0 for column in columns),
    )
    refuse_unaccepted(findings, study.policy.accept)
    contents = Contents(
        folder=folder,
        front=front,
        point=point,
        data=data,
        recoded=recoded,
        columns=columns,
        levels=levels,
        hierarchies=pack.about_hierarchies(study, folder, trees, files, names),
        before=classify(table, weights=weights),
        after=after,
        figures=figures,
        loss=loss,
        whole=whole,
        findings=findings,
        reason=reason,
        warnings=(*warnings, *in_vain, *_label_warnings(columns, names), *_name_warnings(recoded)),
    )
    return contents, comparison


def refuse_torn(rows: int) -> None:
    """Raise if rows of a file do not read back as they were written."""
    if rows:
        raise DataError(
            f"{rows} rows of the written file do not read back as they were meant",
            expected="cells that the file's own separator and quote can hold",
            remedy="""quote = '"' under [data] if the file quotes its values""",
        )


def _label_warnings(columns: Sequence[ColumnRecode], names: Mapping[str, Naming]) -> list[str]:
    """Labels that mean something else on another level. A value as the name of a group is true of all its records."""
    own = {name: set(naming.labels) - set(naming.tree.levels[naming.level]) for name, naming in names.items()}
    ambiguous = {c.name: [label for label in c.ambiguous if label not in own.get(c.name, ())] for c in columns}
    return [
        f"{name} is released with {len(labels)} labels that its hierarchy uses on several levels: "
        "read without the plan they mean something else."
        for name, labels in ambiguous.items()
        if labels
    ]


def _name_warnings(recoded: Recoded) -> list[str]:
    names = pack.clashing(recoded.names)
    if not names:
        return []
    return [f"column names that differ only in case are written with a number behind: {shortened(names)}."]


def compare(
    front: Front, point: Point, planned: ClassTable, recoded: Recoded, figures: Mapping[str, Any], loss: float
) -> None:
    """Raise unless what was measured on the file is what the search said.

    An objective taken before suppression is not in the file: the plan's own classes say it.
    """
    whole = planned.with_suppressed(np.zeros_like(planned.suppressed))
    taken = {objective.name for objective in front.objectives if objective.taken != "released"}
    pairs: list[tuple[str, float, float]] = [
        ("the number of records", planned.records, recoded.records),
        ("the number of suppressed records", point.suppressed, recoded.suppressed),
        ("loss", point.loss, loss),
        (K.name, K.value(planned), figure_value(figures[K.name])),
    ]
    for name, expected in point.values.items():
        if name not in figures:
            raise SfumatoError(f"{name} could not be measured on the released file", expected="every objective")
        found = measure(name).value(whole) if name in taken else figure_value(figures[name])
        pairs.append((name, expected, found))
    for name, expected, found in pairs:
        if not same(expected, found):
            raise SfumatoError(
                f"{name} of the written file is {found:.10g}, not {expected:.10g} as the search said",
                expected="the same figures on the file as in the search; nothing was released",
                remedy="search again with this version",
            )
