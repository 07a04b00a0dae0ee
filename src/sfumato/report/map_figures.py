"""The figures of a risk–utility map, drawn as panels of one grid in plain SVG, which a strict page allows.

A scatter matrix shows every pair of three or four objectives. Magnified plots each enlarge the steepest part of the one
before. Partitions show, attribute by attribute, the original values as bars and the groups that they become.
Distributions show the class sizes of two points, before and after suppression.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from markupsafe import Markup

from sfumato.base.arrays import Counts64, Floats
from sfumato.base.notebook import GRID, INK, NUMBERS
from sfumato.base.text import number, percent
from sfumato.data.cells import MISSING
from sfumato.data.codebook import group_label
from sfumato.errors import counted
from sfumato.front import Front, Objective, Point
from sfumato.measures.classes import margins_of
from sfumato.measures.registry import GENERAL_LOSS, known_measures, measure
from sfumato.plans.recodings import ColumnRecoding
from sfumato.report.audit_page import figures_of
from sfumato.report.page import ACCENT, SECOND, Trace, figure, scatter
from sfumato.tables.domain import Domain
from sfumato.tables.frequency import FrequencyTable

GAP = 0.09


@dataclass
class Panel:
    """One plot of a grid: its traces, axes, title, and its shapes and notes in its own coordinates."""

    traces: list[Trace]
    x: Trace = field(default_factory=dict)
    y: Trace = field(default_factory=dict)
    title: str = ""
    shapes: list[Trace] = field(default_factory=list)
    notes: list[Trace] = field(default_factory=list)


def panel_figure(
    rows: Sequence[Sequence[Panel | None]],
    name: str,
    row_height: int = 260,
    legend: bool = False,
    across: float = GAP,
    down: float = 86,
    bottom: int = 62,
) -> Markup:
    """Return rows of panels as one plotly figure in HTML.

    `across` is the share of the width between columns, `down` the pixels between rows.
    """
    columns = max(len(row) for row in rows)
    height = len(rows) * row_height + 34 + bottom
    gap = down / (len(rows) * row_height) if len(rows) > 1 else 0.0
    wide, tall = (1 - across * (columns - 1)) / columns, (1 - gap * (len(rows) - 1)) / len(rows)
    axis = {"gridcolor": GRID, "zerolinecolor": GRID, "linecolor": GRID, **NUMBERS}
    layout: Trace = {"shapes": [], "annotations": []}
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
    layout |= {"font": {"family": "system-ui, sans-serif", "size": 12, "color": INK}, "bargap": 0.0, "legend": None}
    layout |= {"margin": {"l": 64, "r": 16, "t": 34, "b": bottom}, "showlegend": legend}
    return figure(traces, {}, {}, name, height, **layout)


def _titled(axis: Trace) -> Trace:
    title = axis.get("title", "")
    return axis | {"title": {"text": title, "standoff": 6, "font": {"size": 12}}} if isinstance(title, str) else axis


MOST_POINTS = 700  # points drawn in each of up to six plots


def axes_of(front: Front) -> list[tuple[str, list[float], bool]]:
    """Return the objectives as titles and values, and whether each scale is logarithmic. General loss is a share."""
    axes: list[tuple[str, list[float], bool]] = []
    for objective in front.objectives[:4]:
        sought = measure(objective.name)
        if sought is GENERAL_LOSS:
            axes.append(("loss, %", [point.loss * 100 for point in front.points], False))
        elif sought.about.unit == "share":
            axes.append(
                (f"{sought.about.title}, %", [point.values[sought.name] * 100 for point in front.points], False)
            )
        else:
            values = [float(point.values[sought.name]) for point in front.points]
            axes.append((sought.about.title, values, sought.about.scale == "log"))
    return axes


def matrix_figure(front: Front, chosen: int | None = None) -> Markup | None:
    """Return every pair of objectives if there are three or four, else None."""
    if len(front.objectives) < 3:
        return None
    axes = axes_of(front)
    some = np.unique(np.linspace(0, len(front.points) - 1, MOST_POINTS).astype(np.int64)).tolist()
    rows: list[list[Panel | None]] = []
    for below in range(1, len(axes)):
        row: list[Panel | None] = []
        for left in range(below):
            row.append(
                _matrix_panel(axes[left], axes[below], some, chosen, first=left == 0, last=below == len(axes) - 1)
            )
        rows.append(row + [None] * (len(axes) - 1 - below))
    return panel_figure(rows, "matrix", row_height=230, across=0.05, down=44)


def _matrix_panel(
    x: tuple[str, list[float], bool],
    y: tuple[str, list[float], bool],
    some: list[int],
    chosen: int | None,
    first: bool,
    last: bool,
) -> Panel:
    traces = [
        scatter(
            [round(x[1][i], 6) for i in some],
            [round(y[1][i], 6) for i in some],
            "markers",
            text=[f"point {i}" for i in some],
            marker={"color": ACCENT, "size": 4, "opacity": 0.55},
            hovertemplate="%{text}: %{x}, %{y}<extra></extra>",
        )
    ]
    if chosen is not None:
        traces.append(_chosen(chosen, x[1][chosen], y[1][chosen]))
    scales = [{"type": "log", "dtick": 1} if axis[2] else {} for axis in (x, y)]
    return Panel(
        traces,
        x=scales[0] | {"title": x[0] if last else "", "showticklabels": last},
        y=scales[1] | {"title": y[0] if first else "", "showticklabels": first},
    )


PARTS = 8  # largest share of the range of privacy that is enlarged
FEWEST = 8  # least number of points in a plot
MOST_MAGNIFIED = 4


def windows(loss: Floats, values: Floats) -> list[tuple[float, float]]:
    """Return the range of values of each plot: all, then repeatedly the part over which the loss changes most.

    >>> values = np.array([1.0, 2, 3, 4, 5, 6, 7, 8, 100, 200, 400, 800])
    >>> windows(np.linspace(0, 1, 12), values)
    [(1.0, 800.0), (1.0, 100.0), (1.0, 8.0)]
    """
    order = np.argsort(values, kind="stable")
    loss, values = loss[order], values[order]
    spans = [(float(values[0]), float(values[-1]))]
    while len(spans) < MOST_MAGNIFIED:
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
    """Return loss against a privacy measure on even scales, repeatedly enlarged; None if there are few points."""
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
    title = known_measures()[objective.name].about.title
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
            point = front.point(chosen)
            panel.traces.append(_chosen(chosen, point.loss * 100, point.values[objective.name]))
        if window + 1 < len(shown):
            panel.shapes.append(_frame(loss, values, *shown[window + 1], high - low))
        panels.append(panel)
    rows: list[list[Panel | None]] = [list(panels[:2]), list(panels[2:])] if len(panels) > 2 else [list(panels)]
    return panel_figure(rows, "magnified", row_height=250)


def _points(loss: Floats, values: Floats, ids: Counts64, name: str) -> Trace:
    text = [f"point {i}: {name} {number(v)}, loss {percent(x)}" for i, v, x in zip(ids, values, loss, strict=True)]
    marker = {"color": ACCENT, "size": 6 if len(loss) < 300 else 4}
    return scatter((loss * 100).round(4).tolist(), values.tolist(), "markers", text=text, marker=marker)


def _chosen(chosen: int, x: float, y: float) -> Trace:
    marker = {"color": SECOND, "size": 11, "symbol": "diamond"}
    return scatter([x], [y], "markers", marker=marker, hovertemplate=f"chosen: point {chosen}<extra></extra>")


def _frame(loss: Floats, values: Floats, low: float, high: float, span: float) -> Trace:
    """Return a box around the part that the next plot enlarges."""
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


TINTS = (ACCENT, "#7fb8bc")
MOST_BARS = 160  # bars of one attribute; in a longer one the neighbours within a group are summed
UNEVEN = 60  # the scale is logarithmic if the most frequent value has UNEVEN times the records of the median one
SPACE = 0.055  # share of an attribute's width that a group label takes
LETTERS = 20
BOXES = 60  # more groups than this are distinguished by their tint only


@dataclass(frozen=True)
class Bar:
    """Adjacent values of one group."""

    group: int
    text: str
    records: int


def partitions_figure(point: Point, table: FrequencyTable) -> Markup:
    """Return one plot for each quasi-identifier."""
    recoding = point.recoding_plan.recoding(table)
    margins = margins_of(table)
    start = np.concatenate([[0], np.cumsum([len(domain.labels) for domain in table.domains])])
    panels = [
        _partition_panel(domain, part, margins[a:b])
        for domain, part, a, b in zip(table.domains, recoding, start[:-1], start[1:], strict=True)
    ]
    rows: list[list[Panel | None]] = [list(panels[i : i + 2]) for i in range(0, len(panels), 2)]
    return panel_figure(rows, "partitions", row_height=195, across=0.08, down=108, bottom=84)


def bars_of(domain: Domain, part: ColumnRecoding, counts: Counts64) -> list[Bar]:
    """Return the values of a column in its order, group by group. A long column has several values in a bar."""
    members: dict[int, list[int]] = {}
    for code in domain.order:
        members.setdefault(int(part.groups[code]), []).append(code)
    total = sum(map(len, members.values()))
    drawn = []
    for group, codes in members.items():
        bars = len(codes) if total <= MOST_BARS else max(round(MOST_BARS * len(codes) / total), 1)
        for some in np.array_split(np.array(codes), min(bars, len(codes))):
            low, high = domain.labels[some[0]], domain.labels[some[-1]]
            low, high = domain.shown(low), domain.shown(high)
            text = _shown(low) if len(some) == 1 else f"{_shown(low)} to {_shown(high)}"
            target = _shown(domain.shown(part.labels[group]))
            drawn.append(Bar(group, f"{text} → {target}", int(counts[some].sum())))
    return drawn


def _partition_panel(domain: Domain, part: ColumnRecoding, counts: Counts64) -> Panel:
    bars = bars_of(domain, part, counts)
    groups = [bar.group for bar in bars]
    edges = [number for number in range(1, len(bars)) if groups[number] != groups[number - 1]]
    boxes = list(zip([0, *edges], [*edges, len(bars)], strict=True))
    shown = _labelled(boxes)
    names = [part.labels[groups[a]] for a, _ in shown]
    texts = [_short(_shown(group_label(name, domain.value_labels) or name)) for name in names]
    held = np.array([bar.records for bar in bars if bar.records > 0])
    uneven = len(held) > 4 and bool(held.max() > UNEVEN * np.median(held))
    line = {"type": "line", "line": {"color": "#52606d", "width": 0.6}}
    return Panel(
        [
            {
                "type": "bar",
                "x": list(range(len(bars))),
                "y": [bar.records for bar in bars],
                "marker": {"color": [TINTS[number % 2] for number, (a, b) in enumerate(boxes) for _ in range(a, b)]},
                "text": [bar.text for bar in bars],
                "textposition": "none",
                "hovertemplate": "%{text}: %{y:,} records<extra></extra>",
            }
        ],
        x={
            "tickvals": [(a + b - 1) / 2 for a, b in shown],
            "ticktext": texts,
            "tickangle": -25 if max(map(len, texts)) * len(texts) > 46 else 0,
            "ticklabeloverflow": "allow",
            "showgrid": False,
            "zeroline": False,
            "ticks": "",
            "range": [-0.5, len(bars) - 0.5],
            "tickfont": {"size": 10},
        },
        y={"nticks": 4, "tickfont": {"size": 10}} | ({"type": "log", "dtick": 1} if uneven else {}),
        title=f"<b>{_shown(domain.name)}</b>: {_what(domain, len(boxes), len(bars), uneven)}",
        shapes=[line | {"x0": edge - 0.5, "x1": edge - 0.5} for edge in edges if len(edges) <= BOXES],
    )


def _what(domain: Domain, groups: int, bars: int, uneven: bool) -> str:
    values = len(domain.order)
    said = f"{counted(values, 'value')} in {counted(groups, 'group')}"
    if groups == values and values > 1:
        said = "as it is"
    elif groups == 1:
        said = "hidden"
    notes = ["neighbours summed"] if bars < values else []
    notes += ["logarithmic scale"] if uneven else []
    return said + (f" ({', '.join(notes)})" if notes else "")


def _labelled(boxes: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the groups whose labels fit: the widest first, none close to another."""
    room = boxes[-1][1] * SPACE
    runs: list[tuple[int, int]] = []
    for a, b in sorted(boxes, key=lambda box: box[0] - box[1]):
        if all(abs((a + b) - (c + d)) / 2 >= room for c, d in runs):
            runs.append((a, b))
    return sorted(runs)


