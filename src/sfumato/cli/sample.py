"""`sfumato sample` and `sfumato import`: a folder to start from, with a sample or a project of another tool."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sfumato.cli.show import AsJson, Force, Watch, command, emit, later, note
from sfumato.errors import InputError

with later():
    from sfumato.import_projects.arx import import_arx
    from sfumato.import_projects.sdcmicro import import_sdcmicro
    from sfumato.papers.groups import make_census
    from sfumato.samples.samples import write_people, write_sample

CENSUS = "census"


def sample_command(
    name: Annotated[
        str,
        typer.Argument(help="The sample: adult, adult-complete (its complete rows, which the papers use), or census."),
    ] = "adult",
    output: Annotated[Path | None, typer.Option("--output", "-o", help="The new folder [the sample's name].")] = None,
    records: Annotated[
        int | None, typer.Option(min=100, help="Rows of the census [1,000,000; with --groups 3,205,478].")
    ] = None,
    groups: Annotated[bool, typer.Option("--groups", help="A census for the groups system: planted groups.")] = False,
    members: Annotated[int | None, typer.Option(min=1, help="With --groups: members of the group [14,263].")] = None,
    areas: Annotated[int | None, typer.Option(min=2, help="With --groups: areas [1,238].")] = None,
    state: Annotated[int | None, typer.Option(help="With --groups: restrict the run file to one state.")] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same census.")] = 1,
    as_json: AsJson = False,
) -> None:
    """Write a sample with a run file into a new folder: UCI Adult, or a synthetic census of any size."""
    folder = output or Path(name)
    size = {"records": records, "members": members, "areas": areas, "state": state}
    given = {option: value for option, value in size.items() if value is not None}
    if groups and name == CENSUS:
        made = make_census(folder, seed=seed, **given)
        run, following = made.run, "groups attack"
        said = f"{len(made.census.areas):,} areas, {len(made.census.installations)} with an installation"
    elif groups or given.keys() - {"records"}:
        raise InputError(
            "members, areas and state are of a census for the groups system", expected="sfumato sample census --groups"
        )
    else:
        run, following = _write(name, folder, records, seed), "audit --run"
        said = f"{run.parent} holds the table, its hierarchies and a run file."
    if as_json:
        emit({"run_file": str(run)})
    else:
        note(f"{said} Next: sfumato {following} {run}")


def _write(name: str, folder: Path, records: int | None, seed: int) -> Path:
    """Write a bundled sample or a synthetic census, and return the path of its run file."""
    if name != CENSUS:
        return write_sample(name, folder)
    with Watch("rows") as watch:
        return write_people(folder, records or 1_000_000, seed, watch)


app = typer.Typer(help="Read a project of another tool into a run file.", no_args_is_help=True, rich_markup_mode=None)


@app.command("arx")
def arx(
    project: Annotated[Path, typer.Argument(help="A project of ARX (.deid).")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The new folder: table, hierarchies, run file.")],
    as_json: AsJson = False,
) -> None:
    """Read a project of ARX: table, attribute types, hierarchies, privacy models, suppression limit."""
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
    imported = import_sdcmicro(script, table, output, overwrite=force)
    if as_json:
        emit(imported.as_dict())
        return
    for text in imported.notes:
        note(f"note: {text}")
    note(f"run file: {imported.run_file}")
