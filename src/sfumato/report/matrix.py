"""A scatter matrix of three or four objectives: every pair against each other."""

from __future__ import annotations

from typing import Any

import numpy as np
from markupsafe import Markup

from sfumato.front import Front
from sfumato.measures.registry import measure
from sfumato.measures.standard import GENERAL_LOSS
from sfumato.report.page import ACCENT, SECOND
from sfumato.report.panels import Panel, panel_figure

MOST = 700  # points drawn in each of up to six plots


def axes_of(front: Front) -> list[tuple[str, list[float], bool]]:
    """The objectives as titles and values, general loss as a share, and whether the scale is logarithmic."""
    axes: list[tuple[str, list[float], bool]] = []
    for objective in front.objectives[:4]:
        sought = measure(objective.name)
        if sought is GENERAL_LOSS:
            axes.append(("loss, %", [point.loss * 100 for point in front.points], False))
        elif sought.unit == "share":
            axes.append((f"{sought.title}, %", [point.values[sought.name] * 100 for point in front.points], False))
        else:
            values = [float(point.values[sought.name]) for point in front.points]
            axes.append((sought.title, values, sought.scale == "log"))
    return axes


def matrix_figure(front: Front, chosen: int | None = None) -> Markup | None:
    """Every pair of objectives, if there are three or four; None otherwise."""
    if len(front.objectives) < 3:
        return None
    axes = axes_of(front)
    some = np.unique(np.linspace(0, len(front.points) - 1, MOST).astype(np.int64)).tolist()
    rows: list[list[Panel | None]] = []
    for below in range(1, len(axes)):
        row: list[Panel | None] = []
        for left in range(below):
            row.append(_panel(axes[left], axes[below], some, chosen, first=left == 0, last=below == len(axes) - 1))
        rows.append(row + [None] * (len(axes) - 1 - below))
    return panel_figure(rows, "matrix", row_height=230, across=0.05, down=44)


def _panel(
    x: tuple[str, list[float], bool],
    y: tuple[str, list[float], bool],
    some: list[int],
    chosen: int | None,
    first: bool,
    last: bool,
) -> Panel:
    traces: list[dict[str, Any]] = [
        {
            "type": "scatter",
            "mode": "markers",
            "x": [round(x[1][i], 6) for i in some],
            "y": [round(y[1][i], 6) for i in some],
            "marker": {"color": ACCENT, "size": 4, "opacity": 0.55},
            "text": [f"point {i}" for i in some],
            "hovertemplate": "%{text}: %{x}, %{y}<extra></extra>",
        }
    ]
    if chosen is not None:
        spot = {"x": [x[1][chosen]], "y": [y[1][chosen]]}
        marker = {"color": SECOND, "size": 11, "symbol": "diamond"}
        hover = {"hovertemplate": f"chosen: point {chosen}<extra></extra>"}
        traces.append({"type": "scatter", "mode": "markers", "marker": marker} | spot | hover)
    scales = [{"type": "log", "dtick": 1} if axis[2] else {} for axis in (x, y)]
    return Panel(
        traces,
        x=scales[0] | {"title": x[0] if last else "", "showticklabels": last},
        y=scales[1] | {"title": y[0] if first else "", "showticklabels": first},
    )
