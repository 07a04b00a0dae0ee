"""How many records stand in classes of which size: two points side by side, before and after suppression."""

from __future__ import annotations

import numpy as np
from markupsafe import Markup

from sfumato.front import Front
from sfumato.report.measured import figures_of
from sfumato.report.page import ACCENT, SECOND
from sfumato.report.panels import Panel, panel_figure
from sfumato.runtime.figures import percent


def distributions_figure(front: Front, pair: tuple[int, int]) -> Markup | None:
    """Cumulative distributions of the class sizes of two points; None where a front keeps no classes."""
    if front.classes is None:
        return None
    panels = [_panel(front, chosen, first=number == 0) for number, chosen in enumerate(pair)]
    return panel_figure([panels], "distributions", row_height=270)


def cumulative(front: Front, chosen: int) -> tuple[list[int], list[float]]:
    """Class sizes, and the share of records that stand in classes of at most each size, nothing suppressed."""
    histogram = front.histogram(chosen)
    if histogram is None:
        return [], []
    sizes, size_of = np.unique(histogram.size, return_inverse=True)
    records = np.bincount(size_of, weights=histogram.records)
    return sizes.tolist(), (np.cumsum(records) / histogram.rows).tolist()


def _panel(front: Front, chosen: int, first: bool) -> Panel:
    point = front.point(chosen)
    sizes, shares = cumulative(front, chosen)
    line = {
        "type": "scatter",
        "mode": "lines",
        "x": [1, *sizes, front.rows],
        "y": [0.0, *[round(100 * share, 4) for share in shares], 100.0],
        "line": {"color": ACCENT, "width": 2, "shape": "hv"},
        "fill": "tozeroy",
        "fillcolor": "rgba(11,110,117,0.10)",
        "hovertemplate": "%{y:.1f} % of the records in classes of at most %{x}<extra></extra>",
    }
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
