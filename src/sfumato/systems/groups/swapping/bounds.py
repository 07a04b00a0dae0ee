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
SPARE = 0.05
SLACKS = (0.15, 0.3, 0.6, 1.2, 2.4, np.inf)
LIFT = 4.0  # times the mean weight, from which on a record is suspected where everybody has a weight
WIDE = (1.2, 2.4)


@dataclass(frozen=True)
class Signal:
    """Something that an attacker, or the truth, adds up per area: a weight for each record.

    A signal that `marks` suspects the records that it gives a weight; one that gives a weight to everybody, those with
    several times the mean.
    """

    name: str
    group: str
    weights: Floats
    marks: bool = True

    @property
    def suspected(self) -> Flags:
        """The records that someone with this signal would look at."""
        least = 0.0 if self.marks else LIFT * float(self.weights.mean())
        return self.weights > least

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
    """What each sensitive area may show at most: `level` of the way down to its target, or to under the mean.

    A level beyond 1 goes all the way, to as much less: 1.4 to six tenths of what is under the mean.

    >>> held = np.array([4.0, 0, 0])
    >>> lowered(held, [0], 0.5, None).tolist(), lowered(held, [0], 1.5, None).tolist()
    ([2.5, 0.0, 0.0], [0.5, 0.0, 0.0])
    """
    aim = UNDER_MEAN * held.mean() * (2 - max(level, 1.0))
    level = min(level, 1.0)
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


def reachable(limits: Floats, held: Floats, sensitive: Sequence[int], leaving: Floats, coming: float) -> Floats:
    """Limits that swaps can reach: an area keeps at least what no giver takes away and what as many partners bring.

    `leaving` is what the givers of each area have, `coming` what their partners have, as a share of it; a little is
    left over, since partners are whole records.

    >>> reachable(np.array([1.0, 9.0]), np.array([10.0, 5.0]), [0], np.array([6.0, 0.0]), 0.1).round(2).tolist()
    [4.9, 9.0]
    """
    reached = limits.copy()
    for area in sensitive:
        reached[area] = max(limits[area], held[area] - (1 - coming - SPARE) * leaving[area])
    return reached


def areas_of(flags: Sequence[int], areas: int) -> Flags:
    """Indexes as flags."""
    inside = np.zeros(areas, np.bool_)
    inside[list(flags)] = True
    return inside


def counted(values: Floats) -> Counts64:
    return values.round().astype(np.int64)
