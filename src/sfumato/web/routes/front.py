"""Fronts, points, questions, comparisons.

Jobs: the queue, progress, stop, continue; and all of it as a stream of events.

Randomized response and groups: systems whose plans are not recodings.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import tomllib
from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import StreamingResponse

from sfumato.web.access import StrictRoute
from sfumato.web.jobs import Jobs
from sfumato.web.schema import ChannelSearch, GroupsSearch, JobId, Limited, Search, StudyId, Version, Whole
from sfumato.web.workspace import Places, version_of

explore_router = APIRouter(tags=["explore"], route_class=StrictRoute)
QueryNumber = Annotated[int, Query(ge=0, le=10**9)]


@explore_router.get("/studies/{study}/jobs/{job}/front")
async def front(request: Request, study: StudyId, job: JobId) -> dict[str, Any]:
    """The front that a search found, with its knee."""
    return dict(await request.app.state.pool.ask("front.front", study=study, job=job))


@explore_router.get("/studies/{study}/jobs/{job}/points/{number}")
async def point(
    request: Request,
    study: StudyId,
    job: JobId,
    number: int,
    size: Annotated[int | None, Query(ge=0, le=10**9)] = None,
    diversity: Annotated[int | None, Query(ge=0, le=10**9)] = None,
) -> dict[str, Any]:
    """One point in detail; with `size` and `diversity`, classes below them are suppressed instead."""
    given = {"number": number, "size": size, "diversity": diversity}
    return dict(await request.app.state.pool.ask("front.point", study=study, job=job, **given))


@explore_router.get("/studies/{study}/jobs/{job}/points/{number}/whole")
async def whole(
    request: Request,
    study: StudyId,
    job: JobId,
    number: Annotated[int, Path(ge=0, le=10**9)],
    size: Annotated[int | None, Query(ge=0, le=10**9)] = None,
    diversity: Annotated[int | None, Query(ge=0, le=10**9)] = None,
) -> Whole:
    """How unique records would be over all columns that a point releases, and which of these are in no figure."""
    given = {"number": number, "size": size, "diversity": diversity}
    return Whole(**await request.app.state.pool.ask("front.whole", study=study, job=job, **given))


@explore_router.get("/studies/{study}/jobs/{job}/ask")
async def ask(request: Request, study: StudyId, job: JobId, given: Limited) -> dict[str, Any]:
    """The best release within limits."""
    return dict(await request.app.state.pool.ask("front.ask", study=study, job=job, limits=given))


@explore_router.get("/studies/{study}/jobs/{job}/compare")
async def compare(
    request: Request,
    study: StudyId,
    job: JobId,
    one: QueryNumber,
    two: QueryNumber,
    measure: Annotated[str | None, Query(max_length=60)] = None,
) -> dict[str, Any]:
    """Compare two points record by record."""
    return dict(await request.app.state.pool.ask("front.compare", study=study, job=job, one=one, two=two, name=measure))


@explore_router.get("/studies/{study}/fronts")
async def fronts(
    request: Request,
    study: StudyId,
    one: Annotated[str, Query(pattern=r"^[a-z0-9][a-z0-9-]{0,63}$")],
    two: Annotated[str, Query(pattern=r"^[a-z0-9][a-z0-9-]{0,63}$")],
) -> dict[str, Any]:
    """Two searches side by side."""
    return dict(await request.app.state.pool.ask("front.fronts", study=study, one=one, two=two))


search_router = APIRouter(tags=["search"], route_class=StrictRoute)
PULSE = 0.4  # seconds between two looks at the jobs


@search_router.get("/jobs")
def jobs(request: Request) -> list[dict[str, Any]]:
    """Every job of every study."""
    listed: list[dict[str, Any]] = request.app.state.jobs.of()
    return listed


@search_router.post("/studies/{study}/jobs")
async def search(request: Request, study: StudyId, body: Search, version: Version) -> dict[str, Any]:
    """Start a search of the study as it was read, or put it into the queue. 409 if the study has changed since."""
    return await started(request, study, version, "search", {"name": body.name, "seconds": body.seconds})


async def started(request: Request, study: str, version: str, kind: str, given: dict[str, Any]) -> dict[str, Any]:
    """Add a job of a study as it was read. Its roles must be confirmed."""
    places: Places = request.app.state.places
    folder = places.study(study)
    queue: Jobs = request.app.state.jobs
    async with request.app.state.turns[study]:
        await request.app.state.pool.ask("study.ready", study=study, version=version)
        run = (folder / "run.toml").read_text("utf-8")
    return queue.add(study, kind, given, run, settings=tomllib.loads(run).get("search", {}))


@search_router.get("/studies/{study}/jobs")
def jobs_of(request: Request, study: StudyId) -> list[dict[str, Any]]:
    """The jobs of a study."""
    request.app.state.places.study(study)
    listed: list[dict[str, Any]] = request.app.state.jobs.of(study)
    return listed


@search_router.get("/studies/{study}/jobs/{job}")
def one(request: Request, study: StudyId, job: JobId) -> dict[str, Any]:
    """The state of a job."""
    queue: Jobs = request.app.state.jobs
    return queue.describe(queue.places.job(study, job))


@search_router.get("/studies/{study}/jobs/{job}/live")
def live(request: Request, study: StudyId, job: JobId) -> dict[str, Any]:
    """The front so far."""
    queue: Jobs = request.app.state.jobs
    return queue.live(queue.places.job(study, job))


@search_router.post("/studies/{study}/jobs/{job}/stop")
async def stop(request: Request, study: StudyId, job: JobId) -> dict[str, Any]:
    """Stop a job and keep the best so far."""
    queue: Jobs = request.app.state.jobs
    return queue.stop(study, job)


@search_router.post("/studies/{study}/jobs/{job}/again")
async def again(request: Request, study: StudyId, job: JobId) -> dict[str, Any]:
    """Run a job that was stopped or interrupted again; a search that keeps its state continues from it."""
    queue: Jobs = request.app.state.jobs
    return queue.again(study, job)


@search_router.delete("/studies/{study}/jobs/{job}")
async def remove(request: Request, study: StudyId, job: JobId) -> dict[str, str]:
    """Delete a job and what it found. `undo` brings it back (POST /api/trash/UNDO) until the trash is emptied."""
    folder = request.app.state.jobs.take_out(study, job)
    return {"deleted": job, "undo": request.app.state.trash.put(folder)}


@search_router.get("/events", response_class=StreamingResponse)
async def events(request: Request) -> StreamingResponse:
    """Server-sent events: every job that changed, with its front so far."""
    return StreamingResponse(_pulse(request), media_type="text/event-stream")


class Watched:
    """The studies of a workspace, and which of them were changed since they were last looked at."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._seen = self._states()

    def changed(self) -> list[str]:
        """The studies that have another version, as JSON; those that were deleted have none."""
        before, self._seen = self._seen, self._states()
        names = [name for name in self._seen | before if before.get(name) != self._seen.get(name)]
        return [json.dumps({"study": name, "version": self._version(name)}) for name in names]

    def _version(self, name: str) -> str | None:
        return version_of(self._places.studies / name) if name in self._seen else None

    def _states(self) -> dict[str, tuple[int, ...]]:
        states = {}
        for folder in self._places.studies.iterdir():
            with contextlib.suppress(OSError):
                states[folder.name] = tuple((folder / name).stat().st_mtime_ns for name in ("run.toml", "study.json"))
        return states


