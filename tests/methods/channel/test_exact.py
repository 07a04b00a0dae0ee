"""The certified optimum: reference fronts, its certificate, and that nothing ever beats it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conftest import EXAMPLES
from tests.methods.channel.reference import CASES, RECORDS, matrices, prior_of, priors, rows_of

from sfumato.base.arrays import Floats
from sfumato.errors import InputError, UnreachableError
from sfumato.measures import channel
from sfumato.methods.channel.exact import ExactSearch, balanced, thin
from sfumato.methods.channel.prior import corners


@pytest.mark.long
@pytest.mark.parametrize("name", CASES)
def test_every_reference_row_is_met_with_a_certificate(shared: Path, name: str) -> None:
    prior, delta = prior_of(shared, name), CASES[name]
    search = ExactSearch(prior, delta)
    ceiling, most = 1 - prior.max(), len(prior) * (len(prior) + 1) // 2 + 1
    for privacy, error in sorted(set(rows_of(shared, name, "free_outputs_opt"))):
        found = search.at(privacy)
        reached = channel.figures(found.matrix, prior, RECORDS)
        bound = channel.error_of(found.lower_bound, prior, RECORDS)
        assert reached.error <= error * (1.005 if privacy > ceiling - 0.002 else 1.001)
        assert bound <= reached.error * (1 + 1e-9)
        assert reached.error <= bound * (1 + 1e-4)
        # The table rounds privacy to six digits; no channel beats the bound, the reference's included.
        assert channel.error_of(search.lower_bound(privacy - 1e-6), prior, RECORDS) <= error * (1 + 1e-7)
        assert reached.privacy >= min(privacy, ceiling) - 1e-9
        assert reached.worst_posterior <= delta + 1e-9
        assert len(found.matrix) <= most


@settings(max_examples=EXAMPLES)
@given(priors(5), st.data())
def test_no_matrix_beats_the_certified_bound(prior: Floats, data: st.DataObject) -> None:
    matrix = data.draw(matrices(len(prior)))
    worst = channel.worst_posterior(matrix, prior)
    if worst - prior.max() < 1e-3:
        return
    search = ExactSearch(prior, min(worst, 1.0))
    low, high = search.range
    private = channel.privacy(matrix, prior)
    if private > high - 1e-4:
        return
    found = search.at(max(private, low))
    assert channel.spread(matrix, prior) >= found.lower_bound * (1 - 1e-9)
    # Bounds proved at one privacy hold at every other.
    search.at(low + 0.3 * (high - low))
    assert channel.spread(matrix, prior) >= search.lower_bound(private) * (1 - 1e-9)


@settings(max_examples=EXAMPLES)
@given(priors(5), st.floats(0.05, 0.95), st.floats(0.02, 0.97))
def test_the_optimum_keeps_its_promises(prior: Floats, tall: float, along: float) -> None:
    delta = prior.max() + tall * (1 - prior.max())
    search = ExactSearch(prior, delta)
    privacy = search.range[0] + along * (search.range[1] - search.range[0])
    found = search.at(privacy)
    np.testing.assert_allclose(found.matrix.sum(axis=0), 1.0, atol=1e-12)
    assert channel.privacy(found.matrix, prior) >= privacy - 1e-9
    assert channel.worst_posterior(found.matrix, prior) <= delta + 1e-9
    assert channel.spread(found.matrix, prior) <= found.lower_bound * (1 + 3e-3)


def test_column_generation_gives_what_all_columns_give(monkeypatch: pytest.MonkeyPatch) -> None:
    prior = np.random.default_rng(3).dirichlet(np.full(8, 2.0))
    whole = [ExactSearch(prior, 0.7).at(p).matrix for p in (0.35, 0.55)]
    monkeypatch.setattr("sfumato.methods.channel.exact.AT_ONCE", 20)
    search = ExactSearch(prior, 0.7)
    assert search.generation.used.sum() < 0.6 * len(search.heights)
    for privacy, matrix in zip((0.35, 0.55), whole, strict=True):
        found = search.at(privacy)
        assert channel.spread(found.matrix, prior) == pytest.approx(channel.spread(matrix, prior), rel=1e-5)
        assert channel.spread(found.matrix, prior) <= found.lower_bound * (1 + 1e-4)


def test_the_ends_of_the_range() -> None:
    prior = np.array([0.4, 0.3, 0.2, 0.1])
    search = ExactSearch(prior, 0.75)
    assert search.range == pytest.approx((0.25, 0.6))
    assert channel.error(search.at(0.6).matrix, prior, 100) < np.inf
    with pytest.raises(UnreachableError, match="a privacy of"):
        search.at(0.7)
    with pytest.raises(UnreachableError) as caught:
        search.at(0.1)
    assert "0.25" in caught.value.remedy
    tied = ExactSearch(np.full(4, 0.25), 0.75)
    with pytest.raises(UnreachableError, match="equally common"):
        tied.at(0.75)
    with pytest.raises(InputError, match="17 categories") as refused:
        ExactSearch(np.full(17, 1 / 17), 0.5)
    assert "square" in refused.value.remedy


def test_delta_at_the_largest_share_leaves_nothing_to_estimate() -> None:
    prior = np.array([0.6, 0.3, 0.1])
    with pytest.raises(UnreachableError, match="cannot be estimated") as caught:
        ExactSearch(prior, 0.6)
    assert "0.61" in caught.value.remedy
    found = ExactSearch(prior, 0.61).at(0.395)
    assert channel.spread(found.matrix, prior) <= found.lower_bound * (1 + 1e-4)


def test_two_categories_have_a_closed_form() -> None:
    # At the lowest privacy, 1 − δ, two equally common categories leave nothing but Warner's matrix.
    prior = np.full(2, 0.5)
    found = ExactSearch(prior, 0.8).at(0.2)
    from sfumato.methods.channel.estimate import warner

    assert channel.spread(found.matrix, prior) == pytest.approx(channel.spread(warner(2, 0.8), prior), rel=1e-6)


def test_a_joint_channel_beats_the_product_of_single_ones() -> None:
    both = np.array([[0.30, 0.05, 0.10], [0.10, 0.25, 0.20]])  # two attributes that go along with each other
    singles = []
    for prior in (both.sum(axis=1), both.sum(axis=0)):
        search = ExactSearch(prior, 0.8)
        singles.append(search.at(0.5 * sum(search.range)).matrix)
    apart = channel.figures(np.kron(*singles), both.ravel(), RECORDS)
    together = ExactSearch(both.ravel(), apart.worst_posterior).at(apart.privacy).matrix
    assert channel.error(together, both.ravel(), RECORDS) < apart.error / 1.1


def test_corners_are_all_the_corners() -> None:
    for n, delta in ((4, 0.3), (5, 0.45), (5, 0.5), (4, 1.0), (3, 0.34)):
        found = corners(np.full(n, delta))
        assert len(np.unique(found.T.round(9), axis=0)) == found.shape[1]
        np.testing.assert_allclose(found.sum(axis=0), 1.0)
        assert found.max() <= delta + 1e-12
    assert corners(np.full(4, 1.0)).shape[1] == 15


@given(st.integers(1, 4), st.integers(1, 30), st.integers(0, 10_000))
def test_thinning_keeps_the_sum(rows: int, count: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    columns, weights = rng.random((rows, count)), rng.random(count)
    left = thin(columns, weights)
    assert (left >= 0).all()
    assert (left > 0).sum() <= rows
    np.testing.assert_allclose(columns @ left, columns @ weights, rtol=1e-8)
    again = balanced(columns, np.full(count, 0.5), columns @ weights)
    assert (again > 0).all()
