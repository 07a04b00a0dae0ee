"""`sfumato serve`: the workbench in a browser.

`sfumato doctor`: what is installed, and what is missing for which feature.
"""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from sfumato.base.doctor import examine
from sfumato.cli.show import AsJson, emit, put, table
from sfumato.errors import InputError

NEEDED = ("fastapi", "uvicorn")


def serve_command(
    folder: Annotated[Path, typer.Argument(help="The folder whose tables may be opened.")] = Path(),
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 chooses a free one.")] = 8377,
    host: Annotated[str, typer.Option(help="The loopback address to listen on.")] = "127.0.0.1",
    link: Annotated[bool, typer.Option("--link", help="Print another key for the server of this folder.")] = False,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")] = True,
    memory: Annotated[float, typer.Option(min=1, help="Gigabytes of memory that each worker may use.")] = 8.0,
    jobs: Annotated[int | None, typer.Option(min=1, help="Jobs that run at once [the number of cores].")] = None,
    upload_limit: Annotated[float, typer.Option(min=0.001, help="The largest upload, in gigabytes.")] = 2.0,
) -> None:
    """Open the workbench: explore, decide and release in a browser, on this machine alone."""
    absent = [name for name in NEEDED if find_spec(name) is None]
    if absent:
        raise InputError(
            f"the workbench needs {' and '.join(absent)}",
            expected="an installation with the web extra",
            remedy="pip install 'sfumato[web]'",
        )
    if "--debug" in sys.argv:  # workers inherit it, and print the traces of faults
        os.environ["SFUMATO_DEBUG"] = "1"
    from sfumato.web import app, serve  # needs the web extra

    if link:
        serve.link(folder, browser=browser)
        return
    at_once = jobs or max(os.cpu_count() or 2, 2)
    options = app.Options(gigabytes=memory, jobs=at_once, upload_bytes=int(upload_limit * (1 << 30)))
    serve.serve(folder, host=host, port=port, browser=browser, options=options)


def doctor_command(as_json: AsJson = False) -> int:
    """Say which versions are installed, where things are kept, and what is missing for which feature."""
    examined = examine()
    if as_json:
        emit(examined.as_dict())
        return 2 if examined.problems else 0
    put(f"sfumato {examined.version}, Python {examined.python}, {examined.system}")
    put(f"{examined.threads} threads, {_gigabytes(examined.memory_bytes)} of memory, {examined.java or 'no Java'}\n")
    table(
        "Packages",
        ["package", "installed", "needed"],
        [[one.name, one.version or "missing", one.bounds or "any"] for one in examined.packages],
    )
    rows = [
        [one.extra, one.about, "ready" if not one.missing else f"pip install 'sfumato[{one.extra}]'"]
        for one in examined.features
    ]
    table("Features", ["extra", "for", ""], rows)
    rows = [
        [one.purpose, one.path, f"{_gigabytes(one.free_bytes)} free" if one.usable else "cannot be written"]
        for one in examined.folders
    ]
    table("Folders", ["for", "folder", ""], rows)
    put("\n".join(f"problem: {text}" for text in examined.problems) or "Everything that Sfumato itself needs is there.")
    return 2 if examined.problems else 0


def _gigabytes(count: int | None) -> str:
    return "an unknown amount" if count is None else f"{count / 1e9:,.1f} GB"
