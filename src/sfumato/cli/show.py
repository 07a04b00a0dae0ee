"""What all commands share: output as JSON or tables, progress on a terminal, Ctrl-C, and quoted commands.

The first Ctrl-C stops a search and keeps the best so far. A stage that reads or writes rows has no such result, so
there the first Ctrl-C ends the work. Printed commands can be pasted into a shell.
"""

from __future__ import annotations

import builtins
import importlib
import json
import re
import shlex
import signal
import sys
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Annotated, Any, Self

import typer

from sfumato.base.json_types import Json
from sfumato.base.progress import Stage, active
from sfumato.errors import SfumatoWarning

OwnRun = Annotated[
    Path | None, typer.Option("--run", help="A run file of yours that names the table, for a folder made elsewhere.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Machine output on stdout, nothing else there.")]
# Control characters but tabs and line ends, and marks that turn the direction of writing.
STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
Force = Annotated[bool, typer.Option("--force", help="Overwrite the file if it exists; never an input of the command.")]


class _Waiting:
    """A module whose import waits, or a name of that module."""

    def __init__(self, module: str, name: str = "") -> None:
        self._module, self._name = module, name

    def _found(self) -> Any:
        module = importlib.import_module(self._module)
        # A name that a package lacks is that of a module in it.
        return getattr(module, self._name, None) or importlib.import_module(f"{self._module}.{self._name}")

    def __call__(self, *given: Any, **named: Any) -> Any:
        return self._found()(*given, **named)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._found(), name) if self._name else _Waiting(self._module, name)


@contextmanager
def later() -> Iterator[None]:
    """Let the imports of the block wait until a function from them is called, or an attribute of a class is read.

    A page of help needs the options of a command alone, so it does not wait for compilers and databases.

    >>> with later():
    ...     from math import sqrt
    >>> sqrt(9)
    3.0
    """
    namespace: Any = builtins
    before = namespace.__import__
    namespace.__import__ = lambda module, *_: _Waiting(module)
    try:
        yield
    finally:
        namespace.__import__ = before


with later():
    from rich import console as consoles
    from rich import table as tables
    from rich import text as texts

WIDTH = 160  # letters of a line where the output is not a terminal


def given(**options: object) -> Json:
    """Return the options that were given."""
    return {name: value for name, value in options.items() if value is not None}


def shown(text: str) -> str:
    """Return a text with its control characters written as escapes, so that data cannot control the terminal.

    >>> print(shown("red \x1b[31m"))
    red \\x1b[31m
    """
    return STEERING.sub(lambda match: match[0].encode("unicode_escape").decode("ascii"), text)


def emit(record: Json) -> None:
    """Print JSON; an infinite number raises, because JSON has none."""
    readable = (sys.stdout.encoding or "").lower() in ("utf-8", "utf8")
    text = json.dumps(record, ensure_ascii=not readable, allow_nan=False)
    print(STEERING.sub(lambda record: f"\\u{ord(record[0]):04x}", text))


def put(text: str = "") -> None:
    """Print a line of the result."""
    print(shown(text))


def note(text: str) -> None:
    """Print a message that is not part of the result, on stderr."""
    print(shown(text), file=sys.stderr)


@contextmanager
def warnings_noted() -> Iterator[None]:
    """Print warnings of the package as notes, and leave those of other packages as they are."""

    def show_warning(message: Warning | str, category: type[Warning], *more: Any, **named: Any) -> None:
        if issubclass(category, SfumatoWarning):
            note(f"warning: {message}")
        else:
            plain(message, category, *more, **named)

    plain = warnings.showwarning
    with warnings.catch_warnings():
        warnings.simplefilter("always", SfumatoWarning)
        warnings.showwarning = show_warning
        yield


