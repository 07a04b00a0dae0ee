"""Access to the server: by the names it serves, from its own page, and with the secret of a session.

The page itself (its markup, scripts and styles) holds nothing secret and is open to every request. Everything else
needs `Authorization: Bearer SECRET`. A browser never adds that header by itself, as it does with a cookie, so other
ports of this machine receive nothing and a foreign page can use nothing. A file can also be fetched once with a ticket.

A session is opened by a key that is good for one use. A key is a file in the workspace that only its owner can read. It
is named by the key's digest and deleted when the key is used. The file can be the page that hands the key to the
server: a browser receives the name of the file, so no key is on a command line, in an address or in a history. The
server keeps sessions and tickets in its memory, as digests.
"""

from __future__ import annotations

import hashlib
import html
import os
import secrets
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from fastapi import Request, Response
from fastapi.responses import HTMLResponse, JSONResponse
from fastapi.routing import APIRoute
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sfumato.base.formats import parse_json
from sfumato.errors import DataError

FOLDER = "keys"
TICKET_SECONDS = 60.0
PAGE = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Sfumato workbench</title></head>
<body>
<form method="post" action="{action}"><input type="hidden" name="key" value="{key}">
<button>Open the workbench</button></form>
<script>document.forms[0].submit()</script>
</body>
</html>
"""


@dataclass(frozen=True)
class Key:
    """A new key, and the page in the workspace that hands it to the server."""

    text: str
    page: Path


def new_key(work: Path, address: str) -> Key:
    """Return a key for the server at an address; every program that can write to the workspace can make one."""
    text = secrets.token_urlsafe(24)
    page = work / FOLDER / f"{_digest(text)}.html"
    descriptor = os.open(page, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
        stream.write(PAGE.format(action=html.escape(f"{address}start"), key=text))
    return Key(text, page)


class Keys:
    """The keys of a workspace, and the sessions and tickets of the server that serves it."""

    def __init__(self, work: Path, now: Callable[[], float] = time.monotonic) -> None:
        self._folder, self._now = work / FOLDER, now
        self._sessions: set[str] = set()
        self._tickets: dict[str, tuple[str, float]] = {}

    def clear(self) -> None:
        """Delete every key that was not used: keys of an earlier server are not valid here."""
        for path in self._folder.iterdir():
            path.unlink()

    def open_session(self, key: str) -> str | None:
        """Use a key up; returns the secret of a new session, or None if there is no such key."""
        try:
            (self._folder / f"{_digest(key)}.html").unlink()
        except OSError:
            return None
        secret = secrets.token_urlsafe(32)
        self._sessions.add(_digest(secret))
        return secret

    def knows(self, secret: str) -> bool:
        """Return whether a secret is that of a session."""
        return _digest(secret) in self._sessions

    def new_ticket(self, path: str) -> str:
        """Return a ticket that opens one path once, within a minute."""
        now = self._now()
        self._tickets = {name: entry for name, entry in self._tickets.items() if entry[1] > now}
        ticket = secrets.token_urlsafe(24)
        self._tickets[_digest(ticket)] = (path, now + TICKET_SECONDS)
        return ticket

    def redeem(self, ticket: str, path: str) -> bool:
        """Use a ticket up; whether it was for this path and in time."""
        issued_for, until = self._tickets.pop(_digest(ticket), ("", 0.0))
        return issued_for == path and self._now() < until


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


MOST = 32 << 20  # bytes: a hierarchy of some hundred thousand values
UPLOADS = "/api/uploads/"  # a table has its own limit


TOO_LARGE = {
    "what": f"the request is larger than {MOST >> 20} MB",
    "expected": "a smaller request",
    "try": "upload a table as a file",
}


class RefusedError(HTTPException):
    """A request that is refused, with its HTTP status and why: {what, expected, try}."""

    def __init__(self, status: int, error: dict[str, str]) -> None:
        super().__init__(status, error["what"])
        self.error = error


def announced_too_large(scope: Scope, headers: dict[str, str]) -> bool:
    """Return whether a request says itself that it is too large."""
    length = headers.get("content-length", "0")
    return not scope["path"].startswith(UPLOADS) and (not length.isdigit() or int(length) > MOST)


def limited(scope: Scope, receive: Receive) -> Receive:
    """The same messages, until there are too many bytes of them."""
    if scope["path"].startswith(UPLOADS):
        return receive
    size = 0

    async def counted() -> Message:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        if size > MOST:
            raise RefusedError(413, TOO_LARGE)
        return message

    return counted


class StrictRequest(Request):
    """A request whose JSON holds finite numbers and text in UTF-8."""

    async def json(self) -> Any:
        return strict_json(await self.body())


class StrictRoute(APIRoute):
    """A route that takes only such requests."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handler = super().get_route_handler()

        async def strict(request: Request) -> Response:
            return await handler(StrictRequest(request.scope, request.receive))

        return strict


