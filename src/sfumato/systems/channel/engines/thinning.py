"""Mixtures of columns: made to add up to a goal, and made of few columns."""

from __future__ import annotations

import numpy as np

from sfumato.runtime.arrays import Floats

INDEPENDENT = 1e-8
REFRESH = 64
SAME = 1e-9  # of the largest sum: what a thinned mixture may differ by


def wall(values: Floats, step: Floats) -> float:
    """How far values can go until one is zero."""
    falling = step < 0
    return float(np.min(-values[falling] / step[falling])) if falling.any() else np.inf


def balanced(columns: Floats, weights: Floats, goal: Floats) -> Floats:
    """Weights moved, each in proportion to its size, until the columns add up to the goal."""
    for _ in range(50):
        off = goal - columns @ weights
        if np.abs(off).max() < 1e-15:
            break
        push = columns * weights**2
        change = push.T @ np.linalg.lstsq(push @ columns.T, off, rcond=None)[0]
        weights = weights + min(1.0, 0.9 * wall(weights, change)) * change
    return weights


def thin(columns: Floats, weights: Floats) -> Floats:
    """The same sum of weighted columns from no more columns than they have rows (Carathéodory).

    Columns come in turn, the heaviest first. One that the basis cannot express joins it; of the others the weight moves
    into the basis, until it is used up or a member of the basis is, whose place it then takes.

    >>> left = thin(np.ones((1, 4)), np.array([0.1, 0.2, 0.3, 0.4]))
    >>> int((left > 0).sum()), round(float(left.sum()), 12)
    (1, 1.0)

    Where columns depend on each other up to rounding, an exchange can lose the sum. All columns are kept then.
    """
    try:
        thinned = _exchanged(columns, weights)
    except np.linalg.LinAlgError:
        return weights
    total = columns @ weights
    return thinned if np.abs(columns @ thinned - total).max() <= SAME * np.abs(total).max() else weights


def _exchanged(columns: Floats, weights: Floats) -> Floats:
    """The weights of the last basis; see `thin`."""
    rows = len(columns)
    size = np.linalg.norm(columns, axis=1, keepdims=True)
    columns = columns / np.where(size > 0, size, 1.0) * np.sqrt(columns.shape[1])
    inverse, members, held = np.eye(rows), np.full(rows, -1), np.zeros(rows)
    pivots = 0
    for j in np.argsort(-weights, kind="stable"):
        left = float(weights[j])
        if left <= 0:
            break
        mix = inverse @ columns[:, j]
        open_ = np.where(members < 0, np.abs(mix), 0.0)
        position = int(np.argmax(open_))
        if open_[position] > INDEPENDENT:
            held[position] = left
        else:
            falling = (mix < 0) & (members >= 0)
            ratio = np.where(falling, held / np.where(falling, -mix, 1.0), np.inf)
            position = int(np.argmin(ratio))
            moved = min(left, float(ratio[position]))
            held = np.where(members >= 0, np.maximum(held + moved * mix, 0.0), 0.0)
            if moved == left:
                continue
            held[position] = left - moved
        members[position] = j
        pivots += 1
        if pivots % REFRESH == 0:  # rounding adds up over many exchanges
            inverse = np.linalg.inv(np.where(members >= 0, columns[:, members], np.eye(rows)))
            continue
        inverse[position] /= mix[position]
        mix[position] = 0.0
        inverse -= np.outer(mix, inverse[position])
    thinned = np.zeros(len(weights))
    thinned[members[members >= 0]] = held[members >= 0]
    return thinned
