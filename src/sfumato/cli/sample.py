"""`sfumato sample`: the bundled data, as a folder to work in."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sfumato.cli.show import AsJson, emit, note


def command(
    name: Annotated[str, typer.Argument(help="The sample: adult.")] = "adult",
    output: Annotated[Path | None, typer.Option("--output", "-o", help="The new folder [the sample's name].")] = None,
    as_json: AsJson = False,
) -> None:
    """Copy the bundled sample (UCI Adult) with hierarchies and a run file into a new folder."""
    from sfumato.data.sample import write_sample

    run = write_sample(name, output or Path(name))
    if as_json:
        emit({"run_file": str(run)})
    else:
        note(f"{run.parent} holds the table, its hierarchies and a run file. Next: sfumato audit --run {run}")
