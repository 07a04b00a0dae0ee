"""The pages of a disguise: for analysts how to read and use the reports, for the publisher what was measured."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from sfumato.notebook.plot import INK
from sfumato.report.page import ACCENT, SECOND, figure, page
from sfumato.report.release_pages import internal, json_block
from sfumato.runtime.figures import number, percent
from sfumato.systems.channel.facts import HEADLINES
from sfumato.systems.channel.given import headline_rows, others_words
from sfumato.version import __version__

SMALL = 10


def external_page(mark: Mapping[str, Any]) -> str:
    """For analysts and the people who report, from the file that stands beside the data: what was done, how to use it.

    It says nothing that the mark does not say.
    """
    notes = mark["notes"]
    records = number(notes["records"]) if notes["records"] >= SMALL else f"fewer than {SMALL}"
    return page(
        "channel_external.html",
        title="The disguised columns of this file"
        if len(mark["channels"]) > 1
        else "The disguised column of this file",
        lead=f"In {notes['file']} the values of {' and '.join(notes['disguised'])} are not the true values. Each "
        "was replaced by a report drawn at random, with the probabilities below. The file has "
        f"{records} records{', in random order' if notes['order'] == 'random' else ''}.",
        tiles=(),
        version=__version__,
        notes=notes,
        others=others_words(notes["given"]["columns"]) if "given" in notes else "",
        small=percent(notes["given"]["small_share"]) if "given" in notes and notes["given"]["small_share"] else "",
        channels=[_public(channel, notes.get("given")) for channel in mark["channels"]],
        block=json_block({**notes, "channels": [channel["notes"] for channel in mark["channels"]]}),
    )


def _public(channel: Mapping[str, Any], beside: Mapping[str, Any] | None) -> dict[str, Any]:
    """One channel as analysts read it: first what holds for someone who has the whole row."""
    notes = channel["notes"]
    given = notes.get("given")
    error = "∞" if notes["expected_error"] is None else f"± {notes['expected_error'] ** 0.5:.2g}"
    epsilon = "∞" if notes["epsilon"] is None else f"{notes['epsilon']:g}"
    return {
        "name": "+".join(channel["columns"]),
        "columns": channel["columns"],
        "categories": channel["categories"],
        "outputs": len(channel["outputs"]),
        "square": channel["categories"] == channel["outputs"],
        "inverted": len(channel["outputs"]) == len(channel["categories"]),
        "singular": notes["expected_error"] is None,
        "endless": notes["epsilon"] is None,
        "worst": percent(notes["worst_posterior"]),
        "right": percent(1 - notes["privacy"]),
        "given": None if given is None else {name: _percent(given[name]) for name in HEADLINES},
        "odds": "" if notes["epsilon"] is None else f"{math.exp(notes['epsilon']):.3g}",
        "tiles": [
            *(
                _alone(notes)
                if given is None or beside is None
                else _given_tiles(given, others_words(beside["columns"]), beside["records_least"])
            ),
            {"value": error, "says": "typical error of an estimated share, over all records"},
            {"value": epsilon, "says": "ε of local differential privacy"},
        ],
        "rows": _rows(channel),
        "attributes": _attributes(notes.get("attributes", {}), given),
    }


def _alone(notes: Mapping[str, Any]) -> list[dict[str, str]]:
    return [
        {
            "value": percent(notes["worst_posterior"]),
            "says": "upper bound on the probability of any category, given a report",
        },
        {
            "value": percent(1 - notes["privacy"]),
            "says": "of records at most whose true category the best possible guess gets right",
        },
    ]


def _given_tiles(given: Mapping[str, Any], others: str, least: int) -> list[dict[str, str]]:
    worst = given["worst_posterior"]
    bound = {
        "value": _percent(worst),
        "says": f"upper bound on the probability of any category, given a report and {others}, where {least} or more "
        f"records have the same {others}",
    }
    return [
        *([] if worst is None else [bound]),
        {
            "value": _percent(given["best_guess"]),
            "says": f"of records at most whose true category the best possible guess gets right, given a report and "
            f"{others}",
        },
        {
            "value": _percent(given["guess_from_file"]),
            "says": "of records at most that a guess gets right which is learned from this file alone",
        },
    ]


def _percent(share: float | None) -> str:
    return "–" if share is None else percent(share)


def _rows(channel: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rows of the matrix: whole where the reports are the categories, else only what is not zero."""
    shown = []
    for name, row in zip(channel["outputs"], channel["matrix"], strict=True):
        said = [f"{cell:.4g}" if cell > 0 else "" for cell in row]
        some = ", ".join(f"{what} {cell}" for what, cell in zip(channel["categories"], said, strict=True) if cell)
        shown.append({"name": name, "cells": said, "some": some})
    return shown


