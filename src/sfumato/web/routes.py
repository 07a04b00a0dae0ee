"""Addresses of the workbench: what workers answer, files and uploads, jobs and their events, releases.

Most addresses are a question to a worker: the declaration has the function of `web.api` that answers it, with the
parameters of that function and the types that a request must give them. Its route is made from them. The server does
not import `web.api`, which needs the compiler and the database.
"""

from __future__ import annotations

import asyncio
import contextlib
import html
import inspect
import json
import tomllib
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Annotated, Any, Literal
from urllib.parse import parse_qs

from fastapi import APIRouter, Depends, HTTPException, Path, Query, Request, Response
from fastapi.responses import FileResponse, HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse
from fastapi.responses import StreamingResponse as Stream

from sfumato.base.json_types import Json
from sfumato.errors import InputError, counted
from sfumato.version import __version__
from sfumato.web.access import START, RefusedError, StrictRoute
from sfumato.web.jobs import Jobs
from sfumato.web.schema import (
    IDENTIFIER,
    Changes,
    ChannelSearch,
    Edit,
    GroupsSearch,
    Imported,
    JobId,
    Kept,
    KeyGiven,
    Limited,
    Listed,
    Look,
    Opened,
    Publication,
    Recipe,
    ReleaseId,
    Search,
    StudyId,
    TicketFor,
    Verdict,
    Version,
    Whole,
)
from sfumato.web.workspace import AbsentError, ConflictError, Places, Trash, store, too_large, version_of

Column = Annotated[str, Query(max_length=1000)]
FilePath = Annotated[str, Query(max_length=1000)]
Rows = Annotated[int, Query(ge=1, le=500)]
PathNumber = Annotated[int, Path(ge=0, le=10**9)]
QueryNumber = Annotated[int, Query(ge=0, le=10**9)]
Number = Annotated[int | None, Query(ge=0, le=10**9)]
QueryId = Annotated[str, Query(pattern=IDENTIFIER)]
OptionalId = Annotated[str | None, Query(pattern=IDENTIFIER)]


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


class Part(APIRouter):
    """The addresses of a part of the page, which the description of the interface lists together."""

    def __init__(self, tag: str) -> None:
        super().__init__(tags=[tag], route_class=StrictRoute)
        self.asked: dict[str, Callable[..., None]] = {}

    def asks(
        self, method: str, path: str, call: str, *, answer: Any = Json, connected: bool = False, versioned: bool = False
    ) -> Callable[[Callable[..., None]], Callable[..., None]]:
        """Make a route of a declaration: its parameters, and the fields of its `body`, are what `call` is given.

        The answer to a question that takes long is given up when the client goes away (`connected`). The answer about
        a study that can be changed has its version as ETag (`versioned`).
        """

        def declared(declaration: Callable[..., None]) -> Callable[..., None]:
            async def endpoint(request: Request, response: Response, **given: Any) -> Any:
                if "body" in given:
                    given |= given.pop("body").model_dump(exclude_none=True)
                question = request.app.state.pool.ask(call, **given)
                # The changes of one study are made one after another.
                turn = request.app.state.turns[given["study"]] if "version" in given else contextlib.nullcontext()
                async with turn:
                    found = await (while_connected(request, question) if connected else question)
                if versioned:
                    response.headers["etag"] = f'"{found["version"]}"'
                return PlainTextResponse(found) if answer is PlainTextResponse else found

            before = [inspect.signature(endpoint).parameters[name] for name in ("request", "response")]
            named = [*before, *inspect.signature(declaration).parameters.values()]
            ordered = sorted(named, key=lambda one: one.default is not inspect.Parameter.empty)
            described: Any = endpoint
            described.__signature__ = inspect.Signature(ordered)
            described.__name__, described.__doc__ = declaration.__name__, declaration.__doc__
            kind: Json = {"response_class": answer} if answer is PlainTextResponse else {"response_model": answer}
            self.add_api_route(path, endpoint, methods=[method], **kind)
            self.asked[call] = declaration
            return declaration

        return declared


entering, opening, declaring = Part("enter"), Part("open"), Part("declare")
searching, exploring, publishing = Part("search"), Part("explore"), Part("publish")
other_systems, replaying = Part("channel and groups"), Part("show as")
PARTS = (entering, opening, declaring, searching, exploring, publishing, other_systems, replaying)
page = APIRouter()


async def _queue(request: Request) -> Jobs:
    queue: Jobs = request.app.state.jobs
    return queue


