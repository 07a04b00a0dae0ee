"""Before and after, attribute by attribute: the original values as bars, boxed by the group they become."""

from __future__ import annotations

from typing import Any

import numpy as np
from markupsafe import Markup

from sfumato.data.domain import MISSING, Domain
from sfumato.data.frequency import FrequencyTable
from sfumato.front import Point
from sfumato.measures.classes import margins_of
from sfumato.plans.recoding import ColumnRecoding
from sfumato.report.page import ACCENT
from sfumato.report.panels import Panel, panel_figure

TINTS = (ACCENT, "#7fb8bc")
MOST = 160  # bars of one attribute; of a longer one the commonest values of each group are drawn
UNEVEN = 60  # where the commonest value has so many times the records of the middle one, the scale is logarithmic
SPACE = 0.055  # share of an attribute's width that a group label takes
LETTERS = 20
BOXES = 60  # more groups than this are told apart by their tint alone


def partitions_figure(point: Point, table: FrequencyTable) -> Markup:
    """One plot for each quasi-identifier."""
    recoding = point.plan.recoding(table)
    margins = margins_of(table)
    start = np.concatenate([[0], np.cumsum([len(domain.labels) for domain in table.domains])])
    panels = [
        _panel(domain, part, margins[a:b])
        for domain, part, a, b in zip(table.domains, recoding, start[:-1], start[1:], strict=True)
    ]
    rows: list[list[Panel | None]] = [list(panels[i : i + 2]) for i in range(0, len(panels), 2)]
    return panel_figure(rows, "partitions", row_height=195, across=0.08, down=108, bottom=84)


def _panel(domain: Domain, part: ColumnRecoding, counts: Any) -> Panel:
    order = np.array([code for code in domain.order if code < len(part.groups)])
    first = {int(group): place for place, group in reversed(list(enumerate(part.groups[order])))}
    order = np.array(sorted(order.tolist(), key=lambda code: first[int(part.groups[code])]))  # a group stands together
    left_out = 0
    if len(order) > MOST:
        kept = set(np.argsort(-counts[order], kind="stable")[:MOST].tolist())
        left_out = len(order) - MOST
        order = np.array([code for place, code in enumerate(order.tolist()) if place in kept])
    groups = part.groups[order]
    edges = np.flatnonzero(np.diff(groups)) + 1
    starts, ends = [0, *edges.tolist()], [*edges.tolist(), len(order)]
    bars = {
        "type": "bar",
        "x": list(range(len(order))),
        "y": counts[order].tolist(),
        "marker": {"color": [TINTS[place % 2] for place, a, b in _boxes(starts, ends) for _ in range(a, b)]},
        "text": [f"{_shown(domain.labels[code])} → {_shown(part.labels[part.groups[code]])}" for code in order],
        "textposition": "none",
        "hovertemplate": "%{text}: %{y:,} records<extra></extra>",
    }
    drawn = edges.tolist() if len(edges) <= BOXES else []
    line = {"type": "line", "line": {"color": "#52606d", "width": 0.6}}
    shapes = [line | {"x0": edge - 0.5, "x1": edge - 0.5} for edge in drawn]
    shown = _labelled(starts, ends)
    ticks = [(starts[i] + ends[i] - 1) / 2 for i in shown]
    texts = [_short(_shown(part.labels[groups[starts[i]]])) for i in shown]
    alike = len(starts) == len(order) and len(order) > 1
    what = "as it is" if alike else f"{len(domain.labels)} values in {len(starts)} groups"
    if len(starts) == 1:
        what = "hidden"
    if left_out:
        what += f"; {left_out} rarer values not drawn"
    held = counts[order][counts[order] > 0]
    uneven = len(held) > 4 and held.max() > UNEVEN * np.median(held)
    if uneven:
        what += " (logarithmic scale)"
    wide = max(map(len, texts)) * len(texts) > 46
    return Panel(
        [bars],
        x={"tickvals": ticks, "ticktext": texts, "tickangle": 30 if wide else 0, "showgrid": False, "ticks": ""}
        | {"range": [-0.5, len(order) - 0.5], "tickfont": {"size": 10}},
        y={"nticks": 4, "tickfont": {"size": 10}} | ({"type": "log", "dtick": 1} if uneven else {}),
        title=f"<b>{domain.name.replace('<', '&lt;')}</b>: {what}",
        shapes=shapes,
    )


def _labelled(starts: list[int], ends: list[int]) -> list[int]:
    """The groups whose labels have room: the widest first, none close to another."""
    room = ends[-1] * SPACE
    found: list[int] = []
    for place in sorted(range(len(starts)), key=lambda i: starts[i] - ends[i]):
        middle = (starts[place] + ends[place]) / 2
        if all(abs(middle - (starts[other] + ends[other]) / 2) >= room for other in found):
            found.append(place)
    return sorted(found)


def _boxes(starts: list[int], ends: list[int]) -> list[tuple[int, int, int]]:
    return [(place, a, b) for place, (a, b) in enumerate(zip(starts, ends, strict=True))]


def _shown(label: str) -> str:
    return "missing" if label == MISSING else label.replace("<", "&lt;")


def _short(label: str) -> str:
    if label.startswith("{") and " | " in label:
        parts = label.strip("{}").split(" | ")
        label = parts[0] if len(parts) == 1 else f"{parts[0]} … {parts[-1]}"
    return label if len(label) <= LETTERS else label[: LETTERS - 1] + "…"