def _shown(label: str) -> str:
    return "missing" if label == MISSING else label.replace("<", "&lt;")


def _short(label: str) -> str:
    if label.startswith("{") and " | " in label:
        parts = label.strip("{}").split(" | ")
        label = f"{parts[0]} … {parts[-1]}"
    return label if len(label) <= LETTERS else label[: LETTERS - 1] + "…"


def distributions_figure(front: Front, pair: tuple[int, int]) -> Markup | None:
    """Return the cumulative class-size distributions of two points; None if the front keeps no classes."""
    if front.classes is None:
        return None
    panels = [_distribution_panel(front, chosen, first=number == 0) for number, chosen in enumerate(pair)]
    return panel_figure([panels], "distributions", row_height=270)


def cumulative(front: Front, chosen: int) -> tuple[list[int], list[float]]:
    """Return class sizes, and the share of records in classes of at most each size, without suppression."""
    histogram = front.histogram(chosen)
    if histogram is None:
        return [], []
    sizes, size_of = np.unique(histogram.size, return_inverse=True)
    records = np.bincount(size_of, weights=histogram.records)
    return sizes.tolist(), (np.cumsum(records) / histogram.rows).tolist()


def _distribution_panel(front: Front, chosen: int, first: bool) -> Panel:
    point = front.point(chosen)
    sizes, shares = cumulative(front, chosen)
    line = scatter(
        [1, *sizes, front.rows],
        [0.0, *[round(100 * share, 4) for share in shares], 100.0],
        "lines",
        line={"color": ACCENT, "width": 2, "shape": "hv"},
        fill="tozeroy",
        fillcolor="rgba(11,110,117,0.10)",
        hovertemplate="%{y:.1f} % of the records in classes of at most %{x}<extra></extra>",
    )
    limit = point.recoding_plan.suppress_below if point.suppressed else 0
    panel = Panel(
        [line],
        x={"title": "class size", "type": "log", "dtick": 1, "range": [-0.05, float(np.log10(front.rows)) + 0.1]},
        y={"title": "records in classes up to that size, %" if first else "", "range": [0, 103]},
        title=f"<b>point {chosen}</b>: {figures_of(point.values)}, loss {percent(point.loss)}"
        + (f"; {percent(point.suppressed / front.rows)} suppressed" if limit > 1 else ""),
    )
    if limit > 1:
        line_at = {"type": "line", "x0": limit, "x1": limit}
        panel.shapes.append(line_at | {"line": {"color": SECOND, "width": 1.5, "dash": "dot"}})
    return panel
