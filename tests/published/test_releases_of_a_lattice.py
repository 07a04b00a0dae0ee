"""The whole front over node and threshold of Adult, and ARX's optima with two criteria."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.arx_criteria import settings, study_of

import sfumato as sf

pytestmark = pytest.mark.published


@pytest.mark.parametrize(("limit", "points"), [(0, 13), (0.01, 61), (0.05, 99), (0.10, 116)])
def test_the_front_of_adult_is_that_of_every_node_and_threshold(
    adult: sf.FrequencyTable, limit: float, points: int
) -> None:
    study = sf.read(sf.sample("adult-complete")).with_search(max_suppression=limit)
    front, full = sf.search(study, table=adult), sf.search(study.with_search(algorithm="exhaustive"), table=adult)
    assert len(front.points) == len(full.points) == points
    assert full.evaluations == 17_920
    assert [(p.values, p.plan, p.suppressed) for p in front.points] == [
        (p.values, p.plan, p.suppressed) for p in full.points
    ]
    assert front.evaluations < 0.25 * front.space


def test_the_optima_of_arx_with_two_criteria(shared: Path) -> None:
    folder = shared / "data/arx/adult"
    study = study_of(folder)
    table = study.table()
    asked = list(settings(study, folder))
    assert len(asked) == 56
    for row, wanted in asked:
        (point,) = sf.search(wanted, table=table).points
        assert point.values["arx_loss"] == pytest.approx(float(row["loss"]), abs=1e-9), row
        assert point.suppressed == int(row["suppressed"]), row
