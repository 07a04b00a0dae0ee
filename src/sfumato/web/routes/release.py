"""Releases: publish, verify, look at the reports, download.

Every step as a run file, a program and commands.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from fastapi.responses import FileResponse, PlainTextResponse

from sfumato.web.access import StrictRoute
from sfumato.web.jobs import Jobs
from sfumato.web.routes.study import while_connected
from sfumato.web.schema import Limited, Listed, Look, Publication, ReleaseId, StudyId, Verdict
from sfumato.web.workspace import AbsentError

publish_router = APIRouter(tags=["publish"], route_class=StrictRoute)
# A report draws with a script of its own, so it is shown where that script can reach nothing; it may print.
CAGE = (
    "sandbox allow-scripts allow-modals; default-src 'none'; script-src 'unsafe-inline'; "
    "style-src 'unsafe-inline'; img-src data:"
)


@publish_router.post("/studies/{study}/releases")
async def publish(request: Request, study: StudyId, body: Publication) -> dict[str, Any]:
    """Publish a point: a job that writes, reads back, measures and verifies."""
    queue: Jobs = request.app.state.jobs
    queue.places.job(study, body.job)
    await request.app.state.pool.ask("study.same_table", study=study)
    given: dict[str, Any] = {"job": body.job, "number": body.point, "reason": body.reason, "accept": body.accept}
    given |= {"keep": body.keep} if body.keep is not None else {}
    if body.limits is not None:
        given["limits"] = body.limits.model_dump(exclude_none=True)
    return queue.add(study, "publish", given)


@publish_router.post("/studies/{study}/look")
async def look(request: Request, study: StudyId, body: Look) -> dict[str, Any]:
    """The last look before a release: what it would hold, what the policy says of it, some of its rows."""
    request.app.state.places.job(study, body.job)
    given: dict[str, Any] = {"job": body.job, "number": body.point, "keep": body.keep}
    if body.limits is not None:
        given["limits"] = body.limits.model_dump(exclude_none=True)
    answer = request.app.state.pool.ask("release.look", study=study, **given)
    return dict(await while_connected(request, answer))


@publish_router.get("/studies/{study}/releases")
async def releases(request: Request, study: StudyId) -> list[Listed]:
    """Every release of a study."""
    return [Listed(**entry) for entry in await request.app.state.pool.ask("release.releases", study=study)]


@publish_router.delete("/studies/{study}/releases/{release}", name="forget")
async def forget_release(request: Request, study: StudyId, release: ReleaseId) -> dict[str, str]:
    """Delete a release of the workspace; the ledger still knows that it was made. `undo` brings it back."""
    folder = request.app.state.places.release(study, release)
    undo = request.app.state.trash.put(folder, folder.parent / f"{release}.json")
    return {"deleted": release, "undo": undo}


@publish_router.post("/studies/{study}/releases/{release}/verify")
async def verify(request: Request, study: StudyId, release: ReleaseId) -> Verdict:
    """Check a release again, against its source."""
    return Verdict(**await request.app.state.pool.ask("release.verify", study=study, release=release))


@publish_router.get("/studies/{study}/releases/{release}/{part}.zip", response_class=FileResponse)
async def pack(request: Request, study: StudyId, release: ReleaseId, part: Literal["public", "record"]) -> FileResponse:
    """What may leave as one file, or the publisher's internal record, whose name says that it is not for release."""
    path = await request.app.state.pool.ask("release.pack", study=study, release=release, private=part == "record")
    label = "public" if part == "public" else "internal-not-for-release"
    return FileResponse(
        path, media_type="application/zip", filename=f"{release[:-24]}-{label}.zip"
    )  # of the id, 8 digits


@publish_router.get("/studies/{study}/releases/{release}/{report}.html", response_class=FileResponse)
def report(
    request: Request, study: StudyId, release: ReleaseId, report: Literal["internal", "external", "dictionary"]
) -> FileResponse:
    """A report of the release, in a cage of its own."""
    part = "private" if report == "internal" else "public"
    path = request.app.state.places.release(study, release) / part / f"{report}.html"
    if not path.is_file():
        raise AbsentError("the report does not exist", expected="a complete release", remedy="verify the release")
    return FileResponse(path, headers={"content-security-policy": CAGE})


replay_router = APIRouter(tags=["show as"], route_class=StrictRoute)
OptionalId = Annotated[str | None, Query(pattern=r"^[a-z0-9][a-z0-9-]{0,63}$")]
Number = Annotated[int | None, Query(ge=0, le=10**9)]


@replay_router.get("/studies/{study}/run.toml", response_class=PlainTextResponse)
async def run_file(request: Request, study: StudyId, job: OptionalId = None) -> PlainTextResponse:
    """The run file that replays this from the command line."""
    return PlainTextResponse(await _shown(request, "run_file", study=study, job=job))


@replay_router.get("/studies/{study}/run.py", response_class=PlainTextResponse)
async def program(
    request: Request, study: StudyId, given: Limited, job: OptionalId = None, point: Number = None
) -> PlainTextResponse:
    """The same as a Python program; with limits, the answer to that question is what it publishes."""
    return PlainTextResponse(await _shown(request, "program", study=study, job=job, number=point, limits=given))


@replay_router.get("/studies/{study}/run.sh", response_class=PlainTextResponse)
async def commands(
    request: Request, study: StudyId, given: Limited, job: OptionalId = None, point: Number = None
) -> PlainTextResponse:
    """The same as commands over the run file."""
    return PlainTextResponse(await _shown(request, "commands", study=study, job=job, number=point, limits=given))


async def _shown(request: Request, what: str, **given: Any) -> str:
    return str(await request.app.state.pool.ask(f"release.{what}", **given))
