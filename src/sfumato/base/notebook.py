"""Results in notebooks: HTML cards, small pictures, plotly figures, and frames of the caller's kind.

A card has one line, a small table and a picture. Every text is escaped. The pictures are SVG text without scripts.
"""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from sfumato.errors import InputError

CELL = "padding:1px 12px 1px 0;text-align:left;border:0;background:none;vertical-align:top;white-space:normal"
HEAD = CELL + ";font-weight:600;border-bottom:1px solid #9aa5b1"


def card(
    title: str, heads: Sequence[str], rows: Sequence[Sequence[object]], picture: str = "", notes: Sequence[str] = ()
) -> str:
    """Return the HTML of a result. `picture` is trusted HTML (an SVG). Everything else is text.

    >>> "&lt;b&gt;" in card("Audit", ["name"], [["<b>"]])
    True
    """
    head = "".join(f'<th style="{HEAD}">{escape(name)}</th>' for name in heads)
    body = "".join(
        "<tr>" + "".join(f'<td style="{CELL}">{escape(str(cell))}</td>' for cell in row) + "</tr>" for row in rows
    )
    table = (
        f'<table style="border-collapse:collapse;font-size:13px;margin:0"><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table>"
        if rows
        else ""
    )
    said = "".join(f'<div style="margin-top:6px;max-width:60em;font-size:13px">{escape(note)}</div>' for note in notes)
    return (
        '<div style="font-family:system-ui,sans-serif;line-height:1.5">'
        f'<div style="font-weight:600;margin-bottom:4px">{escape(title)}</div>'
        f'<div style="display:flex;flex-wrap:wrap;gap:24px;align-items:flex-start"><div>{table}</div>{picture}</div>'
        f"{said}</div>"
    )


def some(rows: Sequence[Sequence[object]], limit: int = 10) -> list[Sequence[object]]:
    """Return the first rows, and how many more there are.

    >>> some([[1, 2], [3, 4], [5, 6]], 2)
    [[1, 2], [3, 4], ['… and 1 more', '']]
    """
    if len(rows) <= limit:
        return list(rows)
    return [*rows[:limit], [f"… and {len(rows) - limit} more", *([""] * (len(rows[0]) - 1))]]


def short(value: float | None) -> str:
    """Return a figure in few digits.

    >>> short(30162.0), short(0.41303627), short(None), short(float("inf"))
    ('30,162', '0.413', '–', '∞')
    """
    if value is None or value != value:
        return "–"
    if value in (float("inf"), float("-inf")):
        return "∞" if value > 0 else "−∞"
    return f"{int(value):,}" if value == int(value) else f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.1f}"


ACCENT, SECOND, FAINT, LINE = "#0b6e75", "#c8553d", "#b8c4cc", "#9aa5b1"
WIDTH, HEIGHT = 340, 210
LEFT, RIGHT, TOP, BOTTOM = 54, 12, 10, 38
PARTS = ("#0b6e75", "#c8553d", "#b08900", "#5b6e9b", "#b8c4cc", "#7a8790")


def points_picture(
    xs: Sequence[float],
    ys: Sequence[float],
    *,
    x_title: str,
    y_title: str,
    log: bool = False,
    mark: tuple[float, float] | None = None,
) -> str:
    """Return points over two axes with one of them marked. Values that are not finite are left out."""
    drawn = [*zip(xs, ys, strict=True), *([mark] if mark is not None else [])]
    held = [
        (position, x, y)
        for position, (x, y) in enumerate(drawn)
        if math.isfinite(x) and math.isfinite(y) and (y > 0 or not log)
    ]
    if not held:
        return ""
    x_low, x_high = _span([x for _, x, _ in held])
    scaled = [math.log10(y) if log else y for _, _, y in held]
    y_low, y_high = _span(scaled)
    dots = []
    for (position, x, _), y in zip(held, scaled, strict=True):
        at = _at(x, x_low, x_high, LEFT, WIDTH - RIGHT), _at(y, y_low, y_high, HEIGHT - BOTTOM, TOP)
        size, colour = (6, SECOND) if position == len(xs) else (3, ACCENT)
        dots.append(f'<circle cx="{at[0]:.1f}" cy="{at[1]:.1f}" r="{size}" fill="{colour}"/>')
    ends = [10**y if log else y for y in (y_low, y_high)]
    return _framed("".join(dots), x_title, y_title, (x_low, x_high), (ends[0], ends[1]))


def bars_picture(names: Sequence[str], heights: Sequence[float], *, x_title: str, y_title: str) -> str:
    """Return bars from zero with their names below."""
    highest = max(heights, default=0) or 1
    width = (WIDTH - LEFT - RIGHT) / max(len(heights), 1)
    parts = []
    for position, (name, height) in enumerate(zip(names, heights, strict=True)):
        tall = (HEIGHT - TOP - BOTTOM) * height / highest
        x = LEFT + position * width
        parts.append(
            f'<rect x="{x + 0.1 * width:.1f}" y="{HEIGHT - BOTTOM - tall:.1f}" width="{0.8 * width:.1f}" '
            f'height="{tall:.1f}" fill="{ACCENT}"/>'
            f'<text x="{x + width / 2:.1f}" y="{HEIGHT - BOTTOM + 13}" text-anchor="middle">{escape(name)}</text>'
        )
    return _framed("".join(parts), x_title, y_title, None, (0.0, float(highest)))


