"""Roles, hierarchies, the risk of the raw table.

Keys for sessions, and tickets for files.

Files, uploads, studies.
"""

from __future__ import annotations

import asyncio
import html
from collections.abc import Coroutine
from typing import Annotated, Any
from urllib.parse import parse_qs

from fastapi import APIRouter, HTTPException, Query, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse

from sfumato.errors import InputError, counted
from sfumato.version import __version__
from sfumato.web.access import START, StrictRoute
from sfumato.web.schema import (
    Changes,
    Edit,
    Imported,
    JobId,
    Kept,
    KeyGiven,
    Opened,
    Recipe,
    StudyId,
    TicketFor,
    Version,
)
from sfumato.web.workspace import ConflictError, Places, store, too_large

declare_router = APIRouter(tags=["declare"], route_class=StrictRoute)
Column = Annotated[str, Query(max_length=1000)]


@declare_router.get("/studies/{study}")
async def get(request: Request, response: Response, study: StudyId) -> dict[str, Any]:
    """A study as it is declared; its ETag is the version that a change has to name."""
    return _versioned(response, await request.app.state.pool.ask("study.get", study=study))


@declare_router.put("/studies/{study}")
async def put(request: Request, response: Response, study: StudyId, body: Changes, version: Version) -> dict[str, Any]:
    """Change what is declared; what is wrong is refused with a sentence. 409 if it was changed elsewhere before."""
    changes = body.model_dump(exclude_none=True)
    async with request.app.state.turns[study]:
        return _versioned(
            response,
            await request.app.state.pool.ask("study.put", study=study, changes=changes, version=version),
        )


@declare_router.get("/studies/{study}/audit")
async def audit(request: Request, study: StudyId) -> dict[str, Any]:
    """Every figure of the raw table."""
    return dict(await while_connected(request, request.app.state.pool.ask("study.audit", study=study)))


async def while_connected(request: Request, answer: Coroutine[Any, Any, Any]) -> Any:
    """Wait for an answer, and give it up when the client goes away: its worker is stopped."""
    task = asyncio.ensure_future(answer)
    task.add_done_callback(lambda done: done.cancelled() or done.exception())  # a fault may have no reader left
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


@declare_router.get("/studies/{study}/grid")
async def grid(request: Request, study: StudyId, rows: Annotated[int, Query(ge=1, le=500)] = 60) -> dict[str, Any]:
    """Records with the size of their class, the smallest first, and the columns that single most records out."""
    answer = request.app.state.pool.ask("hierarchies.grid", study=study, rows=rows)
    return dict(await while_connected(request, answer))


@declare_router.get("/studies/{study}/uncounted")
async def uncounted(request: Request, study: StudyId) -> dict[str, Any]:
    """How unique records would be with each column that is released and in no figure."""
    answer = request.app.state.pool.ask("hierarchies.uncounted", study=study)
    return dict(await while_connected(request, answer))


@declare_router.get("/studies/{study}/estimate")
async def estimate(request: Request, study: StudyId) -> dict[str, Any]:
    """The size of the search space, and how long the whole of it would take."""
    return dict(await request.app.state.pool.ask("study.estimate", study=study))


@declare_router.get("/studies/{study}/hierarchy")
async def hierarchy(request: Request, study: StudyId, column: Column) -> dict[str, Any]:
    """The hierarchy of a column, with the records under each label."""
    return dict(await request.app.state.pool.ask("hierarchies.show", study=study, column=column))


@declare_router.get("/studies/{study}/order")
async def order(request: Request, study: StudyId, column: Column) -> dict[str, Any]:
    """In which order a search over cuts may join the values of a column, and where the order comes from."""
    return dict(await request.app.state.pool.ask("hierarchies.order", study=study, column=column))


@declare_router.post("/studies/{study}/hierarchy/build")
async def build(request: Request, study: StudyId, body: Recipe) -> dict[str, Any]:
    """What a recipe would make of a column; nothing is saved."""
    return dict(
        await request.app.state.pool.ask(
            "hierarchies.described_recipe", study=study, column=body.column, recipe_=body.recipe
        )
    )


