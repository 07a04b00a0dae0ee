"""One question, one answer: pick and ask on a front over node and threshold, and every release of its lattice."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import sfumato as sf
from sfumato.base.arrays import Flags, Floats
from sfumato.errors import InputError, UnreachableError
from sfumato.measures.classes import classify
from sfumato.methods.lattice.problem import Figures
from sfumato.methods.lattice.search import Search

QUESTIONS = 200
FEW = 10  # where each front is asked more, or brute force is slower, the rest is published
COUNTS = [FEW, pytest.param(QUESTIONS, marks=pytest.mark.published)]


def random_k(rng: np.random.Generator, table: sf.FrequencyTable) -> int:
    return int(np.exp(rng.uniform(0, np.log(table.records))))


def least(losses: Floats, fits: Flags) -> float | None:
    return float(losses[fits].min()) if fits.any() else None


def picked(front: sf.Front, **limits: float) -> float | None:
    """The loss of what pick chooses; None where nothing keeps the limits."""
    try:
        return sf.pick(front, **limits).point.loss
    except UnreachableError:
        return None


def answered(front: sf.Front, table: sf.FrequencyTable, **limits: float) -> float | None:
    """The same of ask."""
    try:
        return sf.ask(front, table=table, **limits).offer.loss
    except UnreachableError:
        return None


@pytest.fixture(scope="module", params=[0.0, 0.02])
def asked(request: pytest.FixtureRequest, adult: sf.FrequencyTable) -> tuple[sf.Front, Figures, sf.FrequencyTable]:
    """A front, and every release of every node of its lattice."""
    study = sf.read(sf.sample("adult-complete")).with_search(max_suppression=request.param)
    ready = Search.prepare(study, adult)
    return sf.search(study, table=adult), ready.problem.figures(ready.problem.rollup.all_nodes), adult


def figures_of(study: sf.Study, table: sf.FrequencyTable) -> Figures:
    """Every release of every node of a study's lattice."""
    problem = Search.prepare(study, table).problem
    return problem.figures(problem.rollup.all_nodes)


@pytest.mark.long
def test_pick_ask_and_brute_force_agree(asked: tuple[sf.Front, Figures, sf.FrequencyTable]) -> None:
    front, every, table = asked
    k, losses = every.worst[:, 0], every.losses / (len(table.columns) * table.records)
    rng = np.random.default_rng(17)
    for number in range(QUESTIONS):
        if number % 2:
            least = int(np.exp(rng.uniform(0, np.log(table.records))))
            expected = losses[k >= least].min()
            answer = sf.ask(front, min_k=least, table=table)
            choice = sf.pick(front, min_k=least)
            assert answer.offer.k >= least
            assert choice.point.values["k"] >= least
            assert answer.offer.loss == pytest.approx(expected, rel=1e-12, abs=1e-15)
            assert choice.point.loss == pytest.approx(expected, rel=1e-12, abs=1e-15)
        else:
            limit = float(rng.uniform(0, 1))
            within = losses <= limit + 1e-12
            if not within.any():
                with pytest.raises(UnreachableError):
                    sf.pick(front, max_loss=limit)
                continue
            expected = k[within].max()
            assert sf.ask(front, max_loss=limit, table=table).offer.k == expected
            assert sf.pick(front, max_loss=limit).point.values["k"] == expected


def test_baselines_have_the_answer_of_the_front(asked: tuple[sf.Front, Figures, sf.FrequencyTable]) -> None:
    front, _, table = asked
    found = sf.baselines(front.study, [5, 20], fronts=[front], methods=["lattice_optimum"], table=table)
    for least in (5, 20):
        best = sf.pick(front, min_k=least).point
        assert found.row("lattice_optimum", least).loss == pytest.approx(best.loss, rel=1e-12)
        assert found.row("lattice", least).loss == pytest.approx(best.loss, rel=1e-12)


@pytest.mark.parametrize("count", COUNTS)
def test_questions_for_k_and_l_together(adult: sf.FrequencyTable, count: int) -> None:
    study = sf.read(sf.sample("adult-complete")).with_search(objectives=["k", "distinct_l", "general_loss"])
    front, every = sf.search(study, table=adult), figures_of(study, adult)
    k, l, losses = every.worst[:, 0], every.worst[:, 1], every.losses / (len(adult.columns) * adult.records)
    rng = np.random.default_rng(18)
    for number in range(count):
        size, level = random_k(rng, adult), int(rng.integers(1, 15))
        if number % 2:
            best = least(losses, (k >= size) & (l >= level))
            assert best == pytest.approx(answered(front, adult, min_k=size, min_l=level))
            assert best == pytest.approx(picked(front, min_k=size, min_distinct_l=level))
        else:
            limit = float(rng.uniform(0.2, 1))
            most = k[losses <= limit + 1e-12].max()
            assert sf.ask(front, max_loss=limit, prefer="k", table=adult).offer.k == most
            assert sf.pick(front, max_loss=limit).point.values["k"] == most


