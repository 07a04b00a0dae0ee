"""How far long work is, on a terminal; Ctrl-C stops it and keeps the best so far, a second one ends it.

Stages that read or write rows cannot be stopped half-way: there the first Ctrl-C ends the work, and nothing is left.
"""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Sequence
from typing import Self

from sfumato.runtime.stages import Stage, active

STOPPABLE = ("search",)  # stages whose best so far can be kept
LONG = 10.0  # seconds of work after which its stages are stage_summary


def say(text: str) -> None:
    """One line on a terminal that gives way to the next."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


class StageLine:
    """Says on a terminal which stage is under way, how far it is, and when it may end."""

    def __init__(self) -> None:
        self._name, self._began = "", time.monotonic()

    def __call__(self, name: str, share: float | None) -> None:
        if name != self._name:
            self._name, self._began = name, time.monotonic()
        spent = time.monotonic() - self._began
        left = f", about {spent / share * (1 - share):,.0f} s left" if share and spent > 1 else ""
        say(f"{name}: {share * 100:.0f} %{left}" if share else f"{name} …")


def stage_summary(stages: Sequence[Stage]) -> str:
    """The stages of long work in a line; nothing where it was short."""
    if sum(stage.seconds for stage in stages) < LONG:
        return ""
    spent: dict[str, float] = {}
    for stage in stages:
        spent[stage.name] = spent.get(stage.name, 0.0) + stage.seconds
    peak = max(stage.peak_bytes for stage in stages) / 2**30
    listed = ", ".join(f"{name} {seconds:,.1f} s" for name, seconds in spent.items() if seconds >= 0.1)
    return f"stages: {listed}; at most {peak:.1f} GiB held"


class Watch:
    """Called with (done, total); returns True when the work should stop.

    Where nothing of unfinished work can be kept (`keeps` is false), the first Ctrl-C ends it at once. `late` says
    afterwards that the time was over, `cut` that it was over before the work was done.
    """

    def __init__(self, unit: str, seconds: float | None = None, *, keeps: bool = True) -> None:
        self.unit, self.seconds, self.keeps, self.interrupted = unit, seconds, keeps, False
        self.late = self.cut = False
        self._began = self._shown_at = time.monotonic()

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._interrupt)
        return self

    def __exit__(self, *_: object) -> None:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, self._before)
        say("")

    def __call__(self, done: int, total: int) -> bool:
        now = time.monotonic()
        if sys.stderr.isatty() and now - self._shown_at > 0.2:
            self._shown_at = now
            rate = done / max(now - self._began, 1e-9)
            left = (total - done) / max(rate, 1e-9)
            say(f"{done:,} of {total:,} {self.unit}, {rate:,.0f}/s, {left:,.0f} s left at most")
        if self.seconds is not None and now - self._began >= self.seconds:
            self.late = True
            self.cut = self.cut or done < total
        return self.interrupted or self.late

    def _interrupt(self, *_: object) -> None:
        recorder = active()
        rows = recorder is not None and recorder.open and recorder.open[-1] not in STOPPABLE
        if self.interrupted or rows or not self.keeps:
            raise KeyboardInterrupt
        self.interrupted = True
