"""Small pictures as SVG text: points over two axes, bars, one bar in parts. They need no script."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

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
    """Points over two axes and a mark among them; values that are not finite are left out."""
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
    """Bars from zero, named below."""
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
    """One bar in parts, each named with its size."""
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
