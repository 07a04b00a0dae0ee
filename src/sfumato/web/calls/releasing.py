"""Publish a point, verify a release, and hand it out."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from sfumato.decide import ask, pick
from sfumato.release.pack import DICTIONARY, EXTERNAL, INTERNAL, MANIFEST, PUBLIC, read_manifest
from sfumato.runtime.atomic import new_file
from sfumato.systems.publish import publish as published
from sfumato.systems.registry import VERIFIERS
from sfumato.systems.verify import verify as verified
from sfumato.web.answers import Published
from sfumato.web.calls.binding import refuse_changed
from sfumato.web.calls.channels import channels_of
from sfumato.web.calls.shelf import checked, front_of, study_of
from sfumato.web.places import Places, new_id, read_json, write_json

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
    if read_json(places.job(study, job) / "job.json")["kind"] == "search":
        saved, table = front_of(places, study, job)
        choice = ask(saved, table=table, **limits).choice if limits else pick(saved, point=number)
    else:
        saved = channels_of(places, study, job)
        checked(places, saved.study)
        refuse_changed(study_of(places, study), read_json(places.study(study) / "study.json"))
        if keep:
            saved = replace(saved, study=saved.study.with_channel(keep=tuple(keep)))
        choice = pick(saved, point=number)
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
        whole=described["whole"],
        **verify(places, study, made.folder.name),
    ).model_dump()


def verify(places: Places, study: str, release: str) -> dict[str, Any]:
    """Check a release again: its files, its figures, and every row against the source."""
    folder = places.release(study, release)
    declared = study_of(places, study)
    checked = verified(
        folder, declared.folder / declared.data.path, engine=declared.engine, engine_options=declared.engine_options
    )
    return {
        "verified": bool(checked),
        "differences": [str(difference) for difference in checked.differences],
        "not_compared": list(checked.not_compared),
    }


def releases(places: Places, study: str) -> list[dict[str, Any]]:
    """Every release of a study."""
    folder = places.study(study) / "releases"
    listed = []
    for path in sorted(path.parents[1] for path in folder.glob(f"*/{MANIFEST}")):
        manifest = read_manifest(path)
        entry: dict[str, Any] = {name: manifest[name] for name in ("records", "released", "suppressed", "loss", "data")}
        about = read_json(folder / f"{path.name}.json")
        reports = [Path(name).name for name in REPORTS if (path / name).is_file()]
        entry |= {"name": path.name, "point": manifest["point"], "reports": reports, "about": about}
        listed.append(
            entry
            | {
                "folder": places.shown(path),
                "says": VERIFIERS[manifest["system"]].says(manifest),
                "whole": manifest.get("whole"),
            }
        )
    return listed


def _figures(manifest: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The figures of a release by name, each with its value."""
    named: dict[str, dict[str, Any]] = {}
    for name, entry in manifest["figures"].items():
        if not isinstance(entry, dict) or "value" in entry:
            named[name] = entry if isinstance(entry, dict) else {"value": entry}
        else:  # those of a part
            named |= {f"{name}: {inner}": {"value": value} for inner, value in entry.items() if inner != "infinite"}
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
