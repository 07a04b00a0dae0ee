"""The risk–utility map: the front, what it dominates, its shape, and what a chosen point does to the table.

What is impossible on the map: two bands, and the local recodings between them.

Left of the first no recoding with the same labels can be, whatever it suppresses: the floor. Left of the second there
is no global recoding by levels of the hierarchies within the limit of suppression: the front of an exact search.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log10
from typing import Any

import numpy as np
from markupsafe import Markup

from sfumato.base.text import number, percent
from sfumato.decide.ask import Answer, ask
from sfumato.decide.floor import BELOW, floor_levels, local_points
from sfumato.errors import counted
from sfumato.front import Front, Objective, Point
from sfumato.measures.registry import GENERAL_LOSS, K, known_measures
from sfumato.report.audit_page import figures_of
from sfumato.report.map_figures import distributions_figure, magnified_figure, matrix_figure, partitions_figure
from sfumato.report.page import ACCENT, SECOND, figure, page
from sfumato.study.methods import METHODS
from sfumato.tables.frequency import FrequencyTable
from sfumato.version import __version__

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
    if not front.exact or not METHODS[front.system].levels or front.objectives[0].name != K.name:
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


FAINT = "#7f8b95"
MOST_ROWS = 200  # points of the table on the page, and points whose hover tells the recoding in words
SHADES = [[0.0, "#c9dfe1"], [0.5, "#3f979d"], [1.0, "#08363a"]]


def map_page(
    front: Front, table: FrequencyTable, chosen: int | None = None, compare: tuple[int, int] | None = None
) -> str:
    """The page of a map."""
    some = _some(front, chosen)
    words = {i: front.points[i].recoding_plan.words(table) for i in some}
    rows = [
        {
            "id": point.id,
            "values": [number(point.values[o.name]) for o in front.objectives],
            "loss": percent(point.loss),
            "suppressed": f"{point.suppressed:,}",
            "words": "; ".join(words[point.id]),
            "chosen": point.id == chosen,
        }
        for point in (front.points[i] for i in some)
    ]
    answer = ask(front, table=table)
    pair = compare or _pair(front, answer, chosen)
    shown = _quarter(front) if chosen is None else chosen
    privacy = _privacy(front)
    return page(
        "map.html",
        title="Risk–utility map",
        version=__version__,
        lead=f"{counted(len(front.points), 'non-dominated generalization')} of "
        f"{counted(front.rows, 'record')}: {front.how}."
        + (" No generalization of the lattice is better." if front.exact else "")
        + (f" {front.left_out_says}; they count as lost." if front.left_out else ""),
        picture=map_figure(front, words, answer, chosen),
        bands=bands_figure(front),
        presets=answer.presets,
        shape=_shape(answer),
        questions=answer.questions,
        magnified=magnified_figure(front, privacy, chosen) if privacy is not None else None,
        matrix=matrix_figure(front, chosen),
        distributions=distributions_figure(front, pair),
        partitions=partitions_figure(front.point(shown), table),
        shown=shown,
        shown_says=_says(front.point(shown)),
        heads=[known_measures()[o.name].title for o in front.objectives],
        rows=rows,
        left_out=len(front.points) - len(rows),
        pairs=[
            pair_figure(front, o.name, chosen)
            for o in front.objectives[1:]
            if o.name != GENERAL_LOSS.name and len(front.objectives) < 3
        ],
    )


def map_figure(
    front: Front, words: dict[int, list[str]], answer: Answer | None = None, chosen: int | None = None
) -> Markup:
    """Loss against the first objective; where a second one seeks privacy too, it is the colour."""
    first = front.objectives[0].name
    traces: list[dict[str, Any]] = band_traces(front) if first == K.name else []
    if front.others:
        traces.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": "dominated",
                "x": [round(other["loss"] * 100, 4) for other in front.others],
                "y": [other[first] for other in front.others],
                "marker": {"color": FAINT, "size": 3},
                "hoverinfo": "skip",
            }
        )
    if answer is not None and answer.wish.privacy.measure == first:
        traces += _stretches(answer)
    many = len(front.points)
    second = _second(front)
    marker: dict[str, Any] = {"color": ACCENT, "size": 8 if many < 150 else 6 if many < 600 else 5}
    if second is not None:
        values = [point.values[second.name] for point in front.points]
        title = known_measures()[second.name].title
        marker |= {
            "color": values,
            "colorscale": SHADES,
            "colorbar": {"title": {"text": title}, "thickness": 12, "len": 0.75, "y": 0.38},
        }
    traces.append(
        {
            "type": "scatter",
            "mode": "lines+markers" if len(front.objectives) < 3 else "markers",
            "name": "front",
            "x": [round(point.loss * 100, 4) for point in front.points],
            "y": [point.values[first] for point in front.points],
            "line": {"color": ACCENT, "width": 1.5, "shape": "hv"},
            "marker": marker,
            "text": [_hover(point, words.get(point.id, [])) for point in front.points],
            "hovertemplate": "%{text}<extra></extra>",
        }
    )
    if first == K.name:
        ends = [(0.0, front.points[0].values[first], "raw table")] if front.points[0].loss == 0 else []
        ends.append((100.0, front.rows, "everything hidden"))
        x, y, text = (list(part) for part in zip(*ends, strict=True))
        traces.append(_markers("the two extremes", x, y, text, "#1f2933", "square-open", 11))
    if chosen is not None:
        point = front.point(chosen)
        hover = [f"chosen: point {chosen}"]
        traces.append(_markers("chosen", [point.loss * 100], [point.values[first]], hover, SECOND, "diamond", 14))
    scale = known_measures()[first].scale
    return figure(
        traces,
        {"title": "information loss, %", "range": [-2, 102]},
        {"title": known_measures()[first].title, "type": scale} | ({"dtick": 1} if scale == "log" else {}),
        "map",
        height=480,
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
    return figure(
        traces,
        {"title": "information loss, %"},
        {"title": title},
        f"map-{name}",
        height=340,
    )


def _some(front: Front, chosen: int | None) -> list[int]:
    """The points told in full: all, or an even choice of them and the chosen one."""
    even = np.linspace(0, len(front.points) - 1, min(MOST_ROWS, len(front.points))).astype(np.int64)
    return sorted({*even.tolist(), *([] if chosen is None else [front.point(chosen).id])})


def _pair(front: Front, answer: Answer, chosen: int | None) -> tuple[int, int]:
    """Two points worth comparing: the chosen one or one at a quarter of the loss, and that of the largest common k."""
    low = _quarter(front) if chosen is None else chosen
    sizes = [preset.point.id for preset in answer.presets if preset.limit == "min_k" and preset.point is not None]
    high = sizes[-1] if sizes else len(front.points) - 1
    high = high if high != low else len(front.points) - 1
    return (low, high) if front.points[low].loss <= front.points[high].loss or chosen is not None else (high, low)


def _quarter(front: Front) -> int:
    """The point nearest to a loss of a quarter."""
    return min(front.points, key=lambda point: abs(point.loss - 0.25)).id


def _privacy(front: Front) -> Objective | None:
    protecting = [o for o in front.objectives if known_measures()[o.name].kind == "privacy"]
    return protecting[0] if protecting else None


def _second(front: Front) -> Objective | None:
    protecting = [o for o in front.objectives if known_measures()[o.name].kind == "privacy"]
    return protecting[1] if len(protecting) > 1 and protecting[0] == front.objectives[0] else None


def _shape(answer: Answer) -> list[str]:
    """The knee, the stretches and the curve in sentences."""
    stretches = answer.stretches()
    said = [f"Knee of {answer.about}: {answer.knee}. On another scale it lies elsewhere."] if answer.knee else []
    if stretches["flat"]:
        said.append(f"Much privacy for little loss: {'; '.join(stretches['flat'])}.")
    if stretches["steep"]:
        said.append(f"Much loss for little privacy: {'; '.join(stretches['steep'])}.")
    return [*said, answer.fit.says(answer.about)]


def _stretches(answer: Answer) -> list[dict[str, Any]]:
    """Flat and steep stretches as broad lines behind the front."""
    traces = []
    for name, pairs, colour in (
        ("flat: much privacy, little loss", answer.curve.flat(), "rgba(76,153,76,0.55)"),
        ("steep: much loss, little privacy", answer.curve.steep(), "rgba(200,85,61,0.45)"),
    ):
        x: list[float | None] = []
        y: list[float | None] = []
        for a, b in pairs:
            inside = (answer.curve.loss >= a.loss) & (answer.curve.loss <= b.loss)
            x += [*(answer.curve.loss[inside] * 100).round(4).tolist(), None]
            y += [*answer.curve.values[inside].tolist(), None]
        if x:
            line = {"color": colour, "width": 9, "shape": "hv"}
            traces.append(
                {"type": "scatter", "mode": "lines", "name": name, "x": x, "y": y, "line": line, "hoverinfo": "skip"}
            )
    return traces


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


def _says(point: Point) -> str:
    return f"{figures_of(point.values)}, loss {percent(point.loss)}, {point.suppressed:,} suppressed"


def _hover(point: Point, words: list[str]) -> str:
    lines = "".join("<br>" + word.replace("<", "&lt;") for word in words)
    return f"<b>point {point.id}</b>: {_says(point)}{lines}"
