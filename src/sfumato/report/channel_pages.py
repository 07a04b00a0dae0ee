"""The pages of a channel: for analysts how to read and use the reports, for the publisher the whole front."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sfumato.data.arrays import Floats
from sfumato.measures.channel import Figures
from sfumato.plans.channel import Channel
from sfumato.report.figures import number, percent
from sfumato.report.page import ACCENT, INK, SECOND, figure, page
from sfumato.version import __version__


@dataclass(frozen=True, eq=False)
class Facts:
    """What the pages tell of a chosen channel."""

    channel: Channel
    figures: Figures
    delta: float
    lower_bound: float | None
    attributes: Mapping[str, tuple[float, float]]
    records: int
    file: str | None


def external_page(facts: Facts) -> str:
    """For analysts and the people who report: what was done, what it guarantees, how to estimate."""
    channel, figures = facts.channel, facts.figures
    tiles = [
        {"value": percent(figures.worst_posterior), "says": "the most that a report lets anyone believe of a category"},
        {"value": percent(1 - figures.privacy), "says": "of the records are guessed right by the best guesser"},
        {
            "value": f"± {figures.error**0.5:.4f}",
            "says": f"typical error of an estimated share, {facts.records:,} records",
        },
        {"value": number(figures.epsilon), "says": "ε of local differential privacy"},
    ]
    return page(
        "channel_external.html",
        title=f"The disguised column {channel.name}",
        version=__version__,
        file=facts.file,
        tiles=tiles,
        channel=channel,
        square=channel.square,
        rows=_rows(channel),
        attributes=_attributes(facts),
        endless=figures.epsilon == float("inf"),
        delta=percent(facts.delta),
    )


def internal_page(
    facts: Facts,
    shares: Floats,
    points: Sequence[tuple[int, Figures, float | None]],
    chosen: int,
    engine: str,
    exact: bool,
) -> str:
    """For the publisher: where the choice stands on the front, what it gains over the certified bound, the prior."""
    channel, figures = facts.channel, facts.figures
    reported = channel.matrix @ shares
    kept = float(sum(channel.matrix[channel.outputs.index(name), x] * shares[x] for x, name in _told(channel)))
    tiles = [
        {"value": f"{figures.privacy:.4f}", "says": "privacy"},
        {"value": f"{figures.error:.3e}", "says": "mean squared error against the population"},
        {"value": f"{figures.error_to_file:.3e}", "says": "against the shares of the file itself"},
        {"value": percent(figures.loss), "says": "loss: the share of the records' information that it costs"},
    ]
    if facts.lower_bound is not None:
        tiles.append({"value": f"{figures.error / facts.lower_bound:.4f}", "says": "times the certified least error"})
    if channel.square:
        tiles.append({"value": percent(kept), "says": "of the records report the truth"})
    return page(
        "channel_internal.html",
        title=f"Channel of {channel.name}, point {chosen}",
        version=__version__,
        engine=engine,
        exact=exact,
        chosen=chosen,
        tiles=tiles,
        front=_front(points, chosen),
        prior=[
            (name, percent(float(shares[x])), percent(float(channel.matrix[:, x].max())))
            for x, name in enumerate(channel.categories)
        ],
        reports=[(name, percent(float(reported[y]))) for y, name in enumerate(channel.outputs)],
        attributes=_attributes(facts),
        points=[_cells(number_, said, bound) for number_, said, bound in points],
        delta=percent(facts.delta),
        square=channel.square,
    )


def _told(channel: Channel) -> list[tuple[int, str]]:
    return [(x, name) for x, name in enumerate(channel.categories) if name in channel.outputs]


def _rows(channel: Channel) -> list[dict[str, Any]]:
    """The rows of the matrix: whole where the reports are the categories, else only what is not zero."""
    shown = []
    for name, row in zip(channel.outputs, channel.matrix, strict=True):
        said = [f"{cell:.4g}" if cell > 0 else "" for cell in row]
        some = ", ".join(f"{category} {cell}" for category, cell in zip(channel.categories, said, strict=True) if cell)
        shown.append({"name": name, "cells": said, "some": some})
    return shown


def _attributes(facts: Facts) -> list[tuple[str, str, str]]:
    return [(name, percent(1 - private), percent(worst)) for name, (private, worst) in facts.attributes.items()]


def _cells(place: int, said: Figures, bound: float | None) -> dict[str, Any]:
    return {
        "id": place,
        "privacy": f"{said.privacy:.4f}",
        "error": f"{said.error:.4e}",
        "ratio": "–" if bound is None else f"{said.error / bound:.4f}",
        "worst": f"{said.worst_posterior:.4f}",
        "epsilon": number(said.epsilon),
        "loss": percent(said.loss),
    }


def _front(points: Sequence[tuple[int, Figures, float | None]], chosen: int) -> Any:
    privacy = [said.privacy for _, said, _ in points]
    traces: list[dict[str, Any]] = [
        curve("found", privacy, [said.error for _, said, _ in points], ACCENT, "lines+markers")
    ]
    if all(bound is not None for *_, bound in points):
        traces.append(curve("certified least", privacy, [bound for *_, bound in points if bound], INK, "lines", "dot"))
    here = next(said for place, said, _ in points if place == chosen)
    traces.append(curve("chosen", [here.privacy], [here.error], SECOND, "markers", size=12))
    return figure(traces, {"title": {"text": "privacy"}}, _error_axis(traces), "front")


def _error_axis(traces: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """A logarithmic axis; within a decade every digit has its mark."""
    errors = [error for trace in traces for error in trace["y"]]
    ticks = "D1" if max(errors) < 10 * min(errors) else "D2"
    return {"title": {"text": "mean squared error"}, "type": "log", "dtick": ticks, "tickformat": ".0e"}


def curve(
    name: str, x: Sequence[float], y: Sequence[float], colour: str, mode: str, dash: str = "solid", size: int = 6
) -> dict[str, Any]:
    """One curve of a front for a figure."""
    return {
        "type": "scatter",
        "name": name,
        "x": list(x),
        "y": list(y),
        "mode": mode,
        "line": {"color": colour, "dash": dash, "width": 2},
        "marker": {"color": colour, "size": size},
    }


TALLEST = 30  # times the certified error: next to the ceiling errors grow without bound
COLOURS = {"Warner": SECOND, "OptRR": "#7b8794", "square": ACCENT, "certified": INK}


def paper_page(title: str, lead: str, panels: Sequence[Mapping[str, Any]]) -> str:
    """The figures of the paper: `panels` have title, words, heads, rows, and curves by the name of the method."""
    shown = []
    for place, panel in enumerate(panels):
        most = TALLEST * max(error for _, error in panel["curves"]["certified"])
        traces = []
        for name, points in panel["curves"].items():
            seen = [(private, error) for private, error in points if error <= most]
            traces.append(curve(name, [p for p, _ in seen], [e for _, e in seen], COLOURS[name], "lines", _dash(name)))
        drawn = figure(traces, {"title": {"text": "privacy"}}, _error_axis(traces), f"panel{place}", 380)
        shown.append(dict(panel) | {"figure": drawn})
    return page("channel_paper.html", title=title, version=__version__, lead=lead, panels=shown)


def _dash(name: str) -> str:
    return "dot" if name == "certified" else "solid"
