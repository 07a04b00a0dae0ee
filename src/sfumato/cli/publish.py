"""`sfumato publish`, `sfumato verify`, `sfumato apply`: write a release, check it again, use its plan on other data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from sfumato.cli.show import AsJson, emit, note, put, table
from sfumato.report.figures import number, percent


def publish_command(
    out: Annotated[Path, typer.Argument(help="The folder of a front, as sfumato search wrote it.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The new folder of the release.")],
    point: Annotated[int | None, typer.Option("--point", "-p", help="The id of the point to publish.")] = None,
    starred: Annotated[
        bool, typer.Option("--starred", help="Keep suppressed rows, hidden and marked, instead of removing them.")
    ] = False,
    suppress_below: Annotated[
        int | None, typer.Option(min=0, help="Suppress classes with fewer records than this, instead of the point's.")
    ] = None,
    diversity_below: Annotated[
        int | None, typer.Option(min=0, help="Suppress classes with fewer sensitive values than this as well.")
    ] = None,
    reason: Annotated[str, typer.Option(help="Why this point: kept in the internal report.")] = "",
    as_json: AsJson = False,
) -> None:
    """Recode the source by a point of a front, read the file back, measure it, write the reports."""
    from sfumato.decide.revise import with_suppression
    from sfumato.errors import InputError
    from sfumato.front import load_front
    from sfumato.release.publish import publish, refuse_taken

    refuse_taken(output.absolute())
    front = load_front(out)
    if point is None:
        raise InputError(
            "no point is named",
            expected=f"--point with an id from 0 to {len(front.points) - 1}",
            remedy=f"sfumato ask {out} --max-loss 0.3 finds one",
        )
    if suppress_below is not None or diversity_below is not None:
        front = with_suppression(front, point, suppress_below or 0, diversity_below or 0)
    release = publish(front, point, output, starred=starred, reason=reason)
    if as_json:
        emit(release.as_dict())
        return
    found = release.manifest
    rows = [
        ["records released", number(found["released"])],
        ["suppressed", f"{number(found['suppressed'])} of {number(found['records'])}"],
        ["loss", percent(found["loss"])],
        *([name, _figure(found["figures"][name])] for name in found["point"]["values"]),
    ]
    table("Measured on the file", ["figure", "value"], rows, right={1})
    for text in release.warnings:
        note(f"warning: {text}")
    note(f"release: {release.folder}. For the outside: {release.data.name}, dictionary.html and external.html.")
    note(f"check it at any time: sfumato verify {release.folder}")


def verify_command(
    folder: Annotated[Path, typer.Argument(help="The folder of a release.")],
    source: Annotated[str | None, typer.Option("--source", help="The source, to compare every row.")] = None,
    as_json: AsJson = False,
) -> int:
    """Check a release again: every file, every figure, and with the source every row. Exit 1 on a difference."""
    from sfumato.release.verify import verify

    found = verify(folder, source)
    if as_json:
        emit({"verified": not found, "differences": [{"file": d.file, "what": d.what} for d in found]})
    elif found:
        put(f"{folder} is not as it was published:")
        for difference in found:
            put(f"  {difference}")
    else:
        rows = " and the rows are those of the source" if source is not None else ""
        put(f"{folder} is as it was published: files, figures and reports agree{rows}.")
    return 1 if found else 0


def apply_command(
    folder: Annotated[Path, typer.Argument(help="The folder of a release, or of a front.")],
    new_file: Annotated[Path, typer.Argument(help="The file to recode, with the columns of the source.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The new file.")],
    point: Annotated[int | None, typer.Option("--point", "-p", help="The id of the point, for a front.")] = None,
    unseen: Annotated[
        str, typer.Option(help="What becomes of values the plan does not know: error or star.")
    ] = "error",
    as_json: AsJson = False,
) -> None:
    """Recode another file with a saved plan, report values it does not know, measure the result."""
    from sfumato.release.apply import apply_plan

    applied = apply_plan(folder, new_file, output, point=point, unseen=unseen)
    if as_json:
        emit(applied.as_dict())
        return
    found = applied.found
    rows = [
        ["records released", number(found["released"])],
        ["suppressed", f"{number(found['suppressed'])} of {number(found['records'])}"],
        ["loss", percent(found["loss"])],
        ["k", _figure(found["figures"]["k"])],
    ]
    table("Measured on the file", ["figure", "value"], rows, right={1})
    for column, about in found["unseen"].items():
        note(
            f"warning: {column} has {about['values']} values that the plan does not know, in {about['records']} "
            f"records ({', '.join(about['examples'])}); they are released as *"
        )
    note(f"file: {applied.data}; report: {applied.report}")


def _figure(entry: dict[str, Any]) -> str:
    return "∞" if entry["value"] is None else number(entry["value"])
