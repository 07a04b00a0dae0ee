"""Randomized response: a channel front, and one of its matrices."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from sfumato.decide.pick import pick
from sfumato.errors import InputError
from sfumato.front import Front
from sfumato.sources.roles import Role
from sfumato.study import Study
from sfumato.systems.channel.system import channel_of, flat
from sfumato.systems.registry import load_front
from sfumato.systems.search import search as find
from sfumato.web.calls.outdated import changes_since
from sfumato.web.places import Places

MOST_OUTPUTS = 160


def search(study: Study, given: dict[str, Any], folder: Path, progress: Callable[[int, int], bool]) -> dict[str, Any]:
    """Find the channels of a sensitive column and leave the front in the job's folder."""
    front = find(changed(study, given), progress)
    front.save(folder / "front", replace=True)
    return {"points": len(front.points), "how": front.how}


def changed(study: Study, given: dict[str, Any]) -> Study:
    """The study with the channel that was asked for; the column must be declared sensitive."""
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
    return study.with_search(system="channel").with_channel(columns=(column,), **wanted)


def front(places: Places, study: str, job: str) -> dict[str, Any]:
    """The front of a channel search, with its knee."""
    channels = channels_of(places, study, job)
    said = channels.as_dict() | {"points": [flat(point) for point in channels.points]} | dict(channels.details)
    said |= {"engine": channels.algorithm, "records": channels.rows, "knee": pick(channels, knee=True).point.id}
    said["keep"] = list(channels.study.channel.keep)
    return said | {"changes": changes_since(places, study, channels.study)}


def point(places: Places, study: str, job: str, number: int) -> dict[str, Any]:
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
    """The front that a search for channels left."""
    folder = places.job(study, job) / "front"
    if not folder.is_dir():
        raise InputError("this search has no front yet", expected="a search that has ended", remedy="wait, or stop it")
    return load_front(folder)
