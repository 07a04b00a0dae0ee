"""Columns beside the area: what follows it moves with it, what names it or marks the swapped rows is refused."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.cli import run
from sfumato.data.engine import open_engine
from sfumato.decide import pick
from sfumato.errors import StudyError
from sfumato.release.telling import refuse_marked
from sfumato.systems.groups.front import swaps_of
from sfumato.systems.registry import load_front
from tests.groups.files import protected_front, protected_study

Capture = pytest.CaptureFixture[str]
Column = Callable[[np.random.Generator, str, int], str]


def counties(share: float) -> Column:
    """Three counties of two towns each, wrong in a share of the rows; the first row is always wrong."""

    def county(rng: np.random.Generator, town: str, row: int) -> str:
        right = "ABCDEF".index(town) // 2
        return "XYZ"[(right + int(rng.integers(1, 3))) % 3 if row == 0 or rng.random() < share else right]

    return county


def released(folder: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch, column: Column) -> tuple[int, str]:
    """Protect and publish the small study with a column more; the exit code and what was said."""
    monkeypatch.setenv("SFUMATO_STATE", str(folder / "state"))
    protected_study(folder)
    rng = np.random.default_rng(9)
    for name in ("t.csv", "aux.csv"):
        lines = (folder / name).read_text("utf-8").splitlines()
        cells = [column(rng, line.split(",")[2], row) for row, line in enumerate(lines[1:])]
        again = [lines[0] + ",more", *(f"{line},{cell}" for line, cell in zip(lines[1:], cells, strict=True))]
        (folder / name).write_text("\n".join(again) + "\n", encoding="utf-8")
    protected_front(folder).save(folder / "out")
    accepted = [
        word for rule in ("uniques", "attacks") for word in ("--accept", f"{rule}=a small table made for a test")
    ]
    code = run(["publish", str(folder / "out"), "-o", str(folder / "release"), "--json", *accepted])
    said = json.loads(capsys.readouterr().out)
    return code, said["error"]["what"] if "error" in said else ""


def unusual(folder: Path) -> int:
    """Rows of the release whose county is not the most frequent one of their town."""
    (file,) = (path for path in (folder / "release").rglob("*.csv"))
    with file.open(newline="") as table:
        rows = [(row["town"], row["more"]) for row in csv.DictReader(table)]
    usual = {town: Counter(c for t, c in rows if t == town).most_common(1)[0][0] for town, _ in rows}
    return sum(usual[town] != county for town, county in rows)


def test_a_county_with_one_typo_moves_with_the_area(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, said = released(tmp_path, capsys, monkeypatch, counties(0.0))
    assert code == 0, said
    swapped = 2 * swaps_of(pick(load_front(tmp_path / "out")).point).swaps
    assert swapped > 10
    assert unusual(tmp_path) == 1  # the typo; each swapped row would be one more


def test_a_county_that_is_often_wrong_is_refused_because_it_marks_swapped_rows(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, said = released(tmp_path, capsys, monkeypatch, counties(0.07))
    assert code == 2
    assert "more tells which records were exchanged" in said
    assert not (tmp_path / "release").exists()


def test_a_household_number_that_names_the_area_is_refused_though_one_is_wrong(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def household(rng: np.random.Generator, town: str, row: int) -> str:
        return "A1" if row < 2 else f"{town}{rng.integers(1, 12)}"

    code, said = released(tmp_path, capsys, monkeypatch, household)
    assert code == 2
    assert "the original area follows from more" in said


def test_a_position_that_names_the_area_is_refused(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No two records have the same, but neighbours are in the same town."""

    def position(rng: np.random.Generator, town: str, row: int) -> str:
        return f"{'ABCDEF'.index(town) + rng.random() * 0.9:.6f}"

    code, said = released(tmp_path, capsys, monkeypatch, position)
    assert code == 2
    assert "the original area follows from more" in said


def test_a_column_without_relation_is_kept(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    def anything(rng: np.random.Generator, town: str, row: int) -> str:
        return str(rng.integers(0, 30))

    code, said = released(tmp_path, capsys, monkeypatch, anything)
    assert code == 0, said
    manifest = json.loads(next((tmp_path / "release").rglob("manifest.json")).read_text("utf-8"))
    assert manifest["exchanged"] == ["town"]


@given(st.integers(0, 10_000), st.sampled_from([2, 10, 60, 1_000]), st.floats(0.01, 0.5))
@settings(max_examples=30)
def test_swaps_at_random_are_not_marked_by_chance(seed: int, values: int, share: float) -> None:
    """A column without relation to the area is never refused, however many values it has; a copy of the old area is."""
    rng = np.random.default_rng(seed)
    rows = 1_000
    area = rng.integers(0, 12, rows)
    moved = rng.permutation(rows)[: 2 * int(share * rows / 2)]
    now = area.copy()
    now[moved[::2]], now[moved[1::2]] = area[moved[1::2]], area[moved[::2]]
    columns = {"a": now, "c": rng.integers(0, values, rows), "old": area, "s": np.isin(np.arange(rows), moved)}
    with open_engine() as engine:
        engine.upload("t", columns)
        refuse_marked(engine, "SELECT * FROM t", [("any", "CAST(c AS STRING)")], "a", "s")
        if (now != area).sum() > 10:
            with pytest.raises(StudyError, match="old tells which records were exchanged"):
                refuse_marked(engine, "SELECT * FROM t", [("old", "CAST(old AS STRING)")], "a", "s")
