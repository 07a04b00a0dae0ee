"""The cuts system: the four problems, what is promised on the file itself, stops and resumption, what is refused."""

from __future__ import annotations

import csv
import signal
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.conftest import EXAMPLES
from tests.moments import surroundings
from tests.points import points_in

import sfumato as sf
from sfumato.data.engine import open_engine
from sfumato.data.settings import Role
from sfumato.errors import InputError, StudyError, UnreachableError
from sfumato.measures.classes import classify
from sfumato.measures.registry import measure
from sfumato.measures.suppression import suppress_below
from sfumato.plans.recodings import CutPlan
from sfumato.release import manifest
from sfumato.release.columns import column_recodes
from sfumato.release.rows import Below, recode, write_mixed
from sfumato.study import ColumnSettings

SMALL = {"system": "cuts", "algorithm": None, "generations": 6, "population": 16, "local_search": 4}


@pytest.fixture(autouse=True)
def few_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    """The lattice that seeds a search is looked at for a moment only."""
    monkeypatch.setattr("sfumato.methods.cuts.search.LATTICE_NODES", 300)


def adult_cuts(problem: int, **given: object) -> sf.Study:
    """The paper's setting on the bundled table; in problem 4 occupation is sensitive."""
    study = sf.read(sf.sample("adult-complete").with_name("cuts.toml"))
    if problem == 4 or given.get("prefer") == "l":
        study = study.replace(columns={"occupation": ColumnSettings(role=Role.SENSITIVE)})
    limit = 0.1 if problem in (2, 4) else 0.0
    return study.with_search(**{**SMALL, "problem": problem, "max_suppression": limit, **given})


def test_below_the_mean_a_budget_holds_whatever_is_sought(adult: sf.FrequencyTable) -> None:
    """The limit on suppression is kept also where the suppressed share is no objective."""
    given = {**SMALL, "suppression": "below_mean", "max_suppression": 0.1, "objectives": ("k", "general_loss")}
    front = sf.search(sf.read(sf.sample("adult-complete")).with_search(**given), table=adult)
    assert any(point.suppressed for point in front.points)
    assert all(point.suppressed <= 3016 for point in front.points)


