"""OptRR and the square engine: operators, determinism, order between the engines."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.methods.channel.reference import priors

from sfumato.base.arrays import Floats
from sfumato.measures import channel
from sfumato.methods.channel.estimate import warner
from sfumato.methods.channel.exact import ExactSearch
from sfumato.methods.channel.optrr import OptrrSettings, crossed, evaluated, mutated, optrr, repaired
from sfumato.methods.channel.square import Barrier, SquareSearch, SquareSettings

PRIOR = np.array([0.1, 0.2, 0.3, 0.25, 0.15])
SHORT = OptrrSettings(generations=150, population=40, archive=40, seed=3, records=1000)


@given(priors(6), st.integers(0, 10_000), st.floats(0.05, 0.95))
def test_operators_keep_columns_and_repair_keeps_delta(prior: Floats, seed: int, tall: float) -> None:
    rng, n = np.random.default_rng(seed), len(prior)
    batch = rng.dirichlet(np.full(n, 0.3), (6, n)).transpose(0, 2, 1).copy()
    before = batch.copy()
    crossed(batch, rng.integers(1, n, 3))
    assert sorted(map(tuple, batch.transpose(0, 2, 1).reshape(-1, n))) == sorted(
        map(tuple, before.transpose(0, 2, 1).reshape(-1, n))
    )
    mutated(batch, rng.integers(0, n, 6), rng.integers(0, n, 6), rng.uniform(-0.2, 0.2, 6))
    np.testing.assert_allclose(batch.sum(axis=1), 1.0)
    assert batch.min() >= -1e-12
    delta = prior.max() + tall * (1 - prior.max())
    for matrix in batch:
        if repaired(matrix, prior, delta):
            np.testing.assert_allclose(matrix.sum(axis=0), 1.0)
            assert matrix.min() >= -1e-12
            assert channel.worst_posterior(matrix, prior) <= delta + 1e-9


def test_evaluation_is_that_of_the_measures() -> None:
    rng = np.random.default_rng(1)
    batch = rng.dirichlet(np.ones(5), (20, 5)).transpose(0, 2, 1) * 0.4 + 0.6 * np.eye(5)
    batch = np.ascontiguousarray(np.concatenate([batch, [warner(5, 0.2)]]))
    values = np.empty((21, 2))
    evaluated(batch, PRIOR, 1.0, 1000, values)
    for matrix, (private, error) in zip(batch[:-1], values[:-1], strict=True):
        assert -private == pytest.approx(channel.privacy(matrix, PRIOR))
        assert error == pytest.approx(channel.error(matrix, PRIOR, 1000))
    assert values[-1, 1] == np.inf  # Warner at 1/n is singular


@pytest.mark.long
def test_optrr_is_its_seed_s_and_every_matrix_keeps_delta() -> None:
    one, two = optrr(PRIOR, 0.7, SHORT), optrr(PRIOR, 0.7, SHORT)
    np.testing.assert_array_equal(one.matrices, two.matrices)
    assert (np.diff(one.privacy) > 0).all()
    assert (np.diff(one.error) > 0).all()
    for matrix, private, error in zip(one.matrices, one.privacy, one.error, strict=True):
        assert channel.worst_posterior(matrix, PRIOR) <= 0.7 + 1e-9
        assert channel.privacy(matrix, PRIOR) == pytest.approx(private)
        assert channel.error(matrix, PRIOR, 1000) == pytest.approx(error)


def test_optrr_stops_when_it_is_told_and_keeps_what_it_has() -> None:
    found = optrr(PRIOR, 0.7, SHORT, progress=lambda done, total: done >= 50)
    assert found.generations == 50
    assert len(found.privacy)


def test_the_order_of_the_engines() -> None:
    """Certified ≤ square ≤ OptRR ≤ Warner, at every level that they reach."""
    archive = optrr(PRIOR, 0.7, SHORT)
    levels = np.array([0.38, 0.5, 0.6])
    seeds = [[archive.matrices[place]] if (place := archive.best_at(x)) is not None else [] for x in levels]
    square = SquareSearch(PRIOR, 0.7, levels, SquareSettings(starts=3, sweeps=2)).run(seeds)
    exact = ExactSearch(PRIOR, 0.7)
    for level, matrix in zip(levels, square, strict=True):
        assert matrix is not None
        error = channel.error(matrix, PRIOR, 1000)
        assert channel.privacy(matrix, PRIOR) >= level - 1e-8
        assert channel.worst_posterior(matrix, PRIOR) <= 0.7 + 1e-8
        assert channel.error_of(exact.at(level).lower_bound, PRIOR, 1000) <= error * (1 + 1e-9)
        place = archive.best_at(level)
        assert place is not None
        assert error <= archive.error[place] * (1 + 1e-9)


def test_a_cap_on_epsilon_is_kept() -> None:
    found = SquareSearch(PRIOR, 0.75, [0.5, 0.6], SquareSettings(starts=2, sweeps=1), 1.2).run()
    for matrix in found:
        assert matrix is not None
        assert channel.epsilon(matrix) <= 1.2 + 1e-8


@settings(max_examples=10)
@given(st.integers(0, 10_000), st.sampled_from([None, 2.0]))
def test_the_barrier_s_slope_and_curvature(seed: int, epsilon: float | None) -> None:
    rng = np.random.default_rng(seed)
    barrier = Barrier(PRIOR, 0.75, 0.6, epsilon)
    point = barrier.inside((0.6 * np.eye(5) + 0.4 * rng.dirichlet(np.ones(5), 5).T) * PRIOR, 0.05)
    assert point is not None
    slope, curvature = barrier.curve(point, 0.01)
    for place in rng.integers(0, len(point), 4):
        step = np.zeros(len(point))
        step[place] = 1e-6 * point[place]
        up, down = barrier.curve(point + step, 0.01)[0], barrier.curve(point - step, 0.01)[0]
        rise = barrier.merit(point + step, 0.01) - barrier.merit(point - step, 0.01)
        assert rise / (2 * step[place]) == pytest.approx(slope[place], rel=1e-4, abs=1e-4)
        np.testing.assert_allclose(
            (up - down) / (2 * step[place]), curvature[place], rtol=1e-4, atol=1e-4 * np.abs(curvature[place]).max()
        )


@pytest.mark.long
def test_a_panel_of_the_paper_is_json_and_in_order() -> None:
    import json

    from sfumato.papers.channel import Case, reproduce_channel

    case = Case("test", "three", np.array([0.5, 0.3, 0.2]), 0.8, with_em=True)
    (panel,) = reproduce_channel(generations=60, sweeps=0, only=[case])
    said = json.loads(json.dumps(panel.as_dict(), allow_nan=False))
    assert len(said["levels"]) == 9
    for level in said["levels"]:
        assert level["certified"] <= level["square"] * (1 + 1e-9)
        assert level["optrr"] is None or level["square"] <= level["optrr"] * (1 + 1e-6)
