"""Roles, hierarchies, the risk of the raw table."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import PlainTextResponse

from sfumato.web.models import Changes, Edit, Imported, Kept, Recipe, Share, StudyId

router = APIRouter(tags=["declare"])
Column = Annotated[str, Query(max_length=1000)]
OptionalId = Annotated[str | None, Query(pattern=r"^[a-z0-9][a-z0-9-]{0,63}$")]


@router.get("/studies/{study}")
async def get(request: Request, study: StudyId) -> dict[str, Any]:
    """A study as it is declared."""
    return dict(await request.app.state.desks.ask("declaring.get", study=study))


@router.put("/studies/{study}")
async def put(request: Request, study: StudyId, body: Changes) -> dict[str, Any]:
    """Change what is declared; what is wrong is refused with a sentence."""
    changes = body.model_dump(exclude_none=True)
    return dict(await request.app.state.desks.ask("declaring.put", study=study, changes=changes))


@router.get("/studies/{study}/audit")
async def audit(request: Request, study: StudyId) -> dict[str, Any]:
    """Every figure of the raw table."""
    return dict(await request.app.state.desks.ask("declaring.audit", study=study))


@router.get("/studies/{study}/estimate")
async def estimate(request: Request, study: StudyId) -> dict[str, Any]:
    """The size of the search space, and how long the whole of it would take."""
    return dict(await request.app.state.desks.ask("declaring.estimate", study=study))


@router.get("/studies/{study}/hierarchy")
async def hierarchy(request: Request, study: StudyId, column: Column) -> dict[str, Any]:
    """The hierarchy of a column, with the records under each label."""
    return dict(await request.app.state.desks.ask("trees.show", study=study, column=column))


@router.post("/studies/{study}/hierarchy/build")
async def build(request: Request, study: StudyId, body: Recipe) -> dict[str, Any]:
    """What a recipe would make of a column; nothing is saved."""
    return dict(await request.app.state.desks.ask("trees.told", study=study, column=body.column, recipe_=body.recipe))


@router.post("/studies/{study}/hierarchy/edit")
async def edit(request: Request, study: StudyId, body: Edit) -> dict[str, Any]:
    """The paths after one change; nothing is saved."""
    change = body.model_dump(include={"do", "level", "labels", "to"})
    return dict(
        await request.app.state.desks.ask(
            "trees.edit", study=study, column=body.column, paths=body.paths, change=change
        )
    )


@router.post("/studies/{study}/hierarchy/import")
async def import_file(request: Request, study: StudyId, body: Imported) -> dict[str, Any]:
    """Read a hierarchy file of ARX, anjana or ours; nothing is saved."""
    return dict(await request.app.state.desks.ask("trees.imported", study=study, column=body.column, text=body.text))


@router.put("/studies/{study}/hierarchy")
async def keep(request: Request, study: StudyId, body: Kept) -> dict[str, Any]:
    """Declare a hierarchy for a column."""
    return dict(
        await request.app.state.desks.ask(
            "trees.keep", study=study, column=body.column, recipe_=body.recipe, paths=body.paths
        )
    )


@router.get("/studies/{study}/run.toml", response_class=PlainTextResponse)
async def run_file(request: Request, study: StudyId, job: OptionalId = None) -> PlainTextResponse:
    """The run file that replays this from the command line."""
    text = await request.app.state.desks.ask("declaring.as_run_file", study=study, job=job)
    return PlainTextResponse(text)


@router.get("/studies/{study}/run.py", response_class=PlainTextResponse)
async def program(
    request: Request,
    study: StudyId,
    job: OptionalId = None,
    point: Annotated[int | None, Query(ge=0, le=10**9)] = None,
    max_loss: Annotated[Share | None, Query()] = None,
    max_suppression: Annotated[Share | None, Query()] = None,
    min_k: Annotated[float | None, Query(ge=1, le=1e12, allow_inf_nan=False)] = None,
    min_l: Annotated[float | None, Query(ge=1, le=1e12, allow_inf_nan=False)] = None,
) -> PlainTextResponse:
    """The same as a Python program; with limits, the answer to that question is what it publishes."""
    limits = {"max_loss": max_loss, "max_suppression": max_suppression, "min_k": min_k, "min_l": min_l}
    given = {name: value for name, value in limits.items() if value is not None}
    text = await request.app.state.desks.ask("exploring.as_python", study=study, job=job, number=point, limits=given)
    return PlainTextResponse(text)
