"""Shared manners of the commands: JSON on stdout, tables for people, notes beside them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

OwnRun = Annotated[
    Path | None, typer.Option("--run", help="A run file of yours that names the table, for a folder made elsewhere.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Machine output on stdout, nothing else there.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite the file if it exists; never an input of the command.")]


def emit(found: dict[str, Any]) -> None:
    """Print JSON; a number that JSON lacks would be a fault of ours."""
    readable = (sys.stdout.encoding or "").lower() in ("utf-8", "utf8")
    print(json.dumps(found, ensure_ascii=not readable, allow_nan=False))


def note(text: str) -> None:
    """Tell the person something that is not the result."""
    print(text, file=sys.stderr)


def table(title: str, columns: list[str], rows: list[list[str]], right: set[int] | None = None) -> None:
    """Print a table for people."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    drawn = Table(header_style="dim", box=None, pad_edge=False)
    for place, name in enumerate(columns):
        drawn.add_column(name, justify="right" if place in (right or set()) else "left", overflow="fold")
    for row in rows:
        drawn.add_row(*[Text(cell) for cell in row])
    console = Console() if sys.stdout.isatty() else Console(width=160)
    console.print(Text(title, style="bold"))  # as the title of a narrow table it would be folded
    console.print(drawn)
    console.print()
