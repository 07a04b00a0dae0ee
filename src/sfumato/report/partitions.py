"""Before and after, attribute by attribute: the original values as bars, boxed by the group they become."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from sfumato.errors import counted
from sfumato.front import Point
from sfumato.measures.classes import margins_of
from sfumato.plans.recoding import ColumnRecoding
from sfumato.report.page import ACCENT
from sfumato.report.panels import Panel, panel_figure
from sfumato.runtime.arrays import Counts64
from sfumato.sources.cells import MISSING
from sfumato.sources.codebook import group_label
from sfumato.tables.domain import Domain
from sfumato.tables.frequency import FrequencyTable

TINTS = (ACCENT, "#7fb8bc")
MOST = 160  # bars of one attribute; of a longer one neighbours within a group are summed
UNEVEN = 60  # where the commonest value has so many times the records of the middle one, the scale is logarithmic
SPACE = 0.055  # share of an attribute's width that a group label takes
LETTERS = 20
BOXES = 60  # more groups than this are told apart by their tint alone


@dataclass(frozen=True)
class Bar:
    """Values of one group that stand beside each other."""

    group: int
    text: str
    records: int


def partitions_figure(point: Point, table: FrequencyTable) -> Markup:
    """One plot for each quasi-identifier."""
    recoding = point.recoding_plan.recoding(table)
    margins = margins_of(table)
    start = np.concatenate([[0], np.cumsum([len(domain.labels) for domain in table.domains])])
    panels = [
        _panel(domain, part, margins[a:b])
        for domain, part, a, b in zip(table.domains, recoding, start[:-1], start[1:], strict=True)
    ]
    rows: list[list[Panel | None]] = [list(panels[i : i + 2]) for i in range(0, len(panels), 2)]
    return panel_figure(rows, "partitions", row_height=195, across=0.08, down=108, bottom=84)


def bars_of(domain: Domain, part: ColumnRecoding, counts: Counts64) -> list[Bar]:
    """The values of a column in its order, group by group; in a long column neighbours of a group share a bar."""
    members: dict[int, list[int]] = {}
    for code in domain.order:
        members.setdefault(int(part.groups[code]), []).append(code)
    total = sum(map(len, members.values()))
    drawn = []
    for group, codes in members.items():
        bars = len(codes) if total <= MOST else max(round(MOST * len(codes) / total), 1)
        for some in np.array_split(np.array(codes), min(bars, len(codes))):
            low, high = domain.labels[some[0]], domain.labels[some[-1]]
            low, high = domain.shown(low), domain.shown(high)
            text = _shown(low) if len(some) == 1 else f"{_shown(low)} to {_shown(high)}"
            target = _shown(domain.shown(part.labels[group]))
            drawn.append(Bar(group, f"{text} → {target}", int(counts[some].sum())))
    return drawn


def _panel(domain: Domain, part: ColumnRecoding, counts: Counts64) -> Panel:
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
    """The groups whose labels have room: the widest first, none close to another."""
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
