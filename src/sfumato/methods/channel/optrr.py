"""OptRR (Huang and Du 2008): SPEA2 over n×n matrices, with Ω, the best matrix found in each interval of privacy.

SPEA2 (Zitzler, Laumanns, Thiele 2001) works on arrays of objectives that are all minimised: fitness and environmental
selection. The operators of OptRR work on batches of matrices: crossover, mutation, repair to δ, evaluation.
`batch[b, i, j]` is P(report i | true value j) of matrix b. Random numbers are passed as arrays, so a run depends only
on its seed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.algorithms.dominance import first_non_dominated
from sfumato.base.arrays import Counts64, Floats
from sfumato.base.compiled import compiled
from sfumato.base.progress import Progress
from sfumato.measures.channel import SINGULAR, attainable, worst_posterior
from sfumato.methods.channel.estimate import warner


@compiled
def fitness(values: Floats) -> Floats:
    """Return the raw fitness plus 1/(σ + 2), σ the distance to the nearest neighbour; below 1 is not dominated."""
    size, objectives = values.shape
    strength = np.zeros(size)
    nearest = np.full(size, np.inf)
    relation = np.zeros((size, size), np.int8)
    for i in range(size):
        for j in range(i + 1, size):
            less, more, distance = False, False, 0.0
            for k in range(objectives):
                a, b = values[i, k], values[j, k]
                if a < b:
                    less = True
                elif a > b:
                    more = True
                distance += (a - b) * (a - b)
            nearest[i] = min(nearest[i], distance)
            nearest[j] = min(nearest[j], distance)
            if less and not more:
                strength[i] += 1.0
                relation[j, i] = 1
            elif more and not less:
                strength[j] += 1.0
                relation[i, j] = 1
    scores = np.empty(size)
    for i in range(size):
        raw = 0.0
        for j in range(size):
            if relation[i, j]:
                raw += strength[j]
        scores[i] = raw + 1.0 / (np.sqrt(nearest[i]) + 2.0)
    return scores


@compiled
def _closer(distances: Floats, alive: Counts64, left: int, i: int, j: int) -> bool:
    """Return whether i has the smaller sorted distances; a complete tie is decided by the number."""
    # Two mutual nearest neighbours tie in the first distance. The second mostly decides, and needs no sorting.
    first_i, second_i, first_j, second_j = np.inf, np.inf, np.inf, np.inf
    for position in range(left):
        a, b = distances[i, alive[position]], distances[j, alive[position]]
        if a < first_i:
            first_i, second_i = a, first_i
        elif a < second_i:
            second_i = a
        if b < first_j:
            first_j, second_j = b, first_j
        elif b < second_j:
            second_j = b
    if second_i != second_j:
        return bool(second_i < second_j)
    mine, other = np.empty(left), np.empty(left)
    for position in range(left):
        mine[position] = distances[i, alive[position]]
        other[position] = distances[j, alive[position]]
    mine.sort()
    other.sort()
    for position in range(left):
        if mine[position] != other[position]:
            return bool(mine[position] < other[position])
    return i < j


@compiled
def truncated(values: Floats, size: int) -> Counts64:
    """Return the `size` points that are left after repeated removal of the point with the nearest neighbour."""
    count, objectives = values.shape
    distances = np.empty((count, count))
    for i in range(count):
        distances[i, i] = np.inf
        for j in range(i):
            total = 0.0
            for k in range(objectives):
                total += (values[i, k] - values[j, k]) ** 2
            distances[i, j] = total
            distances[j, i] = total
    alive = np.arange(count)
    nearest = np.empty(count)
    who = np.empty(count, np.int64)
    for i in range(count):
        who[i] = np.argmin(distances[i])
        nearest[i] = distances[i, who[i]]
    left = count
    while left > size:
        worst = 0
        for position in range(1, left):
            i, best = alive[position], alive[worst]
            if nearest[i] < nearest[best]:
                worst = position
            elif nearest[i] == nearest[best] and nearest[i] > 0 and _closer(distances, alive, left, i, best):
                worst = position  # equal points need no comparison: any of them may be removed
        gone = alive[worst]
        for position in range(worst, left - 1):
            alive[position] = alive[position + 1]
        left -= 1
        for position in range(left):
            i = alive[position]
            if who[i] == gone:
                nearest[i] = np.inf
                for other in range(left):
                    if distances[i, alive[other]] < nearest[i]:
                        nearest[i] = distances[i, alive[other]]
                        who[i] = alive[other]
    return alive[:left].copy()


def selected(values: Floats, scores: Floats, size: int) -> Counts64:
    """Return the environmental selection: the non-dominated points, filled up by fitness or truncated."""
    free = np.flatnonzero(scores < 1.0)
    if len(free) <= size:
        return np.argsort(scores, kind="stable")[:size]
    return np.asarray(free[truncated(values[free], size)])


REPAIRS = 60
SLACK = 1e-12
DUST = 1e-13  # rounding error of a zero; as the only entry of its row it would be a posterior of 1
WORST = 1.0 / SINGULAR  # a larger spread counts as infinite, as in the measures


@compiled
def crossed(parents: Floats, cuts: Counts64) -> None:
    """Exchange all columns from the cut on between neighbours in the batch."""
    n = parents.shape[2]
    for pair in range(len(parents) // 2):
        one, two = parents[2 * pair], parents[2 * pair + 1]
        for i in range(n):
            for j in range(cuts[pair], n):
                one[i, j], two[i, j] = two[i, j], one[i, j]


@compiled
def mutated(batch: Floats, columns: Counts64, rows: Counts64, steps: Floats) -> None:
    """Change one element of one column by a step; the others change in proportion to their size, or to 1 minus it."""
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
    """Lower entries with a posterior above δ, and move the excess within the column; return False if it does not fit.

    An entry is lowered to δ·r/((1−δ)·P). The other entries of its column take the excess in proportion to their slack.
    """
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
    """Compute the inverse by elimination with pivots; return False if the matrix is numerically singular."""
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
    """Move better matrices of the batch into Ω, then better matrices of Ω into the batch."""
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


@dataclass(frozen=True)
class OptrrSettings:
    """Settings that the paper leaves open (docs/readings.md, 3.6)."""

    generations: int = 20_000
    population: int = 100
    archive: int = 100
    cells: int = 1000
    step: float = 0.2
    seeded: int = 10  # Warner matrices in the first population; without them the result can be worse than they are
    seed: int = 1
    records: int = 10_000  # scale of the error, which affects the distances that keep the archive diverse


@dataclass(frozen=True, eq=False)
class Archive:
    """The non-dominated matrices, by rising privacy; `generations` is the number of generations made."""

    matrices: Floats
    privacy: Floats
    error: Floats
    generations: int

    def best_at(self, privacy: float) -> int | None:
        """Return the position of the matrix with the least error among those of at least this privacy."""
        position = int(np.searchsorted(self.privacy, privacy - 1e-12))
        return position if position < len(self.privacy) else None


def optrr(
    prior: Floats, delta: float, settings: OptrrSettings | None = None, progress: Progress | None = None
) -> Archive:
    """Run OptRR. `progress(done, total)` may stop it by returning True; the matrices found so far are kept."""
    settings = settings or OptrrSettings()
    attainable(prior, delta)
    rng, n = np.random.default_rng(settings.seed), len(prior)
    population = _first(prior, delta, settings, rng)
    values = np.empty((len(population), 2))
    evaluated(population, prior, delta, settings.records, values)
    omega, best = np.zeros((settings.cells + 1, n, n)), np.full((settings.cells + 1, 2), np.inf)
    exchanged(population, values, omega, best)
    archive, kept = population[:0], values[:0]
    done = 0
    for done in range(1, settings.generations + 1):
        both, all_values = np.concatenate([population, archive]), np.concatenate([values, kept])
        finite = np.isfinite(all_values[:, 1])
        both, all_values = both[finite], all_values[finite]
        fitness_of = fitness(all_values)
        chosen = selected(all_values, fitness_of, settings.archive)
        archive, kept, fit = both[chosen], all_values[chosen], fitness_of[chosen]
        pairs = rng.integers(0, len(archive), (settings.population, 2))
        winners = np.where(fit[pairs[:, 0]] <= fit[pairs[:, 1]], pairs[:, 0], pairs[:, 1])
        population = archive[winners]
        crossed(population, rng.integers(1, n, settings.population // 2))
        cells = rng.integers(0, n, (2, settings.population))
        mutated(population, cells[0], cells[1], settings.step * (2.0 * rng.random(settings.population) - 1.0))
        values = np.empty((settings.population, 2))
        evaluated(population, prior, delta, settings.records, values)
        exchanged(population, values, omega, best)  # section V.H
        exchanged(archive, kept, omega, best)
        if progress is not None and done % 50 == 0 and progress(done, settings.generations):
            break
    filled = np.flatnonzero(np.isfinite(best[:, 1]))
    front = filled[first_non_dominated(best[filled])]  # Ω can also hold dominated matrices
    front = front[np.argsort(-best[front, 0], kind="stable")]
    return Archive(omega[front].copy(), -best[front, 0], best[front, 1].copy(), done)


def _first(prior: Floats, delta: float, settings: OptrrSettings, rng: np.random.Generator) -> Floats:
    """Return random columns, some nearly certain and some nearly even, and a few Warner matrices that keep δ."""
    n = len(prior)
    sharp = np.exp(rng.uniform(np.log(0.03), np.log(2.0), settings.population))
    population = np.array([rng.dirichlet(np.full(n, alpha), n).T for alpha in sharp])
    truths = np.linspace(1.0 / n, 1.0, 201)[1:]
    truest = max((p for p in truths if worst_posterior(warner(n, p), prior) <= delta + 1e-12), default=0.0)
    if truest > 0:
        # Closer and closer to the ceiling, where random matrices are almost singular.
        for number, share in enumerate(0.6 ** np.arange(settings.seeded)):
            population[number] = warner(n, float(1.0 / n + share * (truest - 1.0 / n)))
    return np.ascontiguousarray(population)
