"""A study recoded locally: the front, its plans, and its classes counted with plain code."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.release.fronts import small

import sfumato as sf
from sfumato.front import Front
from sfumato.methods.local.search import model_of, search_local
from sfumato.methods.run import Run
from sfumato.plans.boxes import BoxPlan
from sfumato.tables.frequency import FrequencyTable


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> tuple[sf.Study, FrequencyTable, Front]:
    study = small(tmp_path_factory.mktemp("local"), rows=300).with_search(max_suppression=0.02)
    study = study.replace(local={"k": (1, 2, 5, 20), "effort": 1, "passes": 2})
    table = study.table()
    return study, table, search_local(study, table, Run())


def test_every_class_has_k_records_inside_its_label(found: tuple[sf.Study, FrequencyTable, Front]) -> None:
    study, table, front = found
    segments, _, cells = model_of(study, table)
    for point in front.points:
        plan = point.plan
        assert isinstance(plan, BoxPlan)
        rows = [0] * len(plan.labels)
        left = cells.counts.copy()
        lost = 0.0
        for tuple_, owner, count in plan.members:
            left[tuple_] -= count
            if owner < 0:
                lost += count
                continue
            rows[owner] += count
            for j, segment in enumerate(segments):
                leaves = [segment.domain.hierarchy.leaves[leaf] for leaf in segment.domain.order]
                first, last = (leaves.index(value) for value in plan.labels[owner][j])
                own = leaves.index(table.domains[j].labels[table.codes[j, tuple_]])
                assert first <= own <= last
                lost += count * (last - first) / (len(leaves) - 1) / len(segments)
        assert not left.any()
        assert min(rows) == point.values["k"]
        assert lost / table.records == pytest.approx(point.loss)
        assert point.suppressed <= 0.02 * table.records


def test_losses_rise_with_k_and_stay_above_their_floors(found: tuple[sf.Study, FrequencyTable, Front]) -> None:
    points = found[2].points
    assert points[0].values["k"] == 1
    assert points[0].loss == 0
    losses = [point.loss for point in points]
    assert losses == sorted(losses)
    assert len(set(losses)) == len(losses) >= 3
    for point in points:
        assert point.bound is not None
        assert point.bound <= point.values["general_loss"] + 1e-9


def test_a_front_is_saved_with_its_plans(found: tuple[sf.Study, FrequencyTable, Front], tmp_path: Path) -> None:
    front = found[2]
    front.save(tmp_path / "front")
    for point in front.points:
        assert BoxPlan.from_saved(point.saved()) == point.plan


@pytest.mark.parametrize(
    "spoiled", [{"members": "0 5 1"}, {"members": "0 0 -1"}, {"labels": {"age": [["a", 1]]}}, {"classes": "0 0"}]
)
def test_a_plan_that_cannot_be_is_refused(spoiled: dict[str, object]) -> None:
    saved = {"labels": {"age": [["20", "29"]]}, "classes": "0", "members": "0 0 5"}
    assert BoxPlan.from_saved({"classes": 1, "plan": saved}).members == ((0, 0, 5),)
    with pytest.raises(ValueError, match=r"fit|label|rows"):
        BoxPlan.from_saved({"classes": 1, "plan": saved | spoiled})


def test_more_than_all_records_cannot_be_reached(found: tuple[sf.Study, FrequencyTable, Front]) -> None:
    study, table, _ = found
    with pytest.raises(sf.UnreachableError, match="fewer than k = 1000"):
        search_local(study.replace(local={"k": (1000,)}), table, Run())
