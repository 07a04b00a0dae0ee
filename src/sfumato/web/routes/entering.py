"""Keys for sessions, and tickets for files."""

from __future__ import annotations

import html
from urllib.parse import parse_qs

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse, Response

from sfumato.web.bodies import StrictRoute
from sfumato.web.gate import START
from sfumato.web.models import KeyGiven, TicketFor

router = APIRouter(tags=["enter"], route_class=StrictRoute)
page = APIRouter()
LONGEST_FORM = 1024
ENTERED = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Sfumato workbench</title><meta name="session" content="{secret}">
<script type="module" src="/static/start.js"></script></head>
<body><noscript>The workbench needs JavaScript.</noscript></body>
</html>
"""


@router.post("/session")
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


@router.post("/tickets")
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
