"""Which released columns tell who is in the group, in order, and what withholding or coarsening each takes away."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.errors import StudyError, shortened
from sfumato.runtime.arrays import Counts64, Flags, Floats
from sfumato.systems.groups.attack.learners import fit, graded_by
from sfumato.systems.groups.attack.precision import average_precision
from sfumato.systems.groups.files.microfile import Microfile
from sfumato.systems.groups.files.wide import Wide

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
