"""The paper's evolutionary search for rules: one rule is one individual, the whole population a rule base."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sfumato.errors import StoppedError
from sfumato.runtime.arrays import Codes, Counts64, Floats


@dataclass(frozen=True)
class Michigan:
    """The parameters, with the paper's values."""

    population: int = 100
    replaced: int = 40
    tournament: int = 10
    mutation: float = 0.05
    generations: int = 100
    runs: int = 10

    def evolve(
        self,
        terms: Counts64,
        fitness: Callable[[Codes], Floats],
        rng: np.random.Generator,
        stop: Callable[[], bool] | None = None,
    ) -> Codes:
        """Every distinct rule of every generation of every run. λ pairs have one child each (docs/readings.md, 4.7)."""
        seen: dict[bytes, Codes] = {}
        width = len(terms)
        for _ in range(self.runs):
            rules = rng.integers(0, terms + 1, size=(self.population, width)).astype(np.int32)
            worth = fitness(rules)
            seen.update((rule.tobytes(), rule.copy()) for rule in rules)  # the population is overwritten
            for _ in range(self.generations):
                if stop is not None and stop():
                    raise StoppedError("interrupted while learning rules; nothing was saved")
                parents = rules[self._tournaments(worth, rng)]
                first = rng.random((self.replaced, width)) < 0.5
                children = np.where(first, parents[: self.replaced], parents[self.replaced :])
                reset = rng.random(children.shape) < self.mutation
                fresh = rng.integers(0, terms + 1, size=children.shape)
                children = np.where(reset, fresh, children).astype(np.int32)
                worst = np.argsort(worth, kind="stable")[: self.replaced]
                rules[worst], worth[worst] = children, fitness(children)
                seen.update((rule.tobytes(), rule.copy()) for rule in children)
        return np.array(list(seen.values()), np.int32).reshape(-1, width)

    def _tournaments(self, worth: Floats, rng: np.random.Generator) -> Counts64:
        drawn = rng.integers(0, self.population, size=(2 * self.replaced, self.tournament))
        best: Counts64 = drawn[np.arange(len(drawn)), np.argmax(worth[drawn], axis=1)]
        return best
