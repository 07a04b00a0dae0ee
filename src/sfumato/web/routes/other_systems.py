"""Randomized response and groups: systems whose plans are not recodings."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Request
from fastapi.responses import FileResponse

from sfumato.web.models import ChannelSearch, Disguise, GroupsSearch, JobId, StudyId, Version
from sfumato.web.places import AbsentError, Places
from sfumato.web.routes.searching import started

router = APIRouter(tags=["channel and groups"])
FileName = Annotated[str, Path(pattern=r"^[a-z0-9][a-z0-9-]{0,63}\.csv(\.channel\.json)?$")]
Number = Annotated[int, Path(ge=0, le=10**9)]


@router.post("/studies/{study}/channels")
async def search_channels(request: Request, study: StudyId, body: ChannelSearch, version: Version) -> dict[str, Any]:
    """Start a search for channels of a sensitive column. 409 if the study has changed since it was read."""
    return await started(request, study, version, "channel", body.model_dump())


@router.get("/studies/{study}/jobs/{job}/channel")
async def channel_front(request: Request, study: StudyId, job: JobId) -> dict[str, Any]:
    """The channels that were found, with the certified bound of each."""
    return dict(await request.app.state.desks.ask("channels.front", study=study, job=job))


@router.get("/studies/{study}/jobs/{job}/channel/{number}")
async def channel(request: Request, study: StudyId, job: JobId, number: Number) -> dict[str, Any]:
    """One channel with its matrix."""
    return dict(await request.app.state.desks.ask("channels.point", study=study, job=job, number=number))


@router.post("/studies/{study}/jobs/{job}/channel/{number}/disguise")
async def disguise(request: Request, study: StudyId, job: JobId, number: Number, body: Disguise) -> dict[str, Any]:
    """Write a file in which the column is disguised."""
    desks = request.app.state.desks
    return dict(await desks.ask("channels.disguise", study=study, job=job, number=number, keep=body.keep))


@router.get("/studies/{study}/disguised/{name}", response_class=FileResponse)
def disguised(request: Request, study: StudyId, name: FileName) -> FileResponse:
    """A disguised file, or the channel that goes with it."""
    places: Places = request.app.state.places
    path = places.study(study) / "disguised" / name
    if not path.is_file():
        raise AbsentError(f"there is no file {name}", expected="a file that was disguised here")
    return FileResponse(path, filename=name)


@router.post("/studies/{study}/groups")
async def search_groups(request: Request, study: StudyId, body: GroupsSearch, version: Version) -> dict[str, Any]:
    """Attack the areas of a group, and protect them. 409 if the study has changed since it was read."""
    return await started(request, study, version, "groups", body.model_dump())


@router.get("/studies/{study}/jobs/{job}/groups")
async def groups(request: Request, study: StudyId, job: JobId) -> dict[str, Any]:
    """What the attacker sees, and what is left after the protection."""
    return dict(await request.app.state.desks.ask("groups.found", study=study, job=job))
