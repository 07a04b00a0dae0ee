"""The comparison of two fronts."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np

from sfumato.algorithms.dominance import comparable, first_dominator, hypervolume
from sfumato.errors import InputError
from sfumato.front.front import Front


@dataclass(frozen=True)
class Comparison:
    """Two fronts compared: points, hypervolume as a share of the box around both, and dominance counts.

    `objectives` are those that both fronts have. A figure that only one of them was searched for is not compared.
    """

    objectives: tuple[str, ...]
    points: tuple[int, int]
    hypervolume: tuple[float, float]
    dominated: tuple[int, int]
    shared: int

    def as_dict(self) -> dict[str, object]:
        return asdict(self)


def compare_fronts(one: Front, two: Front) -> Comparison:
    """Compare two fronts of the same table over the objectives that both have.

    Args:
        one: a front.
        two: another front of the same table, with at least two objectives of the first.

    Returns:
        Which points of each dominate points of the other, and the usual indicators.
    """
    common = [objective for objective in one.objectives if objective in two.objectives]
    if len(common) < 2 or one.fingerprint != two.fingerprint:
        raise InputError(
            "the fronts have fewer than two objectives in common, or are of different tables",
            expected="two fronts of one table that have two objectives in common, and for cells one reading",
            remedy="choose another of the two fronts",
        )
    signs = np.array([objective.sign for objective in common])
    values = [comparable(signs * [[p.values[o.name] for o in common] for p in f.points]) for f in (one, two)]
    both = np.vstack(values)
    low, span = both.min(axis=0), np.ptp(both, axis=0)
    scaled = [(v - low) / np.where(span > 0, span, 1.0) for v in values]
    volumes = [hypervolume(v, np.full(len(signs), 1.0 + 1e-9)) for v in scaled]
    beaten = [int(np.sum(first_dominator(a, b) >= 0)) for a, b in (values, values[::-1])]
    shared = {tuple(row) for row in values[0].tolist()} & {tuple(row) for row in values[1].tolist()}
    counts = len(one.points), len(two.points)
    names = tuple(objective.name for objective in common)
    return Comparison(names, counts, (volumes[0], volumes[1]), (beaten[0], beaten[1]), len(shared))
