"""Shared manners of the commands: JSON on stdout, tables for people, notes beside them."""

from __future__ import annotations

import json
import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.errors import SfumatoWarning

if TYPE_CHECKING:
    from sfumato.decide import Preset

OwnRun = Annotated[
    Path | None, typer.Option("--run", help="A run file of yours that names the table, for a folder made elsewhere.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Machine output on stdout, nothing else there.")]
# Control characters but tabs and line ends, and marks that turn the direction of writing.
STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
Force = Annotated[bool, typer.Option("--force", help="Overwrite the file if it exists; never an input of the command.")]


WIDTH = 160  # letters of a line that no terminal shows


def shown(text: str) -> str:
    """A text as a terminal can be given it: what would steer the terminal is written as an escape.

    >>> print(shown("red \x1b[31m"))
    red \\x1b[31m
    """
    return STEERING.sub(lambda match: match[0].encode("unicode_escape").decode("ascii"), text)


def emit(record: dict[str, Any]) -> None:
    """Print JSON; a number that JSON lacks would be a fault of ours."""
    readable = (sys.stdout.encoding or "").lower() in ("utf-8", "utf8")
    text = json.dumps(record, ensure_ascii=not readable, allow_nan=False)
    print(STEERING.sub(lambda record: f"\\u{ord(record[0]):04x}", text))


def put(text: str = "") -> None:
    """Print a line of the result for people."""
    print(shown(text))


def note(text: str) -> None:
    """Tell the person something that is not the result."""
    print(shown(text), file=sys.stderr)


@contextmanager
def warnings_noted() -> Iterator[None]:
    """Tell the person our own warnings as notes; those of others appear as they always do."""

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


def offer_presets(presets: Sequence[Preset]) -> None:
    """Print common limits with the points they lead to, where no limit was given."""
    put("No limit was given, so nothing is recommended. Common limits, and the release of least loss within each:")
    for preset in presets:
        option = f"--{preset.limit.replace('_', '-')} {preset.value:g}"
        put(f"  {option:<16} {preset.says}")


def table(title: str, columns: list[str], rows: list[list[str]], right: set[int] | None = None) -> None:
    """Print a table for people: as it is where it fits, else with rich, which folds its cells."""
    if not sys.stdout.isatty() and (lines := _aligned([columns, *rows], right or set())):
        print("\n".join([shown(title), *lines, ""]))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    drawn = Table(header_style="dim", box=None, pad_edge=False)
    for number, name in enumerate(columns):
        drawn.add_column(Text(shown(name)), justify="right" if number in (right or set()) else "left", overflow="fold")
    for row in rows:
        drawn.add_row(*[Text(shown(cell)) for cell in row])
    console = Console() if sys.stdout.isatty() else Console(width=WIDTH)
    console.print(Text(shown(title), style="bold"))  # as the title of a narrow table it would be folded
    console.print(drawn)
    console.print()


def _aligned(rows: Sequence[Sequence[str]], right: set[int]) -> list[str]:
    """The rows with their columns under each other; none if they do not fit, or have letters of other widths."""
    cells = [[shown(cell) for cell in row] for row in rows]
    if not all(cell.isascii() and "\n" not in cell and "\t" not in cell for row in cells for cell in row):
        return []
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    if sum(widths) + 2 * (len(widths) - 1) > WIDTH:
        return []
    sides = [str.rjust if number in right else str.ljust for number in range(len(widths))]
    return ["  ".join(side(cell, width) for side, cell, width in zip(sides, row, widths, strict=True)) for row in cells]
