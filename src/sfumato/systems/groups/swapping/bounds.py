"""How far every signal must fall in the sensitive areas, and how far it may rise elsewhere.

Sensitive areas come down part of the way to under the mean of all areas. What leaves them must go somewhere: the other
areas may fill up to a common level, as water would, and a little more; without such caps new outliers appear.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.runtime.arrays import Counts64, Flags, Floats

UNDER_MEAN = 0.75
SLACKS = (0.15, 0.3, 0.6, 1.2, np.inf)


@dataclass(frozen=True)
class Signal:
    """Something that an attacker, or the truth, adds up per area: a weight for each record."""

    name: str
    group: str
    weights: Floats

    def per_area(self, area_of: np.ndarray[tuple[int], np.dtype[np.int32]], areas: int) -> Floats:
        return np.bincount(area_of, self.weights, minlength=areas).astype(np.float64)


def water_level(held: Floats, amount: float) -> float:
    """The level at which vessels that hold so much take in an amount together.

    >>> water_level(np.array([1.0, 2.0, 9.0]), 5.0)
    4.0
    """
    ordered = np.sort(held)
    for count in range(1, len(ordered) + 1):
        level = (ordered[:count].sum() + amount) / count
        if count == len(ordered) or level <= ordered[count]:
            return float(level)
    return float(amount)


def lowered(held: Floats, sensitive: Sequence[int], level: float, targets: Mapping[int, float] | None) -> Floats:
    """What each sensitive area may show at most: `level` of the way down to its target, or to under the mean."""
    aim = UNDER_MEAN * held.mean()
    limits = held.copy()
    for area in sensitive:
        goal = aim if not targets else targets.get(area, np.inf)
        if held[area] > goal:
            limits[area] = held[area] - level * (held[area] - goal)
    return limits


def room_for(held: Floats, sensitive: Sequence[int], receivers: Flags, limits: Floats, slack: float) -> Floats:
    """By how much a signal may grow in each area; negative where it must fall."""
    room = limits - held
    if np.isinf(slack) or not receivers.any():
        room[receivers] = held.sum() + 1.0
        return room
    moved = float((held - limits)[list(sensitive)].sum())
    level = water_level(held[receivers], moved)
    caps = np.maximum(held[receivers], level * (1 + slack) + 1)
    room[receivers] = caps - held[receivers]
    return room


def areas_of(flags: Sequence[int], areas: int) -> Flags:
    """Indexes as flags."""
    inside = np.zeros(areas, np.bool_)
    inside[list(flags)] = True
    return inside


def counted(values: Floats) -> Counts64:
    return values.round().astype(np.int64)
