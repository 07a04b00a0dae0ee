"""`sfumato baselines`: what other kinds of recoding cost, beside our own fronts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sfumato.cli.show import AsJson, Force, emit, note, put, table


def command(
    run: Annotated[Path, typer.Argument(help="The run file.")],
    front: Annotated[
        list[Path] | None,
        typer.Option(help="The folder of a front to compare with them; may be repeated, once per system."),
    ] = None,
    k: Annotated[list[int] | None, typer.Option("--k", help="A required k; may be repeated.")] = None,
    l: Annotated[int, typer.Option("--l", help="Minimum number of different sensitive values in every class.")] = 1,
    method: Annotated[
        list[str] | None,
        typer.Option(
            help="Only these methods: lattice_optimum, datafly, mondrian_strict, mondrian_relaxed, mondrian_even."
        ),
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="A page to write.")] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Compare with Mondrian, Datafly and the best node of the lattice: what each kind of recoding costs."""
    from sfumato.comparisons.baselines import baselines
    from sfumato.comparisons.page import draw_baselines, row_cells, sentences
    from sfumato.measures.standard import K
    from sfumato.runtime.atomic import refuse_existing
    from sfumato.study import read
    from sfumato.systems.registry import load_front

    if output is not None:
        refuse_existing(output, overwrite=force)
    fronts = [load_front(folder) for folder in front or []]
    costs = baselines(read(run), k or None, l=l, fronts=fronts, methods=method or None)
    if output is not None:
        draw_baselines(costs, output, fronts, overwrite=force)
    if as_json:
        emit(costs.as_dict())
        return
    rows = sorted(costs.rows, key=lambda row: (row.asked, costs.methods.index(row.method)))
    heads = ["method", "k required", K.label, "l", "loss", "suppressed", "classes", "labels", ""]
    table("What each kind of recoding costs", heads, [row_cells(row) for row in rows], right=set(range(1, 8)))
    for sentence in sentences(costs):
        put(sentence)
    for remark in costs.notes:
        note(remark)
    if output is not None:
        note(f"page: {output}")
