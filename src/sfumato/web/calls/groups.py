"""Groups: what an attacker sees of each area, and what is left of it after the fewest swaps."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from sfumato.errors import InputError, StoppedError, counted
from sfumato.study import Study, read
from sfumato.systems.groups.attack.attack import attack
from sfumato.systems.groups.front import report_of
from sfumato.systems.search import search as find
from sfumato.web.calls.outdated import changes_since
from sfumato.web.places import Places, read_json, write_json
from sfumato.web.plain import plain


def search(study: Study, given: dict[str, Any], folder: Path, progress: Callable[[int, int], bool]) -> dict[str, Any]:
    """Attack the file, and if asked protect it; what was found stands in the job's folder."""
    if study.groups is None:
        raise InputError(
            "the run file has no [groups] section",
            expected="groups, areas and an auxiliary file",
            remedy="open a run file with [groups]; docs/groups.md shows one",
        )
    seen = attack(study, progress=progress)
    report: dict[str, Any] = {"attack": seen[0].as_dict() | {"spread": [one.line() for one in seen]}}
    how = f"{counted(len(report['attack']['areas']), 'area')} attacked"
    if given.get("protect", True):
        how += _protected(study, report, folder, progress)
    (folder / "groups").mkdir(exist_ok=True)
    write_json(folder / "groups" / "groups.json", plain(report))
    return {"points": len(report.get("protection", {}).get("points", ())), "how": how}


def _protected(study: Study, report: dict[str, Any], folder: Path, progress: Callable[[int, int], bool]) -> str:
    """Protect and save; in a clause, how it ended. Stopped too early, the attack alone is shown."""
    try:
        front = find(study.with_search(system="groups"), progress)
    except StoppedError:
        return ", stopped before a plan was found"
    front.save(folder / "front", replace=True)
    report["protection"] = report_of(front)
    holds = report["protection"]["holds"]
    return ", protected: " + (
        "no sealed attack identifies them any more" if holds else "at least one sealed attack still identifies an area"
    )


def findings(places: Places, study: str, job: str) -> dict[str, Any]:
    """What an attack and a protection found."""
    path = places.job(study, job) / "groups" / "groups.json"
    if not path.is_file():
        raise InputError("this attack has not ended yet", expected="one that has ended", remedy="wait, or stop it")
    declared = read(places.job(study, job) / "run.toml")
    return read_json(path) | {"changes": changes_since(places, study, declared)}
