"""Named and timed stages of long work, reports of their progress, and the progress bar.

The bar is HTML that is replaced in a notebook, and a line that is rewritten in a terminal.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path
from typing import TextIO

Tell = Callable[[str, float | None], None]  # a stage's name and the share of it that is done

Progress = Callable[[int, int], bool | None]  # called with (done, total); True asks the work to stop


@dataclass(frozen=True)
class Stage:
    """A finished stage: seconds of the clock and of the processor, and the peak memory until then.

    The seconds of inner stages are not counted in the outer stage, so the seconds of all stages add up to at most the
    time of the work.
    """

    name: str
    seconds: float
    cpu_seconds: float
    peak_bytes: int

    def as_dict(self) -> dict[str, object]:
        return {
            "stage": self.name,
            "seconds": round(self.seconds, 3),
            "cpu_seconds": round(self.cpu_seconds, 3),
            "peak_bytes": self.peak_bytes,
        }


@dataclass
class Recorder:
    """Record of the finished stages. A stage that repeats is recorded each time."""

    tell: Tell | None = None
    outer: Recorder | None = None
    done: list[Stage] = field(default_factory=list)
    open: list[str] = field(default_factory=list)
    inside: list[list[float]] = field(default_factory=list)  # for each open stage what stages inside it took

    @property
    def heard(self) -> bool:
        """Whether a listener receives the progress of a stage."""
        return self.tell is not None or (self.outer is not None and self.outer.heard)

    def share(self, share: float | None) -> None:
        """Report the progress of the current stage."""
        if self.tell is not None and self.open:
            self.tell(self.open[-1], share)
        if self.outer is not None:
            self.outer.share(share)

    def began(self, name: str) -> None:
        self.open.append(name)
        self.inside.append([0.0, 0.0])
        if self.outer is not None:
            self.outer.began(name)

    def ended(self, stage: Stage) -> None:
        """Record a stage with its time, less the time of the stages inside it."""
        self.open.pop()
        clock, cpu = self.inside.pop()
        own = replace(stage, seconds=max(stage.seconds - clock, 0.0), cpu_seconds=max(stage.cpu_seconds - cpu, 0.0))
        self.done.append(own)
        if self.inside:
            self.inside[-1][0] += stage.seconds
            self.inside[-1][1] += stage.cpu_seconds
        if self.outer is not None:
            self.outer.ended(stage)


_active: ContextVar[Recorder | None] = ContextVar("stages", default=None)


def active() -> Recorder | None:
    """Return the active recorder, if there is one."""
    return _active.get()


@contextmanager
def recording(tell: Tell | None = None) -> Iterator[Recorder]:
    """Record the stages of what is done inside.

    >>> with recording() as recorder, stage("count"):
    ...     pass
    >>> [done.name for done in recorder.done]
    ['count']
    """
    recorder = Recorder(tell, _active.get())
    token = _active.set(recorder)
    try:
        yield recorder
    finally:
        _active.reset(token)


@contextmanager
def stage(name: str) -> Iterator[None]:
    """Mark a stage of the work. Without a recorder it costs nothing."""
    recorder = _active.get()
    if recorder is None:
        yield
        return
    clock, cpu = time.perf_counter(), time.process_time()
    recorder.began(name)
    recorder.share(None)
    try:
        yield
    finally:
        spent = time.perf_counter() - clock, time.process_time() - cpu
        recorder.ended(Stage(name, *spent, peak_memory()))


def peak_memory() -> int:
    """Return the peak memory of this process in bytes, or 0 where the system does not report it."""
    with suppress(OSError):  # Linux; what `resource` says there includes the process that started this one
        for line in Path("/proc/self/status").read_text("ascii", "replace").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    try:
        import resource
    except ImportError:  # Windows
        return 0
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


WIDTH = 30


class ProgressBar:
    """A progress bar for `sf.search(study, progress=sf.ProgressBar())`, or `progress=True`.

    A step is shown only where it changes the bar, so that a search does not wait for it.

    >>> import io
    >>> out = io.StringIO()
    >>> bar = ProgressBar("search", out)
    >>> bar(1, 2), bar(2, 2)
    (False, False)
    >>> [line.strip() for line in out.getvalue().split("\\r") if line]
    ['search [###############...............]  50 %', 'search [##############################] 100 %']
    """

    def __init__(self, title: str = "search", out: TextIO | None = None) -> None:
        self._title = title
        self._out = out
        self._seen = -1
        self._update: Callable[[str], None] | None = _notebook() if out is None else None

    def __call__(self, done: int, total: int) -> bool:
        percent = min(100, 100 * done // total) if total > 0 else 0
        if percent == self._seen:
            return False
        self._seen = percent
        if self._update is not None:
            self._update(
                f'<div style="font:13px system-ui,sans-serif">{escape(self._title)} '
                f'<progress max="100" value="{percent}" style="vertical-align:middle"></progress> {percent} %</div>'
            )
            return False
        out = self._out or sys.stderr
        filled = WIDTH * percent // 100
        end = "\n" if percent == 100 else ""
        out.write(f"\r{self._title} [{'#' * filled}{'.' * (WIDTH - filled)}] {percent:3d} %{end}")
        out.flush()
        return False

    def finish(self) -> None:
        """Show that the search is complete, which may be before its last step."""
        self(1, 1)


def _notebook() -> Callable[[str], None] | None:
    """Return the function that replaces HTML in the running notebook, or None elsewhere."""
    shell = sys.modules.get("IPython")
    running: object = shell.get_ipython() if shell is not None else None
    if running is None or not hasattr(running, "kernel"):
        return None
    from IPython.display import HTML, display

    handle = display(HTML(""), display_id=True)
    return lambda html: handle.update(HTML(html))
