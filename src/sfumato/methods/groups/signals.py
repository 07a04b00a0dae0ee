"""What a plan bounds in every area: the true members, what known attackers add up, and what others like them would.

An attacker whom nobody knows draws the line elsewhere and is surer or less sure of the same people. So each known
attacker who grades by numbers stands for others: one who flags three times as many records, one who adds up all
grades, and one who hesitates, whose grades are the square roots. What these four show alike, others show too.

Which released columns tell who is in the group, in order, and what withholding or coarsening each takes away.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.base.arrays import Counts64, Flags, Floats
from sfumato.errors import StudyError, shortened
from sfumato.methods.groups.attack.attack import Attack
from sfumato.methods.groups.attack.learners import average_precision, fit, graded_by
from sfumato.methods.groups.files import Truth
from sfumato.methods.groups.microfile import Microfile, Wide
from sfumato.methods.groups.swapping.bounds import Signal

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


FINE, COARSE = 50, 4  # groups of a column with many values, and of one that is coarsened
SHUFFLES = 2


@dataclass(frozen=True)
class Telling:
    """How well a column tells the members: its average precision by itself, that of the column in four groups, and by
    how much the attacker who has all columns falls when this one is withheld."""

    column: str
    alone: float
    coarsened: float
    withheld: float | None

    def as_dict(self) -> dict[str, Any]:
        return {
            "column": self.column,
            "alone": round(self.alone, 4),
            "coarsening_takes": round(max(self.alone - self.coarsened, 0.0), 4),
            "withholding_takes": None if self.withheld is None else round(self.withheld, 4),
        }


def alone(codes: Counts64, members: Flags) -> float:
    """The average precision of the share of members among the records with the same value in the other half.

    Halves are every other member and every other non-member, so the figure depends on the order of the records, and
    one value in thousands tells nothing by itself.

    >>> round(alone(np.array([0, 0, 0, 1, 1, 1, 1, 1]), np.array([1, 1, 0, 0, 0, 0, 0, 0], bool)), 2)
    0.58
    """
    half = np.zeros(len(members), np.bool_)
    for kind in (np.flatnonzero(members), np.flatnonzero(~members)):
        half[kind[::2]] = True
    grades = np.zeros(len(members))
    base, size = float(members.mean()), int(codes.max(initial=0)) + 1
    for learned in (half, ~half):
        hit = np.bincount(codes[learned & members], minlength=size)
        seen = np.bincount(codes[learned], minlength=size)
        grades[~learned] = ((hit + base) / (seen + 1))[codes[~learned]]
    return average_precision(members, grades)


def grouped(wide: Wide, column: int, limit: int) -> Counts64:
    """A column in at most so many groups: quantiles of a number, the most frequent values of text; missing is one."""
    codes, values = wide.codes[column].astype(np.int64), wide.values[column]
    missing = codes < 0
    if len(values) > limit:
        counts = np.bincount(codes[~missing], minlength=len(values))
        if values.dtype.kind == "f":
            middle = np.cumsum(counts) - counts / 2
            group_of = np.minimum((middle * limit / max(counts.sum(), 1)).astype(np.int64), limit - 1)
        else:
            group_of = np.full(len(values), limit - 1, np.int64)
            group_of[np.argsort(-counts, kind="stable")[: limit - 1]] = np.arange(limit - 1)
        codes = np.where(missing, -1, group_of[codes])
    numbered: Counts64 = codes + 1
    return numbered


def refuse_naming(target: Microfile, basic: Collection[str], limit: float) -> None:
    """Raise if a released column nearly names a group: by itself it tells the members better than the limit.

    Attributes that attackers learn from anyway are not asked: the protection is made against what they tell.
    """
    wide = target.wide
    if wide is None:
        return
    for group, members in target.members.items():
        if not members.any():
            continue
        named = {
            name: precision
            for i, name in enumerate(wide.names)
            if name not in basic and (precision := alone(grouped(wide, i, FINE), members)) > limit
        }
        if named:
            listed = [f"{name} ({precision:.2f})" for name, precision in named.items()]
            raise StudyError(
                f"released columns nearly name the group {group}: {shortened(listed)}",
                expected=f"an average precision of at most naming = {limit:g} under [groups] for each column alone",
                remedy=f"withhold = [{', '.join(map(repr, named))}] under [groups]".replace("'", '"'),
            )


def singly(target: Microfile, group: str, limit: int) -> list[dict[str, Any]]:
    """The columns that tell most of a group by themselves, and what coarsening takes away."""
    wide, members = target.wide, target.members[group]
    if wide is None or not members.any():
        return []
    precision = [alone(grouped(wide, i, FINE), members) for i in range(len(wide.names))]
    order = sorted(range(len(wide.names)), key=lambda i: (-precision[i], wide.names[i]))[:limit]
    listed = [Telling(wide.names[i], precision[i], alone(grouped(wide, i, COARSE), members), None) for i in order]
    return [one.as_dict() for one in listed]


def ranked(target: Microfile, group: str, seed: int, limit: int = 25) -> list[Telling]:
    """The columns that tell most of a group, the best first.

    What withholding takes is measured by shuffling the column for a boosted attacker with all columns, who learned from
    every other record of the file itself: more than one that learned elsewhere can have.
    """
    wide, members = target.wide, target.members[group]
    if wide is None or not members.any():
        return []
    singles = [alone(grouped(wide, i, FINE), members) for i in range(len(wide.names))]
    order = sorted(range(len(wide.names)), key=lambda i: (-singles[i], wide.names[i]))[:limit]
    taken = _withheld(wide, members, order, seed)
    listed = [Telling(wide.names[i], singles[i], alone(grouped(wide, i, COARSE), members), taken[i]) for i in order]
    return sorted(listed, key=lambda one: -max(one.alone, one.withheld or 0.0))


def _withheld(wide: Wide, members: Flags, asked: Sequence[int], seed: int) -> dict[int, float]:
    """For some columns, the fall of the average precision on the other half when the column is shuffled there."""
    rng = np.random.default_rng(seed)
    matrix = wide.numbers(wide)
    usable = [i for i, values in enumerate(wide.values) if len(values) > 1]
    half = np.zeros(len(members), np.bool_)
    for kind in (np.flatnonzero(members), np.flatnonzero(~members)):
        half[kind[::2]] = True
    if not usable or not (members & half).any() or not (members & ~half).any():
        return dict.fromkeys(asked, 0.0)
    learned: Floats = matrix[:, usable]
    fitted, prepared = fit("boosted", learned[half], members[half], seed)
    held, truth = learned[~half], members[~half]
    full = average_precision(truth, graded_by(fitted, held, prepared))
    taken = dict.fromkeys(asked, 0.0)
    for j, i in enumerate(usable):
        if i not in taken:
            continue
        falls = []
        for _ in range(SHUFFLES):
            kept = held[:, j].copy()
            held[:, j] = rng.permutation(kept)
            falls.append(full - average_precision(truth, graded_by(fitted, held, prepared)))
            held[:, j] = kept
        taken[i] = float(np.mean(falls))
    return taken
