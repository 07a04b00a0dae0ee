"""The lattice system: golden fronts, the exact search and its certificate, PBG-EA, limits."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conftest import EXAMPLES
from tests.points import dominates
from tests.strategies import tables

import sfumato as sf
from sfumato.algorithms.evaluation import Memory, neighbours
from sfumato.algorithms.exact import DOMINATED, EVALUATED, INFEASIBLE, exact, front_of
from sfumato.errors import HierarchyError, InputError, MeasureError, StudyError, UnreachableError
from sfumato.measures.classes import classify
from sfumato.measures.measure import Goal
from sfumato.measures.registry import measure
from sfumato.methods.lattice.problem import LatticeProblem
from sfumato.methods.lattice.search import Search
from sfumato.study import ColumnSettings

GOLDEN = [(1, 0), (2, 46085.6224), (3, 62334.1255), (4, 67610.7829), (5, 72350.9167), (6, 77325.3492), (7, 83888.4007)]
TURNED = {"name": "sum_l", "direction": "max"}
OBJECTIVES = [
    ["k", "general_loss"],
    ["k", "distinct_l", "general_loss"],
    ["sum_k", "general_loss"],
    ["sum_k", TURNED, "general_loss"],
]


def adult_study(**search: object) -> sf.Study:
    """Adult with the paper's rule of suppression; `test_releases` has the default, a node and thresholds."""
    return sf.read(sf.sample("adult-complete")).with_search(
        **({"max_suppression": 0.01, "suppression": "paper"} | search)
    )


def with_label() -> sf.Study:
    """Adult with salary-class as the label: a lattice of 8,960 nodes."""
    study = sf.read(sf.sample("adult-complete"))
    return study.replace(columns={"salary-class": ColumnSettings(role=sf.Role.LABEL)})


def plans(front: sf.Front) -> list[tuple[object, ...]]:
    return [(tuple(p.values.values()), p.loss, p.suppressed, tuple(p.plan.levels.values())) for p in front.points]


def test_golden_front(adult: sf.FrequencyTable) -> None:
    front = sf.search(adult_study(), table=adult)
    values = [(p.values["k"], p.values["general_loss"]) for p in front.points]
    assert len(values) == 52
    assert front.exact
    for found, expected in zip(values, GOLDEN, strict=False):
        assert found == pytest.approx(expected, abs=1e-4)
    for k, loss in ((10, 90592.6707), (20, 102346.022), (51, 118343.55), (249, 141279.107)):
        assert dict(values)[k] == pytest.approx(loss, abs=1e-3)
    assert front.evaluations <= 0.15 * front.space
    assert [p.id for p in front.points] == list(range(52))


@pytest.mark.long
@pytest.mark.parametrize("objectives", OBJECTIVES, ids=lambda o: "-".join(map(str, o))[:40])
def test_exact_equals_exhaustive(adult: sf.FrequencyTable, objectives: list[object]) -> None:
    fast = sf.search(adult_study(objectives=objectives), table=adult)
    full = sf.search(adult_study(objectives=objectives, algorithm="exhaustive"), table=adult)
    assert plans(fast) == plans(full)
    assert full.evaluations == full.space == 17920
    assert fast.evaluations < full.evaluations / 4


def test_exact_equals_exhaustive_with_the_classification_metric() -> None:
    objectives = ["k", "general_loss", "classification_metric"]
    study = with_label()
    table = study.table()
    fast = sf.search(study.with_search(objectives=objectives, max_suppression=0.01), table=table)
    full = sf.search(
        study.with_search(objectives=objectives, max_suppression=0.01, algorithm="exhaustive"), table=table
    )
    assert plans(fast) == plans(full)
    assert full.space == 8960


def test_arx_optimum(arx_adult: sf.Study) -> None:
    for limit, node, loss, gone in (
        (0.01, [0, 3, 1, 1, 2, 2, 1, 1, 0], 0.36240672301036203, 294),
        (0.10, [0, 3, 0, 0, 2, 1, 1, 1, 0], 0.22041192847984292, 2553),
    ):
        front = sf.search(arx_adult.with_search(objectives=["arx_loss"], constraints={"k": 5}, max_suppression=limit))
        (point,) = front.points
        assert list(point.plan.levels.values()) == node
        assert point.values["arx_loss"] == pytest.approx(loss, abs=1e-12)
        assert (point.suppressed, point.plan.suppress_below) == (gone, 5)


