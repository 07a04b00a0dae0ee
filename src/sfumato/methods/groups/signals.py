"""The signals that a plan bounds in every area, and the bounds: how far each must fall, and how far it may rise.

Signals are the true members, known attackers' sums, and sums of others like them.

An unknown attacker uses another threshold, and is more or less certain of the same people. So each known attacker with
numerical grades has three variants: one that flags three times as many records, one that sums all grades, and one that
is less certain, whose grades are the square roots. What all four reveal, other attackers reveal too.

A sensitive area is hidden if other areas have larger values. Some of the other areas, those with the largest values,
rise like connected vessels with what leaves the sensitive ones and end above them. The rest stay low and end below.
Sensitive areas fall to a third of the way from the low areas to the rising ones, and not far below that, because the
lowest values are found too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.base.arrays import Codes, Flags, Floats
from sfumato.methods.groups.attack.attack import Attack
from sfumato.methods.groups.files import Truth
from sfumato.methods.groups.microfile import Microfile

WIDER = 3  # multiple of the flagged records, to bound an attacker that flags more
HESITANT = 0.5  # the power of the grades of a less certain attacker
THRESHOLDS = (0.5, 1.7, WIDER)  # multiples of the flagged records that attackers with other limits flag
AGREED = (0.5, 1.0, 2.0)  # the same for what attackers agree on
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

    def per_area(self, area_of: Codes, areas: int) -> Floats:
        return np.bincount(area_of, self.weights, minlength=areas).astype(np.float64)


def signals_of(
    target: Microfile,
    truths: Sequence[Truth],
    known: Sequence[Attack],
    *,
    counted_only: bool = False,
    likes: bool = False,
) -> list[Signal]:
    """Return the true members and each known attacker's sum of grades, as the mean over its seeds.

    If targets are counts it is the attacker's count. With `likes` the signals of attackers like the known ones are
    included. Of signals with equal weights only the first is listed, since a variant of one attacker may be another
    known attacker.
    """
    signals = [Signal("truth", t.group, target.members[t.group].astype(np.float64)) for t in truths]
    used = [one for one in known if not counted_only or one.model.threshold > 0]
    for some in _by(used, lambda one: (one.model.attacker, one.auxiliary, one.group)):
        made = alike(some, counted_only=counted_only)[: None if likes else 1]
        for signal in made:
            # A signal that is bounded twice would only make the program larger.
            if not any(
                other.group == signal.group and np.array_equal(other.weights, signal.weights) for other in signals
            ):
                signals.append(signal)
    return signals


def alike(some: Sequence[Attack], *, counted_only: bool = False) -> list[Signal]:
    """Return the mean signal of one attacker over its seeds, and those of its variants. Rules have no variants."""
    first = some[0]
    marks, name = first.model.threshold > 0, f"{first.model.attacker} from {first.auxiliary}"
    signals = [Signal(name, first.group, _mean([one.flagged if counted_only else one.marked for one in some]), marks)]
    if counted_only or not first.model.graded:
        return signals
    if marks:
        wider = _mean([_flagging(one, WIDER) for one in some])
        signals.append(Signal(f"{name}, {WIDER} times as many", first.group, wider))
        signals.append(Signal(f"{name}, all grades", first.group, _mean([one.grades for one in some]), marks=False))
    if not (marks and first.model.everything):  # the attacker that sums all grades has this variant
        roots = _mean([one.grades**HESITANT for one in some])
        signals.append(Signal(f"{name}, roots of grades", first.group, roots, marks=False))
    return signals


def imagined(target: Microfile, truths: Sequence[Truth], known: Sequence[Attack]) -> list[Signal]:
    """Return the signals of all variants of the known attacks, for the improvement of a plan.

    These are the signals that plans bound, the true members among them, and each attack by itself. Each attack is also
    varied: with other thresholds, with all its grades and with their roots, and for rules with one seed or several. The
    last ones are what the attackers from one file agree on.
    """
    signals = signals_of(target, truths, known, likes=True)
    for one in known:
        made = [one.marked]
        if one.model.graded:
            if one.model.threshold > 0:
                made += [_flagging(one, times) for times in THRESHOLDS]
                made += [one.grades] if not one.model.everything else []
            made += [one.grades**HESITANT] if (one.model.threshold > 0) != one.model.everything else []
        signals += [Signal(one.model.attacker, one.group, weights) for weights in made]
    for some in _by(known, lambda one: (one.model.attacker, one.auxiliary, one.group)):
        if not some[0].model.graded:
            marked = [one.marked for one in some]
            signals += [Signal(some[0].model.attacker, some[0].group, f(marked, axis=0)) for f in (np.min, np.max)]
    for some in _by(known, lambda one: (one.auxiliary, one.group)):
        some = [one for one in some if one.model.graded and one.model.threshold > 0]
        if some:
            agreed = _mean([one.grades for one in some])
            count = float(np.mean([one.flagged.sum() for one in some]))
            made = [*(_first(agreed, times * count) for times in AGREED), agreed, agreed**HESITANT]
            signals += [Signal("agreed", some[0].group, weights) for weights in made]
    return [signal for signal in signals if signal.weights.any()]


def _by(known: Sequence[Attack], key: Callable[[Attack], tuple[str, ...]]) -> list[list[Attack]]:
    """Return attacks grouped by a key, in their order."""
    groups: dict[tuple[str, ...], list[Attack]] = {}
    for one in known:
        groups.setdefault(key(one), []).append(one)
    return list(groups.values())


def _flagging(one: Attack, times: float) -> Floats:
    """Return the best grades, of a multiple of the number of flagged records."""
    return _first(one.grades, times * max(int(one.flagged.sum()), 1))


def _first(grades: Floats, count: float) -> Floats:
    """Return the grades of the best records, with those equal to the last of them. Grades of 0 are left out."""
    wanted = min(max(int(count), 1), int((grades > 0).sum()))
    if not wanted:
        return np.zeros(len(grades))
    least = np.partition(grades, len(grades) - wanted)[len(grades) - wanted]
    kept: Floats = np.where(grades >= least, grades, 0.0)
    return kept


def _mean(weights: Sequence[np.ndarray]) -> Floats:
    mean: Floats = np.mean(weights, axis=0)
    return mean


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
    rising = np.isin(np.arange(held.shape[1]), order[:count])
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
    fall, mine = held.copy(), list(sensitive)
    fall[mine] = np.maximum(held[mine] - FLOOR * limits[mine], 0.0)
    return fall


def reachable(limits: Floats, held: Floats, sensitive: Sequence[int], leaving: Floats, coming: float) -> Floats:
    """Return limits that swaps can reach, given the weights that givers can take away and partners bring.

    `leaving` is the weight of the givers of each area, and `coming` the weight of their partners as a share of it. A
    little is left over, since a partner cannot be divided.

    >>> reachable(np.array([1.0, 9.0]), np.array([10.0, 5.0]), [0], np.array([6.0, 0.0]), 0.1).round(2).tolist()
    [4.9, 9.0]
    """
    reached, mine = limits.copy(), list(sensitive)
    reached[mine] = np.maximum(limits[mine], held[mine] - (1 - coming - SPARE) * leaving[mine])
    return reached
