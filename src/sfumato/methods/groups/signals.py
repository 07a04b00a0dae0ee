"""The signals that a plan bounds in every area: true members, known attackers' sums, and sums of others like them.

An unknown attacker uses another threshold, and is more or less certain of the same people. So each known attacker with
numerical grades has three variants: one that flags three times as many records, one that sums all grades, and one that
is less certain, whose grades are the square roots. What all four reveal, other attackers reveal too.

The second part ranks the released columns by how well they reveal the members, and what withholding or coarsening each
one removes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.base.arrays import Counts64, Flags, Floats
from sfumato.errors import StudyError, shortened
from sfumato.methods.groups.attack.attack import Attack
from sfumato.methods.groups.attack.learners import average_precision, fit
from sfumato.methods.groups.files import Truth
from sfumato.methods.groups.microfile import Microfile, Wide, quantile_groups
from sfumato.methods.groups.swapping.bounds import Signal

WIDER = 3  # multiple of the flagged records, to bound an attacker that flags more
HESITANT = 0.5  # the power of the grades of a less certain attacker
THRESHOLDS = (0.5, 1.7, WIDER)  # multiples of the flagged records that attackers with other limits flag
AGREED = (0.5, 1.0, 2.0)  # the same for what attackers agree on


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
        made = [_counted(some)] if counted_only else alike(some)[: None if likes else 1]
        for signal in made:
            # A signal that is bounded twice would only make the program larger.
            if not any(
                other.group == signal.group and np.array_equal(other.weights, signal.weights) for other in signals
            ):
                signals.append(signal)
    return signals


def alike(some: Sequence[Attack]) -> list[Signal]:
    """Return the mean signal of one attacker over its seeds, and those of its variants. Rules have no variants."""
    first = some[0]
    marks, name = first.model.threshold > 0, f"{first.model.attacker} from {first.auxiliary}"
    signals = [Signal(name, first.group, _mean([np.where(one.flagged, one.grades, 0.0) for one in some]), marks)]
    if not first.model.graded:
        return signals
    if marks:
        wider = _mean([_wider(one) for one in some])
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
    """Return attacks grouped by a key, in their order."""
    groups: dict[tuple[str, ...], list[Attack]] = {}
    for one in known:
        groups.setdefault(key(one), []).append(one)
    return list(groups.values())


def _counted(some: Sequence[Attack]) -> Signal:
    first = some[0]
    return Signal(f"{first.model.attacker} from {first.auxiliary}", first.group, _mean([one.flagged for one in some]))


def _wider(one: Attack) -> Floats:
    """Return the grades of WIDER times as many records as are flagged, the best first."""
    return _first(one.grades, WIDER * max(int(one.flagged.sum()), 1))


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


FINE, COARSE = 50, 4  # groups of a column with many values, and of a coarsened one
SHUFFLES = 2


@dataclass(frozen=True)
class Telling:
    """How well a column reveals the members of a group, by average precision: alone, and what coarsening it takes away.

    The last figure is the loss of the attacker with all columns if this one is withheld.
    """

    column: str
    alone: float
    coarsening_takes: float
    withholding_takes: float | None


def _half(members: Flags) -> Flags:
    """Return every other member and every other non-member."""
    half = np.zeros(len(members), np.bool_)
    for kind in (np.flatnonzero(members), np.flatnonzero(~members)):
        half[kind[::2]] = True
    return half


def alone(codes: Counts64, members: Flags) -> float:
    """Return the average precision of the members' share among the records with the same value in the other half.

    The figure depends on the order of the records. A value that occurs only once reveals nothing.

    >>> round(alone(np.array([0, 0, 0, 1, 1, 1, 1, 1]), np.array([1, 1, 0, 0, 0, 0, 0, 0], bool)), 2)
    0.58
    """
    half = _half(members)
    grades = np.zeros(len(members))
    base, size = float(members.mean()), int(codes.max(initial=0)) + 1
    for learned in (half, ~half):
        hit = np.bincount(codes[learned & members], minlength=size)
        seen = np.bincount(codes[learned], minlength=size)
        grades[~learned] = ((hit + base) / (seen + 1))[codes[~learned]]
    return average_precision(members, grades)


def grouped(wide: Wide, column: int, limit: int) -> Counts64:
    """Return a column in a limited number of groups: quantiles of a number, the most frequent values of text.

    Missing values are one group.
    """
    codes, values = wide.codes[column].astype(np.int64), wide.values[column]
    missing = codes < 0
    if len(values) > limit:
        counts = np.bincount(codes[~missing], minlength=len(values))
        if values.dtype.kind == "f":
            group_of = quantile_groups(counts, limit)
        else:
            group_of = np.full(len(values), limit - 1, np.int64)
            group_of[np.argsort(-counts, kind="stable")[: limit - 1]] = np.arange(limit - 1)
        codes = np.where(missing, -1, group_of[codes])
    numbered: Counts64 = codes + 1
    return numbered


def refuse_naming(target: Microfile, basic: Collection[str], limit: float) -> None:
    """Raise if a released column nearly names a group: its average precision exceeds the limit.

    Attributes that attackers learn from are not checked, because the protection is made against them.
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


def ranked(target: Microfile, group: str, limit: int, seed: int | None = None) -> list[Telling]:
    """Return the columns that reveal most of a group by themselves, the best first.

    With a seed the effect of withholding is measured as well, by shuffling the column for a boosted attacker with all
    columns. This attacker learned from every other record of the file itself, so that one that learned elsewhere can
    hardly do better.
    """
    wide, members = target.wide, target.members[group]
    if wide is None or not members.any():
        return []
    singles = [alone(grouped(wide, i, FINE), members) for i in range(len(wide.names))]
    order = sorted(range(len(wide.names)), key=lambda i: (-singles[i], wide.names[i]))[:limit]
    taken: Mapping[int, float] = {} if seed is None else _withheld(wide, members, order, seed)
    order.sort(key=lambda i: -max(singles[i], taken.get(i, 0.0)))
    listed = []
    for i in order:
        coarsening = max(singles[i] - alone(grouped(wide, i, COARSE), members), 0.0)
        withholding = round(taken[i], 4) if taken else None
        listed.append(Telling(wide.names[i], round(singles[i], 4), round(coarsening, 4), withholding))
    return listed


def _withheld(wide: Wide, members: Flags, asked: Sequence[int], seed: int) -> dict[int, float]:
    """Return, for some columns, the fall of the average precision on the other half if the column is shuffled there."""
    rng = np.random.default_rng(seed)
    matrix = wide.numbers(wide)
    usable = [i for i, values in enumerate(wide.values) if len(values) > 1]
    half = _half(members)
    if not usable or not (members & half).any() or not (members & ~half).any():
        return dict.fromkeys(asked, 0.0)
    learned: Floats = matrix[:, usable]
    fitted = fit("boosted", learned[half], members[half], seed)
    held, truth = learned[~half], members[~half]
    full = average_precision(truth, fitted(held))
    taken = dict.fromkeys(asked, 0.0)
    for j, i in enumerate(usable):
        if i not in taken:
            continue
        falls = []
        for _ in range(SHUFFLES):
            kept = held[:, j].copy()
            held[:, j] = rng.permutation(kept)
            falls.append(full - average_precision(truth, fitted(held)))
            held[:, j] = kept
        taken[i] = float(np.mean(falls))
    return taken
