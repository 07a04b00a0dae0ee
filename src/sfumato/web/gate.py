"""Who may talk to the server: the Host it serves, the page's own Origin, and whoever holds the token."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs, urlencode

from starlette.types import ASGIApp, Message, Receive, Scope, Send

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


class Gate:
    """The first thing a request meets. Pure ASGI, so that streams pass through untouched."""

    def __init__(self, app: ASGIApp, token: str, hosts: Iterable[str], cookie: str) -> None:
        self.app, self.token, self.cookie = app, token, cookie
        self.hosts = frozenset(host.lower() for host in hosts)
        self.origins = frozenset(f"http://{host}" for host in self.hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return  # no websockets here
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        why = self._refused(scope, headers)
        if why is not None:
            await _answer(send, 403, why)
            return
        query = parse_qs(scope["query_string"].decode("latin-1"))
        given = query.pop("token", [""])[0]
        if scope["path"] == "/" and given and self._right(given):
            rest = urlencode(query, doseq=True)
            await _redirect(send, "/" + (f"?{rest}" if rest else ""), f"{self.cookie}={self.token}")
            return
        if not self._known(headers):
            await _answer(
                send, 401, "this page needs its key", "open the address that sfumato serve printed, with ?token=…"
            )
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = {name.lower() for name, _ in message["headers"]}
                message["headers"] = [
                    *message["headers"],
                    *((n.encode(), v.encode()) for n, v in HEADERS.items() if n.encode() not in own),
                ]
            await send(message)

        await self.app(scope, receive, guarded)

    def _refused(self, scope: Scope, headers: dict[str, str]) -> str | None:
        """Why a request is refused whoever sends it: other names of this machine, other pages."""
        if headers.get("host", "").lower() not in self.hosts:
            return "this server does not answer to that Host"
        origin = headers.get("origin")
        if origin is not None and origin.lower() not in self.origins:
            return "requests from other pages are refused"
        if headers.get("sec-fetch-site", "same-origin") == "cross-site" and scope["path"] != "/":
            return "requests from other pages are refused"
        by_cookie = "authorization" not in headers
        if scope["method"] not in SAFE and by_cookie and origin is None:
            return "a change needs the page's own Origin"
        return None

    def _known(self, headers: dict[str, str]) -> bool:
        kind, _, key = headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer" and self._right(key):
            return True
        try:
            found = SimpleCookie(headers.get("cookie", "")).get(self.cookie)
        except CookieError:
            return False
        return found is not None and self._right(found.value)

    def _right(self, given: str) -> bool:
        return secrets.compare_digest(given.encode(), self.token.encode())


async def _answer(send: Send, status: int, what: str, remedy: str = "") -> None:
    body = json.dumps({"error": {"what": what, "expected": "", "try": remedy}}).encode()
    await _send(send, status, {"content-type": "application/json"}, body)


async def _redirect(send: Send, where: str, cookie: str) -> None:
    kept = f"{cookie}; HttpOnly; SameSite=Strict; Path=/"
    await _send(send, 303, {"location": where, "set-cookie": kept}, b"")


async def _send(send: Send, status: int, headers: dict[str, str], body: bytes) -> None:
    both: dict[str, Any] = {**HEADERS, **headers, "content-length": str(len(body))}
    raw = [(name.encode(), value.encode()) for name, value in both.items()]
    await send({"type": "http.response.start", "status": status, "headers": raw})
    await send({"type": "http.response.body", "body": body})
