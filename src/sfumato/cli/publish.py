"""`sfumato publish`, `verify` and `apply`: write a release, check it, and apply its plan to another table.

`sfumato releases` lists the ledger, and withdraws releases that were never handed out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from sfumato.base.files import refuse_existing_folder
from sfumato.base.text import number
from sfumato.cli.show import AsJson, OwnRun, Watch, command, emit, later, note, put, table
from sfumato.errors import InputError, counted
from sfumato.study.methods import METHODS

with later():
    from sfumato.decide.offers import with_suppression
    from sfumato.decide.pick import pick
    from sfumato.methods.apply import apply_plan
    from sfumato.methods.publish import publish, verify
    from sfumato.methods.registry import load_front, system_named
    from sfumato.release.history.ledger import Ledger
    from sfumato.release.publish import Release
    from sfumato.report.release_pages import whole_of, whole_sentences

Accept = Annotated[
    list[str] | None,
    typer.Option(
        metavar="RULE=REASON", help="Publish although a rule of the policy is broken, with a reason; may be repeated."
    ),
]
RunOn = Annotated[str, typer.Option("--engine", help="Where SQL runs: duckdb or spark.")]


def publish_command(
    out: Annotated[Path, typer.Argument(help="The folder of a front, as sfumato search wrote it.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The new folder of the release.")],
    point: Annotated[int | None, typer.Option("--point", "-p", help="The id of the point to publish.")] = None,
    suppress_below: Annotated[
        int | None, typer.Option(min=0, help="Suppress classes with fewer records than this, instead of the point's.")
    ] = None,
    diversity_below: Annotated[
        int | None, typer.Option(min=0, help="Suppress classes with fewer sensitive values than this as well.")
    ] = None,
    reason: Annotated[str, typer.Option(help="Why this point: kept in the internal report.")] = "",
    accept: Accept = None,
    run: OwnRun = None,
    name: Annotated[
        str | None, typer.Option(help="The name of the released file; data.csv, data.parquet … unless given.")
    ] = None,
    file_format: Annotated[
        str | None, typer.Option("--format", help="csv, parquet, sav, dta or xlsx; that of the source unless given.")
    ] = None,
    keep: Annotated[
        list[str] | None, typer.Option(help="For a channel: a column to release beside the disguised one; repeatable.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write a point of a front as a release: change the table, read the file back, measure it, write the reports."""
    refuse_existing_folder(output.absolute())
    front = load_front(out, run)
    if point is None and "chosen" not in front.details:
        last = len(front.points) - 1
        expected = f"--point with an id from 0 to {last}" if last else "--point 0, which is the only one"
        remedy = f"{command('pick', out)} says how to choose one"
        raise InputError("no point is given", expected=expected, remedy=remedy)
    if suppress_below is not None or diversity_below is not None:
        front = with_suppression(front, 0 if point is None else point, suppress_below or 0, diversity_below or 0)
    if keep:
        if not METHODS[front.system].keeps_columns:
            raise InputError("keep names columns beside a disguised one", expected="a front of the channel system")
        front = replace(front, study=front.study.replace(channel={"keep": tuple(keep)}))
    accepted = parse_accepted(accept or ())
    with Watch(system_named(front.system).unit(front.study), keeps=False) as watch:
        choice = pick(front, point=point)
        release = publish(choice, output, reason=reason, accept=accepted, name=name, format=file_format, progress=watch)
    show_release(release, as_json, out / "run.toml" if run is None else run)


def show_release(release: Release, as_json: bool, source: str | Path) -> None:
    """Print what was measured on the written file, what was accepted, and what may be handed out.

    `source` is a run file that names the table, or the table itself: the rows can be compared with it.
    """
    if as_json:
        emit(release.as_dict())
        return
    manifest = release.manifest
    missing = manifest["left_out"]
    first = [
        ["records released", number(manifest["released"])],
        *([["left out because of missing values", number(missing)]] if missing else []),
    ]
    for title, rows in system_named(manifest["system"]).figures(manifest).items():
        table(title, ["figure", "value"], [*first, *rows], right={1})
    for text in (
        *(f"warning: {text}" for text in release.warnings),
        *whole_sentences(whole_of(manifest), manifest["dictionary"]),
    ):
        note(text)
    for entry in manifest["accepted"]:
        note(f"accepted: {entry['what']} Reason: {entry['reason']}")
    note(f"release: {release.folder}. Hand out only {release.public}; keep the rest confidential.")
    note(f"check it at any time: {command('verify', release.folder, '--source', source)}")


