"""Files, uploads, studies."""

from __future__ import annotations

import shutil
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse

from sfumato.errors import InputError
from sfumato.version import __version__
from sfumato.web.bodies import StrictRoute
from sfumato.web.models import Opened, StudyId
from sfumato.web.places import Places
from sfumato.web.uploads import forget_unused, store, too_large

router = APIRouter(tags=["open"], route_class=StrictRoute)
BINARY = {"requestBody": {"content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}}}


@router.get("/about")
async def about(request: Request) -> dict[str, Any]:
    """What this server is: version, folder, limits; every role and measure with its meaning."""
    state = request.app.state
    return {
        "version": __version__,
        "folder": state.places.root.name,
        "upload_bytes": state.limits.upload_bytes,
        "gigabytes": state.limits.gigabytes,
        "jobs": state.limits.jobs,
        "roles": await state.desks.ask("opening.roles"),
        "measures": await state.desks.ask("declaring.measures"),
    }


@router.get("/files")
def files(request: Request, folder: Annotated[str, Query(max_length=1000)] = "") -> dict[str, Any]:
    """The tables and run files of a folder."""
    places: Places = request.app.state.places
    return places.listed(folder)


@router.put("/uploads/{name}", openapi_extra=BINARY)
async def upload(request: Request, name: str) -> JSONResponse:
    """Upload a table: streamed to disk, kept under its SHA-256 and never replaced, refused when too large."""
    limit: int = request.app.state.limits.upload_bytes
    length = request.headers.get("content-length", "0")
    if not length.isdigit() or int(length) > limit:
        raise too_large(limit)
    places: Places = request.app.state.places
    stored = await store(places, name, request.stream(), limit)
    return JSONResponse({"path": places.shown(stored.path), "bytes": stored.size, "sha256": stored.sha256})


@router.get("/studies")
async def studies(request: Request) -> list[dict[str, Any]]:
    """Every study of the workspace."""
    listed: list[dict[str, Any]] = await request.app.state.desks.ask("opening.studies")
    return listed


@router.post("/studies")
async def open_study(request: Request, body: Opened) -> dict[str, Any]:
    """Open a table, a run file or the sample as a new study."""
    desks = request.app.state.desks
    if (body.path is None) == (body.sample is None):
        raise InputError("a path or a sample", expected="one of them")
    if body.sample is not None:
        opened = await desks.ask("opening.open_sample", name=body.sample)
    elif str(body.path).endswith(".toml"):
        opened = await desks.ask("opening.open_run", path=body.path)
    else:
        given = body.model_dump(exclude_none=True, exclude={"path", "sample"})
        opened = await desks.ask("opening.open_table", path=body.path, settings=given)
    return dict(opened)


@router.delete("/studies/{study}")
async def forget(request: Request, study: StudyId) -> dict[str, str]:
    """Delete a study with its searches and releases; an upload goes with its last study, other tables stay."""
    places: Places = request.app.state.places
    folder = places.study(study)
    running = [job for job in request.app.state.jobs.of(study) if job["status"] in ("running", "queued")]
    if running:
        raise InputError(
            f"{len(running)} jobs of this study are running or queued", expected="none", remedy="stop them first"
        )
    named = "".join(path.read_text("utf-8", "replace") for path in folder.rglob("run.toml"))
    shutil.rmtree(folder)
    forget_unused(places, named)
    return {"deleted": study}


@router.get("/studies/{study}/preview")
async def preview(request: Request, study: StudyId, rows: Annotated[int, Query(ge=1, le=500)] = 30) -> dict[str, Any]:
    """The first rows as they are read."""
    return dict(await request.app.state.desks.ask("opening.preview", study=study, rows=rows))


@router.get("/studies/{study}/profile")
async def profile(request: Request, study: StudyId) -> dict[str, Any]:
    """Every column: figures, histogram, suggested role with its reason."""
    return dict(await request.app.state.desks.ask("opening.profile", study=study))
