"""`sfumato inspect` profiles a table and writes a run file to start from; `sfumato audit` measures a table."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from sfumato.base.files import refuse_existing, write_text
from sfumato.base.text import number, percent
from sfumato.cli.show import AsJson, Force, Watch, command, emit, given, later, note, put, table
from sfumato.errors import InputError, counted, shortened

with later():
    from sfumato.auditing import inspect as inspecting
    from sfumato.auditing.audit import Audit, Figure, audit
    from sfumato.auditing.inspect import Inspection, inspect
    from sfumato.data import settings
    from sfumato.import_projects.arx import import_arx
    from sfumato.import_projects.sdcmicro import import_sdcmicro
    from sfumato.measures.registry import documented, known_measures
    from sfumato.measures.units import texts_of
    from sfumato.papers.groups import make_census
    from sfumato.report.audit_page import audit_page
    from sfumato.samples.samples import write_people, write_sample
    from sfumato.study import read, write_run_file

DEFAULT = Path("run.toml")


def inspect_command(
    file: Annotated[
        str,
        typer.Argument(
            help="A table: CSV, Parquet, SPSS, Stata, SAS, Excel; a folder of parts; or a database's address."
        ),
    ],
    output: Annotated[Path | None, typer.Option("--output", "-o", help="The run file to write [run.toml].")] = None,
    separator: Annotated[str | None, typer.Option(help="The separator; \\t for a tab.")] = None,
    quote: Annotated[str | None, typer.Option(help="The quote mark; empty for none.")] = None,
    decimal: Annotated[str | None, typer.Option(help="The decimal mark: . or ,")] = None,
    encoding: Annotated[str | None, typer.Option(help="utf-8, latin-1, cp1252, utf-16, …")] = None,
    header: Annotated[
        bool | None, typer.Option("--header/--no-header", help="Whether the first row has names.")
    ] = None,
    names: Annotated[str | None, typer.Option(help="Column names, separated by commas.")] = None,
    keep: Annotated[
        str | None,
        typer.Option(help="The columns that the release is about, separated by commas; the others are left out."),
    ] = None,
    na: Annotated[list[str] | None, typer.Option(help="A code for missing values; may be repeated.")] = None,
    from_table: Annotated[str | None, typer.Option("--table", help="The table of a database.")] = None,
    query: Annotated[str | None, typer.Option(help="A query of a database, instead of a table.")] = None,
    password_file: Annotated[str | None, typer.Option(help="A file with the password of a database.")] = None,
    sheet: Annotated[str | None, typer.Option(help="The sheet of a workbook; the first unless given.")] = None,
    header_row: Annotated[int | None, typer.Option(min=1, help="The row of a sheet that has the names.")] = None,
    codebook: Annotated[
        str | None, typer.Option(help="Labels and missing codes: CSV, JSON, DDI Codebook (.xml) or .sas7bcat.")
    ] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Profile a table: values, what may mean missing, suggested roles, sets of columns that single people out."""
    if output is not None:
        refuse_existing(output, overwrite=force)
    reading = given(
        separator="\t" if separator == "\\t" else separator,
        quote=quote,
        decimal=decimal,
        encoding=encoding,
        header=header,
        names=tuple(name.strip() for name in names.split(",")) if names else None,
        na=tuple(na) if na else None,
        table=from_table,
        query=query,
        password_file=password_file,
        sheet=sheet,
        header_row=header_row,
        codebook=codebook,
    )
    inspection = inspect(file, keep=None if keep is None else [name.strip() for name in keep.split(",")], **reading)
    target = output or DEFAULT
    written = output is not None or force or not target.exists()
    if written:
        home = target.absolute().parent
        secret, book = (None if name is None else _seen_from(home, name) for name in (password_file, codebook))
        text = inspection.run_file(_seen_from(home, file), password_file=secret, codebook=book)
        write_run_file(target, text, overwrite=force)
    if as_json:
        emit(inspection.as_dict() | {"run_file": str(target) if written else None})
        return
    _print_inspection(inspection)
    if written:
        todo = "Give every column a role" if inspection.undecided else "Check each line and correct it where needed"
        note(f"run file: {target}. {todo}, then: sfumato audit --run {target}")
    else:
        note(f"{target} already exists and was left as it is; -o NAME writes another.")


def _seen_from(folder: Path, file: str) -> str:
    """Return a path relative to the folder of the run file."""
    if file.startswith(settings.POSTGRESQL):
        return file
    kind = settings.SQLITE if file.startswith(settings.SQLITE) else ""
    return kind + Path(os.path.relpath(Path(file.removeprefix(kind)).absolute(), folder)).as_posix()


def _print_inspection(inspection: Inspection) -> None:
    rows = []
    left = sum(suggestion is inspecting.LEFT_OUT for suggestion in inspection.suggestions)
    for column, suggestion in zip(inspection.columns, inspection.suggestions, strict=True):
        if suggestion is inspecting.LEFT_OUT:
            continue
        words = [*column.na_words, *(f"{word}?" for word in column.candidates)]
        rows.append(
            [
                column.name,
                column.kind,
                f"{column.distinct:,}",
                f"{column.missing:,}" + (f" (has {', '.join(words)})" if words else ""),
                f"{column.uniques:,}",
                suggestion.role or "undecided",
                f"{column.label}: {suggestion.reason}" if column.label else suggestion.reason,
            ]
        )
    heads = ["column", "kind", "distinct", "missing", "once", "suggested role", "because"]
    title = f"{counted(inspection.rows, 'row')}, {counted(len(inspection.columns), 'column')}"
    table(title + (f", {left:,} of them left out" if left else ""), heads, rows, right={2, 3, 4})
    if any(column.candidates for column in inspection.columns):
        note("A value with a question mark may be a code for a missing value; if so, list it in na under [data].")
        _print_missing_costs(inspection)
    for each in inspection.repeating:
        note(each.sentence)
    _print_singled_out(inspection)
    if inspection.undecided:
        note(
            f"{counted(len(inspection.undecided), 'column')} without a role: "
            f"{shortened(inspection.undecided, 12)}. Decide each."
        )


