"""Floors in a release: what a manifest may say of one, after a draw too; and a headline in the singular."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.release.fronts import ANYTHING, small

import sfumato as sf
from sfumato.release.classes import floor_differences
from sfumato.report.release_pages import external_page

FACTS = {
    "released": 40,
    "suppressed_share": 0.0,
    "left_out_share": 0.0,
    "loss_share": 0.1,
    "unique_share": 0.0,
    "columns": 3,
    "columns_in_no_figure": [],
    "counted": "record",
    "counted_how": "Each record counts as one person.",
}


@pytest.mark.parametrize(
    ("details", "fine"),
    [
        ({}, True),
        ({"floor": 0.2, "ratio": 1.5}, True),
        ({"floor": 0.0}, True),
        ({"floor": 0.25, "ratio": 1.6, "promised": 0.4}, True),
        ({"floor": 0.25, "ratio": 1.5}, False),
        ({"floor": 0.31, "ratio": 0.3 / 0.31}, False),
        ({"floor": 0.2}, False),
        ({"floor": "0.2", "ratio": 1.5}, False),
        ({"ratio": 1.5}, False),
    ],
)
def test_the_floor_of_a_manifest_fits_its_loss(details: dict[str, Any], fine: bool) -> None:
    assert (floor_differences({"details": details}, 0.3, 100, 0) == []) is fine


def test_a_drawn_recoding_is_published_with_its_floor(tmp_path: Path) -> None:
    """The front promises a loss with room for the draw; the file loses less, and the report compares what it loses."""
    study = small(tmp_path, rows=60, income={"role": "drop"}).with_search(system="local")
    study = study.with_settings({"local": {"k": [3], "passes": 1, "draw": 0.1, "test_seed": 1}})
    front = sf.search(study.model_copy(update={"policy": ANYTHING}))
    accept = {"uniques": "a small table made for a test"}
    release = sf.publish(sf.pick(front, point=0), tmp_path / "out", accept=accept, state=tmp_path / "state")
    floor, loss = front.points[0].details["floor"], release.manifest["loss"]
    text = (release.folder / "private" / "internal.html").read_text("utf-8")
    assert f"{loss / floor:.2f} times as much" in text
    assert sf.verify(release.folder, study.data.path)


def test_the_smallest_group_may_be_one_record() -> None:
    page = external_page(FACTS | {"k": 1}, {"file": "p.csv", "columns": []})
    assert "<b>1</b>record in the smallest group" in page
    assert "<b>5</b>records in the smallest group" in external_page(FACTS | {"k": 5}, {"file": "p.csv", "columns": []})
