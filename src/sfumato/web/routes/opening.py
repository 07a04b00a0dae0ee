"""Files, uploads, studies."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse

from sfumato.errors import InputError, counted
from sfumato.version import __version__
from sfumato.web.bodies import StrictRoute
from sfumato.web.models import JobId, Opened, StudyId
from sfumato.web.places import ConflictError, Places
from sfumato.web.uploads import store, too_large

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
        "systems": await state.desks.ask("declaring.systems"),
    }


@router.get("/files")
def files(request: Request, folder: Annotated[str, Query(max_length=1000)] = "") -> dict[str, Any]:
    """The tables and run files of a folder."""
    places: Places = request.app.state.places
    return places.listed(folder)


@router.get("/tables")
async def tables(request: Request, path: Annotated[str, Query(max_length=1000)]) -> dict[str, Any]:
    """The tables of an SQLite database of the folder."""
    return dict(await request.app.state.desks.ask("opening.tables", path=path))


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


@router.post("/trash/{name}")
async def restore(request: Request, name: JobId) -> dict[str, int]:
    """Undo a deletion."""
    return {"restored": len(request.app.state.trash.restore(name))}


@router.delete("/trash/{name}")
async def delete_now(request: Request, name: JobId) -> dict[str, str]:
    """Delete for good what was deleted, at once; otherwise that happens after ten minutes, or at a restart."""
    request.app.state.trash.empty(name)
    return {"deleted": name}


@router.get("/studies/{study}/preview")
async def preview(request: Request, study: StudyId, rows: Annotated[int, Query(ge=1, le=500)] = 30) -> dict[str, Any]:
    """The first rows as they are read."""
    return dict(await request.app.state.desks.ask("opening.preview", study=study, rows=rows))


@router.get("/studies/{study}/missing")
async def missing(request: Request, study: StudyId) -> dict[str, Any]:
    """What each value that may mean missing would cost under each of the three missing rules."""
    return dict(await request.app.state.desks.ask("opening.missing", study=study))


@router.get("/studies/{study}/profile")
async def profile(request: Request, study: StudyId) -> dict[str, Any]:
    """Every column: figures, histogram, suggested role with its reason."""
    return dict(await request.app.state.desks.ask("opening.profile", study=study))
