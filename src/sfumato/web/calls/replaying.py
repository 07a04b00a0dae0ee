"""Show as: the run file, the program and the commands that do the same as the page, to the same result."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Any

from sfumato.decide.ask import Answer, ask
from sfumato.study import Study, read
from sfumato.systems.registry import load_front
from sfumato.web.calls.channels import changed
from sfumato.web.calls.shelf import front_of
from sfumato.web.places import Places, read_json

NEVER = "this search was stopped before its first generation, so it cannot be repeated to the same front"


@dataclass(frozen=True)
class Replayed:
    """What is to be done again: the study, the kind of the job, how a release was asked for, and a warning if any."""

    study: Study
    kind: str
    asked: dict[str, Any]
    warning: str = ""

    @property
    def options(self) -> dict[str, Any]:
        """What a publication was given beside its point."""
        names = ("reason", "accept", "keep")
        given = {name: self.asked[name] for name in names if self.asked.get(name)}
        return given | ({"keep": self.asked["keep"]} if self.asked.get("keep") is not None else {})


def run_file(places: Places, study: str, job: str | None) -> str:
    """The run file of a study as it is now, or of a job so that it ends where the job ended."""
    replayed = _replayed(places, study, job)
    return _comment(replayed) + replayed.study.as_toml()


def program(
    places: Places, study: str, job: str | None, number: int | None, limits: dict[str, float] | None = None
) -> str:
    """A Python program: the search, and the release of what was chosen."""
    replayed = _replayed(places, study, job, number, limits)
    lines = ["import tomllib", "", "import sfumato as sf", ""]
    lines += [f"RUN = {_literal(replayed.study.as_toml())}", "", "study = sf.Study(**tomllib.loads(RUN))"]
    if replayed.kind == "groups":
        lines += ["for seen in sf.attack(study):", "    print(seen.line())"]
    elif job is None:
        audit = "print(f\"k = {audit.figures['k'].value:g} of {audit.rows:,} records\")"
        lines += ["audit = sf.audit(study)", audit]
    lines += ["front = sf.search(study)", 'print(f"{len(front.points)} points: {front.how}")']
    if limits or number is not None:
        if limits:
            arguments = ", ".join(f"{name}={value!r}" for name, value in limits.items())
            lines += [f"choice = sf.ask(front, {arguments}).choice"]
        else:
            if "keep" in replayed.options:  # the search was made before these columns were chosen
                lines.insert(0, "from dataclasses import replace")
                kept = f"front.study.with_channel(keep={tuple(replayed.options['keep'])!r})"
                lines += [f"front = replace(front, study={kept})"]
            lines += [f"choice = sf.pick(front, point={number})"]
        given = {name: value for name, value in replayed.options.items() if name != "keep"}
        more = "".join(f", {name}={value!r}" for name, value in given.items())
        lines += [f'sf.publish(choice, "release"{more})']
    return _comment(replayed) + "\n".join(lines) + "\n"


def commands(
    places: Places, study: str, job: str | None, number: int | None, limits: dict[str, float] | None = None
) -> str:
    """Commands over that run file, saved as run.toml."""
    replayed = _replayed(places, study, job, number, limits)
    lines = ["# Save the run file as run.toml in this folder first."]
    if replayed.kind == "groups":
        lines += ["sfumato groups attack run.toml"]
    elif replayed.kind == "search":
        lines += ["sfumato audit --run run.toml"]
    lines += ["sfumato search run.toml -o front"]
    lines += ["sfumato map front"] if replayed.kind == "search" else []
    if (limits or number is not None) and job is not None:
        point = f"--point {number}"
        if limits:
            offer = _answer(places, study, job, limits).offer
            point = f"--point {offer.point}"
            if not offer.searched:
                point += f" --suppress-below {offer.suppress_below}"
                point += f" --diversity-below {offer.diversity_below}" if offer.diversity_below else ""
        lines += [f"sfumato publish front {point}{_options(replayed.options)} -o release"]
        lines += ["sfumato verify release --source run.toml"]
    return _comment(replayed) + "\n".join(lines) + "\n"


def _replayed(
    places: Places,
    study: str,
    job: str | None,
    number: int | None = None,
    limits: dict[str, float] | None = None,
) -> Replayed:
    """The study, or a job's with what was asked of it; of a search that was stopped, after as many evaluations."""
    if job is None:
        declared = read(places.study(study) / "run.toml")
        return Replayed(declared, "groups" if declared.groups is not None and not declared.columns else "search", {})
    folder = places.job(study, job)
    about: dict[str, Any] = read_json(folder / "job.json")
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


def _published(
    places: Places, study: str, job: str, number: int | None, limits: dict[str, float] | None
) -> dict[str, Any]:
    """How this point was published last, if it was: with which reason, which rules accepted, which columns kept."""
    asked: list[tuple[float, dict[str, Any]]] = []
    for path in (places.study(study) / "jobs").glob("*/job.json"):
        about = read_json(path)
        given = about.get("with", {})
        same = given.get("job") == job and (given.get("limits") or None) == (limits or None)
        if about.get("kind") == "publish" and same and (limits or given.get("number") == number):
            asked.append((float(about.get("added", 0.0)), given))
    return max(asked, key=lambda pair: pair[0])[1] if asked else {}


def _answer(places: Places, study: str, job: str, limits: dict[str, float]) -> Answer:
    saved, table = front_of(places, study, job)
    given: dict[str, Any] = dict(limits)
    return ask(saved, table=table, **given)


def _options(given: dict[str, Any]) -> str:
    options = f" --reason {shlex.quote(given['reason'])}" if given.get("reason") else ""
    options += "".join(f" --keep {shlex.quote(name)}" for name in given.get("keep") or ())
    accepted = given.get("accept", {}).items()
    return options + "".join(f" --accept {shlex.quote(f'{rule}={reason}')}" for rule, reason in accepted)


def _comment(replayed: Replayed) -> str:
    return f"# Not the same result: {replayed.warning}.\n" if replayed.warning else ""


def _literal(text: str) -> str:
    return f'r"""\n{text}"""' if '"""' not in text and not text.endswith("\\") else repr(text)
