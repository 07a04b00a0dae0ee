"""The blocks of a page of the documentation, run in their order in one folder, and what they print.

- `sh` and `python` blocks are run. Commands of one page share a folder, Python blocks also their names.
- A `text` block directly behind one of them is what it prints; `…` stands for anything in a line, and alone on a line
  for any lines. What goes to standard error counts only if the last command fails, as the text must say (`error: …`).
- Any block with a `title="…"` that is not run is written to a file of that name.
- The commands of an `sh` block with the title "before" are run once for all pages; each page gets a copy.

`python -m tests.docs.blocks docs/howto/weights.md` runs a page and writes what it prints into it, to be read and kept.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sfumato.base.trust import KEY
from sfumato.cli import run

FENCE = re.compile(
    r"^(?P<indent> *)```(?P<kind>[a-z]+)(?P<rest>[^\n]*)\n(?P<text>.*?)^(?P=indent)```[ ]*$", re.DOTALL | re.MULTILINE
)
SHELL = re.compile(r"[|><;&$*`]")
RUN = ("sh", "python")
BEFORE = "before"


@dataclass
class Block:
    """A block of a page: where its text stands in the page, and the text that it must print, if it is said."""

    kind: str
    title: str
    text: str
    line: int
    indent: int = 0
    printed: Block | None = None
    span: tuple[int, int] = (0, 0)


def blocks(page: str) -> list[Block]:
    """The blocks of a page that are run or written, in their order."""
    found: list[Block] = []
    last_end = -1
    for match in FENCE.finditer(page):
        title = re.search(r'title="([^"]*)"', match["rest"])
        line = page.count("\n", 0, match.start()) + 1
        one = Block(
            match["kind"], title[1] if title else "", textwrap.dedent(match["text"]), line, len(match["indent"])
        )
        one.span = match.span("text")
        follows = found and not page[last_end : match.start()].strip() and found[-1].printed is None
        if one.kind == "text" and not one.title:
            if follows and found[-1].kind in RUN and found[-1].title != BEFORE:
                found[-1].printed = one
        elif one.kind in RUN or one.title:
            found.append(one)
        last_end = match.end()
    return found


def same(expected: str, printed: str) -> bool:
    """Whether a text is as expected, blanks at the ends of lines aside.

    >>> same("a … c\\n…\\nd", "a b c\\nx\\ny\\nd\\n"), same("a", "b")
    (True, False)
    """
    lines = [line.rstrip() for line in expected.strip("\n").split("\n")]
    parts = []
    for line in lines:
        parts.append(r"(?:.*\n)*?" if line.strip() == "…" else r".*?".join(map(re.escape, line.split("…"))) + r"\n")
    given = "\n".join(line.rstrip() for line in printed.strip("\n").split("\n")) + "\n"
    return re.fullmatch("".join(parts), given) is not None


@dataclass
class Runner:
    """Runs blocks in the current folder. `kept` has the outcomes of blocks that are run once for all pages."""

    kept: dict[str, Path] = field(default_factory=dict)
    store: Path | None = None
    names: dict[str, Any] = field(default_factory=dict)

    def run(self, block: Block) -> str:
        """What a block prints."""
        if block.kind not in RUN:
            path = Path(block.title)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text, "utf-8")
            return ""
        if block.title == BEFORE:
            return self._once(block)
        if block.kind == "sh":
            return self._shell(block)
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(block.text, f"line {block.line}", "exec"), self.names)
        return out.getvalue()

    def _shell(self, block: Block) -> str:
        """Run commands in their order. All succeed, but the last one fails where the text says so."""
        listed = list(commands(block.text))
        fails = block.printed is not None and "error:" in block.printed.text
        return "".join(command_output(command, block, fails=fails and command == listed[-1]) for command in listed)

    def _once(self, block: Block) -> str:
        """Take over the outcome of a block that was run before, or run it and keep the outcome."""
        if self.store is None:
            return "".join(command_output(command, block) for command in commands(block.text))
        if block.text not in self.kept:
            folder = self.store / f"before-{len(self.kept)}"
            folder.mkdir()
            with contextlib.chdir(folder):
                for command in commands(block.text):
                    command_output(command, block)
            self.kept[block.text] = folder
        shutil.copytree(self.kept[block.text], Path.cwd(), dirs_exist_ok=True)
        return ""


def commands(text: str) -> Iterator[str]:
    """The commands of a block, each in one line."""
    joined = re.sub(r"\\\n\s*", " ", text)
    yield from (line.strip() for line in joined.split("\n") if line.strip() and not line.strip().startswith("#"))


def command_output(command: str, block: Block, *, fails: bool = False) -> str:
    """What a command prints. One of Sfumato is run in this process, any other by a shell."""
    words = shlex.split(command, comments=True)
    if words[0] == "sfumato" and not SHELL.search(re.sub(r"'[^']*'", "", command.split(" #")[0])):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = run(words[1:])
        printed, said = out.getvalue(), err.getvalue()
    else:
        done = subprocess.run(
            ["bash", "-euc", command], capture_output=True, text=True, check=False, env=_environment()
        )
        code, printed, said = done.returncode, done.stdout, done.stderr
    if (code != 0) != fails:
        raise AssertionError(f"line {block.line}: {command} ended with {code}\n{printed}{said}")
    return printed if code == 0 else printed + said


def _environment() -> dict[str, str]:
    """The environment of a shell in which `sfumato` and `python` are this Python's."""
    folder = Path(tempfile.gettempdir()) / f"sfumato-docs-{os.getpid()}"
    if not folder.is_dir():
        folder.mkdir(mode=0o700)
        for name, options in (("sfumato", "-m sfumato "), ("python", "")):
            (folder / name).write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {options}"$@"\n')
            (folder / name).chmod(0o700)
    return os.environ | {"PATH": f"{folder}:{os.environ['PATH']}"}


def refreshed(page: str, runner: Runner) -> str:
    """A page with what its blocks print. A text with `…` that still fits is left as it is."""
    edits = []
    for block in blocks(page):
        printed = runner.run(block)
        if block.printed is not None and not same(block.printed.text, printed):
            edits.append((block.printed.span, textwrap.indent(printed.strip("\n") + "\n", " " * block.indent)))
    for (start, end), text in reversed(edits):
        page = page[:start] + "\n".join(line.rstrip() for line in text.split("\n")) + page[end:]
    return page


def main(paths: list[str]) -> None:
    pages = [Path(path).resolve() for path in paths]
    with tempfile.TemporaryDirectory() as store:
        kept: dict[str, Path] = {}
        key = os.urandom(32)
        for number, page in enumerate(pages):
            with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
                state = Path(store) / f"state-{number}"
                state.mkdir(mode=0o700)
                (state / KEY).touch(mode=0o600)
                (state / KEY).write_bytes(key)  # one key for all, so that what is kept is one's own; a ledger for each
                os.environ["SFUMATO_STATE"] = str(state)
                try:
                    text = refreshed(page.read_text("utf-8"), Runner(kept, Path(store)))
                    page.write_text(text, "utf-8")
                    print("ran", page.name)
                except Exception as error:  # noqa: BLE001  the next page may do
                    print("FAILED", page.name, error)


if __name__ == "__main__":
    main(sys.argv[1:])
