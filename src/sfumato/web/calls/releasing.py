"""Publish a point, verify a release, and hand it out."""

from __future__ import annotations

import time
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from sfumato.decide.ask import ask
from sfumato.decide.pick import Choice, pick
from sfumato.release.pack import DICTIONARY, EXTERNAL, INTERNAL, MANIFEST, PUBLIC, read_manifest
from sfumato.runtime.atomic import new_file
from sfumato.sources.address import located
from sfumato.sources.roles import Role
from sfumato.systems.publish import publish as published
from sfumato.systems.publish import rehearse
from sfumato.systems.registry import VERIFIERS
from sfumato.systems.verify import verify as verified
from sfumato.web.answers import Published
from sfumato.web.calls.binding import refuse_changed
from sfumato.web.calls.channels import channels_of
from sfumato.web.calls.shelf import checked, front_of, study_of
from sfumato.web.places import Places, new_id, read_json, write_json

GIVEN = {
    "best_guess": "best guess right, given the other columns",
    "guess_from_file": "guess learned from the file right, given the other columns",
    "worst_posterior": "worst posterior, given the other columns",
    "largest_share": "largest share without a report, given the other columns",
}
REPORTS = (INTERNAL, EXTERNAL, DICTIONARY[1])


def publish(
    places: Places,
    study: str,
    job: str,
    number: int,
    reason: str,
    limits: dict[str, Any] | None = None,
    accept: dict[str, str] | None = None,
    keep: list[str] | None = None,
) -> dict[str, Any]:
    """Write a release, then verify it against the source; the ledger is the user's own.

    With limits it is the answer to a question, which may suppress more or less than the searched point. A search that
    protected a group has swaps to publish instead of a recoding; one for channels has a channel to disguise a column
    with, beside the plain columns to `keep`.
    """
    folder = places.study(study) / "releases"
    folder.mkdir(exist_ok=True)
    choice = _chosen(places, study, job, number, limits, keep)
    number = choice.point.id
    target = folder / new_id(f"point-{number}")
    made = published(choice, target, reason=reason or None, accept=accept or {})
    write_json(folder / f"{made.folder.name}.json", {"job": job, "point": number, "reason": reason})
    described = made.as_dict()
    return Published(
        release=made.folder.name,
        folder=places.shown(made.folder),
        figures=_figures(made.manifest),
        warnings=described["warnings"],
        released=described["released"],
        suppressed=described["suppressed"],
        left_out=described["left_out"],
        whole=described["whole"],
        **verify(places, study, made.folder.name),
    ).model_dump()


def _chosen(
    places: Places,
    study: str,
    job: str,
    number: int,
    limits: dict[str, Any] | None = None,
    keep: list[str] | None = None,
) -> Choice:
    """What is to be released: a point of a front, or the answer to a question."""
    kind = read_json(places.job(study, job) / "job.json")["kind"]
    if kind == "search":
        saved, table = front_of(places, study, job)
        return ask(saved, table=table, **limits).choice if limits else pick(saved, point=number)
    saved = channels_of(places, study, job)
    checked(places, saved.study)
    refuse_changed(study_of(places, study), read_json(places.study(study) / "study.json"))
    if keep is not None:
        saved = replace(saved, study=saved.study.with_channel(keep=tuple(keep)))
    return pick(saved, point=number)


