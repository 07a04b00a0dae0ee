"""The reference of the command line, made from the commands themselves."""

from __future__ import annotations

import re
from typing import Any

import typer.main

from sfumato.cli import application

PAGE = "reference/cli.md"
NAMES = (PAGE,)
HEAD = """# Command line

Generated from the commands; `sfumato COMMAND --help` prints the same. Every command that has a result takes `--json`.

Exit codes: 0 done, 1 internal error, 2 something to mend in the input, 3 cannot be met, 130 stopped (143 by SIGTERM).
"""


def pages() -> dict[str, str]:
    """The page, by its path on the site."""
    command = typer.main.get_command(application())
    return {PAGE: "\n".join([HEAD, *_described(command, "sfumato")]) + "\n"}


def _described(command: Any, path: str) -> list[str]:
    """A section for a command, or for each command of a group."""
    if hasattr(command, "commands"):
        own = [] if path == "sfumato" else [f"## {path}", "", _text(command.help), ""]
        return [*own, *(line for name, one in command.commands.items() for line in _described(one, f"{path} {name}"))]
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    options = [
        one for one in command.params if one.param_type_name == "option" and not one.hidden and one.name != "help"
    ]
    words = " ".join([path, *(_placed(one) for one in arguments), "[OPTIONS]"])
    level = "##" if path.count(" ") == 1 else "###"
    lines = [f"{level} {path}", "", _text(command.help), "", "```text", words, "```", ""]
    if rows := [*(_argument(one) for one in arguments), *(_option(one) for one in options)]:
        lines += ["| argument or option | what |", "|---|---|", *rows, ""]
    return lines


def _placed(one: Any) -> str:
    name = one.name.upper() + ("…" if one.nargs == -1 else "")
    return name if one.required else f"[{name}]"


def _argument(one: Any) -> str:
    return f"| `{one.name.upper()}` | {_cell(one.help)}{_default(one)} |"


def _option(one: Any) -> str:
    names = ", ".join(f"`{name}`" for name in [*one.opts, *one.secondary_opts])
    again = " May be repeated." if one.multiple else ""
    return f"| {names} | {_cell(one.help)}{again}{_default(one)} |"


def _default(one: Any) -> str:
    value = one.default
    if value in (None, False, True, (), []) or callable(value) or "[" in (one.help or "") or "Sentinel" in repr(value):
        return ""
    return f" Default: `{getattr(value, 'value', value)}`."


def _cell(text: str | None) -> str:
    return _text(text).replace("|", "\\|").replace("<", "&lt;")


def _text(text: str | None) -> str:
    """The words of a help text on one line."""
    return re.sub(r"\s+", " ", text or "").strip()
