"""`sfumato hierarchy check | build | show`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from sfumato.base.files import refuse_existing
from sfumato.base.json_types import Json
from sfumato.cli.show import AsJson, Force, emit, later, note, put
from sfumato.errors import HierarchyError, InputError, counted

with later():
    from sfumato.data.codebook import shown_values
    from sfumato.data.open import open_source
    from sfumato.data.profile import values_of
    from sfumato.data.settings import DataSettings, Role
    from sfumato.data.source import Source
    from sfumato.hierarchies import Hierarchy, load, save
    from sfumato.hierarchies.hierarchy import draw
    from sfumato.hierarchies.recipes import builder, recipe
    from sfumato.study import read
    from sfumato.tables.compress import secret_hierarchy
    from sfumato.tables.domain import domain_of

app = typer.Typer(rich_markup_mode=None, help="Check, build and show generalization hierarchies.", no_args_is_help=True)

Data = Annotated[Path | None, typer.Option("--data", "-d", help="A table with the column.")]
ColumnName = Annotated[str | None, typer.Option("--column", "-c", help="The column; by default the file's name.")]
Run = Annotated[Path | None, typer.Option("--run", "-r", help="A run file that says how to read the table.")]
Separator = Annotated[str | None, typer.Option(help="The separator of the hierarchy file, if it cannot be guessed.")]
Header = Annotated[bool | None, typer.Option("--header/--no-header", help="Whether its first row has names.")]


@app.command()
def check(
    file: Annotated[Path, typer.Argument(help="A hierarchy file.")],
    data: Data = None,
    column: ColumnName = None,
    run: Run = None,
    separator: Separator = None,
    header: Header = None,
    as_json: AsJson = False,
) -> None:
    """Check that a file is a hierarchy, and that it covers a column's values."""
    tree = load(file, name=column, separator=separator, header=header)
    counts = _counts(data, run, column or tree.name, tree) if data or run else None
    levels = [len(labels) for labels in tree.levels]
    if as_json:
        emit(
            {
                "name": tree.name,
                "levels": levels,
                "height": tree.height,
                "root": tree.root,
                "covered": counts is not None,
            }
        )
        return
    put(f"{tree.name}: {levels[0]:,} values, {tree.height} steps to {tree.root!r}; labels per level {levels}")
    if counts is not None:
        unused = len(tree.leaves) - sum(leaf in counts for leaf in tree.leaves)
        put(f"covers all {counted(len(counts), 'value')} of the data; {unused:,} of its leaves do not occur")


@app.command()
def show(
    file: Annotated[Path, typer.Argument(help="A hierarchy file.")],
    data: Data = None,
    column: ColumnName = None,
    run: Run = None,
    separator: Separator = None,
    header: Header = None,
    children: Annotated[int, typer.Option("--most", min=1, help="Children to draw per node.")] = 12,
    as_json: AsJson = False,
) -> None:
    """Draw a hierarchy as a tree, with the number of records below each label."""
    tree = load(file, name=column, separator=separator, header=header)
    counts = _counts(data, run, column or tree.name, tree) if data or run else None
    shown = _shown(data, run, column or tree.name, tree) if data or run else {}
    if as_json:
        paths = [list(path) for path in tree.paths]
        emit({"name": tree.name, "paths": paths, "counts": counts, "shown": shown})
    else:
        put(draw(tree, counts, children, shown))


@app.command()
def build(
    data: Annotated[Path, typer.Argument(help="A table with the column.")],
    column: Annotated[str, typer.Option("--column", "-c", help="The column to build for.")],
    kind: Annotated[str, typer.Option(help="interval, quantile, breaks, ends, prefix, date, frequency or flat.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The hierarchy file to write.")],
    run: Run = None,
    width: Annotated[list[float] | None, typer.Option(help="interval, ends: a width per level, finest first.")] = None,
    origin: Annotated[float | None, typer.Option(help="interval: where intervals start.")] = None,
    bottom: Annotated[float | None, typer.Option(help="ends: values below this are one group.")] = None,
    top: Annotated[float | None, typer.Option(help="ends: this value and all above are one group.")] = None,
    bins: Annotated[int | None, typer.Option(help="quantile: groups of the finest level.")] = None,
    at: Annotated[
        list[str] | None, typer.Option("--breaks", help="breaks: 18,40,65 for a level, finest first.")
    ] = None,
    keep: Annotated[list[int] | None, typer.Option(help="prefix: characters kept, per level.")] = None,
    level: Annotated[list[str] | None, typer.Option(help="date: month, quarter, year, decade.")] = None,
    pattern: Annotated[str | None, typer.Option(help="date: how days are written, such as %d.%m.%Y.")] = None,
    share: Annotated[
        list[float] | None, typer.Option(help="frequency: values rarer than this share are combined, per level.")
    ] = None,
    na: Annotated[list[str] | None, typer.Option(help="A code for missing values; may be repeated.")] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Build a hierarchy from the values of a column, and write it as a level table."""
    refuse_existing(output, overwrite=force)
    options: Json = {
        "widths": width,
        "origin": origin,
        "bottom": bottom,
        "top": top,
        "bins": bins,
        "levels": [_numbers(points) for points in at] if at else level,
        "keep": keep,
        "pattern": pattern,
        "shares": share,
    }
    chosen = recipe(kind, {name: value for name, value in options.items() if value not in (None, [])})
    source = _source(data, run, tuple(na or ()))
    counts, decimal = values_of(source, column), source.decimal
    with _discreet(run, column):
        tree = builder(column, chosen, decimal)(list(counts), list(counts.values()))
    save(tree, output, overwrite=force)
    if as_json:
        emit({"file": str(output), "levels": [len(labels) for labels in tree.levels]})
    else:
        note(f"{output}: {[len(labels) for labels in tree.levels]} labels per level. sfumato hierarchy show {output}")


def _numbers(text: str) -> list[float]:
    try:
        return [float(point) for point in text.split(",")]
    except ValueError:
        raise InputError(f'"{text}" is not a list of numbers', expected="numbers", remedy="--breaks 18,40,65") from None


def _counts(data: Path | None, run: Path | None, column: str, tree: Hierarchy) -> dict[str, int]:
    """Count the values of the column, and check that the hierarchy covers them."""
    source = _source(data, run, ())
    counts = values_of(source, column)
    with _discreet(run, column):
        domain_of(column, counts, tree, decimal=source.decimal)
    return counts


def _shown(data: Path | None, run: Path | None, column: str, tree: Hierarchy) -> dict[str, str]:
    """Return the labels that have a meaning in the codebook of the table, with that meaning."""
    labels = (label for level in tree.levels for label in level)
    return shown_values(labels, _source(data, run, ()).codebook.column(column).values)


@contextmanager
def _discreet(run: Path | None, column: str) -> Iterator[None]:
    """Hide the values in errors about a column that the run file declares sensitive."""
    try:
        yield
    except HierarchyError:
        if run is not None and column in read(run).named(Role.SENSITIVE):
            raise secret_hierarchy(column) from None
        raise


def _source(data: Path | None, run: Path | None, na: tuple[str, ...]) -> Source:
    settings = DataSettings(path=str(data), na=na)
    return open_source(settings) if run is None else read(run).source(data)
