"""What runs in a worker process: a desk that answers questions, or one job. Both under a memory limit.

A desk reads a question a line from its input and writes an answer a line. A job reads `job.json` in its folder and
leaves `progress.json`, `live.json` and at its end `done.json` there; a file called `stop` asks it to stop.
"""

from __future__ import annotations

import errno
import importlib
import json
import math
import os
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

from sfumato.errors import MemoryLimitError, SfumatoError
from sfumato.web.places import AbsentError, ConflictError, Places, TooLargeError, UnversionedError

STATUS: dict[type[BaseException], int] = {
    AbsentError: 404,
    ConflictError: 409,
    TooLargeError: 413,
    UnversionedError: 428,
    MemoryError: 507,
    MemoryLimitError: 507,
}
NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
MODULES = ("opening", "declaring", "trees", "exploring", "releasing", "replaying", "channels", "groups")


def main(arguments: list[str]) -> None:
    """`desk ROOT GIGABYTES` or `job ROOT GIGABYTES FOLDER`."""
    kind, root, gigabytes = arguments[:3]
    end_with_parent()
    limit_memory(float(gigabytes))
    places = Places(root)
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8", errors="replace")
    os.dup2(2, 1)  # whatever prints must not garble the answers
    if kind == "desk":
        attend(places, sys.stdin, answers)
    else:
        from sfumato.web.calls.jobs import run_job

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
    from sfumato.sources.engines.duckdb import bound_memory

    most = int(gigabytes * (1 << 30))
    bound_memory(most // 2)
    try:
        import resource
    except ImportError:  # not on this system
        return
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def attend(places: Places, questions: TextIO, answers: TextIO) -> None:
    """Answer until nobody asks any more."""
    for line in questions:
        asked = json.loads(line)
        answers.write(json.dumps(answer(places, asked["call"], asked["with"]), ensure_ascii=False) + "\n")
        answers.flush()


def answer(places: Places, call: str, given: dict[str, Any]) -> dict[str, Any]:
    """What a call returns, or its error as {what, expected, try} with an HTTP status."""
    try:
        return {"found": plain(function(call)(places, **given))}
    except Exception as error:  # noqa: BLE001  whatever happens is told, and never with people's records
        return {"error": explained(error), "status": status_of(error)}


def function(call: str) -> Callable[..., Any]:
    """A call by its name, such as "opening.preview"."""
    module, _, name = call.partition(".")
    if module not in MODULES or name.startswith("_"):
        raise AbsentError(f"there is no call {call}", expected="a call of the workbench")
    found: Callable[..., Any] = getattr(importlib.import_module(f"sfumato.web.calls.{module}"), name)
    return found


def explained(error: BaseException) -> dict[str, str]:
    """An error as a sentence with a remedy."""
    if isinstance(error, MemoryError | MemoryLimitError):
        return {
            "what": "the work needs more memory than a worker may use",
            "expected": "a table or a search that fits",
            "try": "sfumato serve --memory 16 gives each worker 16 GB",
        }
    if isinstance(error, SfumatoError):
        return error.as_dict()
    if isinstance(error, OSError):
        return {
            "what": f"a file cannot be used: {error.strerror}",
            "expected": "paths that can be read and written",
            "try": "check the folder and the free space on its disk",
        }
    if os.environ.get("SFUMATO_DEBUG"):
        traceback.print_exception(error)
    return {
        "what": f"internal error: {type(error).__name__}",
        "expected": "",
        "try": "sfumato serve --debug prints the trace; please report it",
    }


def status_of(error: BaseException) -> int:
    """The HTTP status of an error."""
    for kind, status in STATUS.items():
        if isinstance(error, kind):
            return status
    if isinstance(error, OSError):
        return 507 if error.errno in NO_ROOM else 422
    return {2: 422, 3: 409}.get(getattr(error, "exit_code", 1), 500)


def plain(found: Any) -> Any:
    """The same as JSON knows it: arrays as lists, infinities as null."""
    if isinstance(found, dict):
        return {str(name): plain(value) for name, value in found.items()}
    if isinstance(found, list | tuple):
        return [plain(value) for value in found]
    if isinstance(found, float):
        return found if math.isfinite(found) else None
    if hasattr(found, "tolist"):
        return plain(found.tolist())
    return found


if __name__ == "__main__":
    main(sys.argv[1:])
