"""The operators of OptRR on whole batches of matrices: crossover, mutation, repair to δ, evaluation.

`batch[b, i, j]` is P(report i | truth j) of matrix b. Random numbers come in as arrays, so a run is its seed's.
"""

from __future__ import annotations

import numpy as np

from sfumato.measures.channel import SINGULAR
from sfumato.runtime.arrays import Counts64, Floats
from sfumato.runtime.compiled import compiled

REPAIRS = 60
SLACK = 1e-12
DUST = 1e-13  # what subtraction leaves of zero; alone in its row it would be a certain posterior
WORST = 1.0 / SINGULAR  # a spread above this is called infinite, as in the measures


@compiled
def crossed(parents: Floats, cuts: Counts64) -> None:
    """Neighbours in the batch exchange all columns from their cut on."""
    n = parents.shape[2]
    for pair in range(len(parents) // 2):
        one, two = parents[2 * pair], parents[2 * pair + 1]
        for i in range(n):
            for j in range(cuts[pair], n):
                one[i, j], two[i, j] = two[i, j], one[i, j]


@compiled
def mutated(batch: Floats, columns: Counts64, rows: Counts64, steps: Floats) -> None:
    """One element of one column moves by a step; the others pay in proportion to what they have, or to 1 minus it."""
    n = batch.shape[1]
    for b in range(len(batch)):
        matrix, i, j = batch[b], rows[b], columns[b]
        old = matrix[i, j]
        step = min(max(steps[b], -old), 1.0 - old)
        others = 0.0
        for k in range(n):
            if k != i:
                others += matrix[k, j] if step > 0 else 1.0 - matrix[k, j]
        if others <= 0.0:
            continue
        for k in range(n):
            if k != i:
                share = matrix[k, j] if step > 0 else 1.0 - matrix[k, j]
                matrix[k, j] -= step * share / others
        matrix[i, j] = old + step


@compiled
def repaired(matrix: Floats, prior: Floats, delta: float) -> bool:
    """Lower entries whose posterior is above δ to δ·r/((1−δ)·P), their excess to the column's headroom; or give up."""
    n = len(prior)
    if delta >= 1.0:
        return True
    ratio = delta / (1.0 - delta)
    reported = np.zeros(n)
    for i in range(n):
        for j in range(n):
            if matrix[i, j] < DUST:
                matrix[i, j] = 0.0
            reported[i] += matrix[i, j] * prior[j]
    room = np.empty(n)
    for _ in range(REPAIRS):
        fine = True
        for j in range(n):
            for i in range(n):
                own = matrix[i, j] * prior[j]
                if own <= (delta + SLACK) * reported[i]:
                    continue
                fine = False
                target = ratio * max(reported[i] - own, 0.0) / prior[j]
                excess = matrix[i, j] - target
                total = 0.0
                for k in range(n):
                    room[k] = 0.0
                    if k != i:
                        limit = ratio * (reported[k] - matrix[k, j] * prior[j]) / prior[j]
                        room[k] = max(min(limit, 1.0) - matrix[k, j], 0.0)
                        total += room[k]
                if total < excess:
                    return False
                matrix[i, j] = target
                reported[i] -= excess * prior[j]
                for k in range(n):
                    if room[k] > 0.0:
                        part = excess * room[k] / total
                        matrix[k, j] += part
                        reported[k] += part * prior[j]
        if fine:
            return True
    return False


@compiled
def inverted(matrix: Floats, inverse: Floats) -> bool:
    """The inverse by elimination with pivots; False where there is none to speak of."""
    n = len(matrix)
    work = matrix.copy()
    for i in range(n):
        for j in range(n):
            inverse[i, j] = 1.0 if i == j else 0.0
    for column in range(n):
        pivot, largest = column, abs(work[column, column])
        for row in range(column + 1, n):
            if abs(work[row, column]) > largest:
                pivot, largest = row, abs(work[row, column])
        if largest < 1e-12:
            return False
        if pivot != column:
            for j in range(n):
                work[pivot, j], work[column, j] = work[column, j], work[pivot, j]
                inverse[pivot, j], inverse[column, j] = inverse[column, j], inverse[pivot, j]
        scale = 1.0 / work[column, column]
        for j in range(n):
            work[column, j] *= scale
            inverse[column, j] *= scale
        for row in range(n):
            factor = work[row, column]
            if row != column and factor != 0.0:
                for j in range(n):
                    work[row, j] -= factor * work[column, j]
                    inverse[row, j] -= factor * inverse[column, j]
    return True


@compiled
def evaluated(batch: Floats, prior: Floats, delta: float, records: int, values: Floats) -> None:
    """Repair and evaluate: minus privacy, and the error; infinite where δ cannot be met or the matrix is singular."""
    n = len(prior)
    squares = 0.0
    for j in range(n):
        squares += prior[j] * prior[j]
    inverse = np.empty((n, n))
    for b in range(len(batch)):
        matrix = batch[b]
        values[b, 0], values[b, 1] = 0.0, np.inf
        if not repaired(matrix, prior, delta) or not inverted(matrix, inverse):
            continue
        accuracy, spread = 0.0, 0.0
        for i in range(n):
            reported, tallest, column = 0.0, 0.0, 0.0
            for j in range(n):
                own = matrix[i, j] * prior[j]
                reported += own
                tallest = max(tallest, own)
                column += inverse[j, i] * inverse[j, i]
            accuracy += tallest
            spread += column * reported
        if spread < WORST:
            values[b, 0], values[b, 1] = accuracy - 1.0, (spread - squares) / (n * records)


@compiled
def exchanged(batch: Floats, values: Floats, best: Floats, best_values: Floats) -> None:
    """Better matrices of the batch go into their cell of privacy, then better ones of the cells into the batch."""
    cells = len(best) - 1
    for inward in (True, False):
        for b in range(len(batch)):
            if not np.isfinite(values[b, 1]):
                continue
            cell = min(max(int(-values[b, 0] * cells), 0), cells)
            if inward and values[b, 1] < best_values[cell, 1]:
                best[cell], best_values[cell] = batch[b], values[b]
            elif not inward and best_values[cell, 1] < values[b, 1]:
                batch[b], values[b] = best[cell], best_values[cell]
