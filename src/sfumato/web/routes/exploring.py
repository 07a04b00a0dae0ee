"""Fronts, points, questions, comparisons."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request

from sfumato.web.answers import Whole
from sfumato.web.bodies import StrictRoute
from sfumato.web.models import JobId, Limited, StudyId

router = APIRouter(tags=["explore"], route_class=StrictRoute)
Number = Annotated[int, Query(ge=0, le=10**9)]


@router.get("/studies/{study}/jobs/{job}/front")
async def front(request: Request, study: StudyId, job: JobId) -> dict[str, Any]:
    """The front that a search found, with its knee."""
    return dict(await request.app.state.desks.ask("exploring.front", study=study, job=job))


@router.get("/studies/{study}/jobs/{job}/points/{number}")
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
    return dict(await request.app.state.desks.ask("exploring.point", study=study, job=job, **given))


@router.get("/studies/{study}/jobs/{job}/points/{number}/whole")
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
    return Whole(**await request.app.state.desks.ask("exploring.whole", study=study, job=job, **given))


@router.get("/studies/{study}/jobs/{job}/ask")
async def ask(request: Request, study: StudyId, job: JobId, given: Limited) -> dict[str, Any]:
    """The best release within limits."""
    return dict(await request.app.state.desks.ask("exploring.ask", study=study, job=job, limits=given))


@router.get("/studies/{study}/jobs/{job}/compare")
async def compare(
    request: Request,
    study: StudyId,
    job: JobId,
    one: Number,
    two: Number,
    measure: Annotated[str | None, Query(max_length=60)] = None,
) -> dict[str, Any]:
    """Who pays: two points, record by record."""
    return dict(
        await request.app.state.desks.ask("exploring.compare", study=study, job=job, one=one, two=two, name=measure)
    )


@router.get("/studies/{study}/fronts")
async def fronts(
    request: Request,
    study: StudyId,
    one: Annotated[str, Query(pattern=r"^[a-z0-9][a-z0-9-]{0,63}$")],
    two: Annotated[str, Query(pattern=r"^[a-z0-9][a-z0-9-]{0,63}$")],
) -> dict[str, Any]:
    """Two searches side by side."""
    return dict(await request.app.state.desks.ask("exploring.fronts", study=study, one=one, two=two))
