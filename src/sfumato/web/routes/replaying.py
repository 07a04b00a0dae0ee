"""Every step as a run file, a program and commands."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import PlainTextResponse

from sfumato.web.bodies import StrictRoute
from sfumato.web.models import Limited, StudyId

router = APIRouter(tags=["show as"], route_class=StrictRoute)
OptionalId = Annotated[str | None, Query(pattern=r"^[a-z0-9][a-z0-9-]{0,63}$")]
Number = Annotated[int | None, Query(ge=0, le=10**9)]


@router.get("/studies/{study}/run.toml", response_class=PlainTextResponse)
async def run_file(request: Request, study: StudyId, job: OptionalId = None) -> PlainTextResponse:
    """The run file that replays this from the command line."""
    return PlainTextResponse(await _shown(request, "run_file", study=study, job=job))


@router.get("/studies/{study}/run.py", response_class=PlainTextResponse)
async def program(
    request: Request, study: StudyId, given: Limited, job: OptionalId = None, point: Number = None
) -> PlainTextResponse:
    """The same as a Python program; with limits, the answer to that question is what it publishes."""
    return PlainTextResponse(await _shown(request, "program", study=study, job=job, number=point, limits=given))


@router.get("/studies/{study}/run.sh", response_class=PlainTextResponse)
async def commands(
    request: Request, study: StudyId, given: Limited, job: OptionalId = None, point: Number = None
) -> PlainTextResponse:
    """The same as commands over the run file."""
    return PlainTextResponse(await _shown(request, "commands", study=study, job=job, number=point, limits=given))


async def _shown(request: Request, what: str, **given: Any) -> str:
    return str(await request.app.state.desks.ask(f"replaying.{what}", **given))