@pytest.mark.long
@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("constraints", [{"t_closeness": 0.5}, {"k": 4, "distinct_l": 3}])
def test_questions_where_the_search_demands_more(
    adult: sf.FrequencyTable, constraints: dict[str, float], count: int
) -> None:
    """Every answer keeps what was demanded, also under another suppression than the point's own."""
    study = sf.read(sf.sample("adult-complete")).with_search(constraints=constraints, max_suppression=0.05)
    front, ready = sf.search(study, table=adult), Search.prepare(study, adult)
    every = ready.problem.figures(ready.problem.rollup.all_nodes)
    fits = ready.problem.violation(every) == 0
    k, losses = every.worst[:, 0], every.losses / (len(adult.columns) * adult.records)
    rng = np.random.default_rng(19)
    for number in range(count):
        if number % 2:
            size = random_k(rng, adult)
            best = least(losses, fits & (k >= size))
            assert best == pytest.approx(answered(front, adult, min_k=size))
            assert best == pytest.approx(picked(front, min_k=size))
        else:
            limit = float(rng.uniform(0.3, 1))
            within = fits & (losses <= limit + 1e-12)
            if within.any():
                assert sf.ask(front, max_loss=limit, table=adult).offer.k == k[within].max()
                assert sf.pick(front, max_loss=limit).point.values["k"] == k[within].max()


@pytest.mark.published
def test_questions_to_a_front_of_cuts(adult: sf.FrequencyTable) -> None:
    """Every size threshold of every recoding of the front, from its class table; pick knows the points alone."""
    settings = {"system": "cuts", "algorithm": None, "generations": 6, "population": 16, "threads": 1}
    study = sf.read(sf.sample("adult-complete")).with_search(**settings, problem=2, max_suppression=0.1, local_search=2)
    front = sf.search(study, table=adult)
    sizes, losses = [], []
    for number in range(len(front.classes)):
        point = next(point for point in front.points if front.recoding_of[point.id] == number)
        classes = classify(adult, point.recoding_plan.recoding(adult))
        order = np.argsort(classes.rows)
        gone = np.cumsum(classes.rows[order]) - classes.rows[order]
        for place in np.flatnonzero(gone <= 0.1 * adult.records):
            if place == 0 or classes.rows[order[place]] > classes.rows[order[place - 1]]:
                kept = classes.with_suppressed(classes.rows < classes.rows[order[place]])
                sizes.append(int(classes.rows[order[place]]))
                losses.append(sf.measure("general_loss").value(kept) / (len(adult.columns) * adult.records))
    k, loss = np.array(sizes), np.array(losses)
    rng = np.random.default_rng(20)
    for number in range(QUESTIONS):
        size, limit = random_k(rng, adult), float(rng.uniform(0.2, 1))
        if number % 2:
            best = least(loss, k >= size)
            assert best == pytest.approx(answered(front, adult, min_k=size))
            of_points = picked(front, min_k=size)
            assert of_points is None or (best is not None and of_points >= best - 1e-12)
        elif (loss <= limit + 1e-12).any():
            assert sf.ask(front, max_loss=limit, table=adult).offer.k == k[loss <= limit + 1e-12].max()


@pytest.mark.long
def test_a_question_outside_is_answered_by_the_search_for_it(adult: sf.FrequencyTable) -> None:
    """Another suppression limit, a diversity that was not sought: the front's recodings are not the best ones then."""
    front = sf.search(sf.read(sf.sample("adult-complete")), table=adult)
    for asked, changed in (
        ({"min_k": 10, "max_suppression": 0.1}, {"max_suppression": 0.1}),
        ({"min_k": 5, "min_l": 5}, {"constraints": {"distinct_l": 5}}),
    ):
        answer = sf.ask(front, **asked, table=adult)
        other = sf.search(front.study.with_search(**changed), table=adult)
        assert answer.improved
        assert answer.searched is not None
        assert answer.searched.offer.loss == sf.pick(other, min_k=asked["min_k"]).point.loss < answer.offer.loss
        assert sf.ask(front, **asked, table=adult, search=False).searched is None
    assert sf.ask(front, min_k=10, table=adult).searched is None
    # Nothing in the front has it; the search does.
    with pytest.raises(UnreachableError):
        sf.ask(front, max_loss=0.19, min_k=9, max_suppression=0.1, table=adult, search=False)
    assert sf.ask(front, max_loss=0.19, min_k=9, max_suppression=0.1, table=adult).offer.k >= 9
    # Classes that also went by t: sizes do not tell what another limit would do.
    demanding = sf.search(front.study.with_search(constraints={"t_closeness": 0.5}), table=adult)
    with pytest.raises(InputError, match="criteria that sizes and diversities do not show"):
        sf.ask(demanding, min_k=5, max_suppression=0.05, table=adult, search=False)
    other = sf.search(demanding.study.with_search(max_suppression=0.05), table=adult)
    asked_again = sf.ask(demanding, min_k=5, max_suppression=0.05, table=adult)
    assert asked_again.offer.loss == sf.pick(other, min_k=5).point.loss


