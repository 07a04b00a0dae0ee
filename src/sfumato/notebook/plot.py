"""A plotly figure in the colours of the reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

INK, GRID = "#1f2933", "#e4e7eb"
NUMBERS = {"exponentformat": "none", "separatethousands": True}  # 10,000 and not 10k, which may stand for ten of k


def plotly_figure(
    traces: Sequence[Mapping[str, Any]], x: Mapping[str, Any], y: Mapping[str, Any], height: int = 340
) -> Any:
    """A figure of plotly, to be shown, changed or written by its own methods."""
    import plotly.graph_objects as go

    axis = {"gridcolor": GRID, "zerolinecolor": GRID, "linecolor": GRID, "title": {"standoff": 8}, **NUMBERS}
    drawn = go.Figure(data=[dict(trace) for trace in traces])
    drawn.update_layout(
        template="none",
        font={"family": "system-ui, sans-serif", "size": 13, "color": INK},
        margin={"l": 64, "r": 16, "t": 12, "b": 52},
        height=height,
        xaxis=axis | dict(x),
        yaxis=axis | dict(y),
        showlegend=len(traces) > 1,
        legend={"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},  # beside it, a narrow page has no room
        bargap=0.08,
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
    )
    return drawn