def strict_json(raw: bytes) -> Any:
    """JSON without NaN, infinities, lone surrogates and NUL, and not too deep: what a file can hold."""
    try:
        parsed = parse_json(raw, "the request", expected="JSON in UTF-8")
    except DataError as error:
        raise RefusedError(422, error.as_dict()) from None
    if (b"\\u0000" in raw or b"\0" in raw) and any("\0" in word for word in _texts(parsed)):
        what = "the request contains text that cannot be stored"
        raise RefusedError(422, {"what": what, "expected": "text in UTF-8 without NUL", "try": ""})
    return parsed


def _texts(parsed: Any) -> Iterator[str]:
    if isinstance(parsed, str):
        yield parsed
    elif isinstance(parsed, dict):
        for name, value in parsed.items():
            yield name
            yield from _texts(value)
    elif isinstance(parsed, list):
        for value in parsed:
            yield from _texts(value)


POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "connect-src 'self'; font-src 'self'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
SAFE = ("GET", "HEAD")
START = "/start"  # where the page in the workspace posts its key: a file, whose Origin is "null"
SESSION = "/api/session"
USED = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Sfumato workbench</title>
<link rel="stylesheet" href="/static/workbench.css"></head>
<body><main><h1>This address has expired</h1>
<p>Files and reports are opened from the workbench page, and each address can be used only once.</p>
<p><a href="/">Open the workbench</a></p></main></body></html>
"""


class Gate:
    """The first thing a request meets. Pure ASGI, so that streams pass through untouched."""

    def __init__(self, app: ASGIApp, keys: Keys, hosts: Iterable[str]) -> None:
        self.app, self.keys = app, keys
        self.hosts = frozenset(host.lower() for host in hosts)
        self.origins = frozenset(f"http://{host}" for host in self.hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return  # no websockets here
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        reason = self._refused(scope, headers)
        answer: Response | None = None
        if reason is not None:
            answer = _refusal(403, reason)
        elif announced_too_large(scope, headers):
            answer = _refusal(413, TOO_LARGE["what"], TOO_LARGE["try"])
        elif not (_public(scope) or self._session(headers) or self._ticket(scope)):
            answer = _refusal(401, "this needs the secret of a session", "exchange a key for one at /api/session")
            if headers.get("sec-fetch-mode") == "navigate":
                answer = HTMLResponse(USED, 401)

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                added = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    added.setdefault(name, value)
            await send(message)

        if answer is None:
            await self.app(scope, limited(scope, receive), guarded)
        else:
            await answer(scope, receive, guarded)

    def _refused(self, scope: Scope, headers: dict[str, str]) -> str | None:
        """Return why a request is refused whatever its session is: another name of this machine, or another page."""
        if headers.get("host", "").lower() not in self.hosts:
            return "this server does not accept that Host header"
        starts = scope["path"] == START
        origin = headers.get("origin")
        if origin is not None and origin.lower() not in self.origins and not (starts and origin == "null"):
            return "requests from other pages are refused"
        visited = scope["path"] == "/" and scope["method"] in SAFE
        if headers.get("sec-fetch-site", "same-origin") == "cross-site" and not (starts or visited):
            return "requests from other pages are refused"
        return None

    def _session(self, headers: dict[str, str]) -> bool:
        kind, _, secret = headers.get("authorization", "").partition(" ")
        return kind.lower() == "bearer" and self.keys.knows(secret)

    def _ticket(self, scope: Scope) -> bool:
        ticket = parse_qs(scope["query_string"].decode("latin-1")).get("ticket", [""])[0]
        return bool(ticket) and scope["method"] == "GET" and self.keys.redeem(ticket, scope["path"])


def _public(scope: Scope) -> bool:
    path, method = scope["path"], scope["method"]
    if method in SAFE:
        return bool(path == "/" or path.startswith("/static/"))
    return method == "POST" and path in (START, SESSION)


def _refusal(status: int, what: str, remedy: str = "") -> JSONResponse:
    return JSONResponse({"error": {"what": what, "expected": "", "try": remedy}}, status)
