"""A self-contained HTML page from a template, and the figures in it."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import jinja2
from markupsafe import Markup

from sfumato.notebook.plot import plotly_figure

ACCENT = "#0b6e75"
SECOND = "#c8553d"


def _whole(value: Any) -> Any:
    """A number and its per cent sign stay on one line; markup is as it is.

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
    """Fill a template. Pages that draw get plotly's script from its wheel, once, inside the page."""
    return _templates().get_template(template).render(plotly=_script(), **values)


@cache
def _script() -> Markup:
    """Plotly's script, read once: it is five million characters."""
    from plotly.offline import get_plotlyjs

    return Markup(get_plotlyjs())


def figure(traces: list[dict[str, Any]], x: dict[str, Any], y: dict[str, Any], name: str, height: int = 340) -> Markup:
    """One plotly figure as HTML, in the page's colours."""
    import plotly.io

    drawn = plotly_figure(traces, x, y, height)
    html = plotly.io.to_html(
        drawn,
        include_plotlyjs=False,
        full_html=False,
        div_id=name,
        config={"displayModeBar": False, "responsive": True},
    )
    return Markup(html)
