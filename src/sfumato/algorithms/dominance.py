"""Dominance, fronts and quality indicators of fronts. All objectives are minimised."""

from __future__ import annotations

import warnings

import numpy as np

from sfumato.base.arrays import Counts64, Flags, Floats
from sfumato.base.compiled import compiled

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import moocore

DIGITS = 12


def comparable(values: Floats, digits: int = DIGITS) -> Floats:
    """Round values to some significant digits, so that rounding errors do not decide dominance.

    >>> comparable(np.array([0.1 + 0.2, 201700.36300000001])).tolist()
    [0.3, 201700.363]
    """
    values = np.asarray(values, dtype=np.float64)
    finite = np.isfinite(values) & (values != 0)
    size = np.ones_like(values)
    size[finite] = 10.0 ** (digits - 1 - np.floor(np.log10(np.abs(values[finite]))))
    with np.errstate(invalid="ignore"):
        return np.where(finite, np.round(values * size) / size, values)


def non_dominated(values: Floats) -> Flags:
    """Return which rows no other row dominates. Equal rows are all kept.

    >>> non_dominated(np.array([[1.0, 2.0], [2.0, 1.0], [2.0, 2.0]])).tolist()
    [True, True, False]
    """
    return _non_dominated(values, equal=True)


def _non_dominated(values: Floats, equal: bool) -> Flags:
    if not len(values):
        return np.zeros(0, dtype=np.bool_)
    if values.shape[1] == 1:
        value = values[:, 0]
        return np.asarray(value == value.min() if equal else np.arange(len(value)) == value.argmin())
    return np.asarray(moocore.is_nondominated(_finite(values), keep_weakly=equal), dtype=np.bool_)


def _finite(values: Floats) -> Floats:
    """Replace infinities by numbers outside the range of their column, because moocore accepts none.

    >>> non_dominated(np.array([[np.inf, 0.5, 3.0], [np.inf, 0.2, 4.0], [0.0, 0.6, 5.0]])).tolist()
    [True, True, True]
    """
    result = np.array(values, dtype=np.float64, order="C")
    for column in result.T:
        if not np.isfinite(column).all():
            numbers = column[np.isfinite(column)]
            low, high = (numbers.min(), numbers.max()) if len(numbers) else (0.0, 0.0)
            margin = 1.0 + abs(low) + abs(high)
            column[column == np.inf] = high + margin
            column[column == -np.inf] = low - margin
    return result


def first_non_dominated(values: Floats) -> Flags:
    """Return which rows no other row dominates. Of equal rows the first is kept.

    >>> first_non_dominated(np.array([[1.0, 2.0], [1.0, 2.0], [2.0, 1.0]])).tolist()
    [True, False, True]
    """
    return _non_dominated(values, equal=False)


def ranks(values: Floats) -> Counts64:
    """Return the rank of each point: 0 if no point dominates it, 1 if only points of rank 0 do, and so on.

    >>> ranks(np.array([[1.0, 2.0], [2.0, 1.0], [2.0, 2.0], [3.0, 3.0]])).tolist()
    [0, 0, 1, 2]
    """
    if values.shape[1] == 1:
        return np.asarray(np.unique(values[:, 0], return_inverse=True)[1], dtype=np.int64)
    return np.asarray(moocore.pareto_rank(np.ascontiguousarray(values)), dtype=np.int64)


def hypervolume(values: Floats, reference: Floats) -> float:
    """Return the volume that a front dominates, up to a reference point."""
    inside = values[np.all(values < reference, axis=1)]
    return float(moocore.hypervolume(inside, ref=reference)) if len(inside) else 0.0


def convergence_error(points: Floats, front: Floats) -> tuple[float, float]:
    """Return the sum and the mean of CE: the distances of the found points to the true front.

    Each objective is divided by its maximum on the true front.
    """
    scale = np.abs(front).max(axis=0)
    scale[scale == 0] = 1.0
    distances = np.linalg.norm(points[:, None, :] / scale - front[None, :, :] / scale, axis=2).min(axis=1)
    return float(distances.sum()), float(distances.mean()) if len(distances) else 0.0


def representation_ratio(points: Floats, front: Floats, epsilon: Floats) -> float:
    """Return RR: the share of the true front's non-dominated boxes with a found point."""
    boxes = np.unique(boxes_of(front, epsilon), axis=0)
    marked = {tuple(box) for box in boxes[non_dominated(boxes)].tolist()}
    held = {tuple(box) for box in boxes_of(points, epsilon).tolist()}
    return len(marked & held) / len(marked)


def boxes_of(values: Floats, epsilon: Floats) -> Floats:
    """Return the ε-box of each point: its values divided by ε and rounded down.

    Maximised objectives are negated here, so their boxes are closed at the upper end. With the paper's floor of the
    natural value they would be closed at the lower end. This reading gives the reference figures for every ε.
    """
    return np.asarray(np.floor(comparable(values / epsilon)))


