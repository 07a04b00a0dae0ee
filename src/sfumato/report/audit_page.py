"""The page of an audit: the figures, the class sizes, the record-risk curve.

Values of measures as readers expect them. `measures.figures` has numbers only and is quick to import.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from markupsafe import Markup

from sfumato.auditing.audit import Audit, Figure
from sfumato.base.text import number, percent
from sfumato.measures.classes import ClassTable
from sfumato.measures.measure import Measure
from sfumato.measures.registry import GENERAL_LOSS, headlines, measure
from sfumato.measures.units import texts_of
from sfumato.report.page import ACCENT, NUMBER, SECOND, WHY, Section, figure, page, scatter


def figures_of(values: Mapping[str, float]) -> str:
    """Return the figures of a point in a clause. Its loss is stated separately.

    >>> figures_of({"k": 20, "distinct_l": 4, "general_loss": 90592.67})
    'k 20, ℓ 4'
    """
    figures = {name: value for name, value in values.items() if name != GENERAL_LOSS.name}
    return ", ".join(f"{measure(name).label} {number(value)}" for name, value in figures.items())


def shown(measure: Measure, value: float | None) -> str:
    """Return a value of a measure for readers: a share as a percentage.

    >>> shown(measure("uniques"), 0.2931), shown(measure("t_closeness"), 0.2931), shown(measure("k"), None)
    ('29.3 %', '0.2931', '–')
    """
    return percent(value) if value is not None and measure.about.unit == "share" else number(value)


SIZES = (
    "Number of records by the size of their class ({}s with equal quasi-identifiers). Records in small classes, on the "
    "left, are at risk."
)
AT_RISK = (
    "The share of records whose prosecutor risk is at least the given value: the probability that someone who knows a "
    "person's quasi-identifiers, and that the person is in the table, finds the right record."
)
BINS = ((1, 1), (2, 2), (3, 4), (5, 9), (10, 19), (20, 49), (50, 99), (100, 499), (500, 999), (1000, None))


def audit_page(audit: Audit, name: str) -> str:
    """Return the page of an audit of the file called `name`."""
    figures, noun = audit.figures, "record" if audit.persons is None else "person"
    tiles = [
        {"value": shown(measure, figures[measure.name].value), "says": measure.about.headline.says}
        for measure in headlines()
        if measure.about.headline is not None and figures[measure.name].value is not None
    ]
    groups = [
        Section(
            title,
            heads=["measure", "better", "value", f"mean per {noun if kind == 'privacy' else 'record'}", "what it says"],
            rows=[_cells(one, noun == "person") for one in figures.values() if one.measure.kind == kind],
            kinds=["", "", NUMBER, NUMBER, WHY],
        )
        for kind, title in (("privacy", "Disclosure"), ("loss", "Loss"))
    ]
    contributions = Section(
        "Contribution of each quasi-identifier to the risk",
        ["How much the risk falls if a quasi-identifier is left out."],
        heads=["column", f"unique {noun}s", "correct matches", "k without it"],
        rows=[
            [c.column, f"−{percent(c.uniques)}", f"−{percent(c.marketer_risk)}", number(c.k_without)]
            for c in sorted(audit.contributions, key=lambda c: -c.marketer_risk)
        ],
        kinds=["", NUMBER, NUMBER, NUMBER],
        label="Contribution of each quasi-identifier",
    )
    held = f"{int(audit.classes.kept.sum()):,} classes of {', '.join(audit.classes.table.columns)}"
    return page(
        "sections.html",
        title="Disclosure audit",
        lead=f"{name}: {audit.holds} in {held}.",
        tiles=tiles,
        notes=audit.notes,
        sections=[
            Section("Sizes of the classes", [SIZES.format(noun)], sizes_figure(audit)),
            Section("Records at risk", [AT_RISK], curve_figure(audit)),
            *groups,
            contributions,
        ],
    )


def records_by_size(classes: ClassTable) -> dict[str, int]:
    """Return the number of records by the size of their class, in bins."""
    size, rows = classes.size[classes.kept], classes.rows[classes.kept]
    return {
        str(low) if high == low else f"{low}+" if high is None else f"{low}–{high}": int(
            rows[(size >= low) & (size <= (high or size.max(initial=1)))].sum()
        )
        for low, high in BINS
    }


def sizes_figure(audit: Audit) -> Markup:
    """Return the records by the size of their class, in bins of increasing width."""
    sizes = records_by_size(audit.classes)
    labels, records = list(sizes), list(sizes.values())
    used = max((class_size for class_size, count in enumerate(records) if count), default=0) + 1
    colours = [SECOND if low < 5 else ACCENT for low, _ in BINS]
    bars = {
        "type": "bar",
        "x": labels[:used],
        "y": records[:used],
        "marker": {"color": colours[:used]},
        "hovertemplate": "class size %{x}: %{y:,} records<extra></extra>",
    }
    across = {"title": "class size", "type": "category", "automargin": True}
    return figure([bars], across, {"title": "records"}, "sizes")


def curve_figure(audit: Audit) -> Markup:
    """Return the share of records at or above each risk."""
    risk, share = audit.risk_curve()
    # From right to left the curve is flat until the next risk: above the highest risk there is no record.
    x = np.concatenate([[1.0], risk, [0.0]])
    y = np.concatenate([[0.0], share, [share[-1]]]) * 100
    line = scatter(
        x.tolist(),
        y.tolist(),
        "lines",
        line={"color": ACCENT, "shape": "hv", "width": 2},
        fill="tozeroy",
        fillcolor="rgba(11,110,117,0.12)",
        hovertemplate="risk ≥ %{x:.3f}: %{y:.1f} % of records<extra></extra>",
    )
    return figure(
        [line], {"title": "prosecutor risk", "range": [0, 1.02]}, {"title": "% of records", "range": [0, 103]}, "curve"
    )


def _cells(figure: Figure, persons: bool) -> list[str]:
    measure = figure.measure
    columns = figure.columns or {}
    detail = "; ".join(f"{name} {number(value)}" for name, value in columns.items()) if len(columns) > 1 else ""
    says = (
        f"Not measured: {figure.reason}."
        if figure.reason
        else texts_of(measure, persons).sentence + (f" ({detail})" if detail else "")
    )
    better = "more" if measure.direction == "max" else "less"
    return [texts_of(measure, persons).title, better, number(figure.value), number(figure.mean), says]