def test_pick_proposes_to_relax_either_limit(adult: sf.FrequencyTable) -> None:
    front = sf.search(sf.read(sf.sample("adult-complete")), table=adult)
    with pytest.raises(UnreachableError) as caught:
        sf.pick(front, min_k=20, max_loss=0.3)
    cheap, private = sf.pick(front, min_k=20).point, sf.pick(front, max_loss=0.3).point
    first, second = caught.value.remedy.split(", or ")
    assert first == f"min_k = {private.values['k']:.0f} reaches point {private.id}"
    assert second.startswith("max_loss = 0.4")
    assert second.endswith(f" reaches point {cheap.id}")
    with pytest.raises(InputError, match="does not limit any figure") as outside:
        sf.pick(front, max_t_closeness=0.4)
    assert outside.value.remedy == "search with constraints = { t_closeness = 0.4 }, then pick"


def towns(folder: Path, **search: object) -> sf.Study:
    """Two flu and cold in A; flu, cold and gout in B; ten people in C, half of them with flu; three with flu in D."""
    ill = {"A": ["flu", "cold"], "B": ["flu", "cold", "gout"], "C": ["flu", "cold"] * 5, "D": ["flu"] * 3}
    rows = [{"town": town, "ill": one} for town, each in ill.items() for one in each]
    pd.DataFrame(rows).to_csv(folder / "towns.csv", index=False)
    groups = {"AB": ["A", "B"], "CD": ["C", "D"]}
    lines = [f"{town};{group};*" for group, members in groups.items() for town in members]
    (folder / "town.csv").write_text("\n".join(lines) + "\n", "utf-8")
    columns = {
        "town": {"role": "quasi_identifier", "hierarchy": str(folder / "town.csv")},
        "ill": {"role": "sensitive"},
    }
    return sf.Study(data={"path": str(folder / "towns.csv")}, columns=columns, search=search)


def test_a_limit_between_two_whole_numbers_asks_for_the_larger(tmp_path: Path) -> None:
    """By town k is 2 and ℓ 1, by pair of towns 5 and 2, over all 18 and 3."""
    front = sf.search(towns(tmp_path, objectives=["k", "distinct_l", "general_loss"]))
    for limits, found in (
        ({"min_k": 2}, (2, 1)),
        ({"min_k": 2.5}, (5, 2)),
        ({"min_l": 1.5}, (5, 2)),
        ({"min_l": 2.5}, (18, 3)),
    ):
        offer = sf.ask(front, **limits, search=False).offer
        assert (offer.k, offer.l) == found, limits
        values = sf.pick(front, **{name.replace("_l", "_distinct_l"): limit for name, limit in limits.items()}).point
        assert (values.values["k"], values.values["distinct_l"]) == found, limits


def test_classes_that_t_suppresses_are_not_offered_under_another_suppression(tmp_path: Path) -> None:
    """In D all have flu, among all people 10 of 18: D alone is 8/18 away from the table. Sizes do not tell that."""
    study = towns(tmp_path, constraints={"t_closeness": 0.3}, max_suppression=0.2)
    front = sf.search(study)
    own = sf.ask(front, min_k=2, search=False).offer
    assert (own.k, own.suppressed) == (2, 3)
    with pytest.raises(InputError, match="criteria that sizes and diversities do not show"):
        sf.ask(front, min_k=2, max_suppression=0.5, search=False)
    answer = sf.ask(front, min_k=2, max_suppression=0.5)
    assert (answer.offer.k, answer.offer.suppressed) == (2, 3)
    frame = pd.read_csv(tmp_path / "towns.csv")
    shares, released = frame["ill"].value_counts(normalize=True), answer.choice.apply(frame)
    assert sorted(released["town"].unique()) == ["A", "B", "C"]
    for _, town in released.groupby("town"):
        own_shares = town["ill"].value_counts(normalize=True).reindex(shares.index, fill_value=0)
        assert (own_shares - shares).abs().sum() / 2 <= 0.3
