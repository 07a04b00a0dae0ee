"""Tells on a terminal how far long work is; Ctrl-C asks it to stop and keep what it has, a second one ends it."""

from __future__ import annotations

import signal
import sys
import threading
import time
from typing import Self


class Watch:
    """A progress callback: called with what is done and what there is, it says whether to stop."""

    def __init__(self, unit: str) -> None:
        self.unit, self.interrupted = unit, False
        self._told = 0.0

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
            print(f"\r\033[K{done:,} of {total:,} {self.unit} ", end="", file=sys.stderr)
        return self.interrupted

    def _interrupt(self, *_: object) -> None:
        if self.interrupted:
            raise KeyboardInterrupt
        self.interrupted = True
