"""Randomized response: a channel front, and one of its matrices.

Groups: what an attacker sees of each area, and what is left of it after the fewest swaps.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from sfumato.base.json_types import Json
from sfumato.data.settings import Role
from sfumato.decide.pick import pick
from sfumato.errors import InputError, StoppedError, counted
from sfumato.front import Front
from sfumato.methods.channel.system import channel_of, flat
from sfumato.methods.groups.attack.attack import attack
from sfumato.methods.groups.front import report_of
from sfumato.methods.registry import load_front
from sfumato.methods.search import search as find
from sfumato.study import Study, read
from sfumato.web.api.shelf import changes_since
from sfumato.web.schema import plain
from sfumato.web.workspace import Places, read_json, write_json

MOST_OUTPUTS = 160


def search_channel(study: Study, given: Json, folder: Path, progress: Callable[[int, int], bool]) -> Json:
    """Find the channels of a sensitive column and leave the front in the job's folder."""
    front = find(changed(study, given), progress)
    front.save(folder / "front", replace=True)
    return {"points": len(front.points), "how": front.how}


def changed(study: Study, given: Json) -> Study:
    """Return the study with the channel that was asked for; the column must be declared sensitive."""
    column = str(given["column"])
    if column not in study.named(Role.SENSITIVE):
        raise InputError(
            f'"{column[:80]}" is not a sensitive column',
            expected="a column with the role sensitive",
            remedy="change its role in Declare",
        )
    wanted = {
        name: given[name]
        for name in ("delta", "gain", "engine", "points", "epsilon", "keep")
        if given.get(name) is not None
    }
    return study.with_search(system="channel").replace(channel={"columns": (column,), **wanted})


def front(places: Places, study: str, job: str) -> Json:
    """Return the front of a channel search, with its knee."""
    channels = channels_of(places, study, job)
    said = channels.as_dict() | {"points": [flat(point) for point in channels.points]} | dict(channels.details)
    said |= {"engine": channels.algorithm, "records": channels.rows, "knee": pick(channels, knee=True).point.id}
    said["keep"] = list(channels.study.channel.keep)
    return said | {"changes": changes_since(places, study, channels.study)}


def point(places: Places, study: str, job: str, number: int) -> Json:
    """One channel: its matrix, column by column of the truth. Categories are values of a sensitive column."""
    chosen = channels_of(places, study, job).point(number)
    channel = channel_of(chosen)
    order = sorted(range(len(channel.outputs)), key=lambda row: -float(channel.matrix[row].sum()))[:MOST_OUTPUTS]
    kept = sorted(order)
    return flat(chosen) | {
        "categories": list(channel.categories),
        "outputs_shown": [channel.outputs[row] for row in kept],
        "matrix": [channel.matrix[row].tolist() for row in kept],
        "left_out": len(channel.outputs) - len(kept),
    }


def channels_of(places: Places, study: str, job: str) -> Front:
    """Return the front that a search for channels left."""
    folder = places.job(study, job) / "front"
    if not folder.is_dir():
        raise InputError("this search has no front yet", expected="a search that has ended", remedy="wait, or stop it")
    return load_front(folder)


def search_groups(study: Study, given: Json, folder: Path, progress: Callable[[int, int], bool]) -> Json:
    """Attack the file, and if asked protect it; what was found is written to the job's folder."""
    if study.groups is None:
        raise InputError(
            "the run file has no [groups] section",
            expected="groups, areas and an auxiliary file",
            remedy="open a run file with [groups]; docs/groups.md shows one",
        )
    seen = attack(study, progress=progress)
    report: Json = {"attack": seen[0].as_dict() | {"spread": [one.line() for one in seen]}}
    how = f"{counted(len(report['attack']['areas']), 'area')} attacked"
    if given.get("protect", True):
        how += _protected(study, report, folder, progress)
    (folder / "groups").mkdir(exist_ok=True)
    write_json(folder / "groups" / "groups.json", plain(report))
    return {"points": len(report.get("protection", {}).get("points", ())), "how": how}


def _protected(study: Study, report: Json, folder: Path, progress: Callable[[int, int], bool]) -> str:
    """Protect and save; in a clause, how it ended. Stopped too early, the attack alone is shown."""
    try:
        front = find(study.with_search(system="groups"), progress)
    except StoppedError:
        return ", stopped before a plan was found"
    front.save(folder / "front", replace=True)
    report["protection"] = report_of(front)
    holds = report["protection"]["holds"]
    return ", protected: " + (
        "no held-out attack identifies them any more"
        if holds
        else "at least one held-out attack still identifies an area"
    )


def findings(places: Places, study: str, job: str) -> Json:
    """Return what an attack and a protection found."""
    path = places.job(study, job) / "groups" / "groups.json"
    if not path.is_file():
        raise InputError("this attack has not ended yet", expected="one that has ended", remedy="wait, or stop it")
    declared = read(places.job(study, job) / "run.toml")
    return read_json(path) | {"changes": changes_since(places, study, declared)}
