"""Self-contained HTML pages from templates, the figures in them, and the page of any front.

The page of a front shows cost against privacy, and every point in a table.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import jinja2
from markupsafe import Markup

from sfumato.base.notebook import plotly_figure
from sfumato.base.text import number, percent
from sfumato.errors import counted
from sfumato.front import Front
from sfumato.version import __version__

Trace = dict[str, Any]  # a trace, an axis or a shape, as plotly describes it

NUMBER, WHY = "number", "why"  # kinds of columns: aligned to the right, and in small print
ACCENT = "#0b6e75"
SECOND = "#c8553d"


@dataclass(frozen=True)
class Section:
    """A part of a page: its title, its sentences, and a figure or a table.

    The columns of a table are of some `kinds`, its `label` is for readers of a screen, and one row may be marked.
    """

    title: str
    sentences: Sequence[str] = ()
    figure: Markup | None = None
    heads: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    kinds: Sequence[str] = ()
    label: str = ""
    marked: int | None = None


def _whole(value: Any) -> Any:
    """Return a number with its per cent sign on one line. Markup is unchanged.

    >>> _whole("29.3 % of records")
    '29.3\\xa0% of records'
    """
    return (
        re.sub(r"(?<=\d) (?=%)", "\u00a0", value)
        if isinstance(value, str) and not hasattr(value, "__html__")
        else value
    )


@cache
def _templates() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.PackageLoader("sfumato.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_whole,
        trim_blocks=True,
    )


def page(template: str, **values: Any) -> str:
    """Fill a template. A page with figures contains plotly's script from its wheel once."""
    return _templates().get_template(template).render({"plotly": _script(), "version": __version__} | values)


@cache
def _script() -> Markup:
    """Return plotly's script, which is read once because it has five million characters."""
    from plotly.offline import get_plotlyjs

    return Markup(get_plotlyjs())


def scatter(
    x: Sequence[object], y: Sequence[object], mode: str, name: str = "", text: Sequence[str] = (), **style: object
) -> Trace:
    """Return points or lines; each point shows its text under the pointer."""
    hover = {"text": list(text), "hovertemplate": "%{text}<extra></extra>"} if text else {}
    return {
        "type": "scatter",
        "mode": mode,
        "x": list(x),
        "y": list(y),
        **({"name": name} if name else {}),
        **hover,
    } | style


def figure(traces: list[Trace], x: Trace, y: Trace, name: str, height: int = 340, **layout: Any) -> Markup:
    """Return one plotly figure as HTML, in the page's colours. `layout` replaces parts of its layout."""
    drawn = plotly_figure(traces, x, y, height, **layout)
    config = {"displayModeBar": False, "responsive": True}
    return Markup(drawn.to_html(include_plotlyjs=False, full_html=False, div_id=name, config=config))


INK = "#1f2933"


def front_page(
    front: Front, columns: Mapping[str, list[str]], chosen: int | None, *, title: str, bound: str = "bound"
) -> str:
    """Return the page of a front with two objectives. `columns` are further figures of each point."""
    rows = [
        [
            str(point.id),
            *(number(point.values[objective.name]) for objective in front.objectives),
            percent(point.loss),
            *(cells[row] for cells in columns.values()),
        ]
        for row, point in enumerate(front.points)
    ]
    heads = ["point", *(objective.label for objective in front.objectives), "loss", *columns]
    marked = next((row for row, point in enumerate(front.points) if point.id == chosen), None)
    kinds = [NUMBER] * len(heads)
    return page(
        "sections.html",
        title=title,
        lead=f"{counted(len(front.points), 'non-dominated point')} for {counted(front.rows, 'record')}: {front.how}."
        + (f" {front.left_out_says}." if front.left_out else ""),
        picture=_picture(front, chosen, bound),
        sections=[Section("The points", heads=heads, rows=rows, kinds=kinds, label="Points", marked=marked)],
    )


def _picture(front: Front, chosen: int | None, bound: str) -> Any:
    first, last = front.objectives[0], front.objectives[-1]
    x = [point.values[first.name] for point in front.points]
    y = [point.values[last.name] for point in front.points]
    marker = {"color": ACCENT, "size": 6}
    traces = [scatter(x, y, "lines+markers", "front", marker=marker)]
    bounds = [point.bound for point in front.points]
    if all(one is not None for one in bounds):
        marker = {"color": INK, "size": 6}
        traces.append(scatter(x, [one or 0.0 for one in bounds], "lines", bound, marker=marker, line={"dash": "dot"}))
    if chosen is not None:
        marker = {"color": SECOND, "size": 12}
        traces.append(scatter([x[chosen]], [y[chosen]], "markers", "chosen", marker=marker))
    scale = {"type": "log", "tickformat": ".1e"} if min(y, default=0) > 0 and max(y) > 100 * min(y) else {}
    return figure(traces, {"title": {"text": first.label}}, {"title": {"text": last.label}} | scale, "front")
