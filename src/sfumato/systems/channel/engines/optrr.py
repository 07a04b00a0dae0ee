"""OptRR (Huang and Du 2008): SPEA2 over n×n matrices, with Ω, the best matrix seen in each cell of privacy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.algorithms.dominance import first_non_dominated
from sfumato.algorithms.spea2 import fitness, selected
from sfumato.measures.channel import attainable, worst_posterior
from sfumato.runtime.arrays import Floats
from sfumato.runtime.stages import Progress
from sfumato.systems.channel.engines.variation import crossed, evaluated, exchanged, mutated
from sfumato.systems.channel.response import warner


@dataclass(frozen=True)
class OptrrSettings:
    """What the paper leaves open (docs/readings.md, 3.6)."""

    generations: int = 20_000
    population: int = 100
    archive: int = 100
    cells: int = 1000
    step: float = 0.2
    seeded: int = 10  # Warner matrices in the first population; without any the search can end up above them
    seed: int = 1
    records: int = 10_000  # the scale of the error; it has a part in the distances that keep the archive diverse


@dataclass(frozen=True, eq=False)
class Archive:
    """Matrices that no other found one dominates, by rising privacy; `generations` is how far the run came."""

    matrices: Floats
    privacy: Floats
    error: Floats
    generations: int

    def best_at(self, privacy: float) -> int | None:
        """The place of the matrix with the least error among those of at least this privacy."""
        position = int(np.searchsorted(self.privacy, privacy - 1e-12))
        return position if position < len(self.privacy) else None


class _Omega:
    """The best matrix seen for each cell of privacy."""

    def __init__(self, cells: int, n: int) -> None:
        self.matrices = np.zeros((cells + 1, n, n))
        self.values = np.full((cells + 1, 2), np.inf)

    def exchange(self, batch: Floats, values: Floats) -> None:
        """Better matrices go in; where Ω has a better one, it comes out (section V.H)."""
        exchanged(batch, values, self.matrices, self.values)

    def archive(self, generations: int) -> Archive:
        """Cells can hold dominated matrices, so the last step is a filter."""
        filled = np.flatnonzero(np.isfinite(self.values[:, 1]))
        best = filled[first_non_dominated(self.values[filled])]
        kept = best[np.argsort(-self.values[best, 0], kind="stable")]
        return Archive(self.matrices[kept].copy(), -self.values[kept, 0], self.values[kept, 1].copy(), generations)


def optrr(
    prior: Floats, delta: float, settings: OptrrSettings | None = None, progress: Progress | None = None
) -> Archive:
    """Run OptRR. `progress(done, total)` may stop it by returning True; what was found is kept."""
    settings = settings or OptrrSettings()
    attainable(prior, delta)
    rng, n = np.random.default_rng(settings.seed), len(prior)
    population = _first(prior, delta, settings, rng)
    values = np.empty((len(population), 2))
    evaluated(population, prior, delta, settings.records, values)
    omega = _Omega(settings.cells, n)
    omega.exchange(population, values)
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
        omega.exchange(population, values)
        omega.exchange(archive, kept)
        if progress is not None and done % 50 == 0 and progress(done, settings.generations):
            break
    return omega.archive(done)


def _first(prior: Floats, delta: float, settings: OptrrSettings, rng: np.random.Generator) -> Floats:
    """Columns at random, some nearly certain and some nearly even, and a few Warner matrices that keep δ."""
    n = len(prior)
    sharp = np.exp(rng.uniform(np.log(0.03), np.log(2.0), settings.population))
    population = np.array([rng.dirichlet(np.full(n, alpha), n).T for alpha in sharp])
    truths = np.linspace(1.0 / n, 1.0, 201)[1:]
    truest = max((p for p in truths if worst_posterior(warner(n, p), prior) <= delta + 1e-12), default=0.0)
    if truest > 0:
        # Ever closer to the ceiling, where matrices at random are all but singular.
        for number, share in enumerate(0.6 ** np.arange(settings.seeded)):
            population[number] = warner(n, float(1.0 / n + share * (truest - 1.0 / n)))
    return np.ascontiguousarray(population)
