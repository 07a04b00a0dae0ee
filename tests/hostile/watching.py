"""What a command does beside its job: connections, programs, engines other than DuckDB, files that nobody may read."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from sfumato.data import engine

CANARY = "canary-that-nobody-may-read"
EVENTS = ("socket.connect", "socket.getaddrinfo", "subprocess.Popen", "os.system", "os.exec", "os.posix_spawn")
SEEN: list[str] = []
_on = False


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if not _on:
        return
    if event in EVENTS:
        SEEN.append(event)
    if event == "open" and CANARY in str(arguments[0]):
        SEEN.append("opened the canary")


sys.addaudithook(_audit)


@contextmanager
def watched() -> Iterator[list[str]]:
    """Watch a command; yields the list of what should not have happened. Another engine is named and not started."""
    global _on

    def opened(name: str = "duckdb", options: Any = None) -> Any:
        if name != "duckdb":
            SEEN.append(f"engine {name}")
        return plain("duckdb", options)

    plain = engine.open_engine
    SEEN.clear()
    with pytest.MonkeyPatch.context() as patch:
        for module in list(sys.modules.values()):
            if getattr(module, "__name__", "").startswith("sfumato") and hasattr(module, "open_engine"):
                patch.setattr(module, "open_engine", opened)
        _on = True
        try:
            yield SEEN
        finally:
            _on = False