@pytest.mark.long
@pytest.mark.parametrize(
    ("problem", "prefer"), [(1, "k"), (2, "k"), (3, "k"), (4, "k"), (4, "l"), (1, "l"), (2, "l"), (3, "l")]
)
def test_each_point_is_what_its_plan_gives(problem: int, prefer: str) -> None:
    """Objectives, losses and suppression of some points, measured again from the plan alone."""
    study = adult_cuts(problem, prefer=prefer)
    table = study.table()
    front = sf.search(study, table=table)
    assert front.system == "cuts"
    assert not front.exact
    for point in front.points[:: max(len(front.points) // 6, 1)]:
        assert isinstance(point.plan, CutPlan)
        whole = classify(table, point.plan.recoding(table))
        kept = suppress_below(whole, point.plan.suppress_below, point.plan.diversity_below)
        assert kept.suppressed_rows == point.suppressed
        assert measure("general_loss").value(kept) / (len(table.domains) * table.records) == pytest.approx(point.loss)
        if problem in (2, 4):
            assert point.suppressed <= 3016
        for objective in front.objectives:
            found = measure(objective.name).value(whole if objective.taken != "released" else kept)
            assert point.values[objective.name] == pytest.approx(found)
        if problem == 3:
            name = "weighted_l" if prefer == "l" else "weighted_k"
            assert max(point.plan.suppress_below, point.plan.diversity_below) >= point.values[name] - 1e-9


def test_json_is_that_of_the_lattice_with_the_parts_of_the_loss() -> None:
    front = sf.search(adult_cuts(2))
    found = front.as_dict()
    lattice = sf.search(sf.read(sf.sample("adult-complete")).with_search(algorithm="pbg_ea", iterations=2))
    assert set(found) == set(lattice.as_dict())
    for point in found["points"]:
        assert point["generalization_loss"] + point["suppression_loss"] == pytest.approx(point["loss"])
    assert [point["id"] for point in found["points"]] == list(range(len(found["points"])))


@pytest.mark.long
def test_the_memetic_search_beats_the_plain_one_and_the_lattice() -> None:
    """Well inside the marks after a fifth of the default's generations."""
    study = adult_cuts(2, generations=50, population=None, local_search=16)
    found = sf.search(study)
    assert sf.pick(found, max_loss=0.25).point.values["k"] >= 12
    plain = sf.search(adult_cuts(2, generations=20, algorithm="nsga2", population=100))
    assert sf.pick(found, max_loss=0.3).point.values["k"] > sf.pick(plain, max_loss=0.3).point.values["k"]


@pytest.mark.long
@pytest.mark.parametrize("algorithm", ["memetic", "nsga2"])
def test_the_front_does_not_depend_on_threads(algorithm: str) -> None:
    one = sf.search(adult_cuts(2, algorithm=algorithm, threads=1))
    two = sf.search(adult_cuts(2, algorithm=algorithm, threads=2))
    assert one.points == two.points
    assert one.evaluations == two.evaluations
    other = sf.search(adult_cuts(2, algorithm=algorithm, seed=2))
    assert other.points != one.points


@pytest.mark.long
@pytest.mark.parametrize("problem", [2, 4])
def test_a_search_that_was_broken_off_ends_as_an_unbroken_one(problem: int, tmp_path: Path) -> None:
    study = adult_cuts(problem)
    whole = sf.search(study)
    state = tmp_path / "state"
    for stop in np.random.default_rng(problem).permutation(5)[:2].tolist():
        part = sf.search(study, progress=lambda done, total, stop=stop: done > stop, checkpoint=state)
        assert part.certificate["generations"] == stop + 1
        rest = sf.search(study, checkpoint=state, resume=True)
        assert rest.points == whole.points
        assert rest.evaluations == whole.evaluations
        assert not state.exists()


def test_a_state_fits_one_study(tmp_path: Path) -> None:
    state = tmp_path / "state"
    sf.search(adult_cuts(2), progress=lambda done, total: done > 1, checkpoint=state)
    with pytest.raises(InputError, match="another search"):
        sf.search(adult_cuts(2, seed=9), checkpoint=state, resume=True)
    state.write_bytes(state.read_bytes()[:100])
    with pytest.raises(InputError, match="cannot be read"):
        sf.search(adult_cuts(2), checkpoint=state, resume=True)
    with pytest.raises(InputError, match="no unfinished search"):
        sf.search(adult_cuts(2), checkpoint=tmp_path / "none", resume=True)
    with pytest.raises(InputError, match="nothing to resume"):
        sf.search(sf.read(sf.sample("adult-complete")), resume=True)


@pytest.mark.published
def test_killed_from_outside_and_resumed(tmp_path: Path) -> None:
    """SIGKILL while states are written: what is on disk is enough to end as if nothing had happened."""
    run, rng = tmp_path / "run.toml", np.random.default_rng(1)
    rows = [(str(a), f"T{t}", "xyz"[s]) for a, t, s in rng.integers(0, [60, 9, 3], (2000, 3)).tolist()]
    study = small_study(tmp_path, rows, problem=2, max_suppression=0.05, generations=200, local_search=12)
    run.write_text(study.as_toml())
    command = [sys.executable, "-m", "sfumato", "search", str(run), "-o"]
    moment, count, state = tmp_path / "moment.json", tmp_path / "count", tmp_path / ".cut.state"
    counted = surroundings(moment, tmp_path, count=count)
    subprocess.run([*command, str(tmp_path / "whole")], check=True, capture_output=True, env=counted)
    killed = surroundings(moment, tmp_path, signal.SIGKILL, int(count.read_text()) * 2 // 3)
    done = subprocess.run([*command, str(tmp_path / "cut")], check=False, capture_output=True, env=killed)
    assert done.returncode == -signal.SIGKILL
    assert state.exists()
    assert not (tmp_path / "cut").exists()
    subprocess.run([*command, str(tmp_path / "cut"), "--resume"], check=True, capture_output=True)
    assert points_in(tmp_path / "whole") == points_in(tmp_path / "cut")
    assert not state.exists()


def small_study(folder: Path, rows: list[tuple[str, str, str]], **given: object) -> sf.Study:
    path = folder / "people.csv"
    with path.open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows([("age", "town", "illness"), *rows])
    columns = {
        "age": {"role": "quasi_identifier", "hierarchy": {"build": "flat"}},
        "town": {"role": "quasi_identifier", "hierarchy": {"build": "flat"}},
        "illness": {"role": "sensitive"},
    }
    return sf.Study(data={"path": str(path)}, columns=columns, search={**SMALL, **given})


ROWS = st.lists(
    st.tuples(
        st.integers(20, 27).map(str), st.sampled_from(["Ayr", "Bern", "Cluj", "Dax"]), st.sampled_from(["a", "b", "c"])
    ),
    min_size=2,
    max_size=30,
)


SHARES = st.sampled_from([0.0, 0.1, 0.3, 0.5])
DRAWN = given(rows=ROWS, share=SHARES, prefer=st.sampled_from(["k", "l"]), pick=st.integers(0, 99))
SHARED_FOLDER = [HealthCheck.function_scoped_fixture]


def safe_on_the_published_file(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str, str]], share: float, prefer: str, pick: int
) -> None:
    """The rows that are written, read with nothing of ours: every class has k records and ℓ values."""
    folder = tmp_path_factory.mktemp("safe")
    study = small_study(folder, rows, problem=4, max_suppression=share, prefer=prefer, generations=2, population=8)
    table = study.table()
    front = sf.search(study, table=table)
    point = front.points[pick % len(front.points)]
    trees, levels = manifest.trees_and_levels(study, table, point.plan)
    with open_engine(study.engine, study.engine_options) as engine:
        below = Below(point.plan.suppress_below, point.plan.diversity_below)
        recoded = recode(engine, study.source(), study, column_recodes(study, levels, trees), below)
        write_mixed(engine, recoded, folder / "out.csv")
    with (folder / "out.csv").open(newline="", encoding="utf-8") as stream:
        released = list(csv.reader(stream))[1:]
    assert len(rows) - len(released) == point.suppressed <= int(share * len(rows) + 1e-9)
    sizes = Counter((age, town) for age, town, _ in released)
    held = defaultdict(set)
    for age, town, illness in released:
        held[age, town].add(illness)
    assert min(sizes.values()) == point.values["k"]
    assert min(map(len, held.values())) >= point.values["distinct_l"]


test_problem_four_is_safe_on_the_published_file = settings(max_examples=EXAMPLES, suppress_health_check=SHARED_FOLDER)(
    DRAWN(safe_on_the_published_file)
)
test_problem_four_is_safe_on_two_hundred_published_files = pytest.mark.published(
    settings(max_examples=200, suppress_health_check=SHARED_FOLDER)(DRAWN(safe_on_the_published_file))
)


@pytest.mark.long
def test_problem_four_on_adult_is_safe_when_published(tmp_path: Path) -> None:
    front = sf.search(adult_cuts(4, generations=10))
    choice = sf.pick(front, max_loss=0.3)
    release = sf.publish(choice, tmp_path / "release", state=tmp_path / "state")
    figures = release.manifest["figures"]
    assert figures["k"]["value"] >= choice.point.values["k"] > 1
    assert figures["distinct_l"]["value"] >= choice.point.values["distinct_l"]
    sf.verify(release.folder, sf.sample("adult-complete").with_name("adult.data.gz")).raise_if_failed()


def test_the_printed_rule_is_not_released(tmp_path: Path) -> None:
    front = sf.search(adult_cuts(4, reproduction=True))
    assert {o.name for o in front.objectives} == {"k", "distinct_l", "general_loss"}
    with pytest.raises(InputError, match="does not guarantee"):
        sf.publish(sf.pick(front, point=0), tmp_path / "release", state=tmp_path / "state")


def test_any_measures_with_any_rule(write: Callable[[str, str], Path]) -> None:
    """Objectives that the compiled figures do not know go through class tables."""
    rows = [(str(20 + i % 7), "AB"[i % 2], "xyz"[i % 3]) for i in range(40)]
    given = {"objectives": ["t_closeness", "discernibility"], "suppression": "within", "max_suppression": 0.1}
    front = sf.search(small_study(write("a", "").parent, rows, **given))
    table = front.study.table()
    for point in front.points:
        kept = suppress_below(classify(table, point.plan.recoding(table)), point.plan.suppress_below, 0)
        for name in ("t_closeness", "discernibility"):
            assert measure(name).value(kept) == pytest.approx(point.values[name])


def test_limits(write: Callable[[str, str], Path]) -> None:
    rows = [(str(20 + i % 7), "AB"[i % 2], "xyz"[i % 3]) for i in range(40)]
    folder = write("a", "").parent
    front = sf.search(small_study(folder, rows, problem=1, constraints={"k": 5}))
    table = front.study.table()
    assert all(measure("k").value(classify(table, p.plan.recoding(table))) >= 5 for p in front.points)
    with pytest.raises(UnreachableError, match="no cut"):
        sf.search(small_study(folder, rows, problem=1, constraints={"k": 50}))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"problem": 1, "max_suppression": 0.1}, "problem = 1 with"),
        ({"problem": 2, "objectives": ["t_closeness"]}, "problem = 2 and objectives"),
        ({"problem": 2, "algorithm": "exact"}, "for cuts"),
        ({"problem": 2, "weights": {"tow": 2.0}}, "weights for tow"),
        ({"suppression": "safe", "objectives": ["t_closeness", "general_loss"]}, 'suppression = "safe"'),
        ({"problem": 2, "suppression": "safe"}, "problem = 2 and suppression"),
        ({"objectives": ["kk"]}, "unknown objective"),
    ],
)
def test_what_cannot_be_asked(given: dict[str, object], message: str, write: Callable[[str, str], Path]) -> None:
    rows = [("20", "A", "x"), ("21", "B", "y"), ("22", "B", "y")]
    with pytest.raises(StudyError, match=message):
        sf.search(small_study(write("a", "").parent, rows, **given))


