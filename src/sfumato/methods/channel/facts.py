"""Figures of a disguise: those of its channels on the shares of the table, complete and for the public.

All figures follow from the channels, the counts of the categories in the source and the counts of the reports in the
written file. So they can be computed anew whenever a release is verified.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from sfumato.base.arrays import Floats
from sfumato.base.formats import without_infinities
from sfumato.errors import InputError
from sfumato.measures import channel as measures
from sfumato.methods.channel.draw import Truth
from sfumato.methods.channel.estimate import inversion_matrix, linear_error, weighted_matrix
from sfumato.methods.channel.search import least_error
from sfumato.plans.channel import SEVERAL, Channel
from sfumato.release.format import Entry

STEP = 0.05  # public guarantees are rounded to this step, because exact ones reveal the shares
NUMBERS = ("privacy", "mse", "worst_posterior", "loss")
HEADLINES = ("worst_posterior", "best_guess", "guess_from_file")  # given the other columns of the file
EXACT_SHARES = "the shares of the table"


def figures_of(channel: Channel, counts: Floats, effective: float | None = None) -> dict[str, Any]:
    """Return every figure of a channel on the shares of a table; `mse_of_estimate` is that of the analysts' estimate.

    `effective` is the effective number of independent rows of that estimate, where rows of a person repeat one report.
    """
    records = int(counts.sum())
    rows = records if effective is None else max(int(effective), 1)
    present = counts > 0
    shares, matrix = counts[present] / records, channel.matrix[:, present]
    said = measures.figures(matrix, shares, records)
    figures: dict[str, Any] = {
        "privacy": said.privacy,
        "worst_posterior": said.worst_posterior,
        "epsilon": measures.epsilon(channel.matrix),
        "mse": said.error,
        "mse_to_file": said.error_to_file,
        "mse_of_estimate": linear_error(estimator(channel), channel.matrix, counts / records, rows),
        "lower_bound": least_error(shares, said, records),
        "loss": said.loss,
        "largest_gain": said.gain,
    }
    return without_infinities(figures)


def estimator(channel: Channel) -> Floats | None:
    """Return the matrix of the unbiased estimate that needs no shares, or None if there is none."""
    try:
        if channel.matrix.shape[0] == channel.size:
            return inversion_matrix(channel.matrix)
        return weighted_matrix(channel.matrix, np.full(channel.size, 1.0 / channel.size))
    except InputError:
        return None


def attributes_of(channel: Channel, counts: Floats) -> dict[str, dict[str, float]]:
    """Return privacy and worst posterior of each single column of a joint channel."""
    if len(channel.columns) == 1:
        return {}
    present = counts > 0
    shares, matrix = counts[present] / counts.sum(), channel.matrix[:, present]
    cells = [cell for cell, there in zip(channel.cells, present, strict=True) if there]
    attributes = {}
    for position, name in enumerate(channel.columns):
        privacy, worst = measures.attribute_figures(matrix, shares, [cell[position] for cell in cells])
        attributes[name] = {"privacy": privacy, "worst_posterior": worst}
    return attributes


def about_channel(channel: Channel, truth: Truth, reports: Floats) -> dict[str, object]:
    """Return all that the publisher reads of a channel: figures, categories with their shares and gains, reports.

    Figures and shares refer to the reports drawn, one per person and value. The reports in the file are rows.
    """
    counts, rows = truth.draws, truth.rows.sum()
    records = counts.sum()
    gain, expected = measures.gains(channel.matrix, counts / records), channel.matrix @ truth.rows / rows
    notes = {name: value for name, value in channel.notes.items() if name != "front"}
    return {
        "name": channel.name,
        "columns": list(channel.columns),
        "square": channel.square,
        "tells_shares": tells_shares(channel),
        "figures": figures_of(channel, counts, truth.effective),
        "effective": int(truth.effective),
        "attributes": attributes_of(channel, counts),
        "designed": notes,
        "front": front_of(channel),
        "categories": [
            {
                "name": name,
                "records": int(counts[x]),
                "share": float(counts[x] / records),
                "gain": float(gain[x]),
                "likeliest": float(channel.matrix[:, x].max()),
            }
            for x, name in enumerate(channel.categories)
        ],
        "reports": [
            {"name": name, "expected": float(expected[y]), "observed": float(reports[y] / rows)}
            for y, name in enumerate(channel.outputs)
        ],
    }


def front_of(channel: Channel) -> dict[str, Any] | None:
    """Return the front that a channel was chosen from, if its notes hold a complete one.

    The notes are untrusted, because anyone may write a channel file.
    """
    try:
        front = channel.notes["front"]
        points: list[dict[str, Any]] = [
            {"id": int(point["id"])}
            | {name: float(point[name]) for name in NUMBERS}
            | {name: None if point[name] is None else float(point[name]) for name in ("lower_bound", "epsilon")}
            for point in front["points"]
        ]
        whole = all(float(point["mse"]) > 0 for point in front["points"])
        chosen = int(front["chosen"])
    except (KeyError, TypeError, ValueError, AttributeError):
        return None
    return {"chosen": chosen, "points": points} if whole and chosen in [point["id"] for point in points] else None


def public_notes(channel: Channel, about: Entry, given: Entry | None) -> dict[str, object]:
    """Return what the public reads of a channel: guarantees in coarse steps, never better than the exact ones.

    The expected error is that of equal shares, because any figure of the true shares would help to infer them. `given`
    are the figures given the other columns of the file.
    """
    figures = about["figures"]
    even = np.full(channel.size, 1.0 / channel.size)
    error = linear_error(estimator(channel), channel.matrix, even, max(about["effective"], 1))
    notes: dict[str, Any] = {
        **_guarantees(figures),
        "epsilon": None if figures["epsilon"] is None else math.ceil(figures["epsilon"] * 1000 - 1e-9) / 1000,
        "expected_error": float(f"{error:.3g}") if error < math.inf else None,
    }
    if about["attributes"]:
        notes["attributes"] = {name: _guarantees(said) for name, said in about["attributes"].items()}
    if given is not None:
        notes["given"] = {name: _step_up(given[name]) for name in HEADLINES} | {
            "attributes": {
                name: {figure: _step_up(value) for figure, value in said.items()}
                for name, said in given["attributes"].items()
            }
        }
    return notes


def _step_up(value: float | None) -> float | None:
    """Return a probability rounded up to a coarse step."""
    return None if value is None else round(min(math.ceil(value / STEP - 1e-9) * STEP, 1.0), 2)


def _guarantees(figures: Entry) -> dict[str, float]:
    privacy = math.floor(figures["privacy"] / STEP + 1e-9) * STEP
    return {"privacy": round(privacy, 2), "worst_posterior": _step_up(figures["worst_posterior"]) or 0.0}


def mark_for(
    channels: Sequence[Channel],
    abouts: Sequence[Entry],
    notes: Entry,
    given: Entry | None = None,
) -> dict[str, object]:
    """Return the mark next to the disguised file: its channels with coarse guarantees, without the shares."""
    beside = {} if given is None else given["channels"]
    bare = [
        channel.bare(public_notes(channel, about, beside.get(about["name"])))
        for channel, about in zip(channels, abouts, strict=True)
    ]
    return {"format": SEVERAL, "version": 1, "channels": [channel.as_dict() for channel in bare], "notes": dict(notes)}


def tells_shares(channel: Channel) -> bool:
    """Return whether a channel was optimised for the exact shares of a table, so that its matrix reveals them."""
    return channel.notes.get("designed_for") == EXACT_SHARES
