"""Who may use the page: keys that are good for one use, the sessions they open, and tickets for single files.

A key is a file in the workspace that only its owner can read, named by the key's digest; using the key deletes the
file, so it cannot be used twice. The file can be the page that hands the key to the server: a browser is told the name
of the file, and no key is on a command line, in an address or in a history. Sessions and tickets are kept in the
memory of the server, as digests.
"""

from __future__ import annotations

import hashlib
import html
import os
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

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
    """A key for the server at an address; whoever can write to the workspace can make one."""
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
        """Whether a secret is that of a session."""
        return _digest(secret) in self._sessions

    def new_ticket(self, path: str) -> str:
        """A ticket that opens one path once, within a minute."""
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
