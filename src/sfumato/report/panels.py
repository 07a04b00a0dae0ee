"""Several small plots in one figure, in the page's colours; plain SVG, which a strict page allows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from markupsafe import Markup

from sfumato.notebook.plot import GRID, INK, NUMBERS

GAP = 0.09


@dataclass
class Panel:
    """One plot of a grid: its traces, its two axes, its title, and shapes and notes in its own coordinates."""

    traces: list[dict[str, Any]]
    x: dict[str, Any] = field(default_factory=dict)
    y: dict[str, Any] = field(default_factory=dict)
    title: str = ""
    shapes: list[dict[str, Any]] = field(default_factory=list)
    notes: list[dict[str, Any]] = field(default_factory=list)


def panel_figure(
    rows: Sequence[Sequence[Panel | None]],
    name: str,
    row_height: int = 260,
    legend: bool = False,
    across: float = GAP,
    down: float = 86,
    bottom: int = 62,
) -> Markup:
    """Rows of panels as one plotly figure in HTML; `across` is a share between columns, `down` pixels between rows."""
    import plotly.graph_objects as go
    import plotly.io

    columns = max(len(row) for row in rows)
    height = len(rows) * row_height + 34 + bottom
    gap = down / (len(rows) * row_height) if len(rows) > 1 else 0.0
    wide, tall = (1 - across * (columns - 1)) / columns, (1 - gap * (len(rows) - 1)) / len(rows)
    axis = {"gridcolor": GRID, "zerolinecolor": GRID, "linecolor": GRID, **NUMBERS}
    layout: dict[str, Any] = {"shapes": [], "annotations": []}
    traces = []
    number = 0
    for r, row in enumerate(rows):
        for c, panel in enumerate(row):
            if panel is None:
                continue
            number += 1
            end = "" if number == 1 else str(number)
            left, top = c * (wide + across), 1 - r * (tall + gap)
            across_domain = [left, min(left + wide, 1.0)]
            layout[f"xaxis{end}"] = _titled(axis | panel.x) | {"domain": across_domain, "anchor": f"y{end}"}
            layout[f"yaxis{end}"] = _titled(axis | panel.y) | {
                "domain": [max(top - tall, 0.0), top],
                "anchor": f"x{end}",
            }
            here = {"xref": f"x{end}", "yref": f"y{end}"}
            traces += [trace | {"xaxis": f"x{end}", "yaxis": f"y{end}"} for trace in panel.traces]
            whole = {"yref": f"y{end} domain", "y0": 0, "y1": 1}  # a line without heights runs from bottom to top
            layout["shapes"] += [here | ({} if "y0" in shape else whole) | shape for shape in panel.shapes]
            layout["annotations"] += [here | {"showarrow": False} | note for note in panel.notes]
            if panel.title:
                spot = {"x": left, "y": top, "xref": "paper", "yref": "paper", "xanchor": "left", "yanchor": "bottom"}
                layout["annotations"].append(spot | {"text": panel.title, "showarrow": False, "font": {"size": 13}})
    drawn = go.Figure(data=traces)
    drawn.update_layout(
        template="none",
        font={"family": "system-ui, sans-serif", "size": 12, "color": INK},
        margin={"l": 64, "r": 16, "t": 34, "b": bottom},
        height=height,
        showlegend=legend,
        bargap=0.0,
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        **layout,
    )
    config = {"displayModeBar": False, "responsive": True}
    return Markup(plotly.io.to_html(drawn, include_plotlyjs=False, full_html=False, div_id=name, config=config))


def _titled(axis: dict[str, Any]) -> dict[str, Any]:
    title = axis.get("title", "")
    return axis | {"title": {"text": title, "standoff": 6, "font": {"size": 12}}} if isinstance(title, str) else axis
