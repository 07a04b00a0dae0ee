"""The OptRR paper and the reference fronts at full length. Slow: run by make test-published."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from tests.methods.channel.reference import CASES, RECORDS, prior_of, rows_of

from sfumato.measures import channel
from sfumato.methods.channel.optrr import OptrrSettings, optrr
from sfumato.methods.channel.square import SquareSearch, SquareSettings
from sfumato.papers.channel import gamma_prior, normal_prior, warner_curve

PRIORS = {"normal": 0.8, "gamma": 0.75, "uniform": 0.75, "adult_age": 0.75}


def test_warner_starts_where_the_paper_says() -> None:
    for delta, lowest in ((0.6, 0.598), (0.7, 0.509), (0.8, 0.385), (0.9, 0.226)):
        assert warner_curve(normal_prior(), delta)[0, 0] == pytest.approx(lowest, abs=0.0016)  # on a grid of p


def test_priors_are_the_reference_s(shared: Path) -> None:
    np.testing.assert_allclose(normal_prior(), prior_of(shared, "normal"), atol=1e-9)
    np.testing.assert_allclose(gamma_prior(), prior_of(shared, "gamma"), atol=1e-9)


@pytest.mark.published
@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("name", PRIORS)
def test_optrr_lies_on_or_below_warner_where_it_reaches(shared: Path, name: str, seed: int) -> None:
    prior, delta = prior_of(shared, name), PRIORS[name]
    archive = optrr(prior, delta, OptrrSettings(seed=seed))
    assert archive.generations == 20_000
    allowed = 1.05 if name == "uniform" else 1.0
    uncovered = 0
    curve = warner_curve(prior, delta)
    worst = 0.0
    for private, error, _ in curve:
        place = archive.best_at(private) if private >= archive.privacy[0] else None
        if place is None:
            uncovered += 1
        else:
            worst = max(worst, archive.error[place] / error)
    reach = f"{archive.privacy[0]:.4f} to {archive.privacy[-1]:.4f}"
    print(f"{name}, seed {seed}: {reach}, {worst:.4f} times Warner, {uncovered / len(curve):.1%} not covered")
    assert worst <= allowed
    assert uncovered < 0.25 * len(curve)


@pytest.mark.published
@pytest.mark.parametrize("name", CASES)
def test_square_meets_the_reference_and_never_loses_to_optrr(shared: Path, name: str) -> None:
    prior, delta = prior_of(shared, name), CASES[name]
    rows = rows_of(shared, name, "square_opt")
    archive = optrr(prior, delta, OptrrSettings(seed=1))
    low, high = 1 - delta, 1 - float(prior.max())
    levels = np.unique([*(p for p, _ in rows), *(high - (high - low) * 0.1 * 0.55**k for k in range(6))])
    seeds = [[archive.matrices[p]] if (p := archive.best_at(level)) is not None else [] for level in levels]
    settings = SquareSettings(starts=8, sweeps=14, shakes=6, seed=1)
    found = SquareSearch(prior, delta, levels, settings).run(seeds)
    for level, matrix in zip(levels, found, strict=True):
        assert matrix is not None
        assert channel.worst_posterior(matrix, prior) <= delta + 1e-8
        place = archive.best_at(float(level))
        if place is not None:
            assert channel.error(matrix, prior, RECORDS) <= archive.error[place] * (1 + 1e-9)
    ratios = {p: math.inf for p, _ in rows}
    for private, error in rows:
        matrix = found[int(np.argmin(np.abs(levels - private)))]
        assert matrix is not None
        ratios[private] = channel.error(matrix, prior, RECORDS) / error
    print(name, {p: round(r, 4) for p, r in ratios.items()})
    assert max(ratios.values()) <= 1.02
