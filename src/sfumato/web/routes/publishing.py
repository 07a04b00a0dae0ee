"""Releases: publish, verify, look at the reports, download."""

from __future__ import annotations

from typing import Any, Literal

from fastapi import APIRouter, Request
from fastapi.responses import FileResponse

from sfumato.web.answers import Listed, Verdict
from sfumato.web.bodies import StrictRoute
from sfumato.web.jobs import Jobs
from sfumato.web.models import Look, Publication, ReleaseId, StudyId
from sfumato.web.places import AbsentError
from sfumato.web.routes.declaring import while_connected

router = APIRouter(tags=["publish"], route_class=StrictRoute)
# A report draws with a script of its own, so it is shown where that script can reach nothing; it may print.
CAGE = (
    "sandbox allow-scripts allow-modals; default-src 'none'; script-src 'unsafe-inline'; "
    "style-src 'unsafe-inline'; img-src data:"
)


@router.post("/studies/{study}/releases")
async def publish(request: Request, study: StudyId, body: Publication) -> dict[str, Any]:
    """Publish a point: a job that writes, reads back, measures and verifies."""
    queue: Jobs = request.app.state.jobs
    queue.places.job(study, body.job)
    await request.app.state.desks.ask("declaring.same_table", study=study)
    given: dict[str, Any] = {"job": body.job, "number": body.point, "reason": body.reason, "accept": body.accept}
    given |= {"keep": body.keep} if body.keep is not None else {}
    if body.limits is not None:
        given["limits"] = body.limits.model_dump(exclude_none=True)
    return queue.add(study, "publish", given)


@router.post("/studies/{study}/look")
async def look(request: Request, study: StudyId, body: Look) -> dict[str, Any]:
    """The last look before a release: what it would hold, what the policy says of it, some of its rows."""
    request.app.state.places.job(study, body.job)
    given: dict[str, Any] = {"job": body.job, "number": body.point, "keep": body.keep}
    if body.limits is not None:
        given["limits"] = body.limits.model_dump(exclude_none=True)
    answer = request.app.state.desks.ask("releasing.look", study=study, **given)
    return dict(await while_connected(request, answer))


@router.get("/studies/{study}/releases")
async def releases(request: Request, study: StudyId) -> list[Listed]:
    """Every release of a study."""
    return [Listed(**entry) for entry in await request.app.state.desks.ask("releasing.releases", study=study)]


@router.delete("/studies/{study}/releases/{release}")
async def forget(request: Request, study: StudyId, release: ReleaseId) -> dict[str, str]:
    """Delete a release of the workspace; the ledger still knows that it was made. `undo` brings it back."""
    folder = request.app.state.places.release(study, release)
    undo = request.app.state.trash.put(folder, folder.parent / f"{release}.json")
    return {"deleted": release, "undo": undo}


@router.post("/studies/{study}/releases/{release}/verify")
async def verify(request: Request, study: StudyId, release: ReleaseId) -> Verdict:
    """Check a release again, against its source."""
    return Verdict(**await request.app.state.desks.ask("releasing.verify", study=study, release=release))


@router.get("/studies/{study}/releases/{release}/{part}.zip", response_class=FileResponse)
async def pack(request: Request, study: StudyId, release: ReleaseId, part: Literal["public", "record"]) -> FileResponse:
    """What may leave as one file, or the publisher's internal record, whose name says that it is not for release."""
    path = await request.app.state.desks.ask("releasing.pack", study=study, release=release, private=part == "record")
    label = "public" if part == "public" else "internal-not-for-release"
    return FileResponse(
        path, media_type="application/zip", filename=f"{release[:-24]}-{label}.zip"
    )  # of the id, 8 digits


@router.get("/studies/{study}/releases/{release}/{report}.html", response_class=FileResponse)
def report(
    request: Request, study: StudyId, release: ReleaseId, report: Literal["internal", "external", "dictionary"]
) -> FileResponse:
    """A report of the release, in a cage of its own."""
    part = "private" if report == "internal" else "public"
    path = request.app.state.places.release(study, release) / part / f"{report}.html"
    if not path.is_file():
        raise AbsentError("the report does not exist", expected="a complete release", remedy="verify the release")
    return FileResponse(path, headers={"content-security-policy": CAGE})
