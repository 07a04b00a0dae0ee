"""Releases of real tables: what is measured on the file equals what the search said, and verify agrees."""

from __future__ import annotations

from pathlib import Path

import pytest

import sfumato as sf


def released(front: sf.Front, tmp_path: Path, min_k: int, *accepted: str) -> sf.Release:
    choice = sf.pick(front, min_k=min_k)
    accept = dict.fromkeys(accepted, "a table made for tests of other tools")
    release = sf.publish(choice, tmp_path / "release", state=tmp_path / "state", accept=accept)
    source = front.study.source().path
    sf.verify(tmp_path / "release", source).raise_if_failed()
    assert release.manifest["loss"] == pytest.approx(choice.point.loss, rel=1e-9)
    assert release.manifest["suppressed"] == choice.point.suppressed
    return release


def test_testdata(shared: Path, tmp_path: Path) -> None:
    path = shared / "data/sdcmicro/testdata.csv"
    names = path.read_text("utf-8").splitlines()[0].split(",")
    rare = {"build": "frequency", "shares": [0.05, 0.3]}
    columns: dict[str, object] = {name: {"role": "other"} for name in names}
    columns |= {name: {"role": "quasi_identifier", "hierarchy": rare} for name in ("urbrur", "roof", "relat", "sex")}
    columns |= {
        "age": {"role": "quasi_identifier", "hierarchy": {"build": "interval", "widths": [5, 10, 20, 40]}},
        "income": {"role": "sensitive"},
        "ori_hid": {"role": "household"},
        "sampling_weight": {"role": "drop"},
        "household_weights": {"role": "weight"},
    }
    search = {"objectives": ["k", "distinct_l", "general_loss"], "max_suppression": 0.05}
    front = sf.search(sf.Study(data={"path": str(path)}, columns=columns, search=search))
    assert front.exact
    release = released(front, tmp_path, 5, "identifying:expend", "identifying:income", "identifying:savings", "uniques")
    head = release.data.read_text("utf-8").splitlines()[0].split(",")
    assert "ori_hid" not in head
    assert "sampling_weight" not in head


@pytest.mark.published
def test_mach2019(shared: Path, tmp_path: Path) -> None:
    folder = shared / "data/arx/genetic-benchmark"
    path = folder / "data/mach2019_int.csv"
    names = path.read_text("utf-8").splitlines()[0].split(";")
    trees = {name: str(folder / f"hierarchies/mach2019_int_hierarchy_{name}.csv") for name in names}
    columns = {name: {"role": "quasi_identifier", "hierarchy": tree} for name, tree in trees.items()}
    search = {"algorithm": "pbg_ea", "max_suppression": 0.1, "iterations": 6}
    front = sf.search(sf.Study(data={"path": str(path)}, columns=columns, search=search))
    assert front.space == 85_030_560
    assert not front.exact
    released(front, tmp_path, 5)