async def _trash(request: Request) -> Trash:
    trash: Trash = request.app.state.trash
    return trash


async def _places(request: Request) -> Places:
    places: Places = request.app.state.places
    return places


Queue = Annotated[Jobs, Depends(_queue)]
Deleted = Annotated[Trash, Depends(_trash)]
Folders = Annotated[Places, Depends(_places)]


LONGEST_FORM = 1024
ENTERED = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Sfumato workbench</title><meta name="session" content="{secret}">
<script type="module" src="/static/start.js"></script></head>
<body><noscript>The workbench needs JavaScript.</noscript></body>
</html>
"""


@entering.post("/session")
async def session(request: Request, body: KeyGiven) -> JSONResponse:
    """Exchange a key, which is good for one use, for the secret of a session: `Authorization: Bearer SECRET`."""
    secret = request.app.state.keys.open_session(body.key.strip())
    if secret is None:
        error = InputError(
            "this key is not valid",
            expected="an unused key printed by sfumato serve",
            remedy="sfumato serve FOLDER --link prints another",
        )
        raise RefusedError(401, error.as_dict())
    return JSONResponse({"secret": secret})


@entering.post("/tickets")
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


BINARY = {"requestBody": {"content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}}}


@opening.get("/about")
async def about(request: Request) -> Json:
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


@opening.get("/files")
def files(places: Folders, folder: FilePath = "") -> Json:
    """The tables and run files of a folder."""
    return places.listed(folder)


@opening.put("/uploads/{name}", openapi_extra=BINARY)
async def upload(request: Request, places: Folders, name: str) -> JSONResponse:
    """Upload a table: streamed to disk, kept under its SHA-256 and never replaced, refused when too large."""
    limit: int = request.app.state.limits.upload_bytes
    length = request.headers.get("content-length", "0")
    if not length.isdigit() or int(length) > limit:
        raise too_large(limit)
    stored = await store(places, name, request.stream(), limit)
    return JSONResponse({"path": places.shown(stored.path), "bytes": stored.size, "sha256": stored.sha256})


@opening.asks("GET", "/tables", "open.tables")
def tables(path: FilePath) -> None:
    """The tables of an SQLite database of the folder."""


@opening.asks("GET", "/studies", "open.studies", answer=list[Json])
def studies() -> None:
    """Every study of the workspace."""


@opening.asks("POST", "/studies", "open.open_study")
def open_study(body: Opened) -> None:
    """Open a table, a run file or the sample as a new study."""


@opening.asks("GET", "/studies/{study}/preview", "open.preview")
def preview(study: StudyId, rows: Rows = 30) -> None:
    """The first rows as they are read."""


@opening.asks("GET", "/studies/{study}/missing", "open.missing")
def missing(study: StudyId) -> None:
    """What each value that may mean missing would cost under each of the three missing rules."""


@opening.asks("GET", "/studies/{study}/profile", "open.profile")
def profile(study: StudyId) -> None:
    """Every column: figures, histogram, suggested role with its reason."""


@opening.delete("/studies/{study}")
async def forget(queue: Queue, trash: Deleted, study: StudyId, releases: bool = False) -> dict[str, str]:
    """Delete a study with its searches, and with `releases` also if it has any; tables of the folder stay.

    `undo` brings it back (POST /api/trash/UNDO) until the trash is emptied; an upload then goes with its last study.
    """
    folder = queue.places.study(study)
    released = [path for path in (folder / "releases").glob("*/") if not path.name.startswith(".")]
    if released and not releases:
        raise ConflictError(
            f"this study has {counted(len(released), 'release')}",
            expected="a study without releases, or an explicit request to delete them too",
            remedy="download them first, then delete the study with its releases",
        )
    running = [job for job in queue.of(study) if job["status"] in ("running", "queued")]
    if running:
        raise InputError(
            f"{len(running)} jobs of this study are running or queued", expected="none", remedy="stop them first"
        )
    return {"deleted": study, "undo": trash.put(folder)}


@opening.post("/trash/{name}")
async def restore(trash: Deleted, name: JobId) -> dict[str, int]:
    """Undo a deletion."""
    return {"restored": len(trash.restore(name))}


@opening.delete("/trash/{name}")
async def delete_now(trash: Deleted, name: JobId) -> dict[str, str]:
    """Delete for good what was deleted, at once; otherwise that happens after ten minutes, or at a restart."""
    trash.empty(name)
    return {"deleted": name}


@declaring.asks("GET", "/studies/{study}", "study.get", versioned=True)
def get(study: StudyId) -> None:
    """A study as it is declared; its ETag is the version that a change has to name."""


@declaring.asks("PUT", "/studies/{study}", "study.put", versioned=True)
def put(study: StudyId, body: Changes, version: Version) -> None:
    """Change what is declared; what is wrong is refused with a sentence. 409 if it was changed elsewhere before."""


@declaring.asks("GET", "/studies/{study}/audit", "study.audit", connected=True)
def audit(study: StudyId) -> None:
    """Every figure of the raw table."""


@declaring.asks("GET", "/studies/{study}/grid", "hierarchies.grid", connected=True)
def grid(study: StudyId, rows: Rows = 60) -> None:
    """Records with the size of their class, the smallest first, and the columns that single most records out."""


@declaring.asks("GET", "/studies/{study}/uncounted", "hierarchies.uncounted", connected=True)
def uncounted(study: StudyId) -> None:
    """How unique records would be with each column that is released and in no figure."""


@declaring.asks("GET", "/studies/{study}/estimate", "study.estimate")
def estimate(study: StudyId) -> None:
    """The size of the search space, and how long the whole of it would take."""


@declaring.asks("GET", "/studies/{study}/hierarchy", "hierarchies.show")
def hierarchy(study: StudyId, column: Column) -> None:
    """The hierarchy of a column, with the records under each label."""


@declaring.asks("GET", "/studies/{study}/order", "hierarchies.order")
def order(study: StudyId, column: Column) -> None:
    """In which order a search over cuts may join the values of a column, and where the order comes from."""


@declaring.asks("POST", "/studies/{study}/hierarchy/build", "hierarchies.described_recipe")
def build(study: StudyId, body: Recipe) -> None:
    """What a recipe would make of a column; nothing is saved."""


@declaring.asks("POST", "/studies/{study}/hierarchy/edit", "hierarchies.edit")
def edit(study: StudyId, body: Edit) -> None:
    """The paths after one change; nothing is saved."""


@declaring.asks("POST", "/studies/{study}/hierarchy/import", "hierarchies.imported")
def import_file(study: StudyId, body: Imported) -> None:
    """Read a hierarchy file of ARX, anjana or ours; nothing is saved."""


@declaring.asks("PUT", "/studies/{study}/hierarchy", "hierarchies.keep", versioned=True)
def keep(study: StudyId, body: Kept, version: Version) -> None:
    """Declare a hierarchy for a column. 409 if the study was changed elsewhere before."""


@exploring.asks("GET", "/studies/{study}/jobs/{job}/front", "front.front")
def front(study: StudyId, job: JobId) -> None:
    """The front that a search found, with its knee."""


@exploring.asks("GET", "/studies/{study}/jobs/{job}/points/{number}", "front.point")
def point(study: StudyId, job: JobId, number: int, size: Number = None, diversity: Number = None) -> None:
    """One point in detail; with `size` and `diversity`, classes below them are suppressed instead."""


@exploring.asks("GET", "/studies/{study}/jobs/{job}/points/{number}/whole", "front.whole", answer=Whole)
def whole(study: StudyId, job: JobId, number: PathNumber, size: Number = None, diversity: Number = None) -> None:
    """How unique records would be over all columns that a point releases, and which of these are in no figure."""


@exploring.asks("GET", "/studies/{study}/jobs/{job}/ask", "front.ask")
def ask(study: StudyId, job: JobId, limits: Limited) -> None:
    """The best release within limits."""


@exploring.asks("GET", "/studies/{study}/jobs/{job}/compare", "front.compare")
def compare(
    study: StudyId,
    job: JobId,
    one: QueryNumber,
    two: QueryNumber,
    measure: Annotated[str | None, Query(max_length=60)] = None,
) -> None:
    """Compare two points record by record."""


@exploring.asks("GET", "/studies/{study}/fronts", "front.fronts")
def fronts(study: StudyId, one: QueryId, two: QueryId) -> None:
    """Two searches side by side."""


PULSE = 0.4  # seconds between two looks at the jobs


@searching.get("/jobs")
def jobs(queue: Queue) -> list[Json]:
    """Every job of every study."""
    return queue.of()


@searching.post("/studies/{study}/jobs")
async def search(request: Request, study: StudyId, body: Search, version: Version) -> Json:
    """Start a search of the study as it was read, or put it into the queue. 409 if the study has changed since."""
    return await _started(request, study, version, "search", body.model_dump())


async def _started(request: Request, study: str, version: str, kind: str, given: Json) -> Json:
    """Add a job of a study as it was read. Its roles must be confirmed."""
    state = request.app.state
    folder = state.places.study(study)
    async with state.turns[study]:
        await state.pool.ask("study.ready", study=study, version=version)
        run = (folder / "run.toml").read_text("utf-8")
    return dict(state.jobs.add(study, kind, given, run, settings=tomllib.loads(run).get("search", {})))


@searching.get("/studies/{study}/jobs")
def jobs_of(queue: Queue, study: StudyId) -> list[Json]:
    """The jobs of a study."""
    queue.places.study(study)
    return queue.of(study)


@searching.get("/studies/{study}/jobs/{job}")
def one(queue: Queue, study: StudyId, job: JobId) -> Json:
    """The state of a job."""
    return queue.describe(queue.places.job(study, job))


@searching.get("/studies/{study}/jobs/{job}/live")
def live(queue: Queue, study: StudyId, job: JobId) -> Json:
    """The front so far."""
    return queue.live(queue.places.job(study, job))


@searching.post("/studies/{study}/jobs/{job}/stop")
async def stop(queue: Queue, study: StudyId, job: JobId) -> Json:
    """Stop a job and keep the best so far."""
    return queue.stop(study, job)


@searching.post("/studies/{study}/jobs/{job}/again")
async def again(queue: Queue, study: StudyId, job: JobId) -> Json:
    """Run a job that was stopped or interrupted again; a search that keeps its state continues from it."""
    return queue.again(study, job)


@searching.delete("/studies/{study}/jobs/{job}")
async def remove(queue: Queue, trash: Deleted, study: StudyId, job: JobId) -> dict[str, str]:
    """Delete a job and what it found. `undo` brings it back (POST /api/trash/UNDO) until the trash is emptied."""
    return {"deleted": job, "undo": trash.put(queue.take_out(study, job))}


@searching.get("/events", response_class=Stream)
async def events(request: Request) -> Stream:
    """Server-sent events: every job that changed, with its front so far."""
    return Stream(_pulse(request), media_type="text/event-stream")


class Watched:
    """The studies of a workspace, and which of them were changed since they were last looked at."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._seen = self._states()

    def changed(self) -> list[str]:
        """The studies that have another version, as JSON; those that were deleted have none."""
        before, self._seen = self._seen, self._states()
        names = [name for name in self._seen | before if before.get(name) != self._seen.get(name)]
        return [json.dumps({"study": name, "version": self._version(name)}) for name in names]

    def _version(self, name: str) -> str | None:
        return version_of(self._places.studies / name) if name in self._seen else None

    def _states(self) -> dict[str, tuple[int, ...]]:
        states = {}
        for folder in self._places.studies.iterdir():
            with contextlib.suppress(OSError):
                states[folder.name] = tuple((folder / name).stat().st_mtime_ns for name in ("run.toml", "study.json"))
        return states


