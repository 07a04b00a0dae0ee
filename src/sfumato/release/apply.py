"""Recode another file, next year's say, with a plan that was published or found before."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sfumato.data.atomic import refuse_existing, write_text
from sfumato.data.engine import open_engine
from sfumato.data.hierarchies import Hierarchy
from sfumato.errors import InputError
from sfumato.front import load_front
from sfumato.measures.classes import classify
from sfumato.measures.suppression import suppress_planned
from sfumato.release import pack
from sfumato.release.columns import column_recodes
from sfumato.release.labels import Naming, named_trees, naming_from, namings
from sfumato.release.publish import refuse_torn
from sfumato.release.readback import figures_of, loss_of, released_classes
from sfumato.release.recode import Below, Recoded, recode, relabel, released_values
from sfumato.release.rows import differing_rows, write_mixed
from sfumato.release.verify import study_of
from sfumato.study import Study


@dataclass(frozen=True)
class SavedPlan:
    """A plan with all it needs on other data: how to read them, the hierarchies as they were, levels and limits.

    `names` are those of the groups in the release, which hold for what the other data release too.
    """

    study: Study
    trees: Mapping[str, Hierarchy]
    distances: Mapping[str, str]
    levels: Mapping[str, int]
    below: Below
    told: Mapping[str, Any]
    names: Mapping[str, Naming]


@dataclass(frozen=True)
class Applied:
    """A file that was recoded with a saved plan, and what was found."""

    data: Path
    report: Path
    found: Mapping[str, Any]

    def as_dict(self) -> dict[str, Any]:
        return {"data": str(self.data), "report": str(self.report), **self.found}


def apply_plan(
    folder: str | Path,
    new_file: str | Path,
    target: str | Path,
    *,
    point: int | None = None,
    unseen: str = "error",
) -> Applied:
    """Recode `new_file` with the plan of a release folder, or with a point of a front's folder, and measure the result.

    Values that the plan's hierarchies do not know are an error, or with `unseen="star"` released as `*`.
    Beside the file stands a report in JSON, under the file's name with .json behind it.
    """
    if unseen not in ("error", "star"):
        raise InputError(f'unseen = "{unseen}"', expected='"error" or "star"')
    target = Path(target).absolute()
    report = target.with_name(target.name + ".json")
    for path in (target, report):
        refuse_existing(path, overwrite=False)
    saved = saved_plan(folder, point)
    part = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        found = _apply(part, saved, Path(new_file), target.name, star=unseen == "star")
        text = json.dumps(found, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
        (part / target.name).rename(target)
        write_text(report, text)
    except OSError as error:
        raise InputError(
            f"{target} could not be written: {error.strerror}", expected="a folder that can be written to, with room"
        ) from error
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return Applied(target, report, found)


def saved_plan(folder: str | Path, point: int | None = None) -> SavedPlan:
    """The plan of a release folder, or of a point of a front's folder."""
    folder = Path(folder)
    if (folder / pack.MANIFEST).is_file():
        manifest = pack.read_manifest(folder)
        if point is not None and point != manifest["point"]["id"]:
            raise InputError(
                f"the release is point {manifest['point']['id']}, not {point}",
                expected="the point that was published",
                remedy="leave --point out, or name the folder of the front",
            )
        trees = pack.load_hierarchies(folder, manifest["hierarchies"])
        point_, levels = manifest["point"], manifest["levels"]
        below = Below(point_["suppress_below"], point_.get("diversity_below", 0))
        study = study_of(manifest)
        told = {"levels": levels, **below.as_dict()}
        return SavedPlan(study, trees, {}, levels, below, told, _saved_names(manifest, trees, study))
    front = load_front(folder)
    if point is None:
        raise InputError(
            "a front has many plans",
            expected="which point to apply",
            remedy=f"--point with an id from 0 to {len(front.points) - 1}",
        )
    plan, table = front.point(point).plan, front.study.table()
    if table.fingerprint != front.fingerprint:
        raise InputError(
            "the table has changed since the search, so its hierarchies may have too",
            expected="the table that was searched",
            remedy="apply a release folder instead: it holds its hierarchies",
        )
    trees, levels = pack.trees_and_levels(front.study, table, plan)
    planned = suppress_planned(classify(table, plan.recoding(table)), plan.suppress_below, plan.diversity_below)
    names = namings(front.study.columns, planned, trees, levels)
    trees = named_trees(trees, names)
    return SavedPlan(front.study, trees, pack.distances_of(table), levels, Below.of(plan), plan.as_dict(), names)


def _saved_names(manifest: Mapping[str, Any], trees: Mapping[str, Hierarchy], study: Study) -> dict[str, Naming]:
    """How the groups of a release were named."""
    return {
        name: naming_from(entry["named"], trees[name], manifest["levels"][name], study.columns[name])
        for name, entry in manifest["hierarchies"].items()
        if entry["named"] is not None
    }


def _apply(folder: Path, saved: SavedPlan, new_file: Path, name: str, star: bool) -> dict[str, Any]:
    study = saved.study
    source = study.source(new_file)
    columns = column_recodes(study, saved.levels, saved.trees)
    with open_engine(study.engine, study.engine_options) as engine:
        recoded = recode(engine, source, study, columns, saved.below, star_unseen=star)
        # A group may now release values that it did not before: its name must be true of them too.
        values = released_values(engine, columns, saved.below, star_unseen=star)
        names = {name: naming.with_values(values[name]) for name, naming in saved.names.items()}
        trees = named_trees(saved.trees, names)
        columns = column_recodes(study, saved.levels, trees)
        relabel(engine, recoded, study, columns, star_unseen=star)
        files = pack.write_hierarchies(folder, trees)
        write_mixed(engine, recoded, folder / name)
        own = pack.write_run_file(folder, study, saved.distances, recoded, name, files)
        refuse_torn(differing_rows(engine, recoded, own.source()))
    classes = released_classes(own, columns, recoded.suppressed, unseen=star)
    return _found(study, saved.told, recoded, new_file, loss_of(classes), figures_of(own, classes, None))


def _found(
    study: Study, plan: Mapping[str, Any], recoded: Recoded, new_file: Path, loss: float, figures: Mapping[str, Any]
) -> dict[str, Any]:
    return {
        "source": {"name": new_file.name, "sha256": recoded.source.fingerprint, "rows_read": recoded.rows_read},
        "plan": dict(plan),
        "records": recoded.records,
        "suppressed": recoded.suppressed,
        "released": recoded.rows,
        "loss": loss,
        "unseen": {
            u.column: {"values": u.values, "records": u.records, "examples": list(u.examples)} for u in recoded.unseen
        },
        "figures": dict(figures),
        "max_suppression": study.search.max_suppression,
    }