@given(data=st.data())
def test_a_budget_of_far_more_records_than_classes_is_spent_the_same_way(data: st.DataObject) -> None:
    table = data.draw(tables())
    large = replace(table, counts=table.counts * 1000, sensitive={}, label=None)
    small = replace(table, sensitive={}, label=None)
    goals = [Goal(measure("k"), "max"), Goal(measure("general_loss"), "min")]
    for most in range(table.rows):
        one, two = LatticeProblem(small, goals, most), LatticeProblem(large, goals, most * 1000 + 999)
        nodes = one.rollup.all_nodes
        found, scaled = one.figures(nodes), two.figures(nodes)
        np.testing.assert_array_equal(found.start, scaled.start)
        np.testing.assert_allclose(found.values * 1000, scaled.values)
        np.testing.assert_array_equal(found.suppressed * 1000, scaled.suppressed)


def test_a_search_that_is_stopped_keeps_its_best_and_says_what_is_proven(adult: sf.FrequencyTable) -> None:
    for algorithm in ("exact", "exhaustive", "pbg_ea"):
        front = sf.search(adult_study(algorithm=algorithm), table=adult, progress=lambda done, total: done > 200)
        assert front.points
        assert not front.exact
        if algorithm == "exact":
            assert 0 < front.certificate["proven"] < 1
            assert front.certificate["undecided"] > 0


@pytest.mark.parametrize("algorithm", ["exact", "pbg_ea", "best_first"])
def test_a_stopped_search_says_how_to_end_there_again(adult: sf.FrequencyTable, algorithm: str) -> None:
    study = adult_study(algorithm=algorithm)
    first = sf.search(study, table=adult, progress=lambda done, total: done > 300)
    assert first.study.search.evaluations == first.evaluations
    again = sf.search(first.study, table=adult)
    assert again.points == first.points
    assert again.evaluations == first.evaluations
    assert again.study == first.study


@pytest.mark.parametrize("algorithm", ["exact", "pbg_ea", "best_first"])
def test_a_search_that_was_broken_off_goes_on(adult: sf.FrequencyTable, algorithm: str, tmp_path: Path) -> None:
    one = {"objectives": ("general_loss",), "constraints": {"k": 5}} if algorithm == "best_first" else {}
    study, state = adult_study(algorithm=algorithm, **one), tmp_path / "state"
    whole = sf.search(study, table=adult)
    first = sf.search(study, table=adult, progress=lambda done, total: done > 300, checkpoint=state)
    assert state.exists()
    with pytest.raises(InputError, match="the state of another search"):
        sf.search(study.with_search(seed=7), table=adult, checkpoint=state, resume=True)
    with patch.object(Search, "evaluate", autospec=True, side_effect=Search.evaluate) as evaluate:
        rest = sf.search(study, table=adult, checkpoint=state, resume=True)
    asked = sum(len(call.args[1]) for call in evaluate.call_args_list)
    assert rest.points == whole.points
    assert rest.evaluations == whole.evaluations == asked + first.evaluations
    assert not state.exists()


def test_best_first_finds_the_optimum_of_a_lattice_that_can_be_decided(adult: sf.FrequencyTable) -> None:
    for loss in ("general_loss", "arx_loss"):
        demanded = {"objectives": (loss,), "constraints": {"k": 5}, "max_suppression": 0.05}
        proven = sf.search(adult_study(algorithm="exact", **demanded), table=adult)
        found = sf.search(adult_study(algorithm="best_first", **demanded), table=adult)
        assert found.points[0].values == proven.points[0].values
        assert not found.exact


@pytest.mark.long
def test_best_first_climbs_a_ladder_of_k(adult: sf.FrequencyTable) -> None:
    wanted = {"objectives": ("k", "general_loss"), "max_suppression": 0.05}
    whole = sf.search(adult_study(algorithm="exact", **wanted), table=adult)
    found = sf.search(adult_study(algorithm="best_first", **wanted), table=adult)
    assert len(found.points) > 5
    losses = {point.id: point.values["general_loss"] for point in found.points}
    least = {
        point.id: min(o.values["general_loss"] for o in whole.points if o.values["k"] >= point.values["k"])
        for point in found.points
    }
    assert all(losses[id_] <= 1.02 * least[id_] for id_ in losses)  # a k between two steps may be had for less
    assert sum(losses[id_] <= least[id_] * (1 + 1e-9) for id_ in losses) > len(losses) / 2
    assert all(point.suppressed <= 0.05 * adult.records for point in found.points)


