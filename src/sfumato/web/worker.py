"""A process of the workbench: a worker that answers questions, or one job, both under a memory limit.

A worker reads one question in each line of its input and writes one answer in a line. A job reads `job.json` in its
folder and leaves `progress.json`, `live.json` and at its end `done.json` there; a file called `stop` asks it to stop.
"""

from __future__ import annotations

import errno
import importlib
import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

from sfumato.base.json_types import Json
from sfumato.errors import MemoryLimitError
from sfumato.web.schema import explained, plain
from sfumato.web.workspace import AbsentError, ConflictError, Places, TooLargeError, UnversionedError

STATUS: dict[type[BaseException], int] = {
    AbsentError: 404,
    ConflictError: 409,
    TooLargeError: 413,
    UnversionedError: 428,
    MemoryError: 507,
    MemoryLimitError: 507,
}
NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
MODULES = ("front", "hierarchies", "open", "release", "study", "systems")


def main(arguments: list[str]) -> None:
    """`worker ROOT GIGABYTES` or `job ROOT GIGABYTES FOLDER`."""
    kind, root, gigabytes = arguments[:3]
    end_with_parent()
    limit_memory(float(gigabytes))
    places = Places(root)
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8", errors="replace")
    os.dup2(2, 1)  # whatever prints must not garble the answers
    if kind == "worker":
        answer_questions(places, sys.stdin, answers)
    else:
        from sfumato.web.api.jobs import run_job

        run_job(places, Path(arguments[3]))


def end_with_parent() -> None:
    """End when the server ends, however it ends, where the system can: two must never work in one folder."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def limit_memory(gigabytes: float) -> None:
    """Refuse this process more memory than that, where the system can; the engine takes at most half of it.

    What counts is memory that can be written (RLIMIT_DATA). Address space alone says little: a worker that has just
    started reserves gigabytes of it.
    """
    from sfumato.data.duckdb import bound_memory

    limit = int(gigabytes * (1 << 30))
    bound_memory(limit // 2)
    try:
        import resource
    except ImportError:  # not on this system
        return
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


def answer_questions(places: Places, questions: TextIO, answers: TextIO) -> None:
    """Answer questions until the pipe is closed."""
    for line in questions:
        asked = json.loads(line)
        answers.write(json.dumps(answer(places, asked["call"], asked["with"]), ensure_ascii=False) + "\n")
        answers.flush()


def answer(places: Places, call: str, given: Json) -> Json:
    """Return the answer of a call, or its error as {what, expected, try} with an HTTP status."""
    try:
        return {"found": plain(function(call)(places, **given))}
    except Exception as error:  # noqa: BLE001  whatever happens is told, and never with people's records
        return {"error": explained(error), "status": status_of(error)}


def function(call: str) -> Callable[..., Any]:
    """Return a call by its name, such as "open.preview"."""
    module, _, name = call.partition(".")
    if module not in MODULES or name.startswith("_"):
        raise AbsentError(f"there is no call {call}", expected="a call of the workbench")
    implementation: Callable[..., Any] = getattr(importlib.import_module(f"sfumato.web.api.{module}"), name)
    return implementation


def status_of(error: BaseException) -> int:
    """Return the HTTP status of an error."""
    for kind, status in STATUS.items():
        if isinstance(error, kind):
            return status
    if isinstance(error, OSError):
        return 507 if error.errno in NO_ROOM else 422
    return {2: 422, 3: 409}.get(getattr(error, "exit_code", 1), 500)


if __name__ == "__main__":
    main(sys.argv[1:])
