"""One column in two releases: which labels fit each other, and which values follow from two labels together."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sfumato.release.history.shown import NOBODY
from sfumato.runtime.arrays import Counts64


@dataclass(frozen=True, eq=False)
class Overlap:
    """Two groupings of the same values.

    `exact` marks values that alone have their two labels, though each label has others, and `pair_exact` the pairs of
    labels among `fits` that have such a value. `part` numbers the finest
    groups that both groupings are finer than; labels of different parts never fit each other. `crossing` says that
    some labels of one part do not fit each other either, and `fits` lists the pairs that do. `telling` says that some
    two labels do not fit, so that the column helps to link rows. `first_follows`: the first label follows from the
    second.
    """

    exact: npt.NDArray[np.bool_]
    pair_exact: npt.NDArray[np.bool_]
    part: Counts64
    fits: Counts64
    crossing: bool
    telling: bool
    first_follows: bool
    second_follows: bool


def overlap(first: Counts64, second: Counts64) -> Overlap:
    """Compare two groupings, given as the group of each value; a value that one of them does not know is NOBODY's.

    >>> shifted = overlap(np.array([0, 0, 1, 1]), np.array([0, 0, 0, 1]))  # bands of four ages, one break moved
    >>> shifted.exact.tolist(), shifted.crossing, shifted.second_follows
    ([False, False, True, False], True, False)
    >>> overlap(np.array([0, 1, 2, 2]), np.array([0, 0, 1, 1])).second_follows
    True
    """
    known = (first != NOBODY) & (second != NOBODY)
    pairs, pair_of, counts = np.unique(
        np.stack([first[known], second[known]], axis=1), axis=0, return_inverse=True, return_counts=True
    )
    sizes = [dict(zip(*np.unique(side[side != NOBODY], return_counts=True), strict=True)) for side in (first, second)]
    exact = np.zeros(len(first), dtype=np.bool_)
    exact[known] = [
        counts[pair] == 1 and sizes[0][pairs[pair, 0]] > 1 and sizes[1][pairs[pair, 1]] > 1
        for pair in pair_of.reshape(-1)
    ]
    alone = np.array(
        [n == 1 and sizes[0][a] > 1 and sizes[1][b] > 1 for (a, b), n in zip(pairs.tolist(), counts, strict=True)],
        dtype=np.bool_,
    )
    part = _parts(first, second, pairs)
    labels = [len(sizes[0]), len(sizes[1])]
    return Overlap(
        exact=exact,
        pair_exact=alone,
        part=part,
        fits=pairs.astype(np.int64),
        crossing=_crossing(pairs, dict(zip(first.tolist(), part.tolist(), strict=True))),
        telling=len(pairs) < labels[0] * labels[1],
        first_follows=len(np.unique(pairs[:, 1])) == len(pairs),
        second_follows=len(np.unique(pairs[:, 0])) == len(pairs),
    )


def overlap_labels(first: npt.NDArray[np.bool_], second: npt.NDArray[np.bool_]) -> Overlap:
    """Compare labels that may overlap, given as the values each stands for. All of them are taken as one part.

    >>> both = overlap_labels(np.array([[1, 1, 0], [0, 1, 1]], bool), np.array([[0, 1, 1], [1, 1, 1]], bool))
    >>> both.fits.tolist(), both.pair_exact.tolist()
    ([[0, 0], [0, 1], [1, 0], [1, 1]], [True, False, False, False])
    """
    shared = first.astype(np.int64) @ second.astype(np.int64).T
    pairs = np.argwhere(shared > 0)
    sizes = first.sum(axis=1), second.sum(axis=1)
    alone = (shared[tuple(pairs.T)] == 1) & (sizes[0][pairs[:, 0]] > 1) & (sizes[1][pairs[:, 1]] > 1)
    held = int((sizes[0] > 0).sum()) * int((sizes[1] > 0).sum())
    values = first.shape[1]
    return Overlap(
        exact=np.zeros(values, dtype=np.bool_),
        pair_exact=np.asarray(alone),
        part=np.zeros(values, dtype=np.int64),
        fits=pairs.astype(np.int64),
        crossing=len(pairs) < held,
        telling=len(pairs) < held,
        first_follows=len(np.unique(pairs[:, 1])) == len(pairs),
        second_follows=len(np.unique(pairs[:, 0])) == len(pairs),
    )


def _parts(first: Counts64, second: Counts64, pairs: Counts64) -> Counts64:
    """The connected groups of labels that fit each other, for each value."""
    above: dict[tuple[int, int], tuple[int, int]] = {}

    def top(label: tuple[int, int]) -> tuple[int, int]:
        while above.setdefault(label, label) != label:
            above[label] = above[above[label]]
            label = above[label]
        return label

    for one, two in pairs.tolist():
        above[top((1, two))] = top((0, one))
    numbers: dict[tuple[int, int], int] = {}
    tops = (
        top((0, one)) if one != NOBODY else top((1, two)) if two != NOBODY else (2, 0)
        for one, two in zip(first.tolist(), second.tolist(), strict=True)
    )
    return np.array([numbers.setdefault(label, len(numbers)) for label in tops], dtype=np.int64)


def _crossing(pairs: Counts64, part_of: dict[int, int]) -> bool:
    """Whether a part has two labels that do not fit, so that being in one part is not enough."""
    ones: defaultdict[int, set[int]] = defaultdict(set)
    twos: defaultdict[int, set[int]] = defaultdict(set)
    fitting: Counter[int] = Counter()
    for one, two in pairs.tolist():
        part = part_of[one]
        ones[part].add(one)
        twos[part].add(two)
        fitting[part] += 1
    return any(len(ones[part]) * len(twos[part]) != count for part, count in fitting.items())