def test_best_first_refuses_what_it_cannot_seek(adult: sf.FrequencyTable) -> None:
    with pytest.raises(StudyError, match="best_first with k, distinct_l, general_loss"):
        sf.search(adult_study(algorithm="best_first", objectives=("k", "distinct_l", "general_loss")), table=adult)
    with pytest.raises(UnreachableError, match="no generalization meets the limits"):
        sf.search(
            adult_study(algorithm="best_first", objectives=("general_loss",), constraints={"distinct_l": 99}),
            table=adult,
        )


NAMES = [
    "k",
    "sum_k",
    "distinct_l",
    "general_loss",
    "classification_metric",
    "discernibility",
    "arx_loss",
    "entropy_l",
    "precision",
]


@given(data=st.data())
@settings(max_examples=2 * EXAMPLES)
def test_exact_is_complete_and_its_certificate_holds(data: st.DataObject) -> None:
    """Any objectives, any limits: every excluded node is truly dominated or infeasible, by the values of all nodes."""
    table = data.draw(tables())
    table = replace(table, domains=tuple(replace(d, declared=True) for d in table.domains))
    names = data.draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True))
    limits = data.draw(st.dictionaries(st.sampled_from(["distinct_l", "k"]), st.integers(1, 3), max_size=1))
    study = sf.Study(
        data={"path": "none"},
        columns={},
        search={
            "objectives": names,
            "constraints": limits,
            "max_suppression": data.draw(st.sampled_from([0, 0.1, 0.4])),
            "suppression": data.draw(st.sampled_from(["threshold", "paper"])),
        },
    )
    ready = Search.prepare(study, table)
    nodes = ready.problem.rollup.all_nodes
    truth = ready.evaluate(nodes)
    memory = Memory(ready.evaluate, ready.problem.shape)
    proof = exact(memory, ready.bounds(nodes), np.random.default_rng(1), batch=2)
    assert proof.complete
    front = front_of(truth)
    found = memory.all
    best = front_of(found)
    assert sorted(found.values[best].tolist()) == sorted(truth.values[front].tolist())
    assert sorted(found.nodes[best].tolist()) == sorted(truth.nodes[front].tolist())
    node = memory.number(truth.nodes)
    for number in np.flatnonzero(np.isin(node, np.flatnonzero(proof.state == DOMINATED)) & truth.feasible):
        assert any(dominates(truth.values[best], truth.values[number]) for best in front)
    assert not truth.feasible[np.isin(node, np.flatnonzero(proof.state == INFEASIBLE))].any()
    assert np.count_nonzero(proof.state == EVALUATED) == memory.count


@given(data=st.data())
def test_bounds_are_optimistic_and_move_as_declared(data: st.DataObject) -> None:
    table = data.draw(tables())
    table = replace(table, domains=tuple(replace(d, declared=True) for d in table.domains))
    study = sf.Study(
        data={"path": "x"},
        columns={},
        search={"objectives": NAMES, "max_suppression": data.draw(st.sampled_from([0, 0.2]))},
    )
    ready = Search.prepare(study, table)
    node = np.array([[data.draw(st.integers(0, size - 1)) for size in ready.problem.shape]], dtype=np.int32)
    upper = np.array(
        [[data.draw(st.integers(level, size - 1)) for level, size in zip(node[0], ready.problem.shape, strict=True)]]
    )
    low, high = ready.evaluate(node), ready.evaluate(upper.astype(np.int32))
    for place, goal in enumerate(ready.problem.goals):
        if goal.moves is None:
            continue
        assert (low.bounds[:, place] <= low.values[:, place] + 1e-9).all()
        if goal.moves == "rises":
            assert low.bounds[0, place] <= high.bounds[0, place] + 1e-9
        else:
            assert low.bounds[0, place] >= high.bounds[0, place] - 1e-9


