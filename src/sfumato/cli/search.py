"""`sfumato search`, `sfumato pick`, `sfumato map`: find the front, choose a point, look at it."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli.show import AsJson, Force, emit, note, table
from sfumato.report.figures import number, percent

if TYPE_CHECKING:
    from collections.abc import Callable

    from sfumato.front import Front

MOST_ROWS = 40


def search(
    run: Annotated[Path, typer.Argument(help="The run file.")],
    output: Annotated[Path | None, typer.Option("--output", "-o", help="A new folder for the front.")] = None,
    algorithm: Annotated[
        str | None, typer.Option(help="exact, exhaustive or pbg_ea, instead of the run file's.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="The seed, instead of the run file's.")] = None,
    threads: Annotated[int | None, typer.Option(min=1, help="Threads; the front does not depend on them.")] = None,
    as_json: AsJson = False,
) -> None:
    """Find every non-dominated generalization of a table."""
    from sfumato.errors import InputError
    from sfumato.study import read
    from sfumato.systems.search import search as find

    if output is not None and output.exists():
        raise InputError(f"{output} is there already", expected="a new folder", remedy="another name with -o")
    changed = {"algorithm": algorithm, "seed": seed, "threads": threads}
    study = read(run).with_search(**{name: value for name, value in changed.items() if value is not None})
    front = find(study, progress=_progress())
    if output is not None:
        front.save(output)
    if as_json:
        emit(front.as_dict())
        return
    _print(front)
    if output is not None:
        note(f"front: {output}. Next: sfumato map {output}, then sfumato publish {output} --point ID -o release")


def pick(
    folder: Annotated[Path, typer.Argument(help="The folder of a front.")],
    max_loss: Annotated[float | None, typer.Option(help="Most privacy with at most this loss, such as 0.3.")] = None,
    min_k: Annotated[float | None, typer.Option(help="Least loss with at least this k.")] = None,
    max_risk: Annotated[float | None, typer.Option(help="Least loss with at most this prosecutor risk.")] = None,
    knee: Annotated[bool, typer.Option("--knee", help="The knee of the front.")] = False,
    point: Annotated[int | None, typer.Option(help="A point by its id.")] = None,
    as_json: AsJson = False,
) -> None:
    """Choose a point of a front."""
    from sfumato.decide import pick as choose
    from sfumato.front import load_front

    front = load_front(folder)
    choice = choose(front, max_loss=max_loss, min_k=min_k, max_risk=max_risk, knee=knee, point=point)
    if as_json:
        emit({"reason": choice.reason, "point": choice.point.as_dict()})
        return
    found = choice.point
    values = ", ".join(f"{o.name} {number(found.values[o.name])}" for o in front.objectives)
    print(f"point {found.id}: {values}, loss {percent(found.loss)}, {found.suppressed:,} suppressed ({choice.reason})")


def draw_map(
    folder: Annotated[Path, typer.Argument(help="The folder of a front.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The page to write [map.html in the folder].")
    ] = None,
    point: Annotated[int | None, typer.Option(help="The chosen point, to be marked.")] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Draw the risk–utility map of a front as a page."""
    from sfumato.data.atomic import refuse_existing
    from sfumato.front import load_front
    from sfumato.report.map import draw

    target = output or folder / "map.html"
    front = load_front(folder)
    refuse_existing(target, overwrite=force)
    if point is not None:
        front.point(point)
    draw(front, target, point)
    if as_json:
        emit({"map": str(target)})
    else:
        note(f"map: {target}")


def _progress() -> Callable[[int, int], None]:
    """A line on stderr that says how far a search is, on a terminal only."""
    began = time.monotonic()
    last = [began]

    def tell(done: int, total: int) -> None:
        now = time.monotonic()
        if sys.stderr.isatty() and now - last[0] > 0.2:
            last[0] = now
            rate = done / max(now - began, 1e-9)
            print(f"\r{done:,} nodes evaluated, {total - done:,} open, {rate:,.0f}/s ", end="", file=sys.stderr)

    return tell


def _print(front: Front) -> None:
    found = "exact" if front.exact else "best found"
    share = front.evaluations / front.space
    print(
        f"{len(front.points)} non-dominated generalizations ({found}, {front.algorithm}); "
        f"{front.evaluations:,} of {front.space:,} nodes evaluated ({share:.1%}) in {front.seconds:.1f} s\n"
    )
    shown: list[Any] = list(front.points)
    if len(shown) > MOST_ROWS:
        shown = [shown[round(i * (len(shown) - 1) / (MOST_ROWS - 1))] for i in range(MOST_ROWS)]
    names = list(shown[0].plan.levels)
    rows = [
        [
            str(point.id),
            *[number(point.values[o.name]) for o in front.objectives],
            percent(point.loss),
            f"{point.suppressed:,}",
            " ".join(str(point.plan.levels[name]) for name in names),
        ]
        for point in shown
    ]
    heads = ["id", *[o.name for o in front.objectives], "loss", "suppressed", "levels of " + ", ".join(names)]
    some = "" if len(shown) == len(front.points) else f" ({len(shown)} of {len(front.points)} shown)"
    table(f"Front{some}", heads, rows, right=set(range(len(heads) - 1)))