def parts_picture(parts: Sequence[tuple[str, float]]) -> str:
    """Return one bar in parts, each named with its size."""
    held = [(name, size) for name, size in parts if size > 0]
    total = sum(size for _, size in held) or 1.0
    drawn, x = [], 0.0
    for position, (name, size) in enumerate(held):
        wide = WIDTH * size / total
        colour = PARTS[position % len(PARTS)]
        y = 44 + 18 * position
        drawn.append(
            f'<rect x="{x:.1f}" y="4" width="{wide:.1f}" height="22" fill="{colour}"/>'
            f'<rect x="0" y="{y - 9}" width="10" height="10" fill="{colour}"/>'
            f'<text x="16" y="{y}">{escape(name)}: {size:,.0f}</text>'
        )
        x += wide
    return _svg("".join(drawn), 40 + 18 * len(held))


def _framed(
    inside: str, x_title: str, y_title: str, x_ends: tuple[float, float] | None, y_ends: tuple[float, float]
) -> str:
    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    axes = f'<path d="M{LEFT} {TOP}V{bottom}H{right}" fill="none" stroke="{LINE}"/>'
    ticks = (
        f'<text x="{LEFT - 4}" y="{bottom}" text-anchor="end">{_short(y_ends[0])}</text>'
        f'<text x="{LEFT - 4}" y="{TOP + 8}" text-anchor="end">{_short(y_ends[1])}</text>'
    )
    if x_ends is not None:
        ticks += (
            f'<text x="{LEFT}" y="{bottom + 13}">{_short(x_ends[0])}</text>'
            f'<text x="{right}" y="{bottom + 13}" text-anchor="end">{_short(x_ends[1])}</text>'
        )
    middle = TOP + (bottom - TOP) / 2
    titles = (
        f'<text x="{(LEFT + right) / 2:.0f}" y="{HEIGHT - 6}" text-anchor="middle">{escape(x_title)}</text>'
        f'<text x="11" y="{middle:.0f}" text-anchor="middle" transform="rotate(-90 11 {middle:.0f})">'
        f"{escape(y_title)}</text>"
    )
    return _svg(axes + inside + ticks + titles, HEIGHT)


def _svg(inside: str, height: int) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" '
        f'font-family="system-ui,sans-serif" font-size="11" fill="currentColor" role="img">{inside}</svg>'
    )


def _span(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def _at(value: float, low: float, high: float, first: float, last: float) -> float:
    return first + (value - low) / (high - low) * (last - first)


def _short(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.3g}"


INK, GRID = "#1f2933", "#e4e7eb"
NUMBERS = {"exponentformat": "none", "separatethousands": True}  # 10,000 and not 10k, which may be read as ten times k


def plotly_figure(
    traces: Sequence[Mapping[str, object]],
    x: Mapping[str, object],
    y: Mapping[str, object],
    height: int = 340,
    **layout: object,
) -> Any:
    """Return a plotly figure in the colours of the reports. `layout` replaces parts of its layout."""
    import plotly.graph_objects as go

    axis = {"gridcolor": GRID, "zerolinecolor": GRID, "linecolor": GRID, "title": {"standoff": 8}, **NUMBERS}
    drawn = go.Figure(data=[dict(trace) for trace in traces])
    usual = {
        "template": "none",
        "font": {"family": "system-ui, sans-serif", "size": 13, "color": INK},
        "margin": {"l": 64, "r": 16, "t": 12, "b": 52},
        "height": height,
        "xaxis": axis | dict(x),
        "yaxis": axis | dict(y),
        "showlegend": len(traces) > 1,
        # A narrow page lacks space at the side.
        "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
        "bargap": 0.08,
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
    }
    return drawn.update_layout(**(usual | layout))


KINDS = ("pandas", "polars", "pyarrow")


def to_frame(columns: Mapping[str, Sequence[object]], kind: str | None = None) -> Any:
    """Return columns as a frame of the `kind`, or else of the first of pandas, polars and pyarrow that is installed.

    >>> to_frame({"k": [1, 2]}, "pyarrow").num_rows
    2
    """
    if kind is None:
        kind = next((name for name in KINDS if importlib.util.find_spec(name)), "pyarrow")
    if kind not in KINDS:
        raise InputError(f'kind = "{kind}"', expected="one of: " + ", ".join(KINDS))
    if importlib.util.find_spec(kind) is None:
        raise InputError(f"{kind} is not installed", expected="an installed package", remedy=f"pip install {kind}")
    given = {name: list(cells) for name, cells in columns.items()}
    library = importlib.import_module(kind)
    return library.table(given) if kind == "pyarrow" else library.DataFrame(given)
