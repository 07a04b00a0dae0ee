"""How far long work is, on a terminal; Ctrl-C stops it and keeps the best so far, a second one ends it."""

from __future__ import annotations

import signal
import sys
import threading
import time
from typing import Self


class Watch:
    """Told what is done and what there is; returns True when the work should stop."""

    def __init__(self, unit: str, seconds: float | None = None) -> None:
        self.unit, self.seconds, self.interrupted = unit, seconds, False
        self._began = self._told = time.monotonic()

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._interrupt)
        return self

    def __exit__(self, *_: object) -> None:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, self._before)
        if sys.stderr.isatty():
            print("\r\033[K", end="", file=sys.stderr)

    def __call__(self, done: int, total: int) -> bool:
        now = time.monotonic()
        if sys.stderr.isatty() and now - self._told > 0.2:
            self._told = now
            left = (now - self._began) / max(done, 1) * (total - done)
            text = f"\r\033[K{done:,} of {total:,} {self.unit}, about {left:,.0f} s left"
            print(text, end="", file=sys.stderr, flush=True)
        return self.interrupted or (self.seconds is not None and now - self._began >= self.seconds)

    def _interrupt(self, *_: object) -> None:
        if self.interrupted:
            raise KeyboardInterrupt
        self.interrupted = True
