"""The bounds of every signal: how far it must fall in the sensitive areas, and how far it may rise elsewhere.

A sensitive area is hidden if other areas have larger values. Some of the other areas, those with the largest values,
rise like connected vessels with what leaves the sensitive ones and end above them. The rest stay low and end below.
Sensitive areas fall to a third of the way from the low areas to the rising ones, and not far below that, because the
lowest values are found too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.base.arrays import Counts64, Flags, Floats

RISING = (0.7, 0.5)  # shares of the other areas that rise; the first is the usual one
SLACKS = (0.3, 0.6, 1.2, 2.4, np.inf)
SPARE = 0.05
STILL = 0.1  # the gain allowed in low areas: of a record, and of the level of the others times the slack
FLOOR = 0.5  # least value of a sensitive area, as a share of its largest
# Share of the way from the low areas to the rising ones: a single larger area is not enough to hide.
AIM = 1 / 3
FEW = 1.5  # records: if the middle is less, a sensitive area should have none
LIFT = 4.0  # multiple of the mean weight from which a record is suspected if every record has a weight


@dataclass(frozen=True)
class Signal:
    """A sum per area of an attacker, or of the truth: a weight for each record.

    A signal that `marks` suspects the records with a positive weight. If every record has a weight, the suspected
    records are those with several times the mean.
    """

    name: str
    group: str
    weights: Floats
    marks: bool = True

    @property
    def suspected(self) -> Flags:
        """The records that an attacker with this signal would suspect."""
        least = 0.0 if self.marks else LIFT * float(self.weights.mean())
        return self.weights > least

    @property
    def per_record(self) -> float:
        """The contribution of one record: the mean weight, weighted by the weights."""
        total = float(self.weights.sum())
        return float((self.weights * self.weights).sum() / total) if total > 0 else 1.0

    def per_area(self, area_of: np.ndarray[tuple[int], np.dtype[np.int32]], areas: int) -> Floats:
        return np.bincount(area_of, self.weights, minlength=areas).astype(np.float64)


def water_level(held: Floats, amount: float) -> float:
    """Return the level at which connected vessels with these contents take in an amount together.

    >>> water_level(np.array([1.0, 2.0, 9.0]), 5.0)
    4.0
    """
    # The fullest vessels take nothing in: add vessels in rising order until the next one is above the level.
    ordered = np.sort(held)
    for count in range(1, len(ordered) + 1):
        level = (ordered[:count].sum() + amount) / count
        if count == len(ordered) or level <= ordered[count]:
            return float(level)
    return float(amount)


@dataclass(frozen=True)
class Sides:
    """The areas that are not sensitive, in two parts: those that rise, and those that stay low."""

    rising: Flags
    staying: Flags

    @property
    def both(self) -> Flags:
        return self.rising | self.staying


def sides_of(held: Floats, receivers: Flags, sensitive: int, share: float) -> Sides:
    """Return which share of the receivers rises: those with the largest signals, if possible more than are sensitive.

    >>> sides = sides_of(np.array([[9.0, 0, 5, 1, 4]]), np.array([False, True, True, True, True]), 1, 0.5)
    >>> np.flatnonzero(sides.rising).tolist(), np.flatnonzero(sides.staying).tolist()
    ([2, 4], [1, 3])
    """
    listed = np.flatnonzero(receivers)
    relative = (held / np.maximum(held.mean(axis=1, keepdims=True), 1e-12)).mean(axis=0)
    # More areas must rise than are sensitive, or the sensitive ones are still among the first by rank.
    count = min(max(int(np.ceil(share * len(listed) - 1e-9)), sensitive + 1), len(listed))
    order = listed[np.argsort(-relative[listed].round(9), kind="stable")]
    rising = areas_of(order[:count].tolist(), held.shape[1])
    return Sides(rising, receivers & ~rising)


def middle(held: Floats, sensitive: Sequence[int], sides: Sides, aim: float = AIM) -> float:
    """Return the value of each sensitive area at a share of the way from the low areas to the rising ones.

    The rising areas share evenly their own amount and what leaves the sensitive areas.

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
    """Return the largest value of each sensitive area: `level` of the way to its target, or to a common aim.

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
    """Return by how much a signal may grow in each area; negative if it must fall."""
    room = limits - held
    if np.isinf(slack) or not sides.rising.any():
        room[sides.both] = held.sum() + 1.0
        return room
    moved = float((held - limits)[list(sensitive)].sum())
    level = water_level(held[sides.rising], moved)
    # A cap on each rising area, so that no new area stands out instead of the hidden one.
    caps = np.maximum(held[sides.rising], level * (1 + slack) + 1)
    room[sides.rising] = caps - held[sides.rising]
    room[sides.staying] = STILL * (per_record + slack * level)
    return room


def fall_for(held: Floats, sensitive: Sequence[int], limits: Floats) -> Floats:
    """Return by how much a signal may fall in each area: to 0, but in sensitive areas not far below their limits.

    >>> fall_for(np.array([10.0, 3.0]), [0], np.array([4.0, 3.0])).tolist()
    [8.0, 3.0]
    """
    fall = held.copy()
    for area in sensitive:
        fall[area] = max(held[area] - FLOOR * limits[area], 0.0)
    return fall


def reachable(limits: Floats, held: Floats, sensitive: Sequence[int], leaving: Floats, coming: float) -> Floats:
    """Return limits that swaps can reach, given the weights that givers can take away and partners bring.

    `leaving` is the weight of the givers of each area, and `coming` the weight of their partners as a share of it. A
    little is left over, since a partner cannot be divided.

    >>> reachable(np.array([1.0, 9.0]), np.array([10.0, 5.0]), [0], np.array([6.0, 0.0]), 0.1).round(2).tolist()
    [4.9, 9.0]
    """
    reached = limits.copy()
    for area in sensitive:
        reached[area] = max(limits[area], held[area] - (1 - coming - SPARE) * leaving[area])
    return reached


def areas_of(flags: Sequence[int], areas: int) -> Flags:
    """Return indexes as flags."""
    inside = np.zeros(areas, np.bool_)
    inside[list(flags)] = True
    return inside


def counted(values: Floats) -> Counts64:
    return values.round().astype(np.int64)
