"""Estimates from reports: unbiased where claimed, intervals that cover, EM, projection."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.methods.channel.reference import bell

from sfumato.base.arrays import Floats
from sfumato.errors import InputError
from sfumato.methods.channel.estimate import em, inversion_matrix, linear, projected, warner, weighted_matrix
from sfumato.methods.channel.exact import ExactSearch

N, DRAWS = 10_000, 3000


def _channels() -> list[tuple[str, Floats, Floats]]:
    prior = bell()
    optimum = ExactSearch(prior, 0.8).at(0.6).matrix
    other = np.random.default_rng(2).dirichlet(np.ones(10))
    square = 0.5 * np.eye(10) + 0.5 * np.random.default_rng(1).dirichlet(np.ones(10), 10).T
    return [
        ("inversion", warner(10, 0.5), inversion_matrix(warner(10, 0.5))),
        ("inversion", square, inversion_matrix(square)),
        ("wls", optimum, weighted_matrix(optimum, prior)),
        ("wls, another reference", optimum, weighted_matrix(optimum, other)),
    ]


@pytest.mark.long
@pytest.mark.parametrize(("method", "matrix", "inverse"), _channels())
def test_linear_estimates_are_unbiased_and_their_intervals_cover(method: str, matrix: Floats, inverse: Floats) -> None:
    prior, rng = bell(), np.random.default_rng(6)
    np.testing.assert_allclose(inverse @ matrix, np.eye(10), atol=1e-9)
    found = [linear(method, inverse, matrix, c.astype(float)) for c in rng.multinomial(N, matrix @ prior, size=DRAWS)]
    raw = np.array([f.raw for f in found])
    z = (raw.mean(axis=0) - prior) / (raw.std(axis=0) / np.sqrt(DRAWS))
    assert np.abs(z).max() < 4  # the largest of ten
    assert np.mean([f.error for f in found], axis=0) == pytest.approx(raw.std(axis=0), rel=0.06)
    inside = np.mean([(f.low <= prior) & (prior <= f.high) for f in found], axis=0)
    assert inside.mean() == pytest.approx(0.95, abs=0.015)
    assert inside.min() > 0.92
    assert all(abs(f.shares.sum() - 1) < 1e-9 and f.shares.min() >= 0 for f in found[:50])


def test_standard_errors_against_the_file() -> None:
    rng, matrix = np.random.default_rng(3), warner(4, 0.6)
    truth = np.array([100, 400, 700, 800])
    inverse = inversion_matrix(matrix)
    found = [
        linear(
            "inversion",
            inverse,
            matrix,
            np.sum([rng.multinomial(truth[x], matrix[:, x]) for x in range(4)], axis=0) * 1.0,
        )
        for _ in range(2000)
    ]
    spread = np.array([f.raw for f in found]).std(axis=0)
    assert np.mean([f.error_to_file for f in found], axis=0) == pytest.approx(spread, rel=0.06)


def test_em_intervals_cover_and_em_is_the_most_likely() -> None:
    prior, rng = bell(), np.random.default_rng(9)
    matrix = ExactSearch(prior, 0.8).at(0.5).matrix
    inside, closer = [], 0
    inverse = weighted_matrix(matrix, prior)
    for counts in rng.multinomial(N, matrix @ prior, size=150):
        found, plain = em(matrix, counts.astype(float)), linear("wls", inverse, matrix, counts.astype(float))
        inside.append((found.low <= prior) & (prior <= found.high))
        closer += int(_likelihood(matrix, found.shares, counts) >= _likelihood(matrix, plain.shares, counts) - 1e-7)
    assert np.mean(inside) == pytest.approx(0.95, abs=0.02)
    assert closer == 150


def _likelihood(matrix: Floats, shares: Floats, counts: Floats) -> float:
    return float(counts @ np.log(np.maximum(matrix @ shares, 1e-300)))


def test_without_a_disguise_the_interval_is_wilsons() -> None:
    found = linear("inversion", np.eye(2), np.eye(2), np.array([0.0, 20.0]))
    z2 = 1.959963984540054**2
    assert found.low.tolist() == pytest.approx([0.0, 20 / (20 + z2)])
    assert found.high.tolist() == pytest.approx([z2 / (20 + z2), 1.0])


@pytest.mark.long
@pytest.mark.parametrize("records", [5, 20, 80, 400])
def test_intervals_of_small_counts_cover_and_are_never_of_width_zero(records: int) -> None:
    rng = np.random.default_rng(records)
    prior = np.array([0.005, 0.045, 0.25, 0.7])
    for matrix in (warner(4, 0.9), warner(4, 0.6), ExactSearch(prior, 0.8).at(0.25).matrix):
        inverse = weighted_matrix(matrix, np.full(4, 0.25))
        drawn = rng.multinomial(records, matrix @ prior, size=400).astype(float)
        for found in ([linear("wls", inverse, matrix, c) for c in drawn], [em(matrix, c) for c in drawn[:40]]):
            assert min(float((f.high - f.low).min()) for f in found) > 0
            if len(found) == 400:
                inside = np.mean([(f.low <= prior) & (prior <= f.high) for f in found], axis=0)
                assert inside.min() > (0.85 if records == 5 else 0.9)  # as Wilson's intervals, which dip there
                assert inside.mean() > 0.94


def test_em_update_is_that_of_the_reading() -> None:
    matrix, counts = warner(3, 0.6), np.array([20.0, 50.0, 30.0])
    shares = em(matrix, counts).shares
    again = [sum(counts[i] / 100 * matrix[i, j] * shares[j] / (matrix[i] @ shares) for i in range(3)) for j in range(3)]
    np.testing.assert_allclose(again, shares, atol=1e-8)


def test_singular_and_rectangular_matrices_are_refused_in_words() -> None:
    with pytest.raises(InputError, match="singular"):
        inversion_matrix(warner(4, 0.25))
    with pytest.raises(InputError, match="singular"):
        weighted_matrix(np.full((6, 4), 1 / 6), np.full(4, 0.25))
    with pytest.raises(InputError, match="no inverse") as caught:
        inversion_matrix(np.full((6, 4), 1 / 6))
    assert "wls" in caught.value.remedy


@given(st.lists(st.floats(-1, 2), min_size=1, max_size=8))
def test_projection_is_the_nearest_distribution(raw: list[float]) -> None:
    values = np.array(raw)
    found = projected(values)
    assert found.sum() == pytest.approx(1.0)
    assert found.min() >= 0
    rng = np.random.default_rng(0)
    others = rng.dirichlet(np.ones(len(values)), 50)
    assert (np.linalg.norm(found - values) <= np.linalg.norm(others - values, axis=1) + 1e-9).all()
