"""Desks: warm worker processes that answer quick questions. One that dies is replaced, and its question says so."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import time
from typing import Any

from sfumato.web.places import Places

LINE = 1 << 28  # the longest answer, in bytes
PATIENCE = 300.0  # seconds until a question is given up
IDLE = 180.0  # seconds after which an idle worker is stopped


class RefusedError(Exception):
    """An error reported by a worker, with its HTTP status."""

    def __init__(self, status: int, error: dict[str, str]) -> None:
        super().__init__(error["what"])
        self.status, self.error = status, error


class Desk:
    """One worker process, and one question at a time."""

    def __init__(self, places: Places, gigabytes: float) -> None:
        self.places, self.gigabytes = places, gigabytes
        self.lock = asyncio.Lock()
        self.used = time.monotonic()
        self._process: asyncio.subprocess.Process | None = None

    async def ask(self, call: str, given: dict[str, Any]) -> Any:
        """Ask, and wait for the answer."""
        async with self.lock:
            try:
                answer = await asyncio.wait_for(self._exchange(call, given), PATIENCE)
            except TimeoutError:
                await self.close()
                raise RefusedError(504, _slow()) from None
            except BaseException:  # a client that goes away must not leave its answer to the next one
                await self.close()
                raise
            finally:
                self.used = time.monotonic()
            if int(answer.get("status", 200)) >= 500:  # out of memory, or at fault: not a worker to ask again
                await self.close()
        if "error" in answer:
            raise RefusedError(int(answer["status"]), answer["error"])
        return answer["found"]

    async def close(self) -> None:
        """End the process, if there is one."""
        process, self._process = self._process, None
        if process is not None and process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    async def _exchange(self, call: str, given: dict[str, Any]) -> dict[str, Any]:
        if self._process is None or self._process.returncode is not None:
            self._process = await asyncio.create_subprocess_exec(
                *command("desk", self.places, self.gigabytes),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                limit=LINE,
                start_new_session=True,  # Ctrl-C is for the server, which ends its desks
            )
        process = self._process
        if process.stdin is None or process.stdout is None:
            raise RefusedError(500, _gone())
        try:
            process.stdin.write(json.dumps({"call": call, "with": given}).encode() + b"\n")
            await process.stdin.drain()
            line = await process.stdout.readline()
        except (ConnectionError, ValueError):
            line = b""
        if not line:
            await self.close()
            raise RefusedError(500, _gone())
        answer: dict[str, Any] = json.loads(line)
        return answer


class Desks:
    """A few workers: a free one is asked, and idle workers are stopped."""

    def __init__(self, places: Places, gigabytes: float, limit: int = 2) -> None:
        self._all = [Desk(places, gigabytes) for _ in range(limit)]

    async def ask(self, call: str, **given: Any) -> Any:
        free = [desk for desk in self._all if not desk.lock.locked()]
        # The warmest first: it knows the table already.
        desk = max(free, key=lambda desk: desk.used) if free else min(self._all, key=lambda desk: desk.used)
        return await desk.ask(call, given)

    async def send_home(self) -> None:
        """Close the desks that nobody has asked for a while."""
        for desk in self._all:
            if not desk.lock.locked() and time.monotonic() - desk.used > IDLE:
                await desk.close()

    async def close(self) -> None:
        for desk in self._all:
            await desk.close()


def command(kind: str, places: Places, gigabytes: float, *more: str) -> list[str]:
    """The command line of a worker."""
    return [sys.executable, "-m", "sfumato.web.worker", kind, str(places.root), str(gigabytes), *more]


def _gone() -> dict[str, str]:
    return {
        "what": "the worker stopped unexpectedly",
        "expected": "an answer; a new worker is available",
        "try": "try again; if it fails again, the table may need more memory: sfumato serve --memory 16",
    }


def _slow() -> dict[str, str]:
    return {"what": f"no answer within {PATIENCE:.0f} seconds", "expected": "a quick answer", "try": "a smaller table"}