def _print_missing_costs(inspection: Inspection) -> None:
    """Print the records that each rule would affect, for each value that may mean missing."""
    rows = [
        [word, counted(len(cost.columns), "column"), f"{cost.records:,}", rule, says]
        for word, cost in inspection.missing_costs.items()
        for rule, says in cost.sentences().items()
    ]
    if rows:
        heads = ["value", "in", "records", "missing =", "if it is declared in na"]
        table("Values that may mean missing", heads, rows, right={2})


def _print_singled_out(inspection: Inspection) -> None:
    if inspection.combinations:
        singled = [[" × ".join(c.columns), percent(c.unique)] for c in inspection.combinations]
        table("Small sets of columns that make records unique", ["columns", "unique records"], singled, right={1})
    if inspection.combinations and inspection.rows_searched < inspection.rows:
        note(
            f"The sets were searched for in {counted(inspection.rows_searched, 'row')}; their figures are for all rows."
        )
    everything = inspection.everything
    put(
        f"\nAll {counted(everything.columns, 'column')} that may be released together: "
        f"{percent(everything.unique_share)} of the records are unique."
    )
    if inspection.persons is not None:
        share, counted_as = percent(inspection.persons.unique_share), "the figures above count rows"
        put(f"Of the persons, {share} have a record that no other person shares; {counted_as}.")


def audit_command(
    run: Annotated[Path, typer.Option("--run", "-r", help="The run file that declares the columns.")],
    file: Annotated[Path | None, typer.Argument(help="Another file to measure, read with the same settings.")] = None,
    html: Annotated[Path | None, typer.Option("--html", help="Also write a page with pictures.")] = None,
    removed: Annotated[int, typer.Option(min=0, help="Number of suppressed records that are not in the file.")] = 0,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Measure a table: k, ℓ, t, risks, uniques, losses, and which columns make the risk."""
    if html is not None:
        refuse_existing(html, overwrite=force)
    study = read(run)
    if removed:
        study = study.replace(data={"removed": removed})
    audited = audit(study, file)
    if html is not None:
        write_text(html, audit_page(audited, (file or Path(study.data.path)).name), overwrite=force, private=True)
    if as_json:
        emit(audited.as_dict())
    else:
        _print_audit(audited)
        if html is not None:
            note(f"page: {html}")


def _print_audit(audited: Audit) -> None:
    classes = audited.classes
    released = classes.records - classes.suppressed_rows
    missing = f", {classes.table.left_out:,} left out (missing values)" if classes.table.left_out else ""
    held = counted(int(classes.kept.sum()), "class", "classes")
    persons = audited.persons is not None
    of = f" of {counted(audited.persons, 'person')}" if audited.persons is not None else ""
    put(f"{counted(released, 'record')}{of} in {held}; {classes.suppressed_rows:,} suppressed{missing}\n")
    for kind, title in (("privacy", "Disclosure"), ("loss", "Loss")):
        rows = []
        for figure in audited.figures.values():
            measure = figure.measure
            if measure.kind != kind:
                continue
            better = "↑" if measure.direction == "max" else "↓"
            rest = figure.reason or _by_column(figure)
            shown = texts_of(measure, persons).title
            rows.append([measure.name, shown, better, number(figure.value), number(figure.mean), rest])
        mean = "mean per person" if persons and kind == "privacy" else "mean per record"
        table(title, ["name", "measure", "better", "value", mean, ""], rows, right={3, 4})
    rows = [
        [c.column, percent(c.uniques), percent(c.marketer_risk), number(c.k_without)]
        for c in sorted(audited.contributions, key=lambda c: -c.marketer_risk)
    ]
    heads = ["column", f"fewer unique {'persons' if persons else 'records'}", "fewer correct matches", "k without it"]
    table("Contribution of each quasi-identifier to the risk", heads, rows, right={1, 2, 3})
    for text in audited.notes:
        note(f"note: {text}")


def _by_column(figure: Figure) -> str:
    """Return the value of each sensitive column, or the worst of more than three."""
    columns = figure.columns or {}
    if len(columns) <= 3:
        return ", ".join(f"{name} {number(value)}" for name, value in columns.items())
    worst = next(name for name, value in columns.items() if value == figure.value)
    return f"worst of {len(columns)} columns: {worst}"


Markdown = Annotated[bool, typer.Option("--markdown", help="The tables of docs/measures.md.")]


def measures_command(as_json: AsJson = False, markdown: Markdown = False) -> None:
    """List every measure, with its other names, its direction and what it says."""
    measures = known_measures()
    if as_json:
        emit({name: each.as_dict() for name, each in measures.items()})
        return
    if markdown:
        put("\n\n".join("\n".join(rows) for rows in documented().values()))
        return
    for kind in ("privacy", "loss"):
        rows = [
            [", ".join(m.names), "more" if m.direction == "max" else "less", m.about.sentence]
            for m in measures.values()
            if m.kind == kind
        ]
        table(f"{kind}: {len(rows)} measures", ["name", "better", "what it says"], rows)


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
    size = given(records=records, members=members, areas=areas, state=state)
    if groups and name == CENSUS:
        made = make_census(folder, seed=seed, **size)
        run, following = made.run, "groups attack"
        said = f"{len(made.census.areas):,} areas, {len(made.census.installations)} with an installation"
    elif groups or size.keys() - {"records"}:
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