def test_the_plain_evaluator_agrees_with_the_walk(adult: sf.FrequencyTable) -> None:
    study = adult_study(objectives=["k", "distinct_l", "general_loss", "sum_k"], weights={"age": 2})
    ready = Search.prepare(study, adult)
    nodes = ready.problem.rollup.all_nodes[::1999]
    plain = LatticeProblem(adult, ready.problem.goals, ready.problem.budget, 0, {"age": 2}, paper=True)
    plain.walks = False
    for one, two in zip(vars(ready.problem.figures(nodes)).values(), vars(plain.figures(nodes)).values(), strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-12)


@pytest.mark.long
@pytest.mark.parametrize("algorithm", ["exact", "exhaustive", "pbg_ea"])
def test_the_front_does_not_depend_on_threads(adult: sf.FrequencyTable, algorithm: str) -> None:
    one = sf.search(adult_study(algorithm=algorithm, threads=1), table=adult)
    two = sf.search(adult_study(algorithm=algorithm, threads=2), table=adult)
    assert plans(one) == plans(two)
    assert one.evaluations == two.evaluations


def test_pbg_ea_is_called_best_found_and_counts_each_node_once(adult: sf.FrequencyTable) -> None:
    front = sf.search(adult_study(algorithm="pbg_ea"), table=adult)
    truth = {tuple(p.values.values()) for p in sf.search(adult_study(), table=adult).points}
    assert not front.exact
    assert len({tuple(p.values.values()) for p in front.points} & truth) >= 0.9 * len(truth)
    assert front.evaluations < 1200
    coarse = sf.search(adult_study(algorithm="pbg_ea", epsilon=[50, 10000]), table=adult)
    assert len(coarse.points) < len(front.points)


def test_limits_narrow_the_front(adult: sf.FrequencyTable) -> None:
    free = sf.search(adult_study(objectives=["k", "general_loss"]), table=adult)
    tight = sf.search(adult_study(objectives=["k", "general_loss"], constraints={"distinct_l": 5}), table=adult)
    full = sf.search(
        adult_study(objectives=["k", "general_loss"], constraints={"distinct_l": 5}, algorithm="exhaustive"),
        table=adult,
    )
    assert plans(tight) == plans(full)
    assert min(p.loss for p in tight.points) > min(p.loss for p in free.points)


def test_what_cannot_be_met_says_the_nearest(adult: sf.FrequencyTable) -> None:
    with pytest.raises(UnreachableError, match="no generalization meets the limits") as caught:
        sf.search(adult_study(constraints={"distinct_l": 15}), table=adult)
    assert "distinct_l = 14 instead of 15" in caught.value.remedy
    assert caught.value.exit_code == 3


def test_bad_settings_are_refused(adult: sf.FrequencyTable) -> None:
    with pytest.raises(StudyError, match='unknown objective "kk"'):
        sf.search(adult_study(objectives=["kk"]), table=adult)
    with pytest.raises(StudyError, match="is listed twice"):
        sf.search(adult_study(objectives=["k", "k"]), table=adult)
    with pytest.raises(StudyError, match="weights for agee"):
        sf.search(adult_study(weights={"agee": 2}), table=adult)
    with pytest.raises(StudyError, match="epsilon"):
        sf.search(adult_study(algorithm="pbg_ea", epsilon=[1]), table=adult)
    bare = replace(adult, sensitive={})
    with pytest.raises(MeasureError, match="needs a sensitive column"):
        sf.search(adult_study(objectives=["distinct_l", "general_loss"]), table=bare)
    flat = replace(adult, domains=tuple(replace(d, declared=False) for d in adult.domains))
    with pytest.raises(StudyError, match="without a hierarchy"):
        sf.search(adult_study(), table=flat)


@pytest.mark.long
def test_a_lattice_too_large_says_what_to_use(shared: Path) -> None:
    folder = shared / "data/arx/genetic-benchmark"
    names = (folder / "data/mach2019_int.csv").read_text("utf-8").splitlines()[0].split(";")
    columns = {
        n: {"role": "quasi_identifier", "hierarchy": str(folder / f"hierarchies/mach2019_int_hierarchy_{n}.csv")}
        for n in names
    }
    study = sf.Study(data={"path": str(folder / "data/mach2019_int.csv")}, columns=columns)
    with pytest.raises(StudyError, match=r"the lattice has 85,\d+,\d+ nodes"):
        sf.search(study.with_search(algorithm="exhaustive"))


def test_neighbours_by_hand() -> None:
    found = neighbours(np.array([[0, 2]], dtype=np.int32), (2, 3))
    assert found.tolist() == [[0, 1], [1, 2]]


