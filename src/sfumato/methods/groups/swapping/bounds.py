"""How far every signal must fall in the sensitive areas, and how far it may rise elsewhere.

A place hides between others. Some of the other areas, those that show most anyway, fill up as vessels would with what
leaves the sensitive ones and end above them; the rest stay as low as they are and end below. Sensitive areas come down
to a third of the way up from the one to the other, and not far under it: the lowest are found too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.base.arrays import Counts64, Flags, Floats

RISING = (0.7, 0.5)  # shares of the other areas that fill up; the first is the usual one
SLACKS = (0.3, 0.6, 1.2, 2.4, np.inf)
SPARE = 0.05
STILL = 0.1  # of a record, and of the level of the others times the slack: what areas that stay may gain
FLOOR = 0.5  # of what a sensitive area may show at most, it shows at least so much
# Of the way from the areas that stay to those that rise: one area in front exposes, only all of them behind
AIM = 1 / 3
FEW = 1.5  # records: where the middle is less, a sensitive area should show nothing
LIFT = 4.0  # times the mean weight, from which on a record is suspected where everybody has a weight


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

    @property
    def per_record(self) -> float:
        """What one record adds: the mean weight, weighted by the weights themselves."""
        total = float(self.weights.sum())
        return float((self.weights * self.weights).sum() / total) if total > 0 else 1.0

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


@dataclass(frozen=True)
class Sides:
    """The areas that are not sensitive, in two parts: those that fill up, and those that stay as low as they are."""

    rising: Flags
    staying: Flags

    @property
    def both(self) -> Flags:
        return self.rising | self.staying


def sides_of(held: Floats, receivers: Flags, sensitive: int, share: float) -> Sides:
    """A share of the receivers rises, if possible more than are sensitive: those with most over all signals.

    >>> sides = sides_of(np.array([[9.0, 0, 5, 1, 4]]), np.array([False, True, True, True, True]), 1, 0.5)
    >>> np.flatnonzero(sides.rising).tolist(), np.flatnonzero(sides.staying).tolist()
    ([2, 4], [1, 3])
    """
    listed = np.flatnonzero(receivers)
    relative = (held / np.maximum(held.mean(axis=1, keepdims=True), 1e-12)).mean(axis=0)
    count = min(max(int(np.ceil(share * len(listed) - 1e-9)), sensitive + 1), len(listed))
    order = listed[np.argsort(-relative[listed].round(9), kind="stable")]
    rising = areas_of(order[:count].tolist(), held.shape[1])
    return Sides(rising, receivers & ~rising)


def middle(held: Floats, sensitive: Sequence[int], sides: Sides, aim: float = AIM) -> float:
    """What each sensitive area shows if it lies so far up from the areas that stay to those that rise.

    The rising areas share evenly what they have and what the sensitive ones give away.

    >>> sides = Sides(np.array([False, False, True, True]), np.array([False, True, False, False]))
    >>> middle(np.array([20.0, 1, 2, 2]), [0], sides), round(middle(np.array([20.0, 1, 2, 2]), [0], sides, 0.5), 6)
    (4.0, 5.2)
    """
    rising = int(sides.rising.sum())
    if not rising:
        return 0.0
    low = float(held[sides.staying].mean()) if sides.staying.any() else 0.0
    shared = float(held[list(sensitive)].sum() + held[sides.rising].sum())
    return (low * (1 - aim) * rising + aim * shared) / (rising + aim * len(sensitive))


def lowered(
    held: Floats, sensitive: Sequence[int], level: float, aim: float, targets: Mapping[int, float] | None = None
) -> Floats:
    """What each sensitive area may show at most: `level` of the way down to its target, or to a common aim.

    >>> held = np.array([4.0, 0, 0])
    >>> lowered(held, [0], 0.5, 1.0).tolist(), lowered(held, [0], 1.0, 1.0, {0: 3.0}).tolist()
    ([2.5, 0.0, 0.0], [3.0, 0.0, 0.0])
    """
    limits = held.copy()
    for area in sensitive:
        goal = aim if not targets else targets.get(area, np.inf)
        if held[area] > goal:
            limits[area] = held[area] - level * (held[area] - goal)
    return limits


def room_for(
    held: Floats, sensitive: Sequence[int], sides: Sides, limits: Floats, slack: float, per_record: float = 1.0
) -> Floats:
    """By how much a signal may grow in each area; negative where it must fall."""
    room = limits - held
    if np.isinf(slack) or not sides.rising.any():
        room[sides.both] = held.sum() + 1.0
        return room
    moved = float((held - limits)[list(sensitive)].sum())
    level = water_level(held[sides.rising], moved)
    caps = np.maximum(held[sides.rising], level * (1 + slack) + 1)
    room[sides.rising] = caps - held[sides.rising]
    room[sides.staying] = STILL * (per_record + slack * level)
    return room


def fall_for(held: Floats, sensitive: Sequence[int], limits: Floats) -> Floats:
    """By how much a signal may fall in each area: to nothing, but in sensitive ones not far under their limits.

    >>> fall_for(np.array([10.0, 3.0]), [0], np.array([4.0, 3.0])).tolist()
    [8.0, 3.0]
    """
    fall = held.copy()
    for area in sensitive:
        fall[area] = max(held[area] - FLOOR * limits[area], 0.0)
    return fall


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
