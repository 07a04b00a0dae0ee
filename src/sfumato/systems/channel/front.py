"""The front of the channel system: channels that no other one found beats, their figures, and how to choose."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.data.atomic import new_folder
from sfumato.data.inputs import note_unsealed
from sfumato.data.json_files import read_json
from sfumato.decide import distances_to_chord
from sfumato.errors import InputError, UnreachableError
from sfumato.front import versions
from sfumato.measures.channel import Figures
from sfumato.plans.channel import Channel, checked_prior
from sfumato.systems.channel.prior import Prior

FORMAT = "sfumato-channel-front"
FILE = "channel-front.json"


@dataclass(frozen=True, eq=False)
class ChannelPoint:
    """A channel, its figures, and the error that no channel of its privacy can go below (None where unknown)."""

    id: int
    channel: Channel
    figures: Figures
    lower_bound: float | None
    attributes: Mapping[str, tuple[float, float]]

    @property
    def ratio(self) -> float | None:
        """How far above the certified bound the error is: 1 is a proven optimum."""
        return None if self.lower_bound is None else self.figures.error / self.lower_bound

    def as_dict(self) -> dict[str, Any]:
        """As `sfumato channel search --json` prints it."""
        said: dict[str, Any] = {
            "id": self.id,
            "privacy": self.figures.privacy,
            "mse": self.figures.error,
            "mse_to_file": self.figures.error_to_file,
            "lower_bound": self.lower_bound,
            "ratio": self.ratio,
            "worst_posterior": self.figures.worst_posterior,
            "epsilon": self.figures.epsilon,
            "loss": self.figures.loss,
            "outputs": len(self.channel.outputs),
        }
        if self.attributes:
            said["attributes"] = {
                name: {"privacy": private, "worst_posterior": worst}
                for name, (private, worst) in self.attributes.items()
            }
        return finite(said)


@dataclass(frozen=True, eq=False)
class ChannelFront:
    """Points by rising privacy. `exact` says that each is proven optimal within its `lower_bound`."""

    prior: Prior
    delta: float
    engine: str
    exact: bool
    range: tuple[float, float]
    points: tuple[ChannelPoint, ...]
    seconds: float = 0.0
    epsilon: float | None = None
    seed: int | None = None
    generations: int | None = None

    def point(self, number: int) -> ChannelPoint:
        """A point by its id."""
        if not 0 <= number < len(self.points):
            raise InputError(f"there is no point {number}", expected=f"an id from 0 to {len(self.points) - 1}")
        return self.points[number]

    def as_dict(self) -> dict[str, Any]:
        return {
            "system": "channel",
            "engine": self.engine,
            "exact": self.exact,
            "columns": list(self.prior.columns),
            "categories": len(self.prior.categories),
            "records": self.prior.records,
            "dropped": self.prior.dropped,
            "delta": self.delta,
            "epsilon_cap": self.epsilon,
            "seed": self.seed,
            "generations": self.generations,
            "range": list(self.range),
            "points": [point.as_dict() for point in self.points],
            "seconds": self.seconds,
        }

    def save(self, folder: str | Path) -> Path:
        """Write the front as a new folder, whole or not at all. It holds the prior: it is for the publisher only."""
        folder = Path(folder).absolute()
        prior = self.prior
        about = {"format": FORMAT} | self.as_dict()
        about["prior"] = {
            "columns": prior.columns,
            "categories": prior.categories,
            "cells": prior.cells,
            "shares": prior.shares.tolist(),
        }
        about["channels"] = [point.channel.as_dict() for point in self.points]
        about["versions"] = versions()
        with new_folder(folder) as inside:
            (inside / FILE).write_text(json.dumps(about, indent=1, ensure_ascii=False, allow_nan=False), "utf-8")
        return folder


def finite(said: dict[str, Any]) -> dict[str, Any]:
    """JSON lacks infinities: they become null, and their names are listed.

    >>> finite({"epsilon": math.inf, "mse": 0.5})
    {'epsilon': None, 'mse': 0.5, 'infinite': ['epsilon']}
    """
    endless = [name for name, value in said.items() if isinstance(value, float) and not math.isfinite(value)]
    shown = {name: None if name in endless else value for name, value in said.items()}
    return shown | ({"infinite": endless} if endless else {})


def load_channel_front(folder: str | Path) -> ChannelFront:
    """Read a front back from its folder."""
    path = Path(folder) / FILE
    expected = "a folder that sfumato channel search -o wrote"
    if not path.is_file():
        raise InputError(f"{folder} is not the folder of a channel front", expected=expected)
    note_unsealed(path.parent)
    try:
        found = read_json(path, expected=expected)
        told = found["prior"]
        prior = Prior(
            tuple(told["columns"]),
            tuple(told["categories"]),
            tuple(tuple(cell) for cell in told["cells"]),
            checked_prior(told["shares"]),
            found["records"],
            found["dropped"],
        )
        points = tuple(_point(p, c) for p, c in zip(found["points"], found["channels"], strict=True))
        return ChannelFront(
            prior,
            found["delta"],
            found["engine"],
            found["exact"],
            (found["range"][0], found["range"][1]),
            points,
            found["seconds"],
            found["epsilon_cap"],
            found["seed"],
            found["generations"],
        )
    except (ValueError, KeyError, TypeError, IndexError):
        raise InputError(f"{path} cannot be read", expected=expected) from None


def _point(found: Mapping[str, Any], told: Mapping[str, Any]) -> ChannelPoint:
    def number(name: str) -> float:
        return math.inf if found[name] is None else float(found[name])

    channel = Channel.from_dict(told)
    names = ("privacy", "worst_posterior", "epsilon", "mse", "mse_to_file", "loss")
    attributes = {n: (a["privacy"], a["worst_posterior"]) for n, a in found.get("attributes", {}).items()}
    return ChannelPoint(found["id"], channel, Figures(*map(number, names)), found["lower_bound"], attributes)


@dataclass(frozen=True, eq=False)
class ChannelChoice:
    """A point of a front and why it was chosen. Its channel remembers the front it was chosen from."""

    front: ChannelFront
    point: ChannelPoint
    reason: str

    @property
    def channel(self) -> Channel:
        """The channel to disguise with, for the publisher only: its notes tell of the shares."""
        front = {"chosen": self.point.id, "points": [point.as_dict() for point in self.front.points]}
        return replace(self.point.channel, notes={**self.point.channel.notes, "front": front})


def pick_channel(
    front: ChannelFront,
    *,
    min_privacy: float | None = None,
    max_error: float | None = None,
    max_epsilon: float | None = None,
    max_loss: float | None = None,
    knee: bool = False,
    point: int | None = None,
) -> ChannelChoice:
    """Least error within a limit on privacy or ε, most privacy within one on error or loss, the knee, or a point."""
    given = [w for w in (min_privacy, max_error, max_epsilon, max_loss, point) if w is not None]
    if len(given) + knee != 1:
        raise InputError(
            "nothing to choose by" if not given and not knee else "several ways to choose at once",
            expected="one of: min_privacy, max_error, max_epsilon, max_loss, knee, point",
            remedy="--min-privacy 0.5",
        )
    if point is not None:
        return ChannelChoice(front, front.point(point), f"point {point} was asked for")
    points = front.points
    if knee:
        gain = np.array([p.figures.privacy for p in points])
        place = int(np.argmax(distances_to_chord(gain, np.array([p.figures.loss for p in points]))))
        return ChannelChoice(front, points[place], "the knee: beyond it, each step of privacy costs more loss")
    if min_privacy is not None:
        kept = [p for p in points if p.figures.privacy >= min_privacy - 1e-6]
        most = points[-1].figures.privacy
        return _least_error(front, kept, f"privacy of at least {min_privacy:g}", f"--min-privacy {round(most, 6):g}")
    if max_epsilon is not None:
        kept = [p for p in points if p.figures.epsilon <= max_epsilon + 1e-9]
        least = min(p.figures.epsilon for p in points)
        remedy = f"--max-epsilon {math.ceil(least * 1e3) / 1e3:g}" if math.isfinite(least) else ""
        remedy = remedy or f"every ε here is infinite; search with --engine square --epsilon {max_epsilon:g}"
        return _least_error(front, kept, f"ε of at most {max_epsilon:g}", remedy)
    value, limit = ("error", max_error) if max_error is not None else ("loss", max_loss)
    kept = [p for p in points if getattr(p.figures, value) <= float(limit or 0.0) * (1 + 1e-9)]
    if not kept:
        best = min(getattr(p.figures, value) for p in points)
        raise UnreachableError(
            f"no point has a{'n' * (value == 'error')} {value} of at most {limit:g}",
            expected=f"a limit that a point meets; the least {value} here is {best:.4g}",
            remedy=f"--max-{value} {float(f'{best * 1.001:.3g}'):g}, or a higher --delta",
        )
    best_point = max(kept, key=lambda p: p.figures.privacy)
    return ChannelChoice(
        front, best_point, f"most privacy with a{'n' * (value == 'error')} {value} of at most {limit:g}"
    )


def _least_error(front: ChannelFront, kept: list[ChannelPoint], what: str, remedy: str) -> ChannelChoice:
    if not kept:
        raise UnreachableError(f"no point has {what}", expected="a limit that a point meets", remedy=remedy)
    return ChannelChoice(front, min(kept, key=lambda p: p.figures.error), f"least error with {what}")
