"""Bodies of requests: of a bounded size, and JSON of which everything can be written down again."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.types import Message, Receive, Scope

from sfumato.errors import DataError
from sfumato.runtime.json_files import parse_json

MOST = 32 << 20  # bytes: a hierarchy of some hundred thousand values
UPLOADS = "/api/uploads/"  # a table has its own limit


class BodyError(HTTPException):
    """A body that is refused, as {what, expected, try}."""

    def __init__(self, status: int, what: str, expected: str, remedy: str = "") -> None:
        super().__init__(status, what)
        self.error = {"what": what, "expected": expected, "try": remedy}


def too_large() -> BodyError:
    """The error of a body beyond the limit."""
    return BodyError(
        413, f"the request is larger than {MOST >> 20} MB", "a smaller request", "upload a table as a file"
    )


def announced_too_large(scope: Scope, headers: dict[str, str]) -> bool:
    """Whether a request says itself that it is too large."""
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
            raise too_large()
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
        raise BodyError(422, error.what, error.expected) from None
    if b"\\u0000" in raw or b"\0" in raw:
        for word in _texts(parsed):
            if "\0" in word:
                raise BodyError(422, "the request contains text that cannot be stored", "text in UTF-8 without NUL")
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