def look(
    places: Places,
    study: str,
    job: str,
    number: int,
    limits: dict[str, Any] | None = None,
    keep: list[str] | None = None,
) -> dict[str, Any]:
    """The last look: what would be released, column by column, what the policy says, and some rows.

    Everything is made and measured as publishing does, in a folder that is deleted again.
    """
    choice = _chosen(places, study, job, number, limits, keep)
    rehearsed = rehearse(choice)
    measured = rehearsed.measured
    roles = {name: str(column.role) for name, column in choice.front.study.columns.items()}
    hidden = [roles.get(name) == str(Role.SENSITIVE) for name in rehearsed.columns]
    entries = {entry["name"]: entry for entry in rehearsed.dictionary["columns"]}
    source = choice.front.study.source(undecided=True)
    return {
        "point": choice.point.id,
        "data": Path(rehearsed.data).name,
        "records": measured.records,
        "released": measured.records - measured.suppressed,
        "suppressed": measured.suppressed,
        "left_out": measured.left_out,
        "loss": measured.loss,
        "findings": [finding.as_dict() | {"key": finding.key} for finding in rehearsed.findings],
        "warnings": list(rehearsed.warnings),
        "whole": measured.whole.as_dict(),
        "columns": [
            {"name": name, "role": roles.get(name, ""), "released": name in entries, "entry": entries.get(name)}
            for name in source.names
        ],
        "rows": {
            "columns": list(rehearsed.columns),
            "rows": [["•••" if h else cell for cell, h in zip(row, hidden, strict=True)] for row in rehearsed.rows],
        },
    }


def verify(places: Places, study: str, release: str) -> dict[str, Any]:
    """Check a release again: its files, its figures, and every row against the source."""
    folder = places.release(study, release)
    declared = study_of(places, study)
    checked = verified(
        folder,
        located(declared.data.path, declared.folder),
        engine=declared.engine,
        engine_options=declared.engine_options,
    )
    pages = [f"{name}: another version drew it, and its words were not compared" for name in checked.pages]
    verdict = {
        "verified": bool(checked),
        "differences": [*(str(difference) for difference in checked.differences), *pages],
        "not_compared": list(checked.not_compared),
    }
    note = folder.parent / f"{release}.json"
    write_json(note, read_json(note) | {"verified": verdict["verified"], "checked": time.time()})
    return verdict


def releases(places: Places, study: str) -> list[dict[str, Any]]:
    """Every release of a study."""
    folder = places.study(study) / "releases"
    listed = []
    for path in sorted(path.parents[1] for path in folder.glob(f"*/{MANIFEST}")):
        manifest = read_manifest(path)
        entry: dict[str, Any] = {
            name: manifest[name] for name in ("records", "released", "suppressed", "left_out", "loss", "data")
        }
        about = read_json(folder / f"{path.name}.json")
        reports = [Path(name).name for name in REPORTS if (path / name).is_file()]
        entry |= {"name": path.name, "point": manifest["point"], "reports": reports, "about": about}
        listed.append(
            entry
            | {
                "folder": places.shown(path),
                "says": VERIFIERS[manifest["system"]].says(manifest),
                "whole": manifest.get("whole"),
                "created": manifest["created"],
                "sha256": manifest["files"].get(manifest["data"], ""),
                "accepted": len(manifest["accepted"]),
            }
        )
    return listed


def _figures(manifest: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The figures of a release by name, each with its value."""
    named: dict[str, dict[str, Any]] = {}
    for name, entry in manifest["figures"].items():
        if not isinstance(entry, dict) or "value" in entry:
            named[name] = entry if isinstance(entry, dict) else {"value": entry}
        else:  # those of a part; first what holds for someone who has the other columns of the file too
            given = entry.get("given") or {}
            named |= {f"{name}: {words}": {"value": given.get(figure)} for figure, words in GIVEN.items() if given}
            shown = {inner: value for inner, value in entry.items() if inner not in ("infinite", "given")}
            named |= {f"{name}: {inner}": {"value": value} for inner, value in shown.items()}
    return named


def pack(places: Places, study: str, release: str, *, private: bool = False) -> str:
    """The public part of a release as a zip file beside its folder, or the whole record; returns its path."""
    folder = places.release(study, release)
    inside, ending = (folder, "record") if private else (folder / PUBLIC, "public")
    target = folder.parent / f".{release}-{ending}.zip"
    with (
        new_file(target, overwrite=True, private=True) as part,
        zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as archive,
    ):
        for path in sorted(inside.rglob("*")):
            if path.is_file() and not path.is_symlink():
                archive.write(path, str(Path(release) / path.relative_to(inside)))
    return str(target)
