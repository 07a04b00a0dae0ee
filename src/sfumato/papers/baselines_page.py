"""The page of a comparison with baselines: loss against k, method by method, with our own fronts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from markupsafe import Markup

from sfumato.base.files import write_text
from sfumato.base.text import number, percent
from sfumato.front import Front
from sfumato.measures.registry import K
from sfumato.papers.baselines import LOCAL, TITLES, Cost, Costs
from sfumato.report.page import ACCENT, SECOND, Trace, figure, page, scatter
from sfumato.study.methods import METHODS
from sfumato.version import __version__

BESIDE = 2  # how far beyond the required k a front is drawn
OURS = [name for name in TITLES if name in METHODS]
LOOKS = {
    **dict(zip(OURS, [(ACCENT, "solid", "circle"), (ACCENT, "dot", "circle-open")], strict=True)),
    "lattice_optimum": ("#1f2933", "solid", "square"),
    "datafly": ("#829ab1", "solid", "triangle-up"),
    "mondrian_strict": (SECOND, "solid", "diamond"),
    "mondrian_relaxed": (SECOND, "dash", "diamond-open"),
    "mondrian_even": (SECOND, "dot", "x"),
    "arx_local": ("#8d6b94", "solid", "star"),
}


def draw_baselines(costs: Costs, path: str | Path, fronts: Sequence[Front] = (), *, overwrite: bool = False) -> Path:
    """Write the comparison as a self-contained page. With fronts, the picture has all their points.

    Args:
        costs: what `baselines` gave.
        path: the page to write.
        fronts: fronts whose points are drawn too.
        overwrite: whether the page may replace another file.

    Returns:
        The page that was written.
    """
    return write_text(path, baselines_page(costs, fronts), overwrite=overwrite, private=True)


def baselines_page(costs: Costs, fronts: Sequence[Front] = ()) -> str:
    """Return the page of a comparison."""
    some = f"at most {costs.allowed:,} of {costs.records:,} records may be suppressed"
    limit = some if costs.allowed else "none suppressed"
    diverse = f", {costs.l} different sensitive values in each class" if costs.l > 1 else ""
    return page(
        "baselines.html",
        title="What each kind of recoding costs",
        version=__version__,
        lead=f"{costs.records:,} records; {limit}{diverse}. Loss is the share of all detail that is "
        "lost, measured the same way for every method.",
        picture=baselines_figure(costs, fronts),
        sentences=sentences(costs),
        heads=[TITLES[name] for name in costs.methods],
        losses=[(number(k), [_loss(costs.row(name, k)) for name in costs.methods]) for k in costs.asked],
        rows=[row_cells(row) for row in costs.rows],
        notes=[f"{TITLES[name]}: {how}." for name, how in costs.how.items()] + [f"{note}." for note in costs.notes],
    )


def baselines_figure(costs: Costs, fronts: Sequence[Front] = ()) -> Markup:
    """Return loss against k."""
    plain = [front for front in fronts if K.name in {o.name for o in front.objectives}]
    drawn = {front.system for front in plain}
    traces = [_front_trace(front, costs) for front in plain]
    for name in costs.methods:
        rows = [row for row in costs.rows if row.method == name and row.loss is not None]
        if name not in drawn and rows:
            x, y = [row.asked for row in rows], [100 * (row.loss or 0.0) for row in rows]
            traces.append(_trace(name, x, y, [_hover(row) for row in rows]))
    return figure(
        traces,
        {"title": K.label, "type": K.about.scale},
        {"title": "information loss, %", "rangemode": "tozero"},
        "baselines",
        height=460,
    )


def sentences(costs: Costs) -> list[str]:
    """Return the comparison in words: the cost of each method at a k in the middle, and the advantage of local ones."""
    k = costs.asked[len(costs.asked) // 2]
    known = [row for row in costs.rows if row.asked == k and row.loss is not None]
    reached = sorted(known, key=lambda row: row.loss or 0.0)
    said = [f"At k = {k:,}: " + "; ".join(_clause(row) for row in reached) + "."] if reached else []
    local = [row for row in reached if row.method in LOCAL]
    cut = next((row for row in local if row.labels_per_value is not None), None)
    whole = [row for row in reached if row.method not in LOCAL]
    if cut is not None:
        misplaced = "" if cut.table_error is None else percent(cut.table_error)
        said.append(
            "Mondrian's recoding is local: it cuts through all columns at once, so the same value can carry different "
            f"labels in different classes (at k = {k:,}, {cut.title}: {cut.labels_per_value:.1f} labels for a value on "
            "average). Each class is described for itself, which keeps the loss low. The labels of a column overlap, "
            "so a record is counted by spreading it evenly over the values of its label"
            + (f"; in a table of two columns that misplaces {misplaced} of the records on average" if misplaced else "")
            + "."
        )
        said.append(f"{costs.labels} Recodings with other labels do not compare: they differ by factors.")
    if whole:
        names = ", ".join(row.title for row in whole)
        said.append(
            f"Global recodings ({names}) give a value one label everywhere in the file, so every table counted from it "
            "has the same categories." + (_price(whole[0], local[0]) if local else "")
        )
    return said


def _price(whole: Cost, local: Cost) -> str:
    """Return the cost of a global recoding over a local one: the best of each kind."""
    points = 100 * ((whole.loss or 0.0) - (local.loss or 0.0))
    if points <= 0:
        return f" Here that costs nothing: the best of them loses no more than {local.title}."
    return (
        f" That costs {points:.1f} percentage points of loss here ({whole.title} against {local.title}): the same "
        "figure, but not the same use."
    )


def row_cells(row: Cost) -> list[str]:
    """Return a row as text: method, k required, k, l, loss, suppressed, classes, labels per value, note."""
    labels = "–" if row.labels_per_value is None else f"{row.labels_per_value:.1f}"
    figures = [number(row.k), number(row.l), _loss(row), number(row.suppressed), number(row.classes), labels]
    return [row.title, number(row.asked), *figures, row.note]


def _clause(row: Cost) -> str:
    gone = f" with {row.suppressed:,} records suppressed" if row.suppressed else ""
    return f"{row.title} loses {percent(row.loss or 0.0)}{gone}"


def _loss(row: Cost) -> str:
    return "–" if row.loss is None else percent(row.loss)


def _hover(row: Cost) -> str:
    l = "" if row.l is None else f", l {row.l:,}"
    head = f"<b>{row.title}</b>, k {row.asked:,} asked<br>k {row.k:,}{l}, loss {percent(row.loss or 0.0)}"
    if row.labels_per_value is None:
        return f"{head}<br>{row.note}"
    return (
        f"{head}, {row.suppressed:,} suppressed<br>{row.classes:,} classes, {row.labels_per_value:.1f} labels a value"
    )


def _front_trace(front: Front, costs: Costs) -> Trace:
    """Return all points of a front around the required k."""
    low, high = costs.asked[0] / BESIDE, costs.asked[-1] * BESIDE
    near = [point for point in front.points if low <= point.values[K.name] <= high]
    points = sorted(near, key=lambda point: point.values[K.name])
    text = [
        f"<b>{TITLES[front.system]}</b>, point {point.id}<br>{K.label} {number(point.values[K.name])}, "
        f"loss {percent(point.loss)}, {point.suppressed:,} suppressed"
        for point in points
    ]
    x, y = [point.values[K.name] for point in points], [100 * point.loss for point in points]
    return _trace(front.system, x, y, text) | {"mode": "markers"}


def _trace(name: str, x: Sequence[float], y: Sequence[float], text: Sequence[str]) -> Trace:
    colour, dash, symbol = LOOKS[name]
    line, marker = {"color": colour, "width": 1.5, "dash": dash}, {"color": colour, "size": 8, "symbol": symbol}
    return scatter(x, y, "lines+markers", TITLES[name], text, line=line, marker=marker)
