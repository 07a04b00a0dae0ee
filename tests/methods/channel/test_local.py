"""Channels under ε alone: the proven optimum, the mechanisms beside it, and the front over ε."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits

import sfumato as sf
from sfumato.base.arrays import Floats
from sfumato.measures import channel as measures
from sfumato.methods.channel.exact import LocalSearch
from sfumato.methods.channel.search import best_subset, hadamard_response, mechanism_errors, subset_selection
from sfumato.methods.search import search

RECORDS = 10_000

# n, ε: GRR, best subset selection and its size, OUE, OLH, all without the sampling part
TABLE = {
    (10, 0.5): (2.416e-3, 1.263e-3, 4, 1.577e-3, 1.600e-3),
    (10, 1.0): (4.096e-4, 2.910e-4, 3, 3.783e-4, 3.814e-4),
    (10, 2.0): (5.022e-5, 5.022e-5, 1, 8.241e-5, 8.176e-5),
    (14, 1.0): (5.484e-4, 3.115e-4, 4, 3.754e-4, 3.779e-4),
    (14, 2.0): (6.091e-5, 5.648e-5, 2, 7.955e-5, 7.910e-5),
}


def test_two_categories_by_hand() -> None:
    """With two categories the two rays are e^ε : 1 and 1 : e^ε, so the optimum is a coin with odds e^ε."""
    optimum = LocalSearch(np.array([0.3, 0.7])).at(math.log(4))
    np.testing.assert_allclose(optimum.matrix, [[0.2, 0.8], [0.8, 0.2]], atol=1e-9)  # the commoner set first
    assert measures.spread(optimum.matrix, np.array([0.3, 0.7])) == pytest.approx(optimum.lower_bound, rel=1e-6)


@pytest.mark.parametrize(("categories", "epsilon"), TABLE)
def test_the_table_of_uniform_shares(categories: int, epsilon: float) -> None:
    prior = np.full(categories, 1 / categories)
    sampling = measures.undisguised_error(prior, RECORDS)
    beside = {name: error - sampling for name, error in mechanism_errors(prior, RECORDS, epsilon).items()}
    grr, subset, size, oue, olh = TABLE[categories, epsilon]
    for name, expected in (("GRR", grr), ("subset selection", subset), ("OUE", oue), ("OLH", olh)):
        assert beside[name] == pytest.approx(expected, rel=5e-4), name
    assert best_subset(prior, RECORDS, epsilon)[1] == size
    optimum = LocalSearch(prior).at(epsilon)
    assert measures.epsilon(optimum.matrix) <= epsilon + 1e-9
    error = measures.error(optimum.matrix, prior, RECORDS) - sampling
    proven = measures.error_of(optimum.lower_bound, prior, RECORDS) - sampling
    assert error == pytest.approx(subset, rel=5e-4)
    assert proven <= error
    assert error / proven - 1 < 1e-5


def _priors(n: int) -> dict[str, Floats]:
    shares = {
        "rising": np.arange(1.0, n + 1),
        "falling": 0.7 ** np.arange(n),
        "one rare": np.ones(n),
        "drawn": np.ones(n),
    }
    shares["one rare"][0] = 0.01
    shares["drawn"] = np.random.default_rng(n).dirichlet(np.ones(n)) + 1e-4
    return {name: values / values.sum() for name, values in shares.items()}


@pytest.mark.parametrize("categories", [3, 7, 12])
def test_other_priors_close_the_gap(categories: int) -> None:
    for name, prior in _priors(categories).items():
        _closed(name, prior, 1.0)


@pytest.mark.long
def test_weights_do_not_vanish_before_the_slope_is_right() -> None:
    """With a rare category among fourteen, rounding decided whether the last round of the search ended."""
    _closed("one rare", _priors(14)["one rare"], 0.5)


@pytest.mark.published
@pytest.mark.parametrize("categories", [10, 14, 16])
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_other_priors_close_the_gap_up_to_sixteen_categories(categories: int, epsilon: float) -> None:
    for name, prior in _priors(categories).items():
        _closed(name, prior, epsilon)


def _closed(name: str, prior: Floats, epsilon: float) -> None:
    with threadpool_limits(1):  # as a search runs it: rounding differs from that on two
        optimum = LocalSearch(prior).at(epsilon)
    assert measures.epsilon(optimum.matrix) <= epsilon + 1e-9, name
    spread = measures.spread(optimum.matrix, prior)
    assert optimum.lower_bound <= spread * (1 + 1e-12), name
    assert spread / optimum.lower_bound - 1 < 1e-5, name
    beside = mechanism_errors(prior, RECORDS, epsilon)
    assert min(beside.values()) >= measures.error(optimum.matrix, prior, RECORDS) * (1 - 1e-5), name


@given(st.integers(2, 5), st.floats(0.2, 3.0), st.integers(0, 10_000))
@settings(max_examples=15)
def test_no_random_channel_of_the_same_epsilon_is_better(n: int, epsilon: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    prior = rng.dirichlet(np.full(n, 2.0)) + 0.01
    prior /= prior.sum()
    bound = LocalSearch(prior).at(epsilon).lower_bound
    for _ in range(20):
        likely = np.exp(rng.uniform(0, epsilon, (n + int(rng.integers(4)), n)) * rng.choice([0.3, 1.0]))
        scaled = _columns_to_one(likely)
        if scaled is not None and measures.epsilon(scaled) <= epsilon:
            assert measures.spread(scaled, prior) >= bound * (1 - 1e-9)


def _columns_to_one(likely: Floats) -> Floats | None:
    """Rows scaled so that columns sum to one, which leaves the ratios within a row as they are; None if none does."""
    weights = np.linalg.lstsq(likely.T, np.ones(likely.shape[1]), rcond=None)[0]
    scaled = likely * weights[:, None]
    return scaled if weights.min() > 0 and np.abs(scaled.sum(axis=0) - 1).max() < 1e-12 else None


def test_mechanisms_are_what_they_say() -> None:
    for matrix in (subset_selection(5, 2, 1.3), hadamard_response(5, 1.3)):
        np.testing.assert_allclose(matrix.sum(axis=0), 1.0)
        assert measures.epsilon(matrix) == pytest.approx(1.3)


def test_epsilon_alone_gives_a_proven_front_over_epsilon(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("category,share\na,0.5\nb,0.3\nc,0.2\n", encoding="utf-8")
    channel = {"columns": ["x"], "prior": str(tmp_path / "p.csv"), "records": 1000, "epsilon": 2.0, "points": 4}
    front = search(sf.Study(search={"system": "channel"}, channel=channel))
    assert front.exact
    assert front.how.startswith("proven optimal")
    assert [objective.name for objective in front.objectives] == ["epsilon", "mse"]
    assert [point.values["epsilon"] for point in front.points] == pytest.approx([2.0, 1.5, 1.0, 0.5])
    for point in front.points:
        assert point.bound is not None
        assert point.values["mse"] / point.bound - 1 < 1e-5
        assert min(point.details["beside"].values()) >= point.values["mse"] * (1 - 1e-6)
    assert sf.pick(front, max_epsilon=1.2).point.values["epsilon"] == pytest.approx(1.0)


def test_with_delta_the_bound_knows_epsilon(tmp_path: Path) -> None:
    """The bound of δ alone is far below what ε allows; the larger of both is given."""
    (tmp_path / "p.csv").write_text("category,share\na,0.4\nb,0.3\nc,0.2\nd,0.1\n", encoding="utf-8")
    channel = {"columns": ["x"], "prior": str(tmp_path / "p.csv"), "records": 1000, "points": 4}
    front = search(sf.Study(search={"system": "channel"}, channel=channel | {"epsilon": 1.0, "delta": 0.9}))
    assert not front.exact
    least = LocalSearch(np.array([0.4, 0.3, 0.2, 0.1])).at(1.0).lower_bound
    error = measures.error_of(least, np.array([0.4, 0.3, 0.2, 0.1]), 1000)
    ratios = [point.values["mse"] / (point.bound or 0) for point in front.points]
    assert all((point.bound or 0) >= error * (1 - 1e-9) for point in front.points)
    assert min(ratios) < 1.01


OCCUPATIONS = (1843, 3770, 9, 4099, 4066, 994, 1370, 2002, 3295, 149, 4140, 649, 3650, 928, 1597)


def test_an_optimum_of_nearly_dependent_posteriors_is_found() -> None:
    """Adult's occupations, a missing one among them: an exchange of columns met a basis that was singular."""
    shares, epsilon = np.array(OCCUPATIONS) / sum(OCCUPATIONS), 1.0528367766402729  # to the last digit
    with threadpool_limits(1):
        optimum = LocalSearch(shares).at(epsilon)
    assert np.abs(optimum.matrix.sum(axis=0) - 1).max() < 1e-12
    assert (optimum.matrix.max(axis=1) / optimum.matrix.min(axis=1)).max() <= math.exp(epsilon) * (1 + 1e-9)
    assert measures.spread(optimum.matrix, shares) == pytest.approx(optimum.lower_bound, rel=1e-4)