async def _pulse(request: Request) -> AsyncIterator[str]:
    queue: Jobs = request.app.state.jobs
    seen: dict[str, str] = {}
    studies = Watched(queue.places)
    quiet = 0.0
    yield "retry: 1000\n\n"
    while not queue.closing and not await request.is_disconnected():
        for job in queue.of():
            folder = queue.places.studies / job["study"] / "jobs" / job["id"]
            if job["status"] == "running":
                job["live"] = queue.live(folder)
            text = json.dumps(job, ensure_ascii=False)
            if seen.get(job["id"]) != text:
                seen[job["id"]] = text
                quiet = 0.0
                yield f"event: job\ndata: {text}\n\n"
        for text in studies.changed():
            quiet = 0.0
            yield f"event: study\ndata: {text}\n\n"
        quiet += PULSE
        if quiet > 15:
            quiet = 0.0
            yield ": still here\n\n"
        await asyncio.sleep(PULSE)


other_router = APIRouter(tags=["channel and groups"], route_class=StrictRoute)
PointNumber = Annotated[int, Path(ge=0, le=10**9)]


@other_router.post("/studies/{study}/channels")
async def search_channels(request: Request, study: StudyId, body: ChannelSearch, version: Version) -> dict[str, Any]:
    """Start a search for channels of a sensitive column. 409 if the study has changed since it was read."""
    return await started(request, study, version, "channel", body.model_dump())


@other_router.get("/studies/{study}/jobs/{job}/channel")
async def channel_front(request: Request, study: StudyId, job: JobId) -> dict[str, Any]:
    """The channels that were found, with the certified bound of each."""
    return dict(await request.app.state.pool.ask("systems.front", study=study, job=job))


@other_router.get("/studies/{study}/jobs/{job}/channel/{number}")
async def channel(request: Request, study: StudyId, job: JobId, number: PointNumber) -> dict[str, Any]:
    """One channel with its matrix."""
    return dict(await request.app.state.pool.ask("systems.point", study=study, job=job, number=number))


@other_router.post("/studies/{study}/groups")
async def search_groups(request: Request, study: StudyId, body: GroupsSearch, version: Version) -> dict[str, Any]:
    """Attack the areas of a group, and protect them. 409 if the study has changed since it was read."""
    return await started(request, study, version, "groups", body.model_dump())


@other_router.get("/studies/{study}/jobs/{job}/groups")
async def groups(request: Request, study: StudyId, job: JobId) -> dict[str, Any]:
    """What the attacker sees, and what is left after the protection."""
    return dict(await request.app.state.pool.ask("systems.findings", study=study, job=job))
