"""The risk–utility map of a front: the page, its figures, and the regions that no recoding reaches.

Two regions are shaded. Left of the first lies no recoding with the same labels, whatever it suppresses: this is the
lower bound of the local method. Left of the second lies no global recoding by hierarchy levels within the suppression
limit: this is the front of an exact search. The local recodings that were found lie between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log10

import numpy as np
from markupsafe import Markup

from sfumato.base.text import number, percent
from sfumato.decide.ask import Answer, ask
from sfumato.decide.floor import BELOW, floor_levels, local_points
from sfumato.errors import counted
from sfumato.front import Front, Point
from sfumato.measures.registry import GENERAL_LOSS, K, known_measures
from sfumato.report.audit_page import figures_of
from sfumato.report.map_figures import distributions_figure, magnified_figure, matrix_figure, partitions_figure
from sfumato.report.page import ACCENT, SECOND, Trace, figure, page, scatter
from sfumato.study.methods import METHODS
from sfumato.tables.frequency import FrequencyTable
from sfumato.version import __version__

FLOOR, GLOBAL = "rgba(97,110,124,0.45)", "rgba(11,110,117,0.14)"
ROOM = 1.25  # the largest k of the picture over the largest k with a lower bound
Corner = tuple[float, float]  # loss in %, k


def floor_edge(front: Front) -> list[Corner]:
    """Return the right edge of the lower bound, upwards. The bound of a k holds for every larger one."""
    corners = [(round(100 * share, 4), k) for k, share in sorted(floor_levels(front))]
    return [*corners, (corners[-1][0], float(front.rows))] if corners else []


def global_edge(front: Front) -> list[Corner]:
    """Return the right edge of the region that no recoding by levels reaches; empty if the search was not exact."""
    if not front.exact or not METHODS[front.system].levels or front.objectives[0].name != K.name:
        return []
    return [(round(100 * point.loss, 4), point.values[K.name]) for point in front.points]


def band_traces(front: Front) -> list[Trace]:
    """Return both regions, the wider one first, and the local recodings that the lower bound belongs to."""
    low, high, between = floor_edge(front), global_edge(front), local_points(front)
    if not low:
        return []
    allowed = front.study.search.max_suppression
    words = f"no recoding by levels below{f' (≤ {100 * allowed:g} % suppressed)' if allowed else ''}"
    traces = [_band(words, high, GLOBAL, "hv")] if high else []
    traces.append(_band(BELOW, low, FLOOR, "vh"))
    if between:
        traces.append(
            scatter(
                [round(100 * loss, 4) for _, loss in between],
                [k for k, _ in between],
                "lines+markers",
                "local recodings found",
                [f"local recoding: k {number(k)}, loss {percent(loss)}" for k, loss in between],
                line={"color": SECOND, "width": 1.5, "shape": "hv"},
                marker={"color": SECOND, "size": 6},
            )
        )
    return traces


def bands_figure(front: Front) -> Markup | None:
    """Return the part of the map where the lower bound is known: both regions, the local recodings, the front."""
    levels = floor_levels(front)
    if not levels or K.name != front.objectives[0].name:
        return None
    top = ROOM * max(k for k, _ in levels)
    inside = [point for point in front.points if point.values[K.name] <= top]
    above = [point.loss for point in front.points if point.values[K.name] > top]
    width = min([1.0, *above, *([] if above else [max((p.loss for p in inside), default=1.0)])])
    shown = scatter(
        [round(100 * point.loss, 4) for point in front.points],
        [point.values[K.name] for point in front.points],
        "lines+markers",
        "front",
        [f"point {p.id}: k {number(p.values[K.name])}, loss {percent(p.loss)}" for p in front.points],
        line={"color": ACCENT, "width": 1.5, "shape": "hv"},
        marker={"color": ACCENT, "size": 7},
    )
    ticks = [step * 10**power for power in range(10) for step in (1, 2, 5) if step * 10**power <= top]
    return figure(
        [*band_traces(front), shown],
        {"title": "information loss, %", "range": [0, 104 * width]},
        {
            "title": known_measures()[K.name].about.title,
            "type": "log",
            "range": [log10(max(min(k for k, _ in levels), 1.0)) - 0.05, log10(top)],
            "tickvals": ticks,
            "ticktext": [str(tick) for tick in ticks],
        },
        "bands",
        height=430,
    )


def _band(name: str, edge: Sequence[Corner], colour: str, shape: str) -> Trace:
    x, y = ([corner[axis] for corner in edge] for axis in (0, 1))
    text = [f"{name}: k {number(k)}, {loss:g} %" for loss, k in edge]
    line = {"width": 0, "shape": shape}
    return scatter(x, y, "lines", name, text, line=line, fill="tozerox", fillcolor=colour)


FAINT = "#7f8b95"
MOST_ROWS = 200  # points in the table of the page, and points whose hover text has the recoding in words
SHADES = [[0.0, "#c9dfe1"], [0.5, "#3f979d"], [1.0, "#08363a"]]


def map_page(
    front: Front, table: FrequencyTable, chosen: int | None = None, compare: tuple[int, int] | None = None
) -> str:
    """Return the page of a map."""
    # The points that are listed in full: all, or an even selection of them and the chosen one.
    even = np.linspace(0, len(front.points) - 1, min(MOST_ROWS, len(front.points))).astype(np.int64)
    some = sorted({*even.tolist(), *([] if chosen is None else [front.point(chosen).id])})
    words = {i: front.points[i].recoding_plan.words(table) for i in some}
    lead = (
        f"{counted(len(front.points), 'non-dominated generalization')} of {counted(front.rows, 'record')}: {front.how}."
    )
    lead += " No generalization of the lattice is better." if front.exact else ""
    lead += f" {front.left_out_says}; they count as lost." if front.left_out else ""
    answer = ask(front, table=table)
    others = [o for o in front.objectives[1:] if o.name != GENERAL_LOSS.name and len(front.objectives) < 3]
    pair = compare or _pair(front, answer, chosen)
    shown = _quarter(front) if chosen is None else chosen
    privacy = next((objective for objective in front.objectives if objective.protects), None)
    return page(
        "map.html",
        title="Risk–utility map",
        version=__version__,
        lead=lead,
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
        heads=[known_measures()[o.name].about.title for o in front.objectives],
        rows=[_row(front, front.points[i], words[i], chosen) for i in some],
        left_out=len(front.points) - len(some),
        pairs=[pair_figure(front, o.name, chosen) for o in others],
    )


def _row(front: Front, point: Point, words: Sequence[str], chosen: int | None) -> dict[str, object]:
    return {
        "id": point.id,
        "values": [number(point.values[o.name]) for o in front.objectives],
        "loss": percent(point.loss),
        "suppressed": f"{point.suppressed:,}",
        "words": "; ".join(words),
        "chosen": point.id == chosen,
    }


def map_figure(
    front: Front, words: dict[int, list[str]], answer: Answer | None = None, chosen: int | None = None
) -> Markup:
    """Return loss against the first objective; a second objective of privacy is the colour."""
    first = front.objectives[0].name
    traces: list[Trace] = band_traces(front) if first == K.name else []
    if front.others:
        x, y = [round(other["loss"] * 100, 4) for other in front.others], [other[first] for other in front.others]
        traces.append(scatter(x, y, "markers", "dominated", marker={"color": FAINT, "size": 3}, hoverinfo="skip"))
    if answer is not None and answer.aim.privacy.name == first:
        traces += _stretches(answer)
    many = len(front.points)
    second = next((o for o in front.objectives[1:] if o.protects), None) if front.objectives[0].protects else None
    marker: Trace = {"color": ACCENT, "size": 8 if many < 150 else 6 if many < 600 else 5}
    if second is not None:
        bar = {"title": {"text": known_measures()[second.name].about.title}, "thickness": 12, "len": 0.75, "y": 0.38}
        values = [point.values[second.name] for point in front.points]
        marker |= {"color": values, "colorscale": SHADES, "colorbar": bar}
    traces.append(
        scatter(
            [round(point.loss * 100, 4) for point in front.points],
            [point.values[first] for point in front.points],
            "lines+markers" if len(front.objectives) < 3 else "markers",
            "front",
            [_hover(point, words.get(point.id, [])) for point in front.points],
            line={"color": ACCENT, "width": 1.5, "shape": "hv"},
            marker=marker,
        )
    )
    if first == K.name:
        traces.append(_extremes(front))
    if chosen is not None:
        traces.append(_chosen(front, first, chosen, f"chosen: point {chosen}"))
    about = known_measures()[first].about
    return figure(
        traces,
        {"title": "information loss, %", "range": [-2, 102]},
        {"title": about.title, "type": about.scale} | ({"dtick": 1} if about.scale == "log" else {}),
        "map",
        height=480,
    )


def _extremes(front: Front) -> Trace:
    """Return the raw table, if it is a point, and the release without any record."""
    first = front.points[0]
    ends = [(0.0, first.values[K.name], "raw table")] if first.loss == 0 else []
    x, y, text = (list(part) for part in zip(*ends, (100.0, front.rows, "everything hidden"), strict=True))
    marker = {"color": "#1f2933", "size": 11, "symbol": "square-open", "line": {"width": 2}}
    return scatter(x, y, "markers", "the two extremes", text, marker=marker)


def pair_figure(front: Front, name: str, chosen: int | None = None) -> Markup:
    """Return another objective against loss."""
    x, y = [point.loss * 100 for point in front.points], [point.values[name] for point in front.points]
    text = [f"point {point.id}: {name} {number(value)}" for point, value in zip(front.points, y, strict=True)]
    traces = [scatter(x, y, "markers", "front", text, marker={"color": ACCENT, "size": 8})]
    if chosen is not None:
        traces.append(_chosen(front, name, chosen, f"point {chosen}"))
    return figure(
        traces, {"title": "information loss, %"}, {"title": known_measures()[name].about.title}, f"map-{name}"
    )


def _pair(front: Front, answer: Answer, chosen: int | None) -> tuple[int, int]:
    """Return two points to compare: the chosen one or that at a loss of a quarter, and that of the largest common k."""
    low = _quarter(front) if chosen is None else chosen
    sizes = [preset.point.id for preset in answer.presets if preset.limit == "min_k" and preset.point is not None]
    high = sizes[-1] if sizes else len(front.points) - 1
    high = high if high != low else len(front.points) - 1
    return (low, high) if front.points[low].loss <= front.points[high].loss or chosen is not None else (high, low)


def _quarter(front: Front) -> int:
    """Return the point nearest to a loss of a quarter."""
    return min(front.points, key=lambda point: abs(point.loss - 0.25)).id


def _shape(answer: Answer) -> list[str]:
    """Return the knee, the stretches and the curve in sentences."""
    stretches = answer.stretches()
    said = [f"Knee of {answer.about}: {answer.knee}. On another scale it lies elsewhere."] if answer.knee else []
    if stretches["flat"]:
        said.append(f"Much privacy for little loss: {'; '.join(stretches['flat'])}.")
    if stretches["steep"]:
        said.append(f"Much loss for little privacy: {'; '.join(stretches['steep'])}.")
    return [*said, answer.fit.says(answer.about)]


def _stretches(answer: Answer) -> list[Trace]:
    """Return the flat and the steep stretches as broad lines behind the front."""
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
            traces.append(scatter(x, y, "lines", name, line=line, hoverinfo="skip"))
    return traces


def _chosen(front: Front, name: str, chosen: int, text: str) -> Trace:
    point = front.point(chosen)
    marker = {"color": SECOND, "size": 14, "symbol": "diamond", "line": {"width": 2}}
    return scatter([point.loss * 100], [point.values[name]], "markers", "chosen", [text], marker=marker)


def _says(point: Point) -> str:
    return f"{figures_of(point.values)}, loss {percent(point.loss)}, {point.suppressed:,} suppressed"


def _hover(point: Point, words: list[str]) -> str:
    lines = "".join("<br>" + word.replace("<", "&lt;") for word in words)
    return f"<b>point {point.id}</b>: {_says(point)}{lines}"
