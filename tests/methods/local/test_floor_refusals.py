"""Floors that cannot be checked are refused with the true reason, and so are losses below a proven floor."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from tests.release.fronts import ANYTHING, small

import sfumato as sf
from sfumato.cli import run
from sfumato.errors import DataError
from sfumato.front import PRICES
from sfumato.methods.local.floor import check_front
from sfumato.methods.registry import load_front


def refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """What is said about a front whose floor cannot be checked."""
    capsys.readouterr()
    assert run(["floor", str(folder)]) == 2
    return " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("reading", ["strict", "agreeing"])
def test_a_bound_of_cells_has_no_certificate(reading: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cells = {"k": [2], "reading": reading, "effort": 0, "passes": 0, "blank_records": 0.5}
    study = small(tmp_path, rows=40).with_search(system="cells").with_settings({"cells": cells})
    front = sf.search(study)
    assert "floor" in front.points[0].details
    said = refused(front.save(tmp_path / "front"), capsys)
    assert "a front of suppressed cells has no floor with prices" in said
    assert 'local recodings that were searched with method = "boxes"' in said


def test_runs_prove_no_floor(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    local = {"k": [2], "method": "runs"}
    study = small(tmp_path, rows=40).with_search(system="local").with_settings({"local": local})
    said = refused(sf.search(study).save(tmp_path / "front"), capsys)
    assert 'the front has no floor: method = "runs" proves none' in said


def test_a_front_of_levels_has_no_floor(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flat = {"role": "quasi_identifier", "hierarchy": {"build": "flat"}}
    said = refused(sf.search(small(tmp_path, rows=40, sex=flat)).save(tmp_path / "front"), capsys)
    assert "a front of lattice has no floor" in said


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("floors")
    study = small(folder, rows=60, income={"role": "drop"}).with_search(system="local")
    study = study.with_settings({"local": {"k": [2, 5], "passes": 1}})
    return sf.search(study.model_copy(update={"policy": ANYTHING})).save(folder / "front")


def edited(saved: Path, folder: Path, **changed: float) -> sf.Front:
    """The front with other figures in its first point: `loss`, `bound`, or one of its details."""
    shutil.copytree(saved, folder)
    about = json.loads((folder / "front.json").read_text("utf-8"))
    point = about["points"][0]
    for name, value in changed.items():
        (point if name in ("loss", "bound") else point["details"])[name] = value
    (folder / "front.json").write_text(json.dumps(about), "utf-8")
    return replace(load_front(folder), study=load_front(saved).study)


def test_a_loss_below_its_proven_floor_is_refused(saved: Path, tmp_path: Path) -> None:
    floor = load_front(saved).points[0].details["floor"]
    front = edited(saved, tmp_path / "front", loss=0.9 * floor)
    with pytest.raises(DataError, match="below the floor that its prices prove"):
        check_front(front, front.study.table())


def published(front: sf.Front, folder: Path) -> sf.Release:
    accept = dict.fromkeys(("k", "uniques"), "a small table made for a test")
    return sf.publish(sf.pick(front, point=0), folder / "out", accept=accept, state=folder / "state")


def test_a_floor_is_stated_in_the_report_and_not_called_checked(saved: Path, tmp_path: Path) -> None:
    front = load_front(saved)
    release = published(front, tmp_path)
    text = (release.folder / "private" / "internal.html").read_text("utf-8")
    assert "According to the search, no recoding" in text
    assert "sfumato floor checks that no box costs less than its prices" in text
    assert sf.verify(release.folder, front.study.data.path)


@pytest.mark.parametrize(
    ("forged", "said"),
    [
        ("floor, ratio and bound", "more than its prices add up to"),
        ("floor", "is not its loss divided by its floor"),
        ("ratio", "is not its loss divided by its floor"),
        ("bound", "the bound of point 0 is not its floor"),
        ("above the loss", "is below its floor"),
        ("no prices", "there are no prices for the floor"),
    ],
)
def test_a_forged_floor_is_not_published(saved: Path, tmp_path: Path, forged: str, said: str) -> None:
    point = load_front(saved).points[0]
    floor, assumed = point.details["floor"], (point.details["floor"] + point.loss) / 2
    assert floor < point.loss
    assert point.bound is not None
    changed = {
        "floor, ratio and bound": {
            "floor": assumed,
            "ratio": point.loss / assumed,
            "bound": point.bound * assumed / floor,
        },
        "floor": {"floor": assumed},
        "ratio": {"ratio": 1.01 * point.details["ratio"]},
        "bound": {"bound": 1.01 * point.bound},
        "above the loss": {"floor": 1.1 * point.loss},
        "no prices": {},
    }[forged]
    front = edited(saved, tmp_path / "front", **changed)
    if forged == "no prices":
        (tmp_path / "front" / PRICES).unlink()
        front = replace(front, prices={})
    with pytest.raises(DataError, match=said) as caught:
        published(front, tmp_path)
    assert caught.value.exit_code == 2
    assert not (tmp_path / "out").exists()
