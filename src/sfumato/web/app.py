"""The server: routes, errors as sentences, the page's files. Started by `serve`."""

from __future__ import annotations

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import Response
from starlette.types import ASGIApp, Scope

from sfumato.errors import SfumatoError
from sfumato.version import __version__
from sfumato.web.access import Gate, Keys, RefusedError
from sfumato.web.jobs import Jobs, WorkerPool
from sfumato.web.routes import PARTS
from sfumato.web.routes import page as start
from sfumato.web.schema import explained
from sfumato.web.worker import status_of
from sfumato.web.workspace import KEPT_SECONDS, Places, Trash

STATIC = Path(__file__).parent / "static"


class PageFiles(StaticFiles):
    """The page's own files: a browser may keep them, and asks each time whether they are still the same."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        answer = await super().get_response(path, scope)
        answer.headers["cache-control"] = "no-cache"
        return answer


@dataclass(frozen=True)
class Options:
    """How much a server may use."""

    gigabytes: float = 8.0
    jobs: int = 2
    upload_bytes: int = 2 << 30


def make_app(places: Places, options: Options | None = None) -> FastAPI:
    """Return the application without its gate."""
    limits = options or Options()
    places.prepare()

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        places.clear_unfinished()
        app.state.trash = Trash(places)
        app.state.trash.empty()
        app.state.pool = WorkerPool(places, limits.gigabytes)
        app.state.jobs = Jobs(places, limits.gigabytes, limits.jobs)
        app.state.jobs.recover()
        app.state.jobs.start_waiting()
        keeper = asyncio.get_running_loop().create_task(_keep(app.state.pool, app.state.trash))
        yield
        keeper.cancel()
        await app.state.jobs.close()
        await app.state.pool.close()

    app = FastAPI(
        title="Sfumato workbench",
        version=__version__,
        lifespan=lifespan,
        docs_url=None,  # its pages load scripts from a network
        redoc_url=None,
        openapi_url="/api/openapi.json",
    )
    app.state.places, app.state.limits = places, limits
    app.state.keys = Keys(places.work)
    app.state.turns = defaultdict(asyncio.Lock)  # changes of one study are made one after another
    for part in PARTS:
        app.include_router(part, prefix="/api")
    app.include_router(start)
    app.add_exception_handler(SfumatoError, _mistaken)
    app.add_exception_handler(OSError, _mistaken)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _plain)

    @app.get("/", include_in_schema=False)
    def page() -> FileResponse:
        return FileResponse(STATIC / "index.html")

    app.mount("/static", GZipMiddleware(PageFiles(directory=STATIC), minimum_size=600), name="static")
    return app


def guarded(app: FastAPI, hosts: Iterable[str]) -> ASGIApp:
    """Return the application behind its gate."""
    return Gate(app, app.state.keys, hosts)


async def _keep(pool: WorkerPool, trash: Trash) -> None:
    """Stop idle workers, and remove deleted studies and releases once they can no longer be restored."""
    while True:
        await asyncio.sleep(20)
        await pool.close_idle()
        trash.empty(older=KEPT_SECONDS)


async def _mistaken(_: Request, error: Exception) -> JSONResponse:
    return JSONResponse({"error": explained(error)}, status_of(error))


async def _invalid(_: Request, error: Exception) -> JSONResponse:
    raised: Any = error
    problem = raised.errors()[0]
    where = ".".join(str(part) for part in problem["loc"][1:]) or "the request"
    said = {"what": f"{where} is not valid", "expected": str(problem["msg"]), "try": ""}
    return JSONResponse({"error": said}, 422)


async def _plain(_: Request, error: Exception) -> JSONResponse:
    raised: Any = error
    if isinstance(error, RefusedError):
        return JSONResponse({"error": error.error}, error.status_code)
    said = {
        "what": str(raised.detail),
        "expected": "an address of the workbench",
        "try": "/api/openapi.json lists them",
    }
    return JSONResponse({"error": said}, raised.status_code, headers=raised.headers)
