"""One job from start to end, in its own process: a search with a live front, or a release.

What only some jobs need is imported by those: a third of a small job's time would be imports.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

from sfumato.base.json_types import Json
from sfumato.front import Front
from sfumato.methods.registry import system_named
from sfumato.methods.search import search
from sfumato.study import read
from sfumato.version import __version__
from sfumato.web.api.shelf import checked
from sfumato.web.schema import explained, plain
from sfumato.web.workspace import Places, read_json, write_json

LIVE = 0.7  # seconds between two pictures of the front so far
TOLD = 0.25  # seconds between two reports of progress
MOST_LIVE = 600


def run_job(places: Places, folder: Path) -> None:
    """Do the job of a folder and leave `done.json` there, whatever happens."""
    about = read_json(folder / "job.json")
    try:
        if about["kind"] == "publish":
            from sfumato.web.api.release import publish

            end = {"status": "done", "found": publish(places, about["study"], **about["with"])}
        elif about["kind"] in ("channel", "groups"):
            end = _other(places, folder, about)
        else:
            end = _search(places, folder, about)
    except Exception as error:  # noqa: BLE001  the page reports every error, without a record
        end = {"status": "failed", "error": explained(error)}
    write_json(folder / "done.json", plain(end))


def _search(places: Places, folder: Path, about: Json) -> Json:
    study = checked(places, read(folder / "run.toml"))
    system = system_named(study.system)
    watch = Watch(folder, about["with"].get("seconds"), system.unit(study))
    # Another version cannot continue from this state: its search starts again.
    state = folder / f"search-{__version__}.state" if system.abilities.resumable else None
    front = search(study, watch, checkpoint=state, resume=state is not None and state.exists(), live=watch.live)
    watch.stage("writing")
    front.save(folder / "front", replace=True)
    watch.last(front)
    return {"status": "stopped" if watch.stopped else "done", "found": {"points": len(front.points), "how": front.how}}


def _other(places: Places, folder: Path, about: Json) -> Json:
    """Search for channels, or attack a group's areas and protect them."""
    from sfumato.web.api.systems import search_channel, search_groups

    find = search_channel if about["kind"] == "channel" else search_groups
    watch = Watch(folder, about["with"].get("seconds"))
    shutil.rmtree(folder / "groups", ignore_errors=True)  # what an earlier try left
    outcome = find(checked(places, read(folder / "run.toml")), about["with"], folder, watch)
    return {"status": "stopped" if watch.stopped else "done", "found": outcome}


class Watch:
    """The observer of a search: it writes the progress and the front so far, and stops the search on request."""

    def __init__(self, folder: Path, seconds: float | None, unit: str = "steps") -> None:
        self.folder, self.seconds, self.stopped = folder, seconds, False
        self._unit, self._done = unit, (0, 0)
        self._began = time.monotonic()
        self._told = self._drawn = 0.0
        self._parent = os.getppid()
        self.stage("reading the table")

    def stage(self, name: str) -> None:
        """Say what is being done: reading, searching or writing."""
        done, total = self._done
        took = time.monotonic() - self._began
        state = {"done": done, "total": total, "unit": self._unit, "seconds": took, "stage": name}
        write_json(self.folder / "progress.json", state)

    def __call__(self, done: int, total: int) -> bool:
        now = time.monotonic()
        if now - self._told > TOLD:
            self._told = now
            self._done = int(done), int(total)
            self.stage("stopping" if self.stopped or (self.folder / "stop").exists() else "searching")
            if os.getppid() != self._parent:  # the server has ended, so the result has no reader
                os._exit(1)
        asked = (self.folder / "stop").exists()
        late = self.seconds is not None and now - self._began >= self.seconds
        self.stopped = self.stopped or asked or late
        return self.stopped

    def live(self, so_far: Callable[[], Front]) -> None:
        """Draw the front so far, not too often: it costs a little."""
        began = time.monotonic()
        if began - self._drawn > LIVE:
            self._drawn = began
            self.last(so_far())
            self._drawn = max(began, self._drawn + 10 * (time.monotonic() - began))

    def last(self, front: Front) -> None:
        step = max(len(front.points) // MOST_LIVE, 1)
        points = [{"loss": p.loss, "values": dict(p.values)} for p in front.points[::step]]
        objectives = [objective.as_dict() for objective in front.objectives]
        state = {
            "points": points,
            "objectives": objectives,
            "number": len(front.points),
            "evaluations": front.evaluations,
        }
        part = self.folder / ".live.part"
        part.write_text(json.dumps(plain(state)), "utf-8")
        part.replace(self.folder / "live.json")
