"""Publish a point, verify a release, and hand it out.

Show as: the run file, the program and the commands that do the same as the page, to the same result.
"""

from __future__ import annotations

import shlex
import time
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sfumato.base.files import new_file
from sfumato.base.json_types import Json
from sfumato.data.settings import Role, located
from sfumato.decide.ask import Answer, ask
from sfumato.decide.pick import Choice, pick
from sfumato.methods.publish import publish as published
from sfumato.methods.publish import rehearse
from sfumato.methods.publish import verify as verified
from sfumato.methods.registry import load_front, verifier_of
from sfumato.release.manifest import DICTIONARY, EXTERNAL, INTERNAL, MANIFEST, PUBLIC, read_manifest
from sfumato.study import Study, read
from sfumato.web.api.shelf import checked, front_of, refuse_changed, study_of
from sfumato.web.api.systems import changed, channels_of
from sfumato.web.schema import Published
from sfumato.web.workspace import Places, new_id, read_json, write_json

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
    limits: Json | None = None,
    accept: dict[str, str] | None = None,
    keep: list[str] | None = None,
) -> Json:
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
    places: Places, study: str, job: str, number: int, limits: Json | None = None, keep: list[str] | None = None
) -> Choice:
    """Return what is to be released: a point of a front, or the answer to a question."""
    kind = read_json(places.job(study, job) / "job.json")["kind"]
    if kind == "search":
        saved, table = front_of(places, study, job)
        return ask(saved, table=table, **limits).choice if limits else pick(saved, point=number)
    saved = channels_of(places, study, job)
    checked(places, saved.study)
    refuse_changed(study_of(places, study), read_json(places.study(study) / "study.json"))
    if keep is not None:
        saved = replace(saved, study=saved.study.replace(channel={"keep": tuple(keep)}))
    return pick(saved, point=number)


def look(
    places: Places, study: str, job: str, point: int, limits: Json | None = None, keep: list[str] | None = None
) -> Json:
    """Describe what would be released: column by column, with the findings of the policy and some rows.

    Everything is made and measured as publishing does, in a folder that is deleted again.
    """
    choice = _chosen(places, study, job, point, limits, keep)
    rehearsed = rehearse(choice)
    manifest = rehearsed.manifest
    roles = {name: str(column.role) for name, column in choice.front.study.columns.items()}
    hidden = [roles.get(name) == str(Role.SENSITIVE) for name in rehearsed.columns]
    entries = {entry["name"]: entry for entry in manifest["dictionary"]["columns"]}
    source = choice.front.study.source(undecided=True)
    return {
        "point": choice.point.id,
        "data": Path(manifest["data"]).name,
        "records": manifest["records"],
        "released": manifest["released"],
        "suppressed": manifest["suppressed"],
        "left_out": manifest["left_out"],
        "loss": manifest["loss"],
        "findings": [finding.as_dict() | {"key": finding.key} for finding in rehearsed.findings],
        "warnings": manifest["warnings"],
        "whole": manifest["whole"],
        "columns": [
            {"name": name, "role": roles.get(name, ""), "released": name in entries, "entry": entries.get(name)}
            for name in source.names
        ],
        "rows": {
            "columns": list(rehearsed.columns),
            "rows": [["•••" if h else cell for cell, h in zip(row, hidden, strict=True)] for row in rehearsed.rows],
        },
    }


def verify(places: Places, study: str, release: str) -> Json:
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


def releases(places: Places, study: str) -> list[Json]:
    """Return every release of a study."""
    folder = places.study(study) / "releases"
    listed = []
    for path in sorted(path.parents[1] for path in folder.glob(f"*/{MANIFEST}")):
        manifest = read_manifest(path)
        entry: Json = {
            name: manifest[name] for name in ("records", "released", "suppressed", "left_out", "loss", "data")
        }
        about = read_json(folder / f"{path.name}.json")
        reports = [Path(name).name for name in REPORTS if (path / name).is_file()]
        entry |= {"name": path.name, "point": manifest["point"], "reports": reports, "about": about}
        listed.append(
            entry
            | {
                "folder": places.shown(path),
                "says": verifier_of(manifest).says(manifest),
                "whole": manifest.get("whole"),
                "created": manifest["created"],
                "sha256": manifest["files"].get(manifest["data"], ""),
                "accepted": len(manifest["accepted"]),
            }
        )
    return listed


def _figures(manifest: Mapping[str, Any]) -> dict[str, Json]:
    """Return the figures of a release by name, each with its value."""
    named: dict[str, Json] = {}
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
    """Pack the public part of a release, or the whole record, into a zip file and return its path."""
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


NEVER = "this search was stopped before its first generation, so it cannot be repeated to the same front"


@dataclass(frozen=True)
class Replayed:
    """What is to be done again: the study, the kind of the job, how a release was asked for, and a warning if any."""

    study: Study
    kind: str
    asked: Json
    warning: str = ""

    @property
    def options(self) -> Json:
        """What a publication was given with its point."""
        names = ("reason", "accept", "keep")
        given = {name: self.asked[name] for name in names if self.asked.get(name)}
        return given | ({"keep": self.asked["keep"]} if self.asked.get("keep") is not None else {})


def run_file(places: Places, study: str, job: str | None) -> str:
    """Return the run file of a study as it is now, or of a job so that it ends where the job ended."""
    replayed = _replayed(places, study, job)
    return _comment(replayed) + replayed.study.as_toml()