FLAT = {"role": "quasi_identifier", "hierarchy": {"build": "flat"}}


def test_several_sensitive_columns_count_the_worst(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,s,t\n" + "".join(f"{i % 3},{i % 2},{i % 4}\n" for i in range(24)), "utf-8")
    columns = {"a": FLAT, "s": {"role": "sensitive"}, "t": {"role": "sensitive"}}
    front = sf.search(
        sf.Study(data={"path": str(path)}, columns=columns, search={"objectives": ["distinct_l", "general_loss"]})
    )
    assert front.points[-1].values["distinct_l"] == 2


def test_missing_values_that_match_anything_can_be_searched(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b\n" + "".join(f"{i % 3 if i % 4 else ''},{i % 2}\n" for i in range(30)), "utf-8")
    study = sf.Study(data={"path": str(path), "missing": "wildcard"}, columns={"a": FLAT, "b": FLAT})
    front = sf.search(study)
    assert front.points[0].values["k"] == sf.audit(study).figures["k"].value
    accept = {"raw": "a table made for a test"}
    sf.publish(sf.pick(front, point=0), tmp_path / "release", accept=accept, state=tmp_path / "state")
    sf.verify(tmp_path / "release", path).raise_if_failed()
    path.write_text(path.read_text("utf-8") + "9,1\n", "utf-8")  # nobody else can be a 9 with 1
    less = sf.search(study.with_search(max_suppression=0.2))
    assert any(point.suppressed for point in less.points)
    chosen = max((point for point in less.points if point.suppressed), key=lambda point: point.values["k"])
    found = sf.publish(sf.pick(less, point=chosen.id), tmp_path / "less", state=tmp_path / "state", accept=accept)
    assert found.manifest["suppressed"] == chosen.suppressed
    sf.verify(tmp_path / "less", path).raise_if_failed()
    with pytest.raises(StudyError, match="match anything"):
        sf.search(study.with_search(max_suppression=0.2, suppression="paper"))


def test_a_table_that_is_generalized_already_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b\n*,1\nx,2\ny,1\n", "utf-8")
    with pytest.raises(HierarchyError, match="already generalized"):
        sf.search(sf.Study(data={"path": str(path)}, columns={"a": FLAT, "b": FLAT}))


@pytest.mark.long
def test_a_lattice_with_more_nodes_than_numbers(tmp_path: Path) -> None:
    """2⁶⁴ nodes: nodes are told apart by their levels, not by a number that would overflow."""
    names = [f"q{i}" for i in range(64)]
    rows = ["".join("ab"[(row >> i % 4) & 1] + "," for i in range(64)).rstrip(",") for row in range(12)]
    (tmp_path / "wide.csv").write_text("\n".join([",".join(names), *rows]) + "\n")
    columns = {name: {"role": "quasi_identifier", "hierarchy": {"build": "flat"}} for name in names}
    search = {"algorithm": "best_first", "objectives": ["general_loss"], "constraints": {"k": 2}, "evaluations": 300}
    study = sf.Study(data={"path": str(tmp_path / "wide.csv")}, columns=columns, search=search)
    front = sf.search(study)
    assert front.space == 2**64
    assert classify(study.table(), front.points[0].plan.recoding(study.table())).size.min() >= 2
    assert 0 < front.points[0].loss < 1


def test_best_first_that_is_stopped_at_once_has_what_meets_the_limits(tmp_path: Path) -> None:
    """The coarsest node meets every limit, so there is a front, however early a search is stopped."""
    rows = "".join(f"{i % 40},{i % 31},{'xyz'[i % 3]}\n" for i in range(400))
    (tmp_path / "t.csv").write_text("a,b,s\n" + rows, "utf-8")
    tree = {"build": "interval", "widths": [2, 4, 8]}
    columns = {name: {"role": "quasi_identifier", "hierarchy": tree} for name in "ab"} | {"s": {"role": "sensitive"}}
    study = sf.Study(data={"path": str(tmp_path / "t.csv")}, columns=columns).with_search(
        algorithm="best_first", objectives=["general_loss"], constraints={"k": 300, "distinct_l": 3}, evaluations=1
    )
    point = sf.search(study).points[0]
    assert point.loss == pytest.approx(1.0)
