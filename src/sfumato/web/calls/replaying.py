"""Show as: the run file, the program and the commands that do the same as the page, to the same result."""

from __future__ import annotations

import shlex
from typing import Any

from sfumato.study import Study, read
from sfumato.web.calls.channels import changed
from sfumato.web.places import Places, read_json


def run_file(places: Places, study: str, job: str | None) -> str:
    """The run file of a study as it is now, or of a job as it was started."""
    return _declared(places, study, job)[0].as_toml()


def program(
    places: Places, study: str, job: str | None, number: int | None, limits: dict[str, float] | None = None
) -> str:
    """A Python program: the search, and the release of what was chosen."""
    declared, kind = _declared(places, study, job)
    lines = ["import tomllib", "", "import sfumato as sf", "", f"RUN = {_literal(declared.as_toml())}", ""]
    lines += ["study = sf.Study(**tomllib.loads(RUN))"]
    if kind == "channel":
        lines += ["front = sf.search(study)", 'print(f"{len(front.points)} channels")']
        if number is not None:
            lines += [f"chosen = sf.pick(front, point={number})"]
            lines += ['sf.publish(chosen, "release")']
    elif kind == "groups":
        lines += ["for seen in sf.attack(study):", "    print(seen.line())"]
        lines += [
            "front = sf.search(study)",
            'print("still identified, by plan:", [point.values["findings"] for point in front.points])',
        ]
    else:
        if job is None:
            audit = "print(f\"k = {audit.figures['k'].value:g} of {audit.rows:,} records\")"
            lines += ["audit = sf.audit(study)", audit]
        lines += ["front = sf.search(study)", 'print(f"{len(front.points)} points: {front.how}")']
        if limits:
            arguments = ", ".join(f"{name}={value!r}" for name, value in limits.items())
            lines += [f"choice = sf.ask(front, {arguments}).choice", 'sf.publish(choice, "release")']
        elif number is not None:
            lines += [f"choice = sf.pick(front, point={number})", 'sf.publish(choice, "release")']
    return "\n".join(lines) + "\n"


def commands(
    places: Places, study: str, job: str | None, number: int | None, limits: dict[str, float] | None = None
) -> str:
    """Commands over that run file, saved as run.toml."""
    declared, kind = _declared(places, study, job)
    if kind == "channel":
        lines = ["sfumato search run.toml -o front"]
        if number is not None:
            lines += [f"sfumato publish front --point {number} -o release", _verify(declared)]
    elif kind == "groups":
        lines = ["sfumato groups attack run.toml", "sfumato search run.toml -o front"]
        lines += [f"sfumato publish front{'' if number is None else f' --point {number}'} -o release"]
        lines += ["sfumato verify release --source run.toml"]
    else:
        lines = ["sfumato audit --run run.toml", "sfumato search run.toml -o front", "sfumato map front"]
        if limits:
            options = " ".join(f"--{name.replace('_', '-')} {value:g}" for name, value in limits.items())
            lines += [f"sfumato ask front {options}   # prints the command that publishes the answer"]
        elif number is not None:
            lines += [f"sfumato publish front --point {number} -o release", _verify(declared)]
    return "\n".join(lines) + "\n"


def _declared(places: Places, study: str, job: str | None) -> tuple[Study, str]:
    """The study, or a job's with what was asked of it, and the kind of the job."""
    if job is None:
        declared = read(places.study(study) / "run.toml")
        return declared, "groups" if declared.groups is not None and not declared.columns else "search"
    folder = places.job(study, job)
    about: dict[str, Any] = read_json(folder / "job.json")
    if about["kind"] == "publish":
        return _declared(places, study, str(about["with"]["job"]))
    declared = read(folder / "run.toml")
    return (changed(declared, about["with"]) if about["kind"] == "channel" else declared), str(about["kind"])


def _verify(study: Study) -> str:
    return f"sfumato verify release --source {shlex.quote(str((study.folder / study.data.path).absolute()))}"


def _literal(text: str) -> str:
    return f'r"""\n{text}"""' if '"""' not in text and not text.endswith("\\") else repr(text)
