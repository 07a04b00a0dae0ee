"""`sfumato predict`: what a run will cost, before it is run; and how well that was guessed, afterwards."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from sfumato.cli.show import AsJson, emit, put, table
from sfumato.runtime.figures import number


def command(
    run: Annotated[Path, typer.Argument(help="The run file.")],
    against: Annotated[
        Path | None, typer.Option(help="The folder of its front, to compare with what happened.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Predict rows, distinct tuples, evaluations, processor time and memory of a run, stage by stage."""
    from sfumato.prediction.cost import compared, predict
    from sfumato.study import read
    from sfumato.systems.registry import load_front

    happened: dict[str, Any] | None = None
    if against is not None:
        happened = load_front(against).as_dict()
    predicted = predict(read(run)).as_dict()
    pairs = [] if happened is None else compared(predicted, happened)
    if as_json:
        beside = [{"figure": name, "predicted": guess, "actual": fact} for name, guess, fact in pairs]
        emit(predicted | ({"compared": beside} if happened is not None else {}))
        return
    whole = (
        "all of them read" if predicted["sampled_rows"] == predicted["rows"] else f"{predicted['sampled_rows']:,} read"
    )
    put(f"{predicted['rows']:,} rows ({whole}), about {predicted['tuples']:,} distinct tuples")
    put(f"about {predicted['evaluations']:,} evaluations in a space of {number(predicted['nodes'])}\n")
    rows = [[part["stage"], f"{part['cpu_seconds']:,.1f}"] for part in predicted["stages"]]
    rows.append(["together", f"{predicted['cpu_seconds']:,.1f}"])
    table("Processor seconds", ["stage", "expected"], rows, right={1})
    put(f"at most {predicted['peak_bytes'] / 2**30:.1f} GiB of memory")
    if pairs:
        rows = [[name, f"{guess:,.1f}", f"{fact:,.1f}", _times(guess, fact)] for name, guess, fact in pairs]
        put()
        table("Expected and measured", ["", "expected", "measured", "ratio"], rows, right={1, 2, 3})


def _times(guess: float, fact: float) -> str:
    return f"{guess / fact:.2f}" if fact else "–"