def internal_page(manifest: Mapping[str, Any]) -> str:
    """For the publisher: what was measured on the written file, what the matrix itself tells, the categories."""
    own = manifest["own"]
    agreement, dropped = own["agreement"], manifest["source"]["rows_read"] - manifest["records"]
    return internal(
        "channel_internal.html",
        manifest,
        title="Disguise of " + " and ".join(channel["name"] for channel in own["channels"]),
        lead=f"{number(manifest['records'])} records were disguised; {number(dropped)} with a missing value were left "
        "out.",
        facts={"agreement": agreement},
        tiles=(),
        chance=f"{agreement['chance']:.2g}",
        level=f"{agreement['level']:.0e}",
        compared=number(agreement["compared"]),
        others="" if own["given"] is None else others_words(own["given"]["columns"]),
        channels=[
            _private(channel, order, manifest["figures"][channel["name"]], own["given"])
            for order, channel in enumerate(own["channels"])
        ],
    )


def _private(
    channel: Mapping[str, Any], order: int, figures: Mapping[str, Any], beside: Mapping[str, Any] | None
) -> dict[str, Any]:
    """One channel as the publisher reads it."""
    front = channel["front"]
    tiles = [
        {"value": f"{figures['privacy']:.4f}", "says": "privacy"},
        {"value": f"{figures['worst_posterior']:.4f}", "says": "worst posterior"},
        {"value": _number(figures["mse_of_estimate"]), "says": "mean squared error of the analysts' estimate"},
        {"value": _number(figures["mse"]), "says": "mean squared error if the shares are known"},
        {"value": percent(figures["loss"]), "says": "loss: share of the information in the records that is lost"},
        {"value": _number(figures["epsilon"], "{:.3f}"), "says": "ε of local differential privacy"},
        {"value": f"{figures['largest_gain']:.1f}", "says": "largest gain: posterior probability divided by share"},
    ]
    if figures["lower_bound"] is not None and figures["mse"] is not None:
        tiles.append(
            {"value": f"{figures['mse'] / figures['lower_bound']:.4f}", "says": "error divided by its proven minimum"}
        )
    return dict(channel) | {
        "tiles": tiles,
        "picture": "" if front is None else _front(front["points"], front["chosen"], f"front{order}"),
        "points": [] if front is None else [_cells(point) for point in front["points"]],
        "attributes": _attributes(channel["attributes"], figures["given"]),
        "given": headline_rows(figures, beside),
        "categories": [
            row | {"share": percent(row["share"]), "gain": f"{row['gain']:.1f}", "likeliest": percent(row["likeliest"])}
            for row in channel["categories"]
        ],
        "reports": [
            row | {"expected": percent(row["expected"]), "observed": percent(row["observed"])}
            for row in channel["reports"]
        ],
    }


def _number(value: float | None, shown: str = "{:.3e}") -> str:
    return "∞" if value is None else shown.format(value)


def _attributes(
    attributes: Mapping[str, Mapping[str, float]], given: Mapping[str, Any] | None
) -> list[tuple[str, str, str]]:
    """Each column of a joint channel by itself: how often it is guessed, and its highest probability given a report."""
    if given is not None:
        return [
            (name, _percent(said["best_guess"]), _percent(said["worst_posterior"]))
            for name, said in given["attributes"].items()
        ]
    return [(name, percent(1 - said["privacy"]), percent(said["worst_posterior"])) for name, said in attributes.items()]


def _cells(point: Mapping[str, Any]) -> dict[str, Any]:
    bound = point["lower_bound"]
    return {
        "id": point["id"],
        "privacy": f"{point['privacy']:.4f}",
        "error": f"{point['mse']:.4e}",
        "ratio": "–" if bound is None else f"{point['mse'] / bound:.4f}",
        "worst": f"{point['worst_posterior']:.4f}",
        "epsilon": number(math.inf if point["epsilon"] is None else point["epsilon"]),
        "loss": percent(point["loss"]),
    }


def _front(points: Sequence[Mapping[str, Any]], chosen: int, name: str) -> Any:
    privacy = [point["privacy"] for point in points]
    traces: list[dict[str, Any]] = [
        curve("best found", privacy, [point["mse"] for point in points], ACCENT, "lines+markers")
    ]
    bounds = [point["lower_bound"] for point in points]
    if all(bound is not None for bound in bounds):
        traces.append(curve("proven minimum", privacy, bounds, INK, "lines", "dot"))
    here = next(point for point in points if point["id"] == chosen)
    traces.append(curve("chosen", [here["privacy"]], [here["mse"]], SECOND, "markers", size=12))
    return figure(traces, {"title": {"text": "privacy"}}, _error_axis(traces), name)


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
    for order, panel in enumerate(panels):
        tallest = TALLEST * max(error for _, error in panel["curves"]["certified"])
        traces = []
        for name, points in panel["curves"].items():
            seen = [(private, error) for private, error in points if error <= tallest]
            traces.append(curve(name, [p for p, _ in seen], [e for _, e in seen], COLOURS[name], "lines", _dash(name)))
        drawn = figure(traces, {"title": {"text": "privacy"}}, _error_axis(traces), f"panel{order}", 380)
        shown.append(dict(panel) | {"figure": drawn})
    return page("channel_paper.html", title=title, version=__version__, lead=lead, panels=shown)


def _dash(name: str) -> str:
    return "dot" if name == "certified" else "solid"
