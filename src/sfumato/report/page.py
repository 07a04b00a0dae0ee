"""A self-contained HTML page from a template, and the figures in it."""

from __future__ import annotations

from functools import cache
from typing import Any

import jinja2
from markupsafe import Markup

INK = "#1f2933"
ACCENT = "#0b6e75"
SECOND = "#c8553d"
GRID = "#e4e7eb"


@cache
def _templates() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.PackageLoader("sfumato.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
    )


def page(template: str, **values: Any) -> str:
    """Fill a template. Pages that draw get plotly's script from its wheel, once, inside the page."""
    from plotly.offline import get_plotlyjs

    return _templates().get_template(template).render(plotly=Markup(get_plotlyjs()), **values)


def figure(traces: list[dict[str, Any]], x: dict[str, Any], y: dict[str, Any], name: str, height: int = 340) -> Markup:
    """One plotly figure as HTML, in the page's colours."""
    import plotly.graph_objects as go
    import plotly.io

    axis = {"gridcolor": GRID, "zerolinecolor": GRID, "linecolor": GRID, "title": {"standoff": 8}}
    drawn = go.Figure(data=traces)
    drawn.update_layout(
        template="none",
        font={"family": "system-ui, sans-serif", "size": 13, "color": INK},
        margin={"l": 64, "r": 16, "t": 12, "b": 52},
        height=height,
        xaxis=axis | x,
        yaxis=axis | y,
        showlegend=len(traces) > 1,
        bargap=0.08,
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
    )
    html = plotly.io.to_html(
        drawn,
        include_plotlyjs=False,
        full_html=False,
        div_id=name,
        config={"displayModeBar": False, "responsive": True},
    )
    return Markup(html)