def test_problem_four_wants_a_sensitive_column() -> None:
    study = sf.read(sf.sample("adult-complete").with_name("cuts.toml")).with_search(**{**SMALL, "problem": 4})
    with pytest.raises(sf.errors.MeasureError, match="sensitive"):
        sf.search(study)


@pytest.mark.long
def test_a_demanded_k_suppresses_what_is_too_small_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on the lattice, and never worse than its best node: the same objective by compiled and by plain figures."""
    monkeypatch.setattr("sfumato.methods.cuts.search.LATTICE_NODES", 20_000)  # so the best node is among the seeds
    asked = {"constraints": {"k": 10}, "max_suppression": 0.02}
    plain = sf.read(sf.sample("adult-complete"))
    loose = ("age", "education", "race", "sex", "salary-class")
    free = {name: plain.columns[name].model_copy(update={"constrained": False}) for name in loose}
    adult = plain.replace(columns=free).table()
    for loss in ("general_loss", "arx_loss"):
        study = plain.replace(columns=free).with_search(objectives=(loss,), **asked)
        node = sf.search(study.with_search(algorithm="best_first"), table=adult).points[0]
        front = sf.search(
            study.with_search(system="cuts", algorithm="memetic", generations=3, population=16), table=adult
        )
        (point,) = front.points
        assert point.values[loss] < node.values[loss]
        assert point.suppressed <= 0.02 * adult.records
        assert point.plan.suppress_below >= 10
        classes = suppress_below(classify(adult, point.plan.recoding(adult)), 10)
        assert classes.suppressed_rows == point.suppressed
        assert measure(loss).value(classes) == pytest.approx(point.values[loss])
