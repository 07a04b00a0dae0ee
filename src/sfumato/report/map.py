"""The risk–utility map: the front, what it dominates, the raw and the fully hidden table, the chosen point."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from markupsafe import Markup

from sfumato.data.atomic import write_text
from sfumato.data.frequency import FrequencyTable
from sfumato.front import Front, Point
from sfumato.measures.registry import known_measures
from sfumato.report.figures import number, percent
from sfumato.report.page import ACCENT, SECOND, figure, page
from sfumato.version import __version__

FAINT = "#b8c4cc"


def draw(front: Front, path: str | Path, chosen: int | None = None, table: FrequencyTable | None = None) -> Path:
    """Write the map of a front as a self-contained page; with the table, hovering tells a recoding in words."""
    table = front.study.table() if table is None else table
    return write_text(path, map_page(front, table, chosen), overwrite=True)


def map_page(front: Front, table: FrequencyTable, chosen: int | None = None) -> str:
    """The page of a map."""
    first = front.objectives[0]
    rows = [
        {
            "id": point.id,
            "values": [number(point.values[o.name]) for o in front.objectives],
            "loss": percent(point.loss),
            "suppressed": f"{point.suppressed:,}",
            "words": "; ".join(point.plan.words(table)),
            "chosen": point.id == chosen,
        }
        for point in front.points
    ]
    return page(
        "map.html",
        title="Risk–utility map",
        version=__version__,
        lead=f"{len(front.points)} non-dominated generalizations of {front.rows:,} records: {front.how}."
        + (" No generalization of the lattice is better." if front.exact else ""),
        picture=map_figure(front, table, chosen),
        first=known_measures()[first.name].title,
        heads=[known_measures()[o.name].title for o in front.objectives],
        rows=rows,
        pairs=[pair_figure(front, o.name, chosen) for o in front.objectives[1:] if o.name != "general_loss"],
    )


def map_figure(front: Front, table: FrequencyTable, chosen: int | None = None) -> Markup:
    """Loss against the first objective."""
    first = front.objectives[0].name
    top = front.rows if first == "k" else None
    traces: list[dict[str, Any]] = []
    if front.others:
        traces.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": "dominated",
                "x": [other["loss"] * 100 for other in front.others],
                "y": [other[first] for other in front.others],
                "marker": {"color": FAINT, "size": 5, "opacity": 0.45},
                "hoverinfo": "skip",
            }
        )
    traces.append(
        {
            "type": "scatter",
            "mode": "lines+markers",
            "name": "front",
            "x": [point.loss * 100 for point in front.points],
            "y": [point.values[first] for point in front.points],
            "line": {"color": ACCENT, "width": 1.5, "shape": "hv"},
            "marker": {"color": ACCENT, "size": 8},
            "text": [_hover(point, front, table) for point in front.points],
            "hovertemplate": "%{text}<extra></extra>",
        }
    )
    ends_x, ends_y, ends_text = [0.0, 100.0], [front.points[0].values[first], top], ["raw table", "everything hidden"]
    if top is not None:
        traces.append(_markers("ends of the lattice", ends_x, ends_y, ends_text, "#1f2933", "square-open", 11))
    if chosen is not None:
        point = front.point(chosen)
        traces.append(
            _markers(
                "chosen", [point.loss * 100], [point.values[first]], [f"chosen: point {chosen}"], SECOND, "diamond", 14
            )
        )
    title = known_measures()[first].title
    scale = "log" if first in ("k", "sum_k", "weighted_k", "sum_l") else "linear"
    return figure(
        traces,
        {"title": "information loss, % of d·N", "range": [-2, 102]},
        {"title": title, "type": scale} | ({"dtick": 1} if scale == "log" else {}),
        "map",
        height=460,
    )


def pair_figure(front: Front, name: str, chosen: int | None = None) -> Markup:
    """A further objective against loss."""
    points = {
        "type": "scatter",
        "mode": "markers",
        "name": "front",
        "x": [point.loss * 100 for point in front.points],
        "y": [point.values[name] for point in front.points],
        "marker": {"color": ACCENT, "size": 8},
        "text": [f"point {point.id}: {name} {number(point.values[name])}" for point in front.points],
        "hovertemplate": "%{text}<extra></extra>",
    }
    traces = [points]
    if chosen is not None:
        point = front.point(chosen)
        traces.append(
            _markers("chosen", [point.loss * 100], [point.values[name]], [f"point {chosen}"], SECOND, "diamond", 14)
        )
    title = known_measures()[name].title
    return figure(traces, {"title": "information loss, % of d·N"}, {"title": title}, f"map-{name}", height=340)


def _markers(
    name: str, x: list[Any], y: list[Any], text: list[str], colour: str, symbol: str, size: int
) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": name,
        "x": x,
        "y": y,
        "text": text,
        "marker": {"color": colour, "size": size, "symbol": symbol, "line": {"width": 2}},
        "hovertemplate": "%{text}<extra></extra>",
    }


def _hover(point: Point, front: Front, table: FrequencyTable) -> str:
    values = ", ".join(f"{o.name} {number(point.values[o.name])}" for o in front.objectives)
    words = "<br>".join(word.replace("<", "&lt;") for word in point.plan.words(table))
    return (
        f"<b>point {point.id}</b>: {values}<br>loss {percent(point.loss)}, {point.suppressed:,} suppressed<br>{words}"
    )
