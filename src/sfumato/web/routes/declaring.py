"""Roles, hierarchies, the risk of the raw table."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Query, Request, Response

from sfumato.web.bodies import StrictRoute
from sfumato.web.models import Changes, Edit, Imported, Kept, Recipe, StudyId, Version

router = APIRouter(tags=["declare"], route_class=StrictRoute)
Column = Annotated[str, Query(max_length=1000)]


@router.get("/studies/{study}")
async def get(request: Request, response: Response, study: StudyId) -> dict[str, Any]:
    """A study as it is declared; its ETag is the version that a change has to name."""
    return _versioned(response, await request.app.state.desks.ask("declaring.get", study=study))


@router.put("/studies/{study}")
async def put(request: Request, response: Response, study: StudyId, body: Changes, version: Version) -> dict[str, Any]:
    """Change what is declared; what is wrong is refused with a sentence. 409 if somebody else changed it before."""
    changes = body.model_dump(exclude_none=True)
    async with request.app.state.turns[study]:
        return _versioned(
            response,
            await request.app.state.desks.ask("declaring.put", study=study, changes=changes, version=version),
        )


@router.get("/studies/{study}/audit")
async def audit(request: Request, study: StudyId) -> dict[str, Any]:
    """Every figure of the raw table."""
    return dict(await while_connected(request, request.app.state.desks.ask("declaring.audit", study=study)))


async def while_connected(request: Request, answer: Coroutine[Any, Any, Any]) -> Any:
    """Wait for an answer, and give it up when the client goes away: its worker is stopped."""
    task = asyncio.ensure_future(answer)
    task.add_done_callback(lambda done: done.cancelled() or done.exception())  # nobody may be left to hear of a fault
    try:
        while not task.done():
            await asyncio.wait({task}, timeout=0.5)
            if not task.done() and await request.is_disconnected():
                task.cancel()
    finally:
        task.cancel()  # the server stops: so does the question
    try:
        return task.result()
    except asyncio.CancelledError:
        raise HTTPException(499, "the question was given up") from None


@router.get("/studies/{study}/grid")
async def grid(request: Request, study: StudyId, rows: Annotated[int, Query(ge=1, le=500)] = 60) -> dict[str, Any]:
    """Records with the size of their class, the smallest first, and the columns that single most records out."""
    answer = request.app.state.desks.ask("riskiest.grid", study=study, rows=rows)
    return dict(await while_connected(request, answer))


@router.get("/studies/{study}/uncounted")
async def uncounted(request: Request, study: StudyId) -> dict[str, Any]:
    """How unique records would be with each column that is released and in no figure."""
    answer = request.app.state.desks.ask("riskiest.uncounted", study=study)
    return dict(await while_connected(request, answer))


@router.get("/studies/{study}/estimate")
async def estimate(request: Request, study: StudyId) -> dict[str, Any]:
    """The size of the search space, and how long the whole of it would take."""
    return dict(await request.app.state.desks.ask("declaring.estimate", study=study))


@router.get("/studies/{study}/hierarchy")
async def hierarchy(request: Request, study: StudyId, column: Column) -> dict[str, Any]:
    """The hierarchy of a column, with the records under each label."""
    return dict(await request.app.state.desks.ask("trees.show", study=study, column=column))


@router.get("/studies/{study}/order")
async def order(request: Request, study: StudyId, column: Column) -> dict[str, Any]:
    """In which order a search over cuts may join the values of a column, and where the order comes from."""
    return dict(await request.app.state.desks.ask("trees.order", study=study, column=column))


@router.post("/studies/{study}/hierarchy/build")
async def build(request: Request, study: StudyId, body: Recipe) -> dict[str, Any]:
    """What a recipe would make of a column; nothing is saved."""
    return dict(
        await request.app.state.desks.ask(
            "trees.described_recipe", study=study, column=body.column, recipe_=body.recipe
        )
    )


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
async def keep(request: Request, response: Response, study: StudyId, body: Kept, version: Version) -> dict[str, Any]:
    """Declare a hierarchy for a column. 409 if somebody else changed the study before."""
    given = {"column": body.column, "recipe_": body.recipe, "paths": body.paths, "version": version}
    async with request.app.state.turns[study]:
        return _versioned(response, await request.app.state.desks.ask("trees.keep", study=study, **given))


def _versioned(response: Response, answer: Any) -> dict[str, Any]:
    response.headers["etag"] = f'"{answer["version"]}"'
    return dict(answer)
