"""Matrices and their figures: closed forms against simulation, families, laws."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.methods.channel.reference import bell, matrices, priors

from sfumato.base.arrays import Floats
from sfumato.errors import InputError
from sfumato.measures import channel as measures
from sfumato.methods.channel.estimate import frapp, grr, response_matrix, uniform_perturbation, warner
from sfumato.methods.channel.exact import ExactSearch
from sfumato.plans.channel import Channel, checked_prior, load_channel


def _twenty_one() -> list[tuple[str, Floats, Floats]]:
    """Square matrices of two families and at random, and rectangular ones of the exact engine and at random."""
    rng = np.random.default_rng(8)
    found = []
    for seed in range(7):
        prior = rng.dirichlet(np.full(5, 3.0))
        found.append(("warner", warner(5, 0.35 + 0.08 * seed), prior))
        square = rng.dirichlet(np.full(5, 0.5), size=5).T * 0.5 + 0.5 * np.eye(5)
        found.append(("random square", square, prior))
        if seed < 4:
            found.append(("random rectangular", rng.dirichlet(np.full(9, 0.4), size=5).T, prior))
        else:
            found.append(("optimal", ExactSearch(prior, 0.8).at(0.35 + 0.03 * seed).matrix, prior))
    return found


def test_closed_form_error_is_that_of_a_simulation() -> None:
    records, draws = 400, 40_000
    cases = _twenty_one()
    assert len(cases) == 21
    for place, (name, matrix, prior) in enumerate(cases):
        rng = np.random.default_rng(100 + place)
        reported = matrix @ prior
        weights = matrix / reported[:, None]
        estimator = np.linalg.solve(matrix.T @ weights, weights.T)
        counts = rng.multinomial(records, reported, size=draws)
        squared = ((counts / records @ estimator.T - prior) ** 2).mean(axis=1)
        z = (squared.mean() - measures.error(matrix, prior, records)) / (squared.std() / math.sqrt(draws))
        assert abs(z) <= 3, (name, z)


def test_error_against_the_file_is_that_of_a_simulation() -> None:
    rng = np.random.default_rng(4)
    truth = np.array([50, 120, 230])
    prior = truth / truth.sum()
    matrix = warner(3, 0.7)
    squared = []
    for _ in range(20_000):
        counts = sum(rng.multinomial(truth[x], matrix[:, x]) for x in range(3))
        squared.append(np.mean((np.linalg.solve(matrix, counts / truth.sum()) - prior) ** 2))
    z = (np.mean(squared) - measures.error_to_file(matrix, prior, 400)) / (np.std(squared) / math.sqrt(20_000))
    assert abs(z) <= 3


def test_square_error_is_the_variance_of_the_inverted_estimate() -> None:
    prior, matrix = bell(), warner(10, 0.45)
    inverse, reported = np.linalg.inv(matrix), matrix @ bell()
    by_hand = np.mean(inverse**2 @ reported - (inverse @ reported) ** 2) / 10_000
    assert measures.error(matrix, prior, 10_000) == pytest.approx(by_hand, rel=1e-12)


@pytest.mark.parametrize("p", [0.3, 0.55, 0.9])
def test_uniform_perturbation_and_frapp_are_warner_s(p: float) -> None:
    n = 7
    np.testing.assert_allclose(uniform_perturbation(n, (p - 1 / n) / (1 - 1 / n)), warner(n, p))
    np.testing.assert_allclose(frapp(n, p * (n - 1) / (1 - p)), warner(n, p))
    np.testing.assert_allclose(grr(n, math.log(p * (n - 1) / (1 - p))), warner(n, p))


def test_the_other_families_start_where_warner_is_singular() -> None:
    np.testing.assert_allclose(uniform_perturbation(5, 0.0), warner(5, 0.2))
    np.testing.assert_allclose(frapp(5, 1.0), warner(5, 0.2))
    assert measures.error(warner(5, 0.2), np.full(5, 0.2), 100) == math.inf
    with pytest.raises(InputError, match="ratio"):
        frapp(5, 0.5)
    with pytest.raises(InputError, match="unknown family"):
        response_matrix("waner", 4, 0.5)


def test_identity_loses_nothing_and_hides_nothing() -> None:
    found = measures.figures(np.eye(4), np.full(4, 0.25), 100)
    assert (found.privacy, found.worst_posterior, found.epsilon, found.loss) == (0.0, 1.0, math.inf, 0.0)
    assert found.error_to_file == pytest.approx(0.0, abs=1e-15)


@given(priors(), st.data())
def test_laws_of_the_figures(prior: Floats, data: st.DataObject) -> None:
    matrix = data.draw(matrices(len(prior)))
    found = measures.figures(matrix, prior, 1000)
    assert -1e-12 <= found.privacy <= 1 - prior.max() + 1e-12
    assert prior.max() - 1e-12 <= found.worst_posterior <= 1 + 1e-12
    assert found.privacy >= 1 - found.worst_posterior - 1e-12
    assert 0 <= found.loss <= 1
    assert found.error >= measures.undisguised_error(prior, 1000) * (1 - 1e-9)
    # Reports may be shuffled, and one report may be split in two that say the same.
    split = np.concatenate([matrix[:-1], matrix[-1:] * 0.3, matrix[-1:] * 0.7])[::-1]
    other = measures.figures(split, prior, 1000)
    assert other.privacy == pytest.approx(found.privacy, abs=1e-12)
    assert other.error == pytest.approx(found.error, rel=1e-6)


def test_a_joint_channel_has_figures_for_each_attribute() -> None:
    cells = [("m", "a"), ("m", "b"), ("f", "a"), ("f", "b")]
    matrix = np.kron(np.eye(2), np.full((2, 2), 0.5))  # tells the first attribute, hides the second
    prior = np.full(4, 0.25)
    assert measures.privacy(matrix, prior) == pytest.approx(0.5)
    assert measures.attribute_figures(matrix, prior, [c[0] for c in cells]) == pytest.approx((0.0, 1.0))
    assert measures.attribute_figures(matrix, prior, [c[1] for c in cells]) == pytest.approx((0.5, 0.5))


@pytest.mark.parametrize(
    ("prior", "says"),
    [
        ([0.5, 0.4], "sums to 0.9"),
        ([1.2, -0.2], "negative"),
        ([1.0], "1 category"),
        ([0.5, 0.5, 0.0], "share of 0"),
        ([0.5, float("nan")], "negative or not numbers"),
    ],
)
def test_a_bad_prior_is_refused(prior: list[float], says: str) -> None:
    with pytest.raises(InputError, match=says):
        checked_prior(prior)


def test_delta_below_the_commonest_share_names_the_least_possible() -> None:
    with pytest.raises(InputError, match=r"0\.6") as caught:
        measures.attainable(np.array([0.6, 0.4]), 0.5)
    assert "0.6" in caught.value.expected
    assert measures.attainable(np.array([0.6, 0.4]), 0.6) == pytest.approx((0.4, 0.4))


def test_a_channel_is_saved_and_read_back(tmp_path) -> None:
    channel = Channel(
        ("a",), ("x", "y"), ("x", "y", "x | y"), np.array([[0.5, 0], [0, 0.5], [0.5, 0.5]]), np.ones(2) / 2
    )
    again = load_channel(channel.save(tmp_path / "channel.json"))
    assert again.as_dict() == channel.as_dict()
    assert not again.square
    (tmp_path / "wrong.json").write_text(channel.save(tmp_path / "b.json").read_text().replace("0.5", "0.6"))
    with pytest.raises(InputError, match="sum"):
        load_channel(tmp_path / "wrong.json")
    (tmp_path / "no.json").write_text("[1, 2]")
    with pytest.raises(InputError, match="cannot be read"):
        load_channel(tmp_path / "no.json")