async def _pulse(request: Request) -> AsyncIterator[str]:
    queue: Jobs = request.app.state.jobs
    seen: dict[str, str] = {}
    studies = Watched(queue.places)
    quiet = 0.0
    yield "retry: 1000\n\n"
    while not queue.closing and not await request.is_disconnected():
        for job in queue.of():
            folder = queue.places.studies / job["study"] / "jobs" / job["id"]
            if job["status"] == "running":
                job["live"] = queue.live(folder)
            text = json.dumps(job, ensure_ascii=False)
            if seen.get(job["id"]) != text:
                seen[job["id"]] = text
                quiet = 0.0
                yield f"event: job\ndata: {text}\n\n"
        for text in studies.changed():
            quiet = 0.0
            yield f"event: study\ndata: {text}\n\n"
        quiet += PULSE
        if quiet > 15:
            quiet = 0.0
            yield ": still here\n\n"
        await asyncio.sleep(PULSE)


@other_systems.post("/studies/{study}/channels")
async def search_channels(request: Request, study: StudyId, body: ChannelSearch, version: Version) -> Json:
    """Start a search for channels of a sensitive column. 409 if the study has changed since it was read."""
    return await _started(request, study, version, "channel", body.model_dump())


@other_systems.asks("GET", "/studies/{study}/jobs/{job}/channel", "systems.front")
def channel_front(study: StudyId, job: JobId) -> None:
    """The channels that were found, with the certified bound of each."""


