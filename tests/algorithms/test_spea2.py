"""SPEA2's kernels against their plain twins."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sfumato.methods.channel.optrr import fitness, plain_fitness, plain_truncated, selected, truncated


@given(st.integers(2, 30), st.integers(1, 3), st.integers(0, 10_000), st.booleans())
def test_kernels_are_their_twins(count: int, objectives: int, seed: int, coarse: bool) -> None:
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
