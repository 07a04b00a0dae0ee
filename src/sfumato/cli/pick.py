"""`sfumato pick`: choose a point of a front."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from sfumato.cli.show import AsJson, emit, offer_presets, put
from sfumato.runtime.figures import number, percent


def command(
    folder: Annotated[Path, typer.Argument(help="The folder of a front.")],
    max_loss: Annotated[float | None, typer.Option(help="Highest privacy with at most this loss, such as 0.3.")] = None,
    min_k: Annotated[float | None, typer.Option(help="Lowest loss with at least this k.")] = None,
    max_risk: Annotated[float | None, typer.Option(help="Lowest loss with at most this prosecutor risk.")] = None,
    limit: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="A limit on any figure of the front, such as min_privacy=0.4 or max_cost=100; may be repeated.",
        ),
    ] = None,
    knee: Annotated[bool, typer.Option("--knee", help="The knee of the front.")] = False,
    point: Annotated[int | None, typer.Option(help="A point by its id.")] = None,
    as_json: AsJson = False,
) -> None:
    """Choose a point of a front by one or several limits, by its knee, or by its id.

    Without any of them, common limits on k and on the prosecutor risk are listed with the points they lead to.
    """
    from sfumato.decide.pick import as_dict
    from sfumato.decide.pick import pick as choose
    from sfumato.decide.presets import presets
    from sfumato.systems.registry import load_front

    front = load_front(folder)
    limits = {"max_loss": max_loss, "min_k": min_k, "max_risk": max_risk} | _limits(limit or ())
    none = not knee and point is None and all(value is None for value in limits.values())
    if none and (common := presets(front)):
        if as_json:
            emit({"point": None, "presets": [preset.as_dict() for preset in common]})
        else:
            offer_presets(common)
        return
    choice = choose(front, knee=knee, point=point, **limits)
    if as_json:
        emit(dict(as_dict(choice)))
        return
    chosen = choice.point
    values = ", ".join(f"{o.name} {number(chosen.values[o.name])}" for o in front.objectives)
    gone = f", {chosen.suppressed:,} suppressed" if front.recodes else ""
    gone += f", {front.left_out:,} left out because of missing values" if front.left_out else ""
    put(f"point {chosen.id}: {values}, loss {percent(chosen.loss)}{gone} ({choice.reason})")


def _limits(given: Sequence[str]) -> dict[str, float | None]:
    """Limits as they stand on a command line: NAME=VALUE."""
    from sfumato.errors import InputError

    limits: dict[str, float | None] = {}
    for text in given:
        name, _, value = text.partition("=")
        try:
            limits[name.strip().replace("-", "_")] = float(value)
        except ValueError:
            raise InputError(
                f'"{text}" is not a limit', expected="NAME=VALUE with a number", remedy="min_k=5"
            ) from None
    return limits
