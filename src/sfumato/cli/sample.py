"""`sfumato sample`: the bundled data, or a synthetic census, as a folder to work in."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sfumato.cli.show import AsJson, emit, note

CENSUS = "census"


def command(
    name: Annotated[str, typer.Argument(help="The sample: adult, or census for a synthetic one.")] = "adult",
    output: Annotated[Path | None, typer.Option("--output", "-o", help="The new folder [the sample's name].")] = None,
    records: Annotated[int, typer.Option(help="Rows of the synthetic census.")] = 1_000_000,
    seed: Annotated[int, typer.Option(help="The same seed gives the same census.")] = 1,
    as_json: AsJson = False,
) -> None:
    """Write a sample with a run file into a new folder: UCI Adult, or a synthetic census of any size."""
    from sfumato.samples.bundled import write_sample

    folder = output or Path(name)
    if name == CENSUS:
        from sfumato.cli.watch import Watch
        from sfumato.samples.synthetic import write_people

        with Watch("rows") as watch:
            run = write_people(folder, records, seed, watch)
    else:
        run = write_sample(name, folder)
    if as_json:
        emit({"run_file": str(run)})
    else:
        note(f"{run.parent} holds the table, its hierarchies and a run file. Next: sfumato audit --run {run}")
