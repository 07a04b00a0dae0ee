"""Who may talk to the server: under the names it serves, from its own page, and with the secret of a session.

The page itself (its markup, scripts and styles) holds nothing secret and is open to whoever asks. Everything else needs
`Authorization: Bearer SECRET`, which a browser never adds by itself: there is no cookie, so nothing travels to other
ports of this machine and a foreign page can borrow nothing. A file can also be fetched once with a ticket.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any
from urllib.parse import parse_qs

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sfumato.web.bodies import announced_too_large, limited, too_large
from sfumato.web.keys import Keys

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
        if reason is not None:
            await _answer(send, 403, reason)
            return
        if announced_too_large(scope, headers):
            error = too_large().error
            await _answer(send, 413, error["what"], error["try"])
            return
        if not (_public(scope) or self._session(headers) or self._ticket(scope)):
            if headers.get("sec-fetch-mode") == "navigate":
                await _send(send, 401, {"content-type": "text/html; charset=utf-8"}, USED.encode())
            else:
                await _answer(send, 401, "this needs the secret of a session", "exchange a key for one at /api/session")
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = {name.lower() for name, _ in message["headers"]}
                message["headers"] = [
                    *message["headers"],
                    *((n.encode(), v.encode()) for n, v in HEADERS.items() if n.encode() not in own),
                ]
            await send(message)

        await self.app(scope, limited(scope, receive), guarded)

    def _refused(self, scope: Scope, headers: dict[str, str]) -> str | None:
        """Why a request is refused whoever sends it: other names of this machine, other pages."""
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


async def _answer(send: Send, status: int, what: str, remedy: str = "") -> None:
    body = json.dumps({"error": {"what": what, "expected": "", "try": remedy}}).encode()
    await _send(send, status, {"content-type": "application/json"}, body)


async def _send(send: Send, status: int, headers: dict[str, str], body: bytes) -> None:
    both: dict[str, Any] = {**HEADERS, **headers, "content-length": str(len(body))}
    raw = [(name.encode(), value.encode()) for name, value in both.items()]
    await send({"type": "http.response.start", "status": status, "headers": raw})
    await send({"type": "http.response.body", "body": body})