def program(
    places: Places, study: str, job: str | None, point: int | None, limits: dict[str, float] | None = None
) -> str:
    """Return a Python program: the search, and the release of what was chosen."""
    replayed = _replayed(places, study, job, point, limits)
    lines = ["import tomllib", "", "import sfumato as sf", ""]
    lines += [f"RUN = {_literal(replayed.study.as_toml())}", "", "study = sf.Study(**tomllib.loads(RUN))"]
    if replayed.kind == "groups":
        lines += ["for seen in sf.attack(study):", "    print(seen.line())"]
    elif job is None:
        audit = "print(f\"k = {audit.figures['k'].value:g} of {audit.rows:,} records\")"
        lines += ["audit = sf.audit(study)", audit]
    lines += ["front = sf.search(study)", 'print(f"{len(front.points)} points: {front.how}")']
    if limits or point is not None:
        if limits:
            arguments = ", ".join(f"{name}={value!r}" for name, value in limits.items())
            lines += [f"choice = sf.ask(front, {arguments}).choice"]
        else:
            if "keep" in replayed.options:  # the search was made before these columns were chosen
                lines.insert(0, "from dataclasses import replace")
                kept = f"front.study.replace(channel={{'keep': {tuple(replayed.options['keep'])!r}}})"
                lines += [f"front = replace(front, study={kept})"]
            lines += [f"choice = sf.pick(front, point={point})"]
        given = {name: value for name, value in replayed.options.items() if name != "keep"}
        more = "".join(f", {name}={value!r}" for name, value in given.items())
        lines += [f'sf.publish(choice, "release"{more})']
    return _comment(replayed) + "\n".join(lines) + "\n"


def commands(
    places: Places, study: str, job: str | None, point: int | None, limits: dict[str, float] | None = None
) -> str:
    """Commands over that run file, saved as run.toml."""
    replayed = _replayed(places, study, job, point, limits)
    lines = ["# Save the run file as run.toml in this folder first."]
    if replayed.kind == "groups":
        lines += ["sfumato groups attack run.toml"]
    elif replayed.kind == "search":
        lines += ["sfumato audit --run run.toml"]
    lines += ["sfumato search run.toml -o front"]
    lines += ["sfumato map front"] if replayed.kind == "search" else []
    if (limits or point is not None) and job is not None:
        chosen = f"--point {point}"
        if limits:
            offer = _answer(places, study, job, limits).offer
            chosen = f"--point {offer.point}"
            if not offer.searched:
                chosen += f" --suppress-below {offer.suppress_below}"
                chosen += f" --diversity-below {offer.diversity_below}" if offer.diversity_below else ""
        lines += [f"sfumato publish front {chosen}{_options(replayed.options)} -o release"]
        lines += ["sfumato verify release --source run.toml"]
    return _comment(replayed) + "\n".join(lines) + "\n"


def _replayed(
    places: Places, study: str, job: str | None, number: int | None = None, limits: dict[str, float] | None = None
) -> Replayed:
    """Return the study, or that of a job with its settings; for a stopped search, with as many evaluations."""
    if job is None:
        declared = read(places.study(study) / "run.toml")
        return Replayed(declared, "groups" if declared.groups is not None and not declared.columns else "search", {})
    folder = places.job(study, job)
    about: Json = read_json(folder / "job.json")
    if about["kind"] == "publish":
        return _replayed(places, study, str(about["with"]["job"]), number, limits)
    declared = read(folder / "run.toml")
    asked = _published(places, study, job, number, limits)
    if about["kind"] == "channel":
        return Replayed(changed(declared, about["with"]), "channel", asked)
    if about["kind"] == "groups":
        return Replayed(declared.with_search(system="groups"), "groups", asked)
    warning = ""
    if (folder / "front" / "front.json").is_file() and about.get("status") != "done":
        front = load_front(folder / "front")
        declared = front.study
        warning = "" if front.certificate.get("repeatable", True) else NEVER
    return Replayed(declared, "search", asked, warning)


def _published(places: Places, study: str, job: str, number: int | None, limits: dict[str, float] | None) -> Json:
    """Return how this point was published last, if it was: reason, accepted rules, kept columns."""
    asked: list[tuple[float, Json]] = []
    for path in (places.study(study) / "jobs").glob("*/job.json"):
        about = read_json(path)
        given = about.get("with", {})
        same = given.get("job") == job and (given.get("limits") or None) == (limits or None)
        if about.get("kind") == "publish" and same and (limits or given.get("number") == number):
            asked.append((float(about.get("added", 0.0)), given))
    return max(asked, key=lambda pair: pair[0])[1] if asked else {}


def _answer(places: Places, study: str, job: str, limits: dict[str, float]) -> Answer:
    saved, table = front_of(places, study, job)
    given: Json = dict(limits)
    return ask(saved, table=table, **given)


def _options(given: Json) -> str:
    options = f" --reason {shlex.quote(given['reason'])}" if given.get("reason") else ""
    options += "".join(f" --keep {shlex.quote(name)}" for name in given.get("keep") or ())
    accepted = given.get("accept", {}).items()
    return options + "".join(f" --accept {shlex.quote(f'{rule}={reason}')}" for rule, reason in accepted)


def _comment(replayed: Replayed) -> str:
    return f"# Not the same result: {replayed.warning}.\n" if replayed.warning else ""


def _literal(text: str) -> str:
    return f'r"""\n{text}"""' if '"""' not in text and not text.endswith("\\") else repr(text)
