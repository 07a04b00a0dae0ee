"""Any front as a page: what is paid against how well people are protected, and every point in a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sfumato.errors import counted
from sfumato.front import Front
from sfumato.report.page import ACCENT, SECOND, figure, page
from sfumato.runtime.figures import number, percent
from sfumato.version import __version__

INK = "#1f2933"


def front_page(
    front: Front, columns: Mapping[str, list[str]], chosen: int | None, *, title: str, bound: str = "bound"
) -> str:
    """The page of a front with two objectives; `columns` are what its system shows of each point beyond them."""
    rows = [
        {
            "cells": [
                str(point.id),
                *(number(point.values[objective.name]) for objective in front.objectives),
                percent(point.loss),
                *(cells[row] for cells in columns.values()),
            ],
            "chosen": point.id == chosen,
        }
        for row, point in enumerate(front.points)
    ]
    return page(
        "front.html",
        title=title,
        version=__version__,
        lead=f"{counted(len(front.points), 'non-dominated point')} for {counted(front.rows, 'record')}: {front.how}."
        + (f" {front.left_out_says}." if front.left_out else ""),
        picture=_picture(front, chosen, bound),
        heads=["point", *(objective.label for objective in front.objectives), "loss", *columns],
        rows=rows,
    )


def _picture(front: Front, chosen: int | None, bound: str) -> Any:
    first, last = front.objectives[0], front.objectives[-1]
    x = [point.values[first.name] for point in front.points]
    y = [point.values[last.name] for point in front.points]
    traces = [_trace("front", x, y, ACCENT, "lines+markers")]
    bounds = [point.bound for point in front.points]
    if all(one is not None for one in bounds):
        traces.append(_trace(bound, x, [one or 0.0 for one in bounds], INK, "lines") | {"line": {"dash": "dot"}})
    if chosen is not None:
        traces.append(_trace("chosen", [x[chosen]], [y[chosen]], SECOND, "markers"))
    scale = {"type": "log", "tickformat": ".1e"} if min(y, default=0) > 0 and max(y) > 100 * min(y) else {}
    return figure(traces, {"title": {"text": first.label}}, {"title": {"text": last.label}} | scale, "front")


def _trace(name: str, x: list[float], y: list[float], colour: str, mode: str) -> dict[str, Any]:
    size = 12 if mode == "markers" else 6
    return {"type": "scatter", "name": name, "x": x, "y": y, "mode": mode, "marker": {"color": colour, "size": size}}
