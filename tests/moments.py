"""Signals at a moment of the work instead of a moment of the clock: a moment is a touch of a file below a folder.

A separate process gets `surroundings`, by which Python imports `hostile/moments/sitecustomize.py`. A script that forks
its work uses `attempt`.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

FOLDER = Path(__file__).parent / "hostile" / "moments"
EVENTS = ("open", "os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.link", "os.chmod", "os.truncate", "os.listdir")


def surroundings(moment: Path, below: Path, kind: int = 0, at: int = 0, count: Path | None = None) -> dict[str, str]:
    """Return environment variables by which a process gets the signal `kind` at its moment `at`.

    The number of its moments is written to `count` if it ends by itself.
    """
    asked = {"below": str(below), "signal": int(kind), "at": at} | ({} if count is None else {"count": str(count)})
    moment.write_text(json.dumps(asked), "utf-8")
    paths = [str(FOLDER), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "SFUMATO_MOMENT": str(moment)}


def attempt(work: Callable[[], int], below: Path, at: int = 0) -> tuple[int, int]:
    """Run work in a forked process that is killed at its moment `at`; return its exit code and number of moments."""
    reader, writer = os.pipe()
    child = os.fork()  # before any thread is started
    if child == 0:
        seen = 0

        def hook(event: str, arguments: tuple[object, ...]) -> None:
            nonlocal seen
            if event in EVENTS and any(str(below) in os.fsdecode(one) for one in arguments[:2] if _is_path(one)):
                seen += 1
                if seen == at:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(hook)
        code = work()
        os.write(writer, str(seen).encode())
        os._exit(code)
    os.close(writer)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    with os.fdopen(reader, encoding="utf-8") as stream:
        return code, int(stream.read() or 0)


def _is_path(value: object) -> bool:
    return isinstance(value, str | bytes | os.PathLike)