def verify_command(
    folder: Annotated[Path, typer.Argument(help="The folder of a release, or its public part alone.")],
    source: Annotated[
        str | None, typer.Option("--source", help="The source, to compare every row: a table, or a run file of yours.")
    ] = None,
    engine: RunOn = "duckdb",
    other_version: Annotated[
        bool,
        typer.Option("--other-version", help="Accept that pages of another version cannot be compared word by word."),
    ] = False,
    as_json: AsJson = False,
) -> int:
    """Check a release again: every file, every figure, and with the source every row. Exit 4 on a difference."""
    checked = verify(folder, source, engine=engine, other_version=other_version)
    if as_json:
        emit(checked.as_dict())
    elif checked.differences:
        put(f"{folder} is not as it was published:")
        for difference in checked.differences:
            put(f"  {difference}")
    elif checked.public:
        put(f"{folder} agrees with its certificate: {', '.join(checked.compared)}.")
    else:
        rows = " and the rows are those of the source" if "rows" in checked.compared else ""
        attacks = "; repeated attacks give the published figures" if "attacks" in checked.compared else ""
        pages = ", figures and reports" if "reports" in checked.compared else " and figures"
        put(f"{folder} {'is' if checked else 'may be'} as it was published: files{pages} agree{rows}{attacks}.")
    if not as_json and (missing := checked.counts.get("left_out", 0)):
        note(f"{counted(missing, 'record')} of the source left out because of missing values: not in the file.")
    if not as_json:
        for what in checked.not_compared:
            note(f"not compared: {what}")
        if checked.pages and not checked:
            note("the release is not verified: read these pages, and accept them with --other-version")
        if checked.certificate:
            asked = "compare it with the one that the publisher states" if checked.public else "state it to recipients"
            note(f"SHA-256 of the public certificate: {checked.certificate} ({asked})")
    return 0 if checked else 4


def parse_accepted(given: Sequence[str]) -> dict[str, str]:
    """Return the acceptances that a command line gives as RULE=REASON or RULE:COLUMN=REASON."""
    parsed = {}
    for text in given:
        key, equals, reason = text.partition("=")
        if not equals:
            raise InputError(f'"{text}" is not an acceptance', expected="RULE=REASON, or RULE:COLUMN=REASON")
        parsed[key.strip()] = reason.strip()
    return parsed


def apply_command(
    folder: Annotated[Path, typer.Argument(help="The folder of a release, or of a front.")],
    new_file: Annotated[Path, typer.Argument(help="The table to publish, with the columns of the source.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The new folder of the release.")],
    point: Annotated[int | None, typer.Option("--point", "-p", help="The id of the point, for a front.")] = None,
    unseen: Annotated[
        str, typer.Option(help="How to treat values that the plan does not know: error or star.")
    ] = "error",
    reason: Annotated[str, typer.Option(help="Why this release: kept in the internal report.")] = "",
    accept: Accept = None,
    run: OwnRun = None,
    engine: RunOn = "duckdb",
    as_json: AsJson = False,
) -> None:
    """Publish another table with a saved plan: a release of its own, measured and held to the policy."""
    release = apply_plan(
        folder,
        new_file,
        output,
        point=point,
        unseen=unseen,
        reason=reason,
        accept=parse_accepted(accept or ()),
        engine=engine,
        run=run,
    )
    show_release(release, as_json, new_file)


def releases_command(
    withdraw: Annotated[
        str | None, typer.Option(metavar="ID", help="The id of a release that was never handed out.")
    ] = None,
    reason: Annotated[str, typer.Option(help="The reason, kept in the ledger.")] = "",
    as_json: AsJson = False,
) -> None:
    """List the releases that new ones are compared with; withdraw one that was never handed out."""
    ledger = Ledger()
    if withdraw is not None:
        entry = ledger.withdraw(withdraw, reason)
        note(f"withdrawn: {entry.folder}. New releases are no longer compared with it.")
    reading = ledger.read()
    listed = [
        {
            "id": entry.id,
            "time": entry.time,
            "system": entry.description.system,
            "folder": str(entry.folder),
            "source": entry.source,
            "rows": entry.rows[0].rows if entry.rows else None,
        }
        for entry in reading.entries
    ]
    if as_json:
        emit({"ledger": str(ledger.folder), "releases": listed, "unreadable": reading.unreadable})
        return
    rows = [[str(e["id"]), str(e["time"]), str(e["system"]), f"{e['rows']:,}", str(e["folder"])] for e in listed]
    table(f"Releases in {ledger.folder}", ["id", "time", "system", "rows of the table", "folder"], rows, right={3})
    if reading.unreadable:
        note(f"{counted(reading.unreadable, 'line')} of the ledger cannot be read")
