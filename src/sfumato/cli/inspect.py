"""`sfumato inspect`: look at a table, suggest roles, write a run file to start from."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli.show import AsJson, Force, emit, note, put, table
from sfumato.errors import counted, shortened
from sfumato.runtime.figures import percent
from sfumato.sources.address import POSTGRESQL, SQLITE

if TYPE_CHECKING:
    from sfumato.auditing.inspection import Inspection

DEFAULT = Path("run.toml")


def command(
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
    from sfumato.auditing.inspection import inspect
    from sfumato.runtime.atomic import refuse_existing
    from sfumato.study import write_run_file

    if output is not None:
        refuse_existing(output, overwrite=force)
    settings: dict[str, Any] = {
        "separator": "\t" if separator == "\\t" else separator,
        "quote": quote,
        "decimal": decimal,
        "encoding": encoding,
        "header": header,
        "names": tuple(name.strip() for name in names.split(",")) if names else None,
        "na": tuple(na) if na else None,
        "table": from_table,
        "query": query,
        "password_file": password_file,
        "sheet": sheet,
        "header_row": header_row,
        "codebook": codebook,
    }
    kept = None if keep is None else [name.strip() for name in keep.split(",")]
    inspection = inspect(file, keep=kept, **{name: value for name, value in settings.items() if value is not None})
    target = output or DEFAULT
    written = output is not None or force or not target.exists()
    if written:
        home = target.absolute().parent
        secret = None if password_file is None else _seen_from(home, password_file)
        book = None if codebook is None else _seen_from(home, codebook)
        text = inspection.run_file(_seen_from(home, file), password_file=secret, codebook=book)
        write_run_file(target, text, overwrite=force)
    if as_json:
        emit(inspection.as_dict() | {"run_file": str(target) if written else None})
        return
    _print(inspection)
    if written:
        todo = "Give every column a role" if inspection.undecided else "Check each line and correct it where needed"
        note(f"run file: {target}. {todo}, then: sfumato audit --run {target}")
    else:
        note(f"{target} already exists and was left as it is; -o NAME writes another.")


def _seen_from(folder: Path, file: str) -> str:
    """A path as the run file in a folder calls it."""
    if file.startswith(POSTGRESQL):
        return file
    kind = SQLITE if file.startswith(SQLITE) else ""
    return kind + Path(os.path.relpath(Path(file.removeprefix(kind)).absolute(), folder)).as_posix()


def _print(inspection: Inspection) -> None:
    from sfumato.auditing.inspection import LEFT_OUT

    rows = []
    left = sum(suggestion is LEFT_OUT for suggestion in inspection.suggestions)
    for column, suggestion in zip(inspection.columns, inspection.suggestions, strict=True):
        if suggestion is LEFT_OUT:
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
    """Print what each rule would cost for each value that may mean missing."""
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
