"""Columns beside the area: what follows it moves with it, what names it or marks the swapped rows is refused."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conftest import EXAMPLES
from tests.methods.groups.files import protected_front, protected_study
from tests.release.fronts import publish_protection

from sfumato.auditing.units import unstated_notes
from sfumato.cli import run
from sfumato.data.engine import open_engine
from sfumato.data.open import open_source
from sfumato.decide.pick import pick
from sfumato.errors import StudyError
from sfumato.methods.groups.front import front_of, swaps_of
from sfumato.methods.groups.revealing import refuse_marked
from sfumato.methods.groups.search import protect
from sfumato.methods.groups.swapped import withheld_columns
from sfumato.methods.registry import load_front
from sfumato.methods.run import Run
from sfumato.papers.groups import make_census
from sfumato.release.policy import PolicyError
from sfumato.study import Study, read

Capture = pytest.CaptureFixture[str]
ACCEPTED = dict.fromkeys(
    ("uniques", "attacks", "identifying:depart", "identifying:inctot"), "a small table made for a test"
)
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
    try:
        protected_front(folder).save(folder / "out")
    except StudyError as refused:  # columns that undo a protection are refused before anything is searched for
        return 2, refused.what
    accepted = [
        word for rule in ("uniques", "attacks") for word in ("--accept", f"{rule}=a small table made for a test")
    ]
    code = run(["publish", str(folder / "out"), "-o", str(folder / "release"), "--json", *accepted])
    said = json.loads(capsys.readouterr().out)
    return code, said["error"]["what"] if "error" in said else ""


def with_columns(folder: Path, names: str, cells: Callable[[bool, np.random.Generator], str]) -> None:
    """The tables of the small study with more columns, made from whether somebody is in the group."""
    rng = np.random.default_rng(4)
    for name in ("t.csv", "aux.csv"):
        head, *lines = (folder / name).read_text("utf-8").splitlines()
        again = [f"{head},{names}", *(f"{line},{cells(line.endswith('55'), rng)}" for line in lines)]
        (folder / name).write_text("\n".join(again) + "\n", encoding="utf-8")


def pay(member: bool, rng: np.random.Generator) -> str:
    """No two people are paid the same, but members are paid alike."""
    return f"{rng.uniform(50_000, 51_000) if member else rng.choice([20_000, 80_000]) + rng.uniform(0, 20_000):.5f}"


def two_codes(member: bool, rng: np.random.Generator) -> str:
    """Each code by itself tells nothing."""
    one = rng.integers(0, 4)
    return f"{one},{(one + (0 if member else rng.integers(1, 4))) % 4}"


@pytest.mark.parametrize(("names", "cells"), [("pay", pay), ("one,two", two_codes)])
def test_columns_that_name_the_group_by_their_order_or_together_are_refused(
    names: str, cells: Callable[[bool, np.random.Generator], str], tmp_path: Path
) -> None:
    """The group is a hidden column like any other, so every way of telling one counts."""
    protected_study(tmp_path)
    with_columns(tmp_path, names, cells)
    with pytest.raises(StudyError, match="identify the group: " + names.replace(",", " with ")) as refused:
        protected_front(tmp_path)
    assert refused.value.remedy == f'withhold = ["{names.split(",")[0]}"] under [groups]'


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
    assert manifest["own"]["exchanged"] == ["town"]


@given(st.integers(0, 10_000), st.sampled_from([2, 10, 60, 1_000]), st.floats(0.01, 0.5))
@settings(max_examples=EXAMPLES)
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


def test_the_acs_recipe_withholds_what_marks_exchanged_members(shared: Path) -> None:
    """Nearly all members served after September 2001, and few others did: moved away from a base, they stand out."""
    file = shared / "data" / "acs-pums" / "psam_p15_2018.csv.gz"
    study = Study(
        data={"path": str(file)},
        groups={"recipe": "acs", "other_columns": "release", "auxiliary": [{"path": str(file)}]},
    )
    settings, source = study.groups, open_source(study.data, study.folder)
    assert settings is not None
    names = {name: source.column(name).sql for name in ("PUMA", "MLPA", "SOCP", "SEX")}
    with open_engine() as engine:
        engine.attach(source, "raw")
        cells = engine.arrays(
            "SELECT " + ", ".join(f"coalesce({c}, '') AS {n}" for n, c in names.items()) + " FROM raw"
        )
        area, member = np.asarray(cells["PUMA"]), np.char.startswith(np.asarray(cells["SOCP"], dtype=str), "55")
        bases = np.isin(area, ["00301", "00302", "00306"])
        rng = np.random.default_rng(5)
        givers = rng.permutation(np.flatnonzero(member & bases))[:150]
        takers = rng.permutation(np.flatnonzero(~member & ~bases))[:150]
        now = area.copy()
        now[givers], now[takers] = area[takers], area[givers]
        moved = np.isin(np.arange(len(area)), [*givers, *takers])
        engine.upload("t", {"a": now, "mlpa": cells["MLPA"], "sex": cells["SEX"], "s": moved})
        refuse_marked(engine, "SELECT * FROM t", [("SEX", "sex")], "a", "s")
        with pytest.raises(StudyError, match="MLPA tells which records were exchanged"):
            refuse_marked(engine, "SELECT * FROM t", [("MLPA", "mlpa")], "a", "s")
    assert "MLPA" in withheld_columns(study, settings, source)


@pytest.mark.long
def test_a_mistyped_county_of_the_census_sample_tells_nobody(tmp_path: Path) -> None:
    """A survey of 1,411 people, a county for each two areas, one cell of it wrong: no swapped record may stand out."""
    folder = tmp_path / "census"
    made = make_census(folder, 8_000, 500, 12, seed=3)
    protect_quickly = (
        '[groups.protect]\nattackers = ["exact"]\nlevels = 2\nknown_seeds = 1\nfresh_seeds = 1\nsealed_attackers = []\n'
    )
    text = (
        made.run.read_text("utf-8").replace("[groups]\n", '[groups]\nother_columns = "release"\n', 1)
        + "\n[groups.attack]\nfolds = 3\n"
        + protect_quickly
    )
    made.run.write_text(text, encoding="utf-8")
    for name in ("survey.parquet", "census.parquet"):
        table = pyarrow.parquet.read_table(folder / name)
        areas = list(zip(table["state"].to_pylist(), table["puma"].to_pylist(), strict=True))
        number = {area: place // 2 for place, area in enumerate(sorted(set(areas)))}
        county = [f"county {number[area]}" for area in areas]
        county[0] = "county 0" if county[0] != "county 0" else "county 1"
        pyarrow.parquet.write_table(table.append_column("county", pyarrow.array(county)), folder / name)
    assert pyarrow.parquet.read_metadata(folder / "survey.parquet").num_rows == 1_411
    front = front_of(protect(read(made.run), Run(), test_seed=1))
    release = publish_protection(front, tmp_path / "release", accept=ACCEPTED, state=tmp_path / "state")
    assert release.manifest["point"]["swaps"] >= 20
    rows = [
        tuple(row[name] for name in ("state", "puma", "county"))
        for row in pyarrow.parquet.read_table(release.data).to_pylist()
    ]
    usual = {
        area: Counter(c for *a, c in rows if tuple(a) == area).most_common(1)[0][0] for area in {r[:2] for r in rows}
    }
    assert sum(usual[row[:2]] != row[2] for row in rows) == 1


@pytest.mark.long
def test_a_column_that_nothing_names_is_released_only_if_the_run_file_says_so(tmp_path: Path) -> None:
    protected_study(tmp_path)
    for name in ("t.csv", "aux.csv"):
        head, *lines = (tmp_path / name).read_text("utf-8").splitlines()
        cells = [f"{line},note {i % 7}" for i, line in enumerate(lines)]
        (tmp_path / name).write_text("\n".join([f"{head},note", *cells]) + "\n", "utf-8")
    text = (tmp_path / "run.toml").read_text("utf-8").replace('other_columns = "release"\n', "")
    (tmp_path / "run.toml").write_text(text, "utf-8")
    with pytest.raises(StudyError, match="1 column has no role: note") as refused:
        protected_front(tmp_path)
    assert "other_columns" in refused.value.remedy
    for choice, released in (("release", True), ("withhold", False)):
        (tmp_path / "run.toml").write_text(
            text.replace("[groups]\n", f'[groups]\nother_columns = "{choice}"\n'), "utf-8"
        )
        out = tmp_path / choice
        release = publish_protection(
            protected_front(tmp_path), out, accept=ACCEPTED, state=tmp_path / f"{choice}-state"
        )
        assert ("note" in release.manifest["columns"]) == released


def test_a_household_number_that_nothing_names_stops_the_publication(tmp_path: Path) -> None:
    """A column that the run file does not name has no role, and its rows may be those of one household all the same."""
    protected_study(tmp_path)
    for name in ("t.csv", "aux.csv"):
        head, *lines = (tmp_path / name).read_text("utf-8").splitlines()
        towns = [line.split(",")[2] for line in lines]
        cells = [f"{line},{town}{i // 9}" for i, (line, town) in enumerate(zip(lines, towns, strict=True))]
        (tmp_path / name).write_text("\n".join([f"{head},household_id", *cells]) + "\n", "utf-8")
    text = (
        (tmp_path / "run.toml").read_text("utf-8").replace("[groups]\n", '[groups]\nwithhold = ["household_id"]\n', 1)
    )
    stated = 'unit = "row"\nunit_reason = "made for a test"\n'
    for said, told in (
        ("household_id repeats", text),
        ("", text.replace("[data]\n", f"[data]\n{stated}", 1)),
        ("", text.replace("[groups]\n", '[groups]\nunit = "household_id"\n', 1)),
        ("", text.replace("[groups]\n", '[columns]\nhousehold_id = { role = "household" }\n[groups]\n', 1)),
    ):
        (tmp_path / "run.toml").write_text(told, "utf-8")
        notes = " ".join(unstated_notes(read(tmp_path / "run.toml")))
        assert (said in notes) if said else not notes
    (tmp_path / "run.toml").write_text(text, "utf-8")
    with pytest.raises(PolicyError, match="household_id repeats"):
        publish_protection(protected_front(tmp_path), tmp_path / "never", accept=ACCEPTED, state=tmp_path / "state")
    assert not (tmp_path / "never").exists()