@declare_router.post("/studies/{study}/hierarchy/edit")
async def edit(request: Request, study: StudyId, body: Edit) -> dict[str, Any]:
    """The paths after one change; nothing is saved."""
    change = body.model_dump(include={"do", "level", "labels", "to"})
    return dict(
        await request.app.state.pool.ask(
            "hierarchies.edit", study=study, column=body.column, paths=body.paths, change=change
        )
    )


@declare_router.post("/studies/{study}/hierarchy/import")
async def import_file(request: Request, study: StudyId, body: Imported) -> dict[str, Any]:
    """Read a hierarchy file of ARX, anjana or ours; nothing is saved."""
    return dict(
        await request.app.state.pool.ask("hierarchies.imported", study=study, column=body.column, text=body.text)
    )


@declare_router.put("/studies/{study}/hierarchy")
async def keep(request: Request, response: Response, study: StudyId, body: Kept, version: Version) -> dict[str, Any]:
    """Declare a hierarchy for a column. 409 if the study was changed elsewhere before."""
    given = {"column": body.column, "recipe_": body.recipe, "paths": body.paths, "version": version}
    async with request.app.state.turns[study]:
        return _versioned(response, await request.app.state.pool.ask("hierarchies.keep", study=study, **given))


def _versioned(response: Response, answer: Any) -> dict[str, Any]:
    response.headers["etag"] = f'"{answer["version"]}"'
    return dict(answer)