@other_systems.asks("GET", "/studies/{study}/jobs/{job}/channel/{number}", "systems.point")
def channel(study: StudyId, job: JobId, number: PathNumber) -> None:
    """One channel with its matrix."""


@other_systems.post("/studies/{study}/groups")
async def search_groups(request: Request, study: StudyId, body: GroupsSearch, version: Version) -> Json:
    """Attack the areas of a group, and protect them. 409 if the study has changed since it was read."""
    return await _started(request, study, version, "groups", body.model_dump())


@other_systems.asks("GET", "/studies/{study}/jobs/{job}/groups", "systems.findings")
def groups(study: StudyId, job: JobId) -> None:
    """What the attacker sees, and what is left after the protection."""


# A report draws with a script of its own, so it is shown where that script can reach nothing; it may print.
CAGE = (
    "sandbox allow-scripts allow-modals; default-src 'none'; script-src 'unsafe-inline'; "
    "style-src 'unsafe-inline'; img-src data:"
)


@publishing.post("/studies/{study}/releases")
async def publish(request: Request, queue: Queue, study: StudyId, body: Publication) -> Json:
    """Publish a point: a job that writes, reads back, measures and verifies."""
    queue.places.job(study, body.job)
    await request.app.state.pool.ask("study.same_table", study=study)
    given = body.model_dump(exclude_none=True)
    return queue.add(study, "publish", {"job": given.pop("job"), "number": given.pop("point"), **given})


