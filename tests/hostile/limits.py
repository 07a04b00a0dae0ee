"""Limits of time and memory for a command that runs in this process."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self


@contextmanager
def limited(seconds: int) -> Iterator[None]:
    """Fail what is not done in time."""

    def late(*_: Any) -> None:
        raise AssertionError(f"no end after {seconds} seconds")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


class Memory:
    """The most memory that this process held in a block, beyond what it held before; 0 where nobody counts."""

    def __init__(self) -> None:
        self.megabytes = 0

    def __enter__(self) -> Self:
        self._before = _resident("VmRSS")
        try:
            Path("/proc/self/clear_refs").write_text("5")  # the highest count so far becomes the present one
        except OSError:
            self._before = None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        peak = _resident("VmHWM")
        if peak is not None and self._before is not None:
            self.megabytes = max(peak - self._before, 0)


def _resident(name: str) -> int | None:
    try:
        found = re.search(rf"{name}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    except OSError:
        return None
    return int(found[1]) >> 10 if found else None
