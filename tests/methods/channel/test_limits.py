"""Limits on a channel: the gain of a category, invariance, and what the design of a public matrix tells."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
import scipy.optimize
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.errors import StudyError
from sfumato.measures import channel as measures
from sfumato.methods.channel.estimate import warner
from sfumato.methods.channel.exact import ExactSearch
from sfumato.methods.channel.prior import coarse, corners
from sfumato.methods.channel.square import InvariantSearch
from sfumato.methods.publish import publish, verify
from sfumato.methods.registry import system_named
from sfumato.methods.search import search


def test_corners_of_three_caps_by_hand() -> None:
    """Caps 0.6, 0.5 and 0.2. At one level: 0.5 each of the first two; all three with the last at its cap.

    With the first at its cap 0.6, the rest 0.4 goes to the second, or to the last and is too much for it, or 0.2 each.
    """
    found = {tuple(column) for column in corners(np.array([0.6, 0.5, 0.2])).T.round(9).tolist()}
    assert found == {(0.5, 0.5, 0.0), (0.4, 0.4, 0.2), (0.6, 0.4, 0.0), (0.6, 0.2, 0.2), (0.3, 0.5, 0.2)}


@given(st.integers(2, 5), st.integers(0, 10_000))
@settings(max_examples=40)
def test_corners_are_those_of_the_linear_programs(n: int, seed: int) -> None:
    """Over the posteriors with one best guess, any linear function is largest at a corner."""
    rng = np.random.default_rng(seed)
    caps = rng.uniform(0.15, 1.0, n)
    caps[rng.integers(n)] = 1.0 if caps.sum() < 1.2 else caps.max()
    columns = corners(caps)
    assert columns.min() >= 0
    assert (columns <= caps[:, None] + 1e-9).all()
    for _ in range(5):
        x, worth = int(rng.integers(n)), rng.normal(size=n)
        tied = np.eye(n) - np.eye(n)[x]
        program = scipy.optimize.linprog(
            -worth, A_ub=tied, b_ub=np.zeros(n), A_eq=np.ones((1, n)), b_eq=[1.0], bounds=[(0, cap) for cap in caps]
        )
        if program.status != 0:
            continue
        own = columns[:, columns[x] >= columns.max(axis=0) - 1e-9]
        assert (worth @ own).max() == pytest.approx(-program.fun, abs=1e-8)


def test_a_rare_category_of_39_among_50000() -> None:
    """Every report of a rare category would identify it; the cap holds on the matrix, counted plainly."""
    counts = np.array([39, 2961, 7000, 15000, 25000])
    prior = counts / counts.sum()
    free = ExactSearch(prior, 0.75)
    low, high = free.range
    level = 0.5 * (low + high)
    assert measures.gains(free.at(level).matrix, prior)[0] > 100
    capped = ExactSearch(prior, 0.75, gain=10.0)
    level = max(level, capped.range[0])
    optimum = capped.at(level)
    reported = optimum.matrix @ prior
    posterior = optimum.matrix * prior / reported[:, None]
    assert (posterior / prior).max() <= 10 * (1 + 1e-9)
    assert posterior.max() <= 0.75 + 1e-9
    assert measures.spread(optimum.matrix, prior) / optimum.lower_bound - 1 < 1e-5


def test_a_large_gain_is_said_before_anything_is_disguised(tmp_path: Path) -> None:
    study = _study(tmp_path, [5, 295, 700], delta=0.8, points=3)
    said = " ".join(system_named("channel").verdict(search(study)).sentences)
    assert "times as likely as its share" in said
    capped = search(study.replace(channel={"gain": 5.0}))
    assert "times as likely" not in " ".join(system_named("channel").verdict(capped).sentences)


def test_invariant_matrices_leave_the_shares_as_they_are() -> None:
    prior = np.array([0.05, 0.15, 0.3, 0.5])
    errors = []
    for privacy in (0.25, 0.35, 0.45):
        matrix = InvariantSearch(prior, np.full(4, 0.8)).at(privacy)
        np.testing.assert_allclose(matrix @ prior, prior, atol=1e-12)
        np.testing.assert_allclose(matrix.sum(axis=0), 1.0)
        assert matrix.min() >= 0
        assert measures.privacy(matrix, prior) == pytest.approx(privacy, abs=1e-6)
        assert measures.worst_posterior(matrix, prior) <= 0.8 + 1e-9
        errors.append(measures.error(matrix, prior, 1000))
        # Warner's matrix followed by its own Bayes inverse is such a matrix too.
        best = min(
            (measures.error(two, prior, 1000) for two in _two_stage(prior) if measures.privacy(two, prior) >= privacy),
            default=np.inf,
        )
        assert errors[-1] <= best * (1 + 1e-6)
    assert errors == sorted(errors)


def _two_stage(prior: np.ndarray) -> list[np.ndarray]:
    found = []
    for truth in np.linspace(0.3, 0.999, 200):
        first = warner(4, truth)
        back = (first * prior / (first @ prior)[:, None]).T
        if measures.worst_posterior(back @ first, prior) <= 0.8:
            found.append(back @ first)
    return found


def test_margins_of_an_invariant_disguise_are_the_sources_on_average(tmp_path: Path) -> None:
    study = _study(tmp_path, [60, 140, 800], invariant=True, delta=0.9, points=3)
    front = search(study)
    matrix = front.points[1].plan.matrix  # type: ignore[attr-defined]
    np.testing.assert_allclose(matrix @ (np.array([60, 140, 800]) / 1000), [0.06, 0.14, 0.8], atol=1e-12)
    assert not front.exact
    assert "reversible" in front.how
    with pytest.raises(StudyError, match="invariant"):
        _study(tmp_path, [1, 2], invariant=True, design="coarse")


@pytest.mark.long
def test_disguised_files_of_an_invariant_matrix_have_the_sources_counts_on_average(tmp_path: Path) -> None:
    """Twelve files as they are published. The mean of each count is within 4.5 standard errors of the source's, by
    which Warner's matrix of the same privacy, which draws shares together, would be far off."""
    counts, files = np.array([60, 140, 800]), 12
    study = _study(tmp_path, counts.tolist(), invariant=True, delta=0.9, points=3)
    chosen = search(study).points[1].plan
    assert isinstance(chosen, sf.Channel)
    drawn = np.zeros((files, 3))
    for seed in range(files):
        folder = tmp_path / f"release{seed}"
        sf.disguise(study, [chosen], folder, test_seed=seed + 1, state=tmp_path / f"state{seed}")
        values = [line.split(",")[0] for line in (folder / "public" / "data.csv").read_text("utf-8").splitlines()]
        drawn[seed] = [values.count(value) for value in chosen.outputs]
    matrix = chosen.matrix
    error = np.sqrt((matrix * (1 - matrix)) @ counts / files)
    off = np.abs(drawn.mean(axis=0) - counts)
    assert (off <= 4.5 * error).all()
    assert (drawn.std(axis=0) > 0).all()
    plain = warner(3, min(np.linspace(0.34, 1, 500), key=lambda t: _further(warner(3, t), counts, matrix)))
    assert (np.abs(plain @ counts - counts) > 9 * error).any()