enter_router = APIRouter(tags=["enter"], route_class=StrictRoute)
page = APIRouter()
LONGEST_FORM = 1024
ENTERED = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Sfumato workbench</title><meta name="session" content="{secret}">
<script type="module" src="/static/start.js"></script></head>
<body><noscript>The workbench needs JavaScript.</noscript></body>
</html>
"""


@enter_router.post("/session")
async def session(request: Request, body: KeyGiven) -> JSONResponse:
    """Exchange a key, which is good for one use, for the secret of a session: `Authorization: Bearer SECRET`."""
    secret = request.app.state.keys.open_session(body.key.strip())
    if secret is None:
        error = {
            "what": "this key is not valid",
            "expected": "an unused key printed by sfumato serve",
            "try": "sfumato serve FOLDER --link prints another",
        }
        return JSONResponse({"error": error}, 401)
    return JSONResponse({"secret": secret})


@enter_router.post("/tickets")
async def ticket(request: Request, body: TicketFor) -> dict[str, str]:
    """A ticket for one file: GET PATH?ticket=TICKET works once, within a minute, without other credentials."""
    return {"ticket": request.app.state.keys.new_ticket(body.path)}


@page.post(START, include_in_schema=False)
async def start(request: Request) -> Response:
    """Where a browser arrives from the page in the workspace that holds the key."""
    form = b""
    async for block in request.stream():
        form += block
        if len(form) > LONGEST_FORM:
            break
    key = parse_qs(form[:LONGEST_FORM].decode("utf-8", "replace")).get("key", [""])[0]
    secret = request.app.state.keys.open_session(key)
    if secret is None:
        return RedirectResponse("/", 303)  # the page asks for a key, and says why
    return HTMLResponse(ENTERED.format(secret=html.escape(secret)))


open_router = APIRouter(tags=["open"], route_class=StrictRoute)
BINARY = {"requestBody": {"content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}}}


@open_router.get("/about")
async def about(request: Request) -> dict[str, Any]:
    """What this server is: version, folder, limits; every role and measure with its meaning."""
    state = request.app.state
    return {
        "version": __version__,
        "folder": state.places.root.name,
        "upload_bytes": state.limits.upload_bytes,
        "gigabytes": state.limits.gigabytes,
        "jobs": state.limits.jobs,
        "roles": await state.pool.ask("open.roles"),
        "measures": await state.pool.ask("study.measures"),
        "systems": await state.pool.ask("study.systems"),
    }


@open_router.get("/files")
def files(request: Request, folder: Annotated[str, Query(max_length=1000)] = "") -> dict[str, Any]:
    """The tables and run files of a folder."""
    places: Places = request.app.state.places
    return places.listed(folder)


@open_router.get("/tables")
async def tables(request: Request, path: Annotated[str, Query(max_length=1000)]) -> dict[str, Any]:
    """The tables of an SQLite database of the folder."""
    return dict(await request.app.state.pool.ask("open.tables", path=path))


@open_router.put("/uploads/{name}", openapi_extra=BINARY)
async def upload(request: Request, name: str) -> JSONResponse:
    """Upload a table: streamed to disk, kept under its SHA-256 and never replaced, refused when too large."""
    limit: int = request.app.state.limits.upload_bytes
    length = request.headers.get("content-length", "0")
    if not length.isdigit() or int(length) > limit:
        raise too_large(limit)
    places: Places = request.app.state.places
    stored = await store(places, name, request.stream(), limit)
    return JSONResponse({"path": places.shown(stored.path), "bytes": stored.size, "sha256": stored.sha256})


@open_router.get("/studies")
async def studies(request: Request) -> list[dict[str, Any]]:
    """Every study of the workspace."""
    listed: list[dict[str, Any]] = await request.app.state.pool.ask("open.studies")
    return listed


@open_router.post("/studies")
async def open_study(request: Request, body: Opened) -> dict[str, Any]:
    """Open a table, a run file or the sample as a new study."""
    pool = request.app.state.pool
    if (body.path is None) == (body.sample is None):
        raise InputError("a path or a sample", expected="one of them")
    if body.sample is not None:
        opened = await pool.ask("open.open_sample", name=body.sample)
    elif str(body.path).endswith(".toml"):
        opened = await pool.ask("open.open_run", path=body.path)
    else:
        given = body.model_dump(exclude_none=True, exclude={"path", "sample"})
        opened = await pool.ask("open.open_table", path=body.path, settings=given)
    return dict(opened)


@open_router.delete("/studies/{study}")
async def forget(request: Request, study: StudyId, releases: bool = False) -> dict[str, str]:
    """Delete a study with its searches, and with `releases` also if it has any; tables of the folder stay.

    `undo` brings it back (POST /api/trash/UNDO) until the trash is emptied; an upload then goes with its last study.
    """
    places: Places = request.app.state.places
    folder = places.study(study)
    released = [path for path in (folder / "releases").glob("*/") if not path.name.startswith(".")]
    if released and not releases:
        raise ConflictError(
            f"this study has {counted(len(released), 'release')}",
            expected="a study without releases, or an explicit request to delete them too",
            remedy="download them first, then delete the study with its releases",
        )
    running = [job for job in request.app.state.jobs.of(study) if job["status"] in ("running", "queued")]
    if running:
        raise InputError(
            f"{len(running)} jobs of this study are running or queued", expected="none", remedy="stop them first"
        )
    return {"deleted": study, "undo": request.app.state.trash.put(folder)}


@open_router.post("/trash/{name}")
async def restore(request: Request, name: JobId) -> dict[str, int]:
    """Undo a deletion."""
    return {"restored": len(request.app.state.trash.restore(name))}


@open_router.delete("/trash/{name}")
async def delete_now(request: Request, name: JobId) -> dict[str, str]:
    """Delete for good what was deleted, at once; otherwise that happens after ten minutes, or at a restart."""
    request.app.state.trash.empty(name)
    return {"deleted": name}


@open_router.get("/studies/{study}/preview")
async def preview(request: Request, study: StudyId, rows: Annotated[int, Query(ge=1, le=500)] = 30) -> dict[str, Any]:
    """The first rows as they are read."""
    return dict(await request.app.state.pool.ask("open.preview", study=study, rows=rows))


@open_router.get("/studies/{study}/missing")
async def missing(request: Request, study: StudyId) -> dict[str, Any]:
    """What each value that may mean missing would cost under each of the three missing rules."""
    return dict(await request.app.state.pool.ask("open.missing", study=study))


@open_router.get("/studies/{study}/profile")
async def profile(request: Request, study: StudyId) -> dict[str, Any]:
    """Every column: figures, histogram, suggested role with its reason."""
    return dict(await request.app.state.pool.ask("open.profile", study=study))
