"""Randomized response and groups: systems whose plans are not recodings."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Request

from sfumato.web.bodies import StrictRoute
from sfumato.web.models import ChannelSearch, GroupsSearch, JobId, StudyId, Version
from sfumato.web.routes.searching import started

router = APIRouter(tags=["channel and groups"], route_class=StrictRoute)
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


@router.post("/studies/{study}/groups")
async def search_groups(request: Request, study: StudyId, body: GroupsSearch, version: Version) -> dict[str, Any]:
    """Attack the areas of a group, and protect them. 409 if the study has changed since it was read."""
    return await started(request, study, version, "groups", body.model_dump())


@router.get("/studies/{study}/jobs/{job}/groups")
async def groups(request: Request, study: StudyId, job: JobId) -> dict[str, Any]:
    """What the attacker sees, and what is left after the protection."""
    return dict(await request.app.state.desks.ask("groups.findings", study=study, job=job))