def _further(one: np.ndarray, counts: np.ndarray, other: np.ndarray) -> float:
    """By how much two matrices differ in privacy."""
    prior = counts / counts.sum()
    return abs(measures.privacy(one, prior) - measures.privacy(other, prior))


def _study(folder: Path, counts: list[int], **channel: object) -> sf.Study:
    rows = [f"{'abcdefgh'[place]},{n % 7}" for place, count in enumerate(counts) for n in range(count)]
    (folder / "t.csv").write_text("x,y\n" + "\n".join(rows) + "\n", encoding="utf-8")
    return sf.Study(
        data={"path": str(folder / "t.csv")},
        columns={"x": {"role": "sensitive"}, "y": {"role": "drop"}},
        search={"system": "channel"},
        channel={"columns": ["x"], **channel},
    )


@pytest.mark.long
@pytest.mark.parametrize("limits", [{"delta": 0.8}, {"epsilon": 1.5}, {"delta": 0.9, "gain": 6.0}])
def test_the_public_matrix_tells_no_more_than_the_rounded_shares(limits: dict[str, float], tmp_path: Path) -> None:
    """Two tables whose shares differ by less than the rounding have one and the same public matrix."""
    tables = ([211, 289, 500], [200, 300, 500])
    rounded = [coarse(np.array(counts) / 1000, 0.2) for counts in tables]
    np.testing.assert_array_equal(rounded[0], rounded[1])
    public = []
    for number, counts in enumerate(tables):
        folder = tmp_path / str(number)
        folder.mkdir()
        front = search(_study(folder, counts, coarsen=0.2, points=5, **limits))
        assert "rounded to powers of 1.2" in front.details["designed_for"]
        assert not front.exact
        release = publish(sf.pick(front, point=2), folder / "r", state=folder / "state")
        assert not any("tells" in warning for warning in release.manifest["warnings"])
        assert verify(folder / "r")
        shared = [f for f in sorted((folder / "r" / "public").iterdir()) if f.name != "data.csv"]
        digest = hashlib.sha256(release.data.read_bytes()).hexdigest()  # of the reports, which differ by chance
        public.append({f.name: f.read_text("utf-8").replace(digest, "") for f in shared})
        certificate = json.loads(public[-1]["certificate.json"])  # the digests follow from the reports as well
        public[-1]["certificate.json"] = json.dumps({**certificate, "files": sorted(certificate["files"])})
        assert max(point.values["worst_posterior"] for point in front.points) <= limits.get("delta", 1.0) + 1e-9
        assert max(point.values["gain"] for point in front.points) <= limits.get("gain", np.inf) * (1 + 1e-9)
        for point in front.points:
            assert point.bound is not None
            assert point.values["mse"] >= point.bound * (1 - 1e-9)
    assert public[0] == public[1]  # whatever an attacker computes from these files, it is the same for both tables
    for counts in tables:
        assert np.abs(_implied(public[0]["data.csv.channel.json"]) / (np.array(counts) / 1000) - 1).max() > 0.01


def _implied(mark: str) -> np.ndarray:
    """The shares that a public matrix tells: where a report lets one believe two categories alike, they are as 1/M."""
    matrix = np.array(json.loads(mark)["channels"][0]["matrix"])
    ratios = np.ones(matrix.shape[1])
    for x in range(1, matrix.shape[1]):
        both = (matrix[:, 0] > 0) & (matrix[:, x] > 0)
        ratios[x] = np.median(matrix[both, 0] / matrix[both, x])
    return np.asarray(ratios / ratios.sum())


def test_the_exact_design_warns(tmp_path: Path) -> None:
    study = _study(tmp_path, [211, 289, 500], design="exact", delta=0.8, points=5)
    front = search(study)
    assert front.exact
    release = publish(sf.pick(front, point=2), tmp_path / "r", state=tmp_path / "state")
    assert any("exact shares" in warning for warning in release.manifest["warnings"])
