"""What a disguise says of itself: the figures of its channels on the table's own shares, in full and for the public.

Everything here follows from the channels, the counts of the categories in the source and the counts of the reports in
the written file, so that it can be worked out again whenever a release is verified.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sfumato.errors import InputError
from sfumato.measures import channel as measures
from sfumato.plans.channel import SEVERAL, Channel
from sfumato.runtime.arrays import Floats
from sfumato.runtime.json_files import without_infinities
from sfumato.systems.channel.families import least_error
from sfumato.systems.channel.recovery import inversion_matrix, linear_error, weighted_matrix

DIGITS = 3  # of every figure that the public reads
SCALE = 10.0**DIGITS
NUMBERS = ("privacy", "mse", "worst_posterior", "loss")
EXACT_SHARES = "the shares of the table"


def figures_of(channel: Channel, counts: Floats) -> dict[str, Any]:
    """Every figure of a channel on the shares of a table; `mse_of_estimate` is that of the estimate analysts make."""
    records = int(counts.sum())
    present = counts > 0
    shares, matrix = counts[present] / records, channel.matrix[:, present]
    said = measures.figures(matrix, shares, records)
    figures: dict[str, Any] = {
        "privacy": said.privacy,
        "worst_posterior": said.worst_posterior,
        "epsilon": measures.epsilon(channel.matrix),
        "mse": said.error,
        "mse_to_file": said.error_to_file,
        "mse_of_estimate": linear_error(estimator(channel), channel.matrix, counts / records, records),
        "lower_bound": least_error(shares, said, records),
        "loss": said.loss,
        "largest_gain": float(gains(channel, counts)[present].max()),
    }
    return without_infinities(figures)


def estimator(channel: Channel) -> Floats | None:
    """The matrix of the unbiased estimate that an analyst makes without knowing any shares; None if there is none."""
    try:
        if channel.matrix.shape[0] == channel.size:
            return inversion_matrix(channel.matrix)
        return weighted_matrix(channel.matrix, np.full(channel.size, 1.0 / channel.size))
    except InputError:
        return None


def gains(channel: Channel, counts: Floats) -> Floats:
    """How many times more likely the most telling report makes each category than its share does."""
    reported = channel.matrix @ (counts / counts.sum())
    used = reported > 0
    return np.asarray((channel.matrix[used] / reported[used, None]).max(axis=0))


def attributes_of(channel: Channel, counts: Floats) -> dict[str, dict[str, float]]:
    """Privacy and worst posterior of each column of a joint channel by itself."""
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


def about_channel(channel: Channel, counts: Floats, reports: Floats) -> dict[str, Any]:
    """All that the publisher reads of a channel: figures, categories with their shares and gains, reports."""
    records = counts.sum()
    gain, expected = gains(channel, counts), channel.matrix @ counts / records
    notes = {name: value for name, value in channel.notes.items() if name != "front"}
    return {
        "name": channel.name,
        "columns": list(channel.columns),
        "square": channel.square,
        "tells_shares": tells_shares(channel),
        "figures": figures_of(channel, counts),
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
            {"name": name, "expected": float(expected[y]), "observed": float(reports[y] / records)}
            for y, name in enumerate(channel.outputs)
        ],
    }


def front_of(channel: Channel) -> dict[str, Any] | None:
    """The front that a channel was chosen from, if its notes hold a whole one: anyone may write a channel file."""
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


def public_notes(about: Mapping[str, Any]) -> dict[str, Any]:
    """The guarantees of a channel to three digits, never on the flattering side."""
    figures = about["figures"]
    notes: dict[str, Any] = {
        **_guarantees(figures),
        "epsilon": None if figures["epsilon"] is None else _up(figures["epsilon"]),
        "expected_error": None if figures["mse_of_estimate"] is None else _brief(figures["mse_of_estimate"]),
    }
    if about["attributes"]:
        notes["attributes"] = {name: _guarantees(said) for name, said in about["attributes"].items()}
    return notes


def _guarantees(figures: Mapping[str, Any]) -> dict[str, float]:
    return {"privacy": _down(figures["privacy"]), "worst_posterior": min(_up(figures["worst_posterior"]), 1.0)}


def _up(value: float) -> float:
    return math.ceil(value * SCALE - 1e-9) / SCALE


def _down(value: float) -> float:
    return math.floor(value * SCALE + 1e-9) / SCALE


def _brief(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")


def mark_for(
    channels: Sequence[Channel], abouts: Sequence[Mapping[str, Any]], notes: Mapping[str, Any]
) -> dict[str, Any]:
    """What stands beside the disguised file: its channels with rounded guarantees, and nothing of the shares."""
    bare = [channel.bare(public_notes(about)) for channel, about in zip(channels, abouts, strict=True)]
    return {"format": SEVERAL, "version": 1, "channels": [channel.as_dict() for channel in bare], "notes": dict(notes)}


def tells_shares(channel: Channel) -> bool:
    """Whether a channel was optimised for the exact shares of a table: its matrix then tells them."""
    return channel.notes.get("designed_for") == EXACT_SHARES
