"""SPEA2's kernels against plain versions."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sfumato.base.arrays import Counts64, Floats
from sfumato.methods.channel.optrr import fitness, selected, truncated


def plain_fitness(values: Floats) -> Floats:
    """Return the fitness by the formulas of the paper."""
    weak = (values[:, None] <= values[None]).all(axis=2)
    dominates = weak & (values[:, None] < values[None]).any(axis=2)
    strength = dominates.sum(axis=1)
    distances = np.linalg.norm(values[:, None] - values[None], axis=2)
    np.fill_diagonal(distances, np.inf)
    return np.asarray(strength @ dominates + 1.0 / (distances.min(axis=1) + 2.0))


def plain_truncated(values: Floats, size: int) -> Counts64:
    """Return the truncated archive by sorting all distances again at each step."""
    alive = list(range(len(values)))
    while len(alive) > size:
        distances = ((values[alive][:, None] - values[alive][None]) ** 2).sum(axis=2)
        np.fill_diagonal(distances, np.inf)
        lists = [tuple(sorted(row)) for row in distances.tolist()]
        alive.pop(min(range(len(alive)), key=lambda number: (lists[number], number)))
    return np.array(alive)


@given(st.integers(2, 30), st.integers(1, 3), st.integers(0, 10_000), st.booleans())
def test_kernels_agree_with_plain_versions(count: int, objectives: int, seed: int, coarse: bool) -> None:
    rng = np.random.default_rng(seed)
    values = rng.random((count, objectives))
    if coarse:  # ties everywhere
        values = np.round(values * 4) / 4
    np.testing.assert_allclose(fitness(values), plain_fitness(values))
    for size in (1, count // 2 + 1, count):
        kept = truncated(values, size)
        assert len(kept) == min(size, count)
        if not coarse:
            np.testing.assert_array_equal(kept, plain_truncated(values, size))


def test_selection_fills_up_by_fitness_and_truncates_the_crowd() -> None:
    values = np.array([[0.0, 1.0], [0.5, 0.5], [1.0, 0.0], [0.52, 0.49], [2.0, 2.0], [0.6, 0.6]])
    found = fitness(values)
    assert set(np.flatnonzero(found < 1)) == {0, 1, 2, 3}
    assert set(selected(values, found, 3)) == {0, 2, 1} or set(selected(values, found, 3)) == {0, 2, 3}
    assert set(selected(values, found, 5)) == {0, 1, 2, 3, 5}


def test_copies_go_first() -> None:
    values = np.array([[0.0, 1.0], [0.0, 1.0], [0.5, 0.5], [1.0, 0.0]])
    assert len(np.unique(values[truncated(values, 3)], axis=0)) == 3
