"""What is impossible on the map: two bands, and the local recodings between them.

Left of the first no recoding with the same labels can be, whatever it suppresses: the floor. Left of the second there
is no global recoding by levels of the hierarchies within the limit of suppression: the front of an exact search.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log10
from typing import Any

from markupsafe import Markup

from sfumato.decide.floor import BELOW, floor_levels, local_points
from sfumato.front import Front
from sfumato.measures.registry import known_measures
from sfumato.measures.standard import K
from sfumato.report.page import ACCENT, SECOND, figure
from sfumato.runtime.figures import number, percent

FLOOR, GLOBAL = "rgba(97,110,124,0.45)", "rgba(11,110,117,0.14)"
ROOM = 1.25  # how far above the largest k with a floor the picture goes
Corner = tuple[float, float]  # loss in %, k


def floor_edge(front: Front) -> list[Corner]:
    """The right edge of the floor, upwards: the floor of a k holds for every larger one."""
    levels = sorted(floor_levels(front))
    if not levels:
        return []
    corners = [(round(100 * share, 4), k) for k, share in levels]
    return [*corners, (corners[-1][0], float(front.rows))]


def global_edge(front: Front) -> list[Corner]:
    """The right edge of what no recoding by levels reaches, upwards; nothing where the search was not exact."""
    if not front.exact or front.system != "lattice" or front.objectives[0].name != K.name:
        return []
    return [(round(100 * point.loss, 4), point.values[K.name]) for point in front.points]


def band_traces(front: Front) -> list[dict[str, Any]]:
    """Both bands, the wider one first, and the local recodings that the floor belongs to."""
    low, high, between = floor_edge(front), global_edge(front), local_points(front)
    if not low:
        return []
    allowed = front.study.search.max_suppression
    words = f"no recoding by levels below{f' (≤ {100 * allowed:g} % suppressed)' if allowed else ''}"
    traces = [_band(words, high, GLOBAL, "hv")] if high else []
    traces.append(_band(BELOW, low, FLOOR, "vh"))
    if between:
        traces.append(
            {
                "type": "scatter",
                "mode": "lines+markers",
                "name": "local recodings found",
                "x": [round(100 * loss, 4) for _, loss in between],
                "y": [k for k, _ in between],
                "line": {"color": SECOND, "width": 1.5, "shape": "hv"},
                "marker": {"color": SECOND, "size": 6},
                "text": [f"local recoding: k {number(k)}, loss {percent(loss)}" for k, loss in between],
                "hovertemplate": "%{text}<extra></extra>",
            }
        )
    return traces


def bands_figure(front: Front) -> Markup | None:
    """The part of the map where the floor is known: both bands, the local recodings and the front."""
    levels = floor_levels(front)
    if not levels or K.name != front.objectives[0].name:
        return None
    top = ROOM * max(k for k, _ in levels)
    inside = [point for point in front.points if point.values[K.name] <= top]
    above = [point.loss for point in front.points if point.values[K.name] > top]
    width = min([1.0, *above, *([] if above else [max((p.loss for p in inside), default=1.0)])])
    shown = {
        "type": "scatter",
        "mode": "lines+markers",
        "name": "front",
        "x": [round(100 * point.loss, 4) for point in front.points],
        "y": [point.values[K.name] for point in front.points],
        "line": {"color": ACCENT, "width": 1.5, "shape": "hv"},
        "marker": {"color": ACCENT, "size": 7},
        "text": [f"point {p.id}: k {number(p.values[K.name])}, loss {percent(p.loss)}" for p in front.points],
        "hovertemplate": "%{text}<extra></extra>",
    }
    ticks = _ticks(top)
    return figure(
        [*band_traces(front), shown],
        {"title": "information loss, %", "range": [0, 104 * width]},
        {
            "title": known_measures()[K.name].title,
            "type": "log",
            "range": [log10(max(min(k for k, _ in levels), 1.0)) - 0.05, log10(top)],
            "tickvals": ticks,
            "ticktext": [str(tick) for tick in ticks],
        },
        "bands",
        height=430,
    )


def _band(name: str, edge: Sequence[Corner], colour: str, shape: str) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "x": [x for x, _ in edge],
        "y": [k for _, k in edge],
        "line": {"width": 0, "shape": shape},
        "fill": "tozerox",
        "fillcolor": colour,
        "text": [f"{name}: k {number(k)}, {x:g} %" for x, k in edge],
        "hovertemplate": "%{text}<extra></extra>",
    }


def _ticks(top: float) -> list[int]:
    """1, 2, 5, 10, 20, 50, … up to a k."""
    ticks = [step * 10**power for power in range(10) for step in (1, 2, 5)]
    return [tick for tick in ticks if tick <= top]