def table(title: str, columns: list[str], rows: list[list[str]], right: set[int] | None = None) -> None:
    """Print a table: in plain columns where it fits, else with rich, which folds its cells."""
    if not sys.stdout.isatty() and (lines := _aligned([columns, *rows], right or set())):
        print("\n".join([shown(title), *lines, ""]))
        return
    drawn = tables.Table(header_style="dim", box=None, pad_edge=False)
    for number, name in enumerate(columns):
        drawn.add_column(
            texts.Text(shown(name)), justify="right" if number in (right or set()) else "left", overflow="fold"
        )
    for row in rows:
        drawn.add_row(*[texts.Text(shown(cell)) for cell in row])
    console = consoles.Console(width=None if sys.stdout.isatty() else WIDTH)
    console.print(texts.Text(shown(title), style="bold"))  # as the title of a narrow table it would be folded
    console.print(drawn)
    console.print()


def _aligned(rows: Sequence[Sequence[str]], right: set[int]) -> list[str]:
    """Return the rows in aligned columns; none if they do not fit, or have letters of other widths."""
    cells = [[shown(cell) for cell in row] for row in rows]
    if not all(cell.isascii() and "\n" not in cell and "\t" not in cell for row in cells for cell in row):
        return []
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    if sum(widths) + 2 * (len(widths) - 1) > WIDTH:
        return []
    sides = [str.rjust if number in right else str.ljust for number in range(len(widths))]
    return ["  ".join(side(cell, width) for side, cell, width in zip(sides, row, widths, strict=True)) for row in cells]


STOPPABLE = ("search",)  # stages whose best so far can be kept
LONG = 10.0  # seconds of work from which its stages are summarised


def say(text: str) -> None:
    """Print a line on a terminal in place of the one before."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


class StageLine:
    """Line on a terminal with the stage that runs, its progress, and the expected time that is left."""

    def __init__(self) -> None:
        self._name, self._began = "", time.monotonic()

    def __call__(self, name: str, share: float | None) -> None:
        if name != self._name:
            self._name, self._began = name, time.monotonic()
        spent = time.monotonic() - self._began
        left = f", about {spent / share * (1 - share):,.0f} s left" if share and spent > 1 else ""
        say(f"{name}: {share * 100:.0f} %{left}" if share else f"{name} …")


def stage_summary(stages: Sequence[Stage]) -> str:
    """Return the stages of long work in a line; an empty text for short work."""
    if sum(stage.seconds for stage in stages) < LONG:
        return ""
    spent: dict[str, float] = {}
    for stage in stages:
        spent[stage.name] = spent.get(stage.name, 0.0) + stage.seconds
    peak = max(stage.peak_bytes for stage in stages) / 2**30
    listed = ", ".join(f"{name} {seconds:,.1f} s" for name, seconds in spent.items() if seconds >= 0.1)
    return f"stages: {listed}; at most {peak:.1f} GiB held"


class Watch:
    """Progress of long work on a terminal: called with (done, total), returns True when the work should stop.

    Where unfinished work has no result (`keeps` is false), the first Ctrl-C ends it at once. Afterwards, `late` is true
    if the time limit passed, and `cut` if it passed before the work was done.
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


_given: ContextVar[tuple[str, ...]] = ContextVar("given", default=())


@contextmanager
def given_words(words: Sequence[str]) -> Iterator[None]:
    """Store the words of the command that runs, for hints that repeat it."""
    token = _given.set(tuple(words))
    try:
        yield
    finally:
        _given.reset(token)


def same_command(*more: str) -> str:
    """Return the command that runs, as it was given, with more options.

    >>> with given_words(["search", "my run.toml", "--set", "local.k=[2, 3]"]):
    ...     same_command("--resume")
    "sfumato search 'my run.toml' --set 'local.k=[2, 3]' --resume"
    """
    words = _given.get()
    return command(*words, *(word for word in more if word not in words))


def command(*words: str | Path) -> str:
    """Return a command of Sfumato, quoted where a shell needs it.

    >>> command("map", Path("my front"))
    "sfumato map 'my front'"
    """
    return shlex.join(["sfumato", *map(str, words)])


def counted_plans(number: int, plans: str) -> str:
    """Return a number with the name that a method gives to its plans.

    >>> counted_plans(1, "suppressions of cells"), counted_plans(2, "plans of swaps"), counted_plans(1, "channels")
    ('1 suppression of cells', '2 plans of swaps', '1 channel')
    """
    return f"{number:,} {re.sub('s(?= of |$)', '', plans, count=1) if number == 1 else plans}"