def dominated_by(bounds: Floats, archive: Floats) -> Flags:
    """Return which rows the archive dominates. No row of the archive may dominate another.

    >>> dominated_by(np.array([[2.0, 2.0], [1.0, 2.0], [0.0, 9.0]]), np.array([[1.0, 2.0], [2.0, 1.0]])).tolist()
    [True, False, False]
    """
    if not len(archive) or not len(bounds):
        return np.zeros(len(bounds), dtype=np.bool_)
    if archive.shape[1] != 2:
        return np.asarray(first_dominator(bounds, np.ascontiguousarray(archive)) >= 0)
    ordered = archive[np.argsort(archive[:, 0], kind="stable")]  # the second objective falls as the first rises
    position = np.searchsorted(ordered[:, 0], bounds[:, 0], side="right") - 1
    best = ordered[np.maximum(position, 0)]
    no_worse = (position >= 0) & (best[:, 1] <= bounds[:, 1])
    return np.asarray(no_worse & ((best[:, 0] < bounds[:, 0]) | (best[:, 1] < bounds[:, 1])))


@compiled
def first_dominator(bounds: Floats, archive: Floats) -> Counts64:
    """Return for each row an archive row that dominates it, or -1."""
    # The loops end at the first worse objective and at the first dominator, which numpy would compute in full.
    dominators = np.full(len(bounds), -1, np.int64)
    for i in range(len(bounds)):
        for a in range(len(archive)):
            better = False
            worse = False
            for j in range(archive.shape[1]):
                if archive[a, j] > bounds[i, j]:
                    worse = True
                    break
                if archive[a, j] < bounds[i, j]:
                    better = True
            if better and not worse:
                dominators[i] = a
                break
    return dominators


@compiled
def leave_dominated(values: Floats, start: Counts64, kept: Flags) -> None:
    """Set `kept` to False for rows that a row of their group dominates, and for all but the first of equal rows.

    `start[i]:start[i + 1]` are the rows of group i. This is `first_non_dominated` for many small groups.

    >>> kept = np.ones(5, dtype=np.bool_)
    >>> rows = np.array([[1.0, 2.0], [1.0, 2.0], [2.0, 1.0], [1.0, 3.0], [0.0, 4.0]])
    >>> leave_dominated(rows, np.array([0, 3, 5]), kept)
    >>> kept.tolist()
    [True, False, True, True, True]
    """
    for group in range(len(start) - 1):
        for i in range(start[group], start[group + 1]):
            for j in range(start[group], start[group + 1]):
                if i == j or not kept[i] or not kept[j]:
                    continue
                no_worse, better = True, j < i
                for column in range(values.shape[1]):
                    no_worse = no_worse and values[j, column] <= values[i, column]
                    better = better or values[j, column] < values[i, column]
                if no_worse and better:
                    kept[i] = False


class BoxArchive:
    """An ε-dominance archive (algorithm 1 of the paper): one member per box, and no box dominates another.

    >>> archive = BoxArchive(np.array([1.0, 1.0]))
    >>> archive.add(np.array([3.2, 1.0]), 0), archive.add(np.array([3.1, 1.0]), 1), archive.add(np.array([5.0, 9.0]), 2)
    (True, True, False)
    >>> archive.members
    [1]
    """

    def __init__(self, epsilon: Floats) -> None:
        self.epsilon = np.asarray(epsilon, dtype=np.float64)
        self.members: list[int] = []
        self._values = np.empty((0, len(self.epsilon)))
        self._boxes = np.empty((0, len(self.epsilon)))

    @property
    def values(self) -> Floats:
        return self._values

    def add(self, value: Floats, member: int) -> bool:
        """Add a candidate if the archive accepts it, and return whether it did."""
        value = comparable(value)
        box = boxes_of(value, self.epsilon)
        same = np.all(self._boxes == box, axis=1)
        boxes = np.all(box <= self._boxes, axis=1) & ~same
        inside = same & np.all(value <= self._values, axis=1) & np.any(value < self._values, axis=1)
        gone = boxes | inside
        if gone.any():
            self._keep(~gone)
            same = same[~gone]
        beaten = np.all(self._boxes <= box, axis=1) & ~same
        if beaten.any() or same.any():
            return False
        self.members.append(member)
        self._values = np.vstack([self._values, value])
        self._boxes = np.vstack([self._boxes, box])
        return True

    def _keep(self, kept: Flags) -> None:
        self.members = [member for member, stays in zip(self.members, kept, strict=True) if stays]
        self._values, self._boxes = self._values[kept], self._boxes[kept]
