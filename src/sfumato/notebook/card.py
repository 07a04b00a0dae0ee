"""A result as a small piece of HTML: one line, a small table, a picture beside it. Every text is escaped."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

CELL = "padding:1px 12px 1px 0;text-align:left;border:0;background:none;vertical-align:top;white-space:normal"
HEAD = CELL + ";font-weight:600;border-bottom:1px solid #9aa5b1"


def card(
    title: str, heads: Sequence[str], rows: Sequence[Sequence[object]], picture: str = "", notes: Sequence[str] = ()
) -> str:
    """HTML of a result. `picture` is HTML of ours (an SVG); everything else is text.

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
    """The first rows, and how many more there are.

    >>> some([[1, 2], [3, 4], [5, 6]], 2)
    [[1, 2], [3, 4], ['… and 1 more', '']]
    """
    if len(rows) <= limit:
        return list(rows)
    return [*rows[:limit], [f"… and {len(rows) - limit} more", *([""] * (len(rows[0]) - 1))]]


def short(value: float | None) -> str:
    """A figure in few digits.

    >>> short(30162.0), short(0.41303627), short(None), short(float("inf"))
    ('30,162', '0.413', '–', '∞')
    """
    if value is None or value != value:
        return "–"
    if value in (float("inf"), float("-inf")):
        return "∞" if value > 0 else "−∞"
    return f"{int(value):,}" if value == int(value) else f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.1f}"
