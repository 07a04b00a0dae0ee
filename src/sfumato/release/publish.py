"""Publish a point of a front: recode the source, read the file back, measure it, and keep it only if it is as said."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.data.engine import open_engine
from sfumato.data.stages import Stage, recording, stage
from sfumato.errors import DataError, InputError, SfumatoError, shortened
from sfumato.front import Front, Point
from sfumato.measures.classes import ClassTable, classify
from sfumato.measures.registry import measure
from sfumato.measures.suppression import suppress_planned
from sfumato.release import ledger, pack
from sfumato.release.columns import ColumnRecode, column_recodes
from sfumato.release.contents import Contents
from sfumato.release.extremes import extreme_columns, extreme_warnings
from sfumato.release.labels import Naming, named_trees, namings
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


@dataclass(frozen=True)
class Release:
    """A folder that was published: the file, its reports, its manifest; and what the publisher should know."""

    folder: Path
    data: Path
    manifest: Mapping[str, Any]
    warnings: tuple[str, ...] = ()
    stages: tuple[Stage, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        told = ("point", "records", "suppressed", "released", "loss", "figures", "files")
        return {
            "folder": str(self.folder),
            "data": str(self.data),
            **{name: self.manifest[name] for name in told},
            "warnings": list(self.warnings),
            "stages": [stage.as_dict() for stage in self.stages],
        }


def publish(
    front: Front,
    number: int,
    folder: str | Path,
    *,
    starred: bool = False,
    reason: str = "",
    state: str | Path | None = None,
) -> Release:
    """Write point `number` of a front as a new release folder, whole or not at all.

    Suppressed rows are left out, or with `starred` kept with every quasi-identifier hidden and a mark.
    `state` is the folder of the ledger; the user's own unless given.
    """
    folder = Path(folder).absolute()
    refuse_taken(folder)
    point = front.point(number)
    _refuse_printed(front)
    _same_source(front)
    release = {**point.plan.as_dict(), "starred": starred}
    warnings = ledger.warnings_for(front.fingerprint, release, state)
    part = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        inside = part / folder.name
        inside.mkdir()
        with recording() as recorder:
            contents = _build(inside, front, point, starred, reason, warnings)
            with stage("write the reports"):
                manifest = contents.write()
        _same_source(front)
        flush(inside)
        refuse_taken(folder)
        inside.rename(folder)
    except OSError as error:
        raise InputError(
            f"the release could not be written: {error.strerror}", expected="a folder that can be written to, with room"
        ) from error
    finally:
        shutil.rmtree(part, ignore_errors=True)
    late = ledger.record(front.fingerprint, release, folder, state)
    return Release(folder, folder / contents.data, manifest, (*contents.warnings, *late), tuple(recorder.done))


def refuse_taken(folder: Path) -> None:
    """Raise unless a new folder can be made at a path."""
    if folder.exists() or folder.is_symlink():
        raise InputError(f"{folder} is there already", expected="a new folder", remedy="another name with -o")
    if not folder.parent.is_dir():
        raise InputError(f"there is no folder {folder.parent}", expected="an existing folder to write to")


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


def _build(folder: Path, front: Front, point: Point, starred: bool, reason: str, earlier: Sequence[str]) -> Contents:
    """Everything in the folder: recode, write, read back, compare, report."""
    study, plan = front.study, point.plan
    table = study.table()
    weights = weights_of(study, table)
    with stage("classify"):
        planned = classify(table, plan.recoding(table), weights)
    planned = suppress_planned(planned, plan.suppress_below, plan.diversity_below)
    trees, levels = pack.trees_and_levels(study, table, plan)
    names = namings(study.columns, planned, trees, levels)
    trees = named_trees(trees, names)
    columns = column_recodes(study, levels, trees)
    files = pack.write_hierarchies(folder, trees)
    source = study.source()
    data = pack.data_name(source.path)
    with open_engine(study.engine, study.engine_options) as engine:
        with stage("count classes"):
            recoded = recode(engine, source, study, columns, Below.of(plan), starred=starred)
        with stage("write the file"):
            write_mixed(engine, recoded, folder / data)
        own = pack.write_run_file(folder, study, pack.distances_of(table), recoded, data, files)
        written = own.source()
        with stage("compare every row"):
            refuse_torn(differing_rows(engine, recoded, written))
        with stage("look for extremes"):
            warnings = [*earlier, *extreme_warnings(extreme_columns(engine, study, written))]
    with stage("measure the file"):
        after = released_classes(own, columns, recoded.suppressed, starred=starred)
        figures, loss = figures_of(study, after, planned), loss_of(after)
    compare(front, point, planned, recoded, figures, loss)
    return Contents(
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
        reason=reason,
        warnings=(*warnings, *_label_warnings(columns, names), *_name_warnings(recoded)),
    )


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
        ("k", measure("k").value(planned), figure_value(figures["k"])),
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


def flush(folder: Path) -> None:
    """Everything on the disk before the folder gets its name."""
    for path in folder.rglob("*"):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
