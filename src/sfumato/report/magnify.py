"""The front under successive magnification: each plot enlarges the steepest part of the one before."""

from __future__ import annotations

from typing import Any

import numpy as np
from markupsafe import Markup

from sfumato.front import Front, Objective
from sfumato.measures.registry import known_measures
from sfumato.report.page import ACCENT, SECOND
from sfumato.report.panels import Panel, panel_figure
from sfumato.runtime.arrays import Floats
from sfumato.runtime.figures import number, percent

PARTS = 8  # the part that is enlarged is at most this share of the range of privacy
FEWEST = 8  # points that are worth a plot of their own
MOST = 4


def windows(loss: Floats, values: Floats) -> list[tuple[float, float]]:
    """The range of values that each plot shows: all, then time and again the part over which loss changes most.

    >>> values = np.array([1.0, 2, 3, 4, 5, 6, 7, 8, 100, 200, 400, 800])
    >>> windows(np.linspace(0, 1, 12), values)
    [(1.0, 800.0), (1.0, 100.0), (1.0, 8.0)]
    """
    order = np.argsort(values, kind="stable")
    loss, values = loss[order], values[order]
    spans = [(float(values[0]), float(values[-1]))]
    while len(spans) < MOST:
        low, high = spans[-1]
        width = (high - low) / PARTS
        starts = np.flatnonzero((values >= low) & (values + width <= high + 1e-9))
        ends = np.searchsorted(values, values[starts] + width, side="right") - 1
        held = ends - starts + 1
        if not len(starts) or not np.any(held >= FEWEST):
            break
        parts = [loss[a : b + 1] for a, b in zip(starts, ends, strict=True)]
        best = int(np.argmax([np.ptp(part) if len(part) >= FEWEST else -1.0 for part in parts]))
        spans.append((float(values[starts[best]]), float(values[ends[best]])))
    return spans


def magnified_figure(front: Front, objective: Objective, chosen: int | None = None) -> Markup | None:
    """Loss against a privacy measure, on even scales, enlarged again and again; None if there is nothing to enlarge."""
    loss = np.array([point.loss for point in front.points])
    values = np.array([point.values[objective.name] for point in front.points], dtype=np.float64)
    finite = np.isfinite(values)
    ids = np.flatnonzero(finite)
    loss, values = loss[finite], values[finite]
    if len(values) < 2 * FEWEST or not np.ptp(values):
        return None
    shown = windows(loss, values)
    if len(shown) < 2:
        return None
    title = known_measures()[objective.name].title
    panels = []
    for window, (low, high) in enumerate(shown):
        inside = (values >= low) & (values <= high)
        panel = Panel(
            [_points(loss[inside], values[inside], ids[inside], objective.name)],
            x={"title": "loss, %"},
            y={"title": title, "rangemode": "normal"},
            title=f"{window + 1}. {number(low)} to {number(high)}" if window else "1. the whole front",
        )
        if chosen is not None and inside[ids == chosen].any():
            panel.traces.append(_chosen(front, chosen, objective.name))
        if window + 1 < len(shown):
            panel.shapes.append(_frame(loss, values, *shown[window + 1], high - low))
        panels.append(panel)
    rows: list[list[Panel | None]] = [list(panels[:2]), list(panels[2:])] if len(panels) > 2 else [list(panels)]
    return panel_figure(rows, "magnified", row_height=250)


def _points(loss: Floats, values: Floats, ids: Any, name: str) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "markers",
        "x": (loss * 100).round(4).tolist(),
        "y": values.tolist(),
        "marker": {"color": ACCENT, "size": 6 if len(loss) < 300 else 4},
        "text": [
            f"point {i}: {name} {number(v)}, loss {percent(x)}" for i, v, x in zip(ids, values, loss, strict=True)
        ],
        "hovertemplate": "%{text}<extra></extra>",
    }


def _chosen(front: Front, chosen: int, name: str) -> dict[str, Any]:
    point = front.point(chosen)
    return {
        "type": "scatter",
        "mode": "markers",
        "x": [point.loss * 100],
        "y": [point.values[name]],
        "marker": {"color": SECOND, "size": 11, "symbol": "diamond"},
        "hovertemplate": f"chosen: point {chosen}<extra></extra>",
    }


def _frame(loss: Floats, values: Floats, low: float, high: float, span: float) -> dict[str, Any]:
    """A box around what the next plot enlarges."""
    inside = (values >= low) & (values <= high)
    edge = 0.015 * span
    return {
        "type": "rect",
        "x0": loss[inside].min() * 100 - 0.6,
        "x1": loss[inside].max() * 100 + 0.6,
        "y0": low - edge,
        "y1": max(high, low + 0.01 * span) + edge,
        "line": {"color": SECOND, "width": 1.2},
        "fillcolor": "rgba(200,85,61,0.07)",
    }
