"""`sfumato import`: projects of other tools become run files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sfumato.cli.show import AsJson, Force, emit, note
from sfumato.cli.words import command

app = typer.Typer(help="Read a project of another tool into a run file.", no_args_is_help=True, rich_markup_mode=None)


@app.command("arx")
def arx(
    project: Annotated[Path, typer.Argument(help="A project of ARX (.deid).")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The new folder: table, hierarchies, run file.")],
    as_json: AsJson = False,
) -> None:
    """Read a project of ARX: table, attribute types, hierarchies, privacy models, suppression limit."""
    from sfumato.migration.arx import import_arx

    imported = import_arx(project, output)
    if as_json:
        emit(imported.as_dict())
        return
    for text in imported.notes:
        note(f"note: {text}")
    note(f"run file: {imported.run_file}. Next: {command('search', imported.run_file, '-o', 'front')}")


@app.command("sdcmicro")
def sdcmicro(
    script: Annotated[Path, typer.Argument(help="An R script that calls createSdcObj.")],
    table: Annotated[Path, typer.Argument(help="The table that the script reads, as a file that can be read here.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The run file to write.")] = Path("run.toml"),
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Read the key variables, the weight and the sensitive variables of an sdcMicro script."""
    from sfumato.migration.sdcmicro import import_sdcmicro

    imported = import_sdcmicro(script, table, output, overwrite=force)
    if as_json:
        emit(imported.as_dict())
        return
    for text in imported.notes:
        note(f"note: {text}")
    note(f"run file: {imported.run_file}")
