"""What a plan bounds in every area: the true members, what known attackers add up, and what others like them would.

An attacker whom nobody knows draws the line elsewhere and is surer or less sure of the same people. So each known
attacker who grades by numbers stands for others: one who flags three times as many records, one who adds up all
grades, and one who hesitates, whose grades are the square roots. What these four show alike, others show too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from sfumato.runtime.arrays import Floats
from sfumato.systems.groups.attack.attack import Attack
from sfumato.systems.groups.files.microfile import Microfile
from sfumato.systems.groups.files.read import Truth
from sfumato.systems.groups.swapping.bounds import Signal

WIDER = 3  # times as many records as an attacker flags, to bound one who flags more
HESITANT = 0.5  # the power of the grades of one who is less sure
THRESHOLDS = (0.5, 1.7, WIDER)  # times as many records as each known attack flags, whom one with other limits flags
AGREED = (0.5, 1.0, 2.0)  # the same where attackers agree


def signals_of(
    target: Microfile,
    truths: Sequence[Truth],
    known: Sequence[Attack],
    *,
    counted_only: bool = False,
    likes: bool = False,
) -> list[Signal]:
    """The true members, and each known attacker's sum of grades, the mean over its seeds; its count where targets are
    counts. With `likes` also those of attackers like the known ones. Of signals with equal weights the first is listed:
    who adds up all grades of a model is one like the attacker who flags by it."""
    signals = [Signal("truth", t.group, target.members[t.group].astype(np.float64)) for t in truths]
    used = [one for one in known if not counted_only or one.model.threshold > 0]
    for some in _by(used, lambda one: (one.model.attacker, one.auxiliary, one.group)):
        made = [_counted(some)] if counted_only else alike(some)[: None if likes else 1]
        for signal in made:
            if not any(
                other.group == signal.group and np.array_equal(other.weights, signal.weights) for other in signals
            ):
                signals.append(signal)
    return signals


def alike(some: Sequence[Attack]) -> list[Signal]:
    """The signal of one attacker, the mean over its seeds, and those of others like it. Rules draw no line."""
    first = some[0]
    marks, name = first.model.threshold > 0, f"{first.model.attacker} from {first.auxiliary}"
    signals = [Signal(name, first.group, _mean([np.where(one.flagged, one.grades, 0.0) for one in some]), marks)]
    if not first.model.graded:
        return signals
    if marks:
        wider = _mean([_wider(one) for one in some])
        signals.append(Signal(f"{name}, {WIDER} times as many", first.group, wider))
        signals.append(Signal(f"{name}, all grades", first.group, _mean([one.grades for one in some]), marks=False))
    if not (marks and first.model.everything):  # who also adds up all grades hesitates there
        roots = _mean([one.grades**HESITANT for one in some])
        signals.append(Signal(f"{name}, roots of grades", first.group, roots, marks=False))
    return signals


def imagined(target: Microfile, truths: Sequence[Truth], known: Sequence[Attack]) -> list[Signal]:
    """Signals of everybody that can be thought of from the known attacks, for a plan that is improved by them.

    What plans bound, the true members among it; each attack by itself, with other thresholds, with all its grades and
    with their roots; rules of one seed or of both; and what the attackers from one file agree on.
    """
    signals = signals_of(target, truths, known, likes=True)
    for one in known:
        made = [np.where(one.flagged, one.grades, 0.0)]
        if one.model.graded:
            if one.model.threshold > 0:
                made += [_first(one.grades, times * max(int(one.flagged.sum()), 1)) for times in THRESHOLDS]
                made += [one.grades] if not one.model.everything else []
            made += [one.grades**HESITANT] if (one.model.threshold > 0) != one.model.everything else []
        signals += [Signal(one.model.attacker, one.group, weights) for weights in made]
    for some in _by(known, lambda one: (one.model.attacker, one.auxiliary, one.group)):
        if not some[0].model.graded:
            flagged = [np.where(one.flagged, one.grades, 0.0) for one in some]
            signals += [Signal(some[0].model.attacker, some[0].group, f(flagged, axis=0)) for f in (np.min, np.max)]
    for some in _by(known, lambda one: (one.auxiliary, one.group)):
        some = [one for one in some if one.model.graded and one.model.threshold > 0]
        if some:
            agreed = _mean([one.grades for one in some])
            count = float(np.mean([one.flagged.sum() for one in some]))
            made = [*(_first(agreed, times * count) for times in AGREED), agreed, agreed**HESITANT]
            signals += [Signal("agreed", some[0].group, weights) for weights in made]
    return [signal for signal in signals if signal.weights.any()]


def _by(known: Sequence[Attack], key: Callable[[Attack], tuple[str, ...]]) -> list[list[Attack]]:
    """Attacks with the same key together, in the order in which they come."""
    groups: dict[tuple[str, ...], list[Attack]] = {}
    for one in known:
        groups.setdefault(key(one), []).append(one)
    return list(groups.values())


def _counted(some: Sequence[Attack]) -> Signal:
    first = some[0]
    return Signal(f"{first.model.attacker} from {first.auxiliary}", first.group, _mean([one.flagged for one in some]))


def _wider(one: Attack) -> Floats:
    """The grades of so many times the flagged records, the best first."""
    return _first(one.grades, WIDER * max(int(one.flagged.sum()), 1))


def _first(grades: Floats, count: float) -> Floats:
    """The grades of so many records, the best first, and of those as good as the last; nobody without a grade."""
    wanted = min(max(int(count), 1), int((grades > 0).sum()))
    if not wanted:
        return np.zeros(len(grades))
    least = np.partition(grades, len(grades) - wanted)[len(grades) - wanted]
    kept: Floats = np.where(grades >= least, grades, 0.0)
    return kept


def _mean(weights: Sequence[np.ndarray]) -> Floats:
    mean: Floats = np.mean(weights, axis=0)
    return mean