@publishing.asks("POST", "/studies/{study}/look", "release.look", connected=True)
def look(study: StudyId, body: Look) -> None:
    """The last look before a release: what it would hold, what the policy says of it, some of its rows."""


@publishing.asks("GET", "/studies/{study}/releases", "release.releases", answer=list[Listed])
def releases(study: StudyId) -> None:
    """Every release of a study."""


@publishing.delete("/studies/{study}/releases/{release}", name="forget")
async def forget_release(queue: Queue, trash: Deleted, study: StudyId, release: ReleaseId) -> dict[str, str]:
    """Delete a release of the workspace; the ledger still knows that it was made. `undo` brings it back."""
    folder = queue.places.release(study, release)
    return {"deleted": release, "undo": trash.put(folder, folder.parent / f"{release}.json")}


@publishing.asks("POST", "/studies/{study}/releases/{release}/verify", "release.verify", answer=Verdict)
def verify(study: StudyId, release: ReleaseId) -> None:
    """Check a release again, against its source."""


@publishing.get("/studies/{study}/releases/{release}/{part}.zip", response_class=FileResponse)
async def pack(request: Request, study: StudyId, release: ReleaseId, part: Literal["public", "record"]) -> FileResponse:
    """What may leave as one file, or the publisher's internal record, whose name says that it is not for release."""
    path = await request.app.state.pool.ask("release.pack", study=study, release=release, private=part == "record")
    label = "public" if part == "public" else "internal-not-for-release"
    name = f"{release[:-24]}-{label}.zip"  # of the id, 8 digits
    return FileResponse(path, media_type="application/zip", filename=name)


@publishing.get("/studies/{study}/releases/{release}/{report}.html", response_class=FileResponse)
def report(
    places: Folders, study: StudyId, release: ReleaseId, report: Literal["internal", "external", "dictionary"]
) -> FileResponse:
    """A report of the release, in a cage of its own."""
    part = "private" if report == "internal" else "public"
    path = places.release(study, release) / part / f"{report}.html"
    if not path.is_file():
        raise AbsentError("the report does not exist", expected="a complete release", remedy="verify the release")
    return FileResponse(path, headers={"content-security-policy": CAGE})


@replaying.asks("GET", "/studies/{study}/run.toml", "release.run_file", answer=PlainTextResponse)
def run_file(study: StudyId, job: OptionalId = None) -> None:
    """The run file that replays this from the command line."""


@replaying.asks("GET", "/studies/{study}/run.py", "release.program", answer=PlainTextResponse)
def program(study: StudyId, limits: Limited, job: OptionalId = None, point: Number = None) -> None:
    """The same as a Python program; with limits, the answer to that question is what it publishes."""


@replaying.asks("GET", "/studies/{study}/run.sh", "release.commands", answer=PlainTextResponse)
def commands(study: StudyId, limits: Limited, job: OptionalId = None, point: Number = None) -> None:
    """The same as commands over the run file."""
