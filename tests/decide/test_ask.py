"""The publisher's questions: answers keep to their limits, relaxations pay, and what is offered can be published."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conftest import EXAMPLES

import sfumato as sf
from sfumato.cli import run
from sfumato.decide.curve import Curve, fitted
from sfumato.decide.limits import Limits
from sfumato.decide.offers import Offer, Offers, offers_of, with_suppression
from sfumato.errors import InputError, MeasureError, UnreachableError
from sfumato.front import Objective
from sfumato.measures.fast_paths import Form

SMALL = {"system": "cuts", "algorithm": None, "generations": 6, "population": 16, "threads": 1, "local_search": 2}


def cuts(adult: sf.FrequencyTable, **settings: object) -> sf.Front:
    study = sf.read(sf.sample("adult-complete"))
    columns = {
        name: study.columns[name].model_copy(update={"constrained": False}) for name in ("education", "race", "age")
    }
    return sf.search(study.replace(columns=columns).with_search(**(SMALL | settings)), table=adult)


@pytest.fixture(scope="module")
def lattice(adult: sf.FrequencyTable) -> sf.Front:
    return sf.search(sf.read(sf.sample("adult-complete")), table=adult)


@pytest.fixture(scope="module")
def fronts(adult: sf.FrequencyTable, lattice: sf.Front) -> dict[str, sf.Front]:
    """A front of every kind."""
    limited = {"max_suppression": 0.1}
    return {
        "lattice": lattice,
        "problem 1": cuts(adult, problem=1, max_suppression=0.0),
        "problem 2": cuts(adult, problem=2, **limited),
        "problem 2, ℓ": cuts(adult, problem=2, prefer="l", **limited),
        "problem 3": cuts(adult, problem=3, max_suppression=0.0),
        "problem 4": cuts(adult, problem=4, **limited),
    }


KINDS = ["lattice", "problem 1", "problem 2", "problem 2, ℓ", "problem 3", "problem 4"]


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_every_front_is_asked_picked_and_told_as_json(
    kind: str, fronts: dict[str, sf.Front], adult: sf.FrequencyTable
) -> None:
    front = fronts[kind]
    answer = sf.ask(front, max_loss=0.6, table=adult)
    found = json.loads(json.dumps(answer.as_dict(), allow_nan=False))
    assert found["answer"]["loss"] <= 0.6
    assert len(found["questions"]) == 4
    assert all(question["says"] for question in found["questions"])
    assert found["answer"]["words"] == answer.front.point(answer.offer.point).plan.words(adult)
    assert sf.pick(front, max_loss=0.6).point.loss <= 0.6
    assert sf.pick(front, knee=True).point in front.points
    assert sf.ask(front, table=adult).offer.loss <= 1.0


@pytest.mark.long
@settings(max_examples=EXAMPLES)
@given(
    kind=st.sampled_from(KINDS),
    max_loss=st.none() | st.floats(0, 1),
    max_suppression=st.none() | st.floats(0, 0.4),
    min_k=st.none() | st.integers(1, 200),
    min_l=st.none() | st.integers(1, 6),
    prefer=st.sampled_from([None, "k", "l"]),
)
def test_an_answer_never_breaks_a_limit_and_relaxations_pay(
    kind: str,
    max_loss: float | None,
    max_suppression: float | None,
    min_k: int | None,
    min_l: int | None,
    prefer: str | None,
    fronts: dict[str, sf.Front],
    adult: sf.FrequencyTable,
) -> None:
    asked = {"max_loss": max_loss, "max_suppression": max_suppression, "min_k": min_k, "min_l": min_l}
    try:
        answer = sf.ask(fronts[kind], **asked, prefer=prefer, table=adult)
    except UnreachableError:
        return
    within(answer.offer, answer.limits)
    for found in answer.relaxations:
        moved = answer.limits.without(found.limit)
        least = 1e-9 if answer.aim.privacy.form is Form.DIVERSITY and not answer.aim.both else math.log(1.1)
        if not answer.aim.least_loss and found.limit in ("max_loss", "max_suppression"):
            within(found.offer, moved)
            assert answer.aim.gain_of(found.offer) >= answer.aim.gain_of(answer.offer) + least - 1e-9
            assert found.after > found.before
        elif found.limit == "max_loss":
            assert found.offer.loss > answer.offer.loss
        else:
            assert found.offer.loss < answer.offer.loss
    for offer in answer.choices:
        within(offer, answer.limits)
    for name in answer.binds:
        assert name in answer.limits.given()


def within(offer: Offer, limits: Limits) -> None:
    assert offer.suppressed <= limits.allowed
    assert limits.max_loss is None or offer.loss <= limits.max_loss + 1e-9
    assert limits.min_k is None or offer.k >= limits.min_k
    assert limits.min_l is None or (offer.l or 0) >= limits.min_l


@pytest.mark.long
def test_the_answer_is_the_best_of_all_offers(fronts: dict[str, sf.Front], adult: sf.FrequencyTable) -> None:
    front = fronts["problem 2"]
    offers = offers_of(front, front.rows)
    answer = sf.ask(front, max_loss=0.4, max_suppression=0.03, table=adult)
    fits = (offers.loss <= 0.4) & (offers.suppressed <= 904)
    assert answer.offer.k == offers.k[fits].max()
    assert not answer.offer.searched
    assert "--suppress-below" not in answer.publish
    assert "max-suppression 0.03" in answer.command
    assert any("searched with 10.0 %" in note for note in answer.notes)


@pytest.mark.long
def test_an_answer_under_another_suppression_can_be_published(
    fronts: dict[str, sf.Front], adult: sf.FrequencyTable, tmp_path: Path
) -> None:
    answer = sf.ask(fronts["problem 4"], max_loss=0.5, max_suppression=0.04, min_l=3, table=adult)
    assert not answer.offer.searched
    release = sf.publish(answer.choice, tmp_path / "release", state=tmp_path / "state")
    assert release.manifest["figures"]["k"]["value"] == answer.offer.k
    assert release.manifest["figures"]["distinct_l"]["value"] == answer.offer.l
    assert release.manifest["loss"] == pytest.approx(answer.offer.loss)
    assert release.manifest["suppressed"] == answer.offer.suppressed
    sf.verify(release.folder).raise_if_failed()


def test_levels_can_be_suppressed_by_diversity_too(lattice: sf.Front, adult: sf.FrequencyTable, tmp_path: Path) -> None:
    found = with_suppression(lattice, 4, 6, 3, adult)
    assert not found.exact
    assert found.point(4).values["k"] >= 6
    found.save(tmp_path / "out")
    again = sf.load_front(tmp_path / "out").point(4)
    assert (again.plan.suppress_below, again.plan.diversity_below) == (6, 3)
    assert with_suppression(lattice, 4, lattice.point(4).plan.suppress_below, 0, adult) is lattice
    with pytest.raises(UnreachableError, match="no class"):
        with_suppression(lattice, 4, 40000, 0, adult)
    with pytest.raises(InputError, match="suppress_below is -1"):
        with_suppression(lattice, 4, -1, 0, adult)


def test_a_front_without_classes_says_what_it_cannot_tell(
    lattice: sf.Front, adult: sf.FrequencyTable, tmp_path: Path
) -> None:
    lattice.save(tmp_path / "out")
    (tmp_path / "out/classes.parquet").unlink()
    old = sf.load_front(tmp_path / "out")
    assert old.classes is None
    answer = sf.ask(old, max_loss=0.3, table=adult)
    assert (answer.offer.point, answer.offer.k) == (4, 5)
    assert not answer.questions[0].answered
    with pytest.raises(InputError, match=r"cannot answer for 10\.0 %") as caught:
        sf.ask(old, max_loss=0.3, max_suppression=0.1, folder=tmp_path / "out", search=False)
    assert "--max-suppression 0.1 -o" in caught.value.remedy
    with pytest.raises(MeasureError, match="no column is sensitive"):
        sf.ask(replace(lattice, classes=replace(lattice.classes, diverse=False)), min_l=2)  # type: ignore[type-var]


def test_a_measure_that_sizes_do_not_tell(adult: sf.FrequencyTable) -> None:
    study = sf.read(sf.sample("adult-complete")).with_search(
        objectives=["t_closeness", "general_loss"], algorithm="pbg_ea", iterations=2
    )
    front = sf.search(study, table=adult)
    answer = sf.ask(front, max_loss=0.7, table=adult)
    within_limit = [point.values["t_closeness"] for point in front.points if point.loss <= 0.7]
    assert answer.offer.value == min(within_limit)
    with pytest.raises(InputError, match="cannot be derived from class sizes"):
        sf.ask(front, max_loss=0.7, max_suppression=0.2, table=adult)


def test_nonsense_and_what_cannot_be_met(lattice: sf.Front, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lattice.save(tmp_path / "out")
    out = str(tmp_path / "out")
    for wrong in (
        "--max-loss 25",
        "--max-loss nan",
        "--max-suppression -0.1",
        "--min-k 0",
        "--min-l inf",
        "--prefer x",
    ):
        assert run(["ask", out, *wrong.split()]) == 2, wrong
    assert run(["ask", str(tmp_path / "nowhere"), "--max-loss", "0.2"]) == 2
    assert "--max-loss 0.25" in capsys.readouterr().err
    assert run(["ask", out, "--max-loss", "0.05", "--min-k", "50", "--json"]) == 3
    error = json.loads(capsys.readouterr().out)["error"]
    assert "--max-loss 0.491" in error["try"]
    assert "--min-k 1" in error["try"]
    assert run(["ask", out, "--max-loss", "0.491", "--min-k", "50", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["answer"]["k"] >= 50


def test_the_command_for_people(lattice: sf.Front, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lattice.save(tmp_path / "out")
    assert run(["ask", str(tmp_path / "out"), "--max-loss", "0.30", "--max-suppression", "0.05"]) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("k 18, ℓ 4, ")
    for part in ("binding limits: the loss", "Worthwhile relaxations", "The four questions", "knee:", "curve:"):
        assert part in printed.out
    assert "--suppress-below 18 -o release" in printed.err
    assert "on a logarithmic scale of k and an even one of loss" in printed.out


def test_without_a_limit_common_limits_are_offered(
    lattice: sf.Front, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By ask, by pick and in Python alike; nothing is recommended and nothing is to be published."""
    lattice.save(tmp_path / "out")
    common = sf.presets(lattice)
    assert [each.value for each in common] == [3, 5, 10, 20, 0.2, 0.09, 0.05]
    for each in common:
        assert each.point == sf.pick(lattice, **{each.limit: each.value}).point
        assert each.point.values["k"] >= (each.value if each.limit == "min_k" else 1 / each.value)
    for command in ("ask", "pick"):
        assert run([command, str(tmp_path / "out")]) == 0
        printed = capsys.readouterr()
        assert "No limit was given, so nothing is recommended" in printed.out
        assert all(f"(point {each.point.id})" in printed.out for each in common)
        assert "publish it" not in printed.err
        assert run([command, str(tmp_path / "out"), "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert [each["point"] for each in found["presets"]] == [each.point.id for each in common]
        assert found["answer" if command == "ask" else "point"] is None
    few = replace(lattice, points=tuple(p for p in lattice.points if p.values["k"] < 12))
    assert [each.point is None for each in sf.presets(few)] == [False, False, False, True, False, True, True]


def test_flat_and_steep_stretches_and_the_curve() -> None:
    loss = np.concatenate([np.linspace(0, 0.2, 20), np.linspace(0.21, 0.25, 20), np.linspace(0.3, 1, 20)])
    rise = np.concatenate([np.linspace(0, 1, 20), np.linspace(1.1, 6, 20), np.linspace(6.05, 6.5, 20)])
    offers = _offers(loss, np.exp(rise))
    curve = Curve.of(offers, Objective.of(Form.MEAN_SIZE))
    (low, high), *_ = curve.flat()
    assert low.loss <= 0.22
    assert 0.24 <= high.loss <= 0.4
    (low, high), *_ = curve.steep()
    assert high.loss == pytest.approx(1.0)
    assert curve.knee() is not None
    refused = fitted(loss, np.exp(rise + np.sin(60 * loss)))
    assert not refused.fits
    assert refused.reason
    assert not fitted(loss, np.full(60, 3.0)).fits


def _offers(loss: np.ndarray, values: np.ndarray) -> Offers:
    count = len(loss)
    whole, real = np.ones(count, dtype=np.int64), np.full(count, np.nan)
    front = sf.Front(
        study=sf.read(sf.sample("adult-complete")),
        objectives=(), points=(), algorithm="", exact=False, evaluations=0, space=1,
        seconds=0.0, fingerprint="", rows=1000,
    )  # fmt: skip
    flags = np.ones(count, dtype=np.bool_)
    return Offers(front, whole, flags, whole, whole, values, real, loss, whole, whole, whole)


def test_the_searches_that_ask_names_run(tmp_path: Path) -> None:
    assert run(["sample", "adult-complete", "-o", str(tmp_path / "adult")]) == 0
    run_file = str(tmp_path / "adult/run.toml")
    # the run file of cuts, turned to its quickest settings; the command names system, problem and limit again
    text = (tmp_path / "adult/cuts.toml").read_text("utf-8")
    text = re.sub(r"(?ms)^\[search\].*", '[search]\nsystem = "cuts"\ngenerations = 1\nlocal_search = 1\n', text)
    (tmp_path / "adult/run.toml").write_text(text, "utf-8")
    out = tmp_path / "out"
    assert (
        run(["search", run_file, "--system", "cuts", "--problem", "1", "--max-suppression", "0", "-o", str(out)]) == 0
    )
    front = sf.load_front(out)
    assert front.study.search.problem == 1
    assert front.system == "cuts"
