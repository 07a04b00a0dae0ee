"""Next year's file with this year's plan; and the three commands, end to end."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from tests.release.fronts import front_of, people, small, write_csv

import sfumato as sf
from sfumato.cli import run
from sfumato.errors import DataError, InputError
from sfumato.release.publish import Release, publish
from sfumato.systems.apply import apply_plan
from sfumato.systems.verify import verify

LEVELS = {"age": 2, "post code": 1, "sex": 0}


@pytest.fixture
def release(tmp_path: Path) -> Path:
    front = front_of(small(tmp_path, rows=400), [LEVELS], 20)
    front.save(tmp_path / "front")
    return publish(front, 0, tmp_path / "release", state=tmp_path / "state").folder


def next_year(tmp_path: Path, *changes: tuple[int, int, str]) -> Path:
    rows = people(800, seed=8)
    rows[1][1] = 30
    for row, column, value in changes:
        rows[row][column] = value
    return write_csv(tmp_path / "next.csv", rows)


def rows_of(release: Release) -> list[dict[str, str]]:
    with release.data.open() as file:
        return list(csv.DictReader(file))


def test_apply_a_release_without_its_source(release: Path, tmp_path: Path) -> None:
    new, state = next_year(tmp_path), tmp_path / "state"
    (tmp_path / "people.csv").unlink()
    applied = apply_plan(release, new, tmp_path / "next", state=state)
    found = applied.manifest
    assert found["records"] == 800
    assert found["released"] == 800 - found["suppressed"]
    sizes: dict[tuple[str, ...], int] = {}
    for row in rows_of(applied):
        key = (row["age"], row["post code"], row["sex"])
        sizes[key] = sizes.get(key, 0) + 1
    assert min(sizes.values()) == found["figures"]["k"]["value"] >= found["point"]["suppress_below"]
    assert "name" not in rows_of(applied)[0]
    verify(tmp_path / "next", new).raise_if_failed()
    with pytest.raises(InputError, match="already exists"):
        apply_plan(release, new, tmp_path / "next", state=state)


def test_more_suppression_than_the_search_allowed_is_said(release: Path, tmp_path: Path) -> None:
    applied = apply_plan(release, next_year(tmp_path), tmp_path / "next", state=tmp_path / "state")
    assert applied.manifest["suppressed"] > 0
    assert any("suppressed; the search that found the plan allowed 0 %" in text for text in applied.warnings)


def test_unseen_values_are_an_error_or_hidden(release: Path, tmp_path: Path) -> None:
    state = tmp_path / "state"
    new = next_year(tmp_path, (1, 1, "7777"), (2, 1, "7778"), (3, 1, "7777"), (4, 3, "X"))
    with pytest.raises(
        DataError, match=r"2 columns: age: 2 values in 3 records, such as '7777', '7778'; sex: 1 value in 1 record"
    ):
        apply_plan(release, new, tmp_path / "out", state=state)
    assert not (tmp_path / "out").exists()
    least = json.loads((release / "private" / "manifest.json").read_text())["point"]["suppress_below"]
    applied = apply_plan(release, new, tmp_path / "out", unseen="star", state=state)
    assert any(
        text.startswith("age has 2 values that the plan does not know, in 3 records") for text in applied.warnings
    )
    assert "7777" not in "".join(path.read_text() for path in applied.public.iterdir())
    assert applied.manifest["figures"]["k"]["value"] >= least
    verify(tmp_path / "out", new).raise_if_failed()
    many = [(row, 1, "7777") for row in range(1, 500)]
    wide = apply_plan(release, next_year(tmp_path, *many), tmp_path / "wide", unseen="star", state=state)
    assert {"*"} < {row["age"] for row in rows_of(wide)}
    assert wide.manifest["loss"] > 0
    with pytest.raises(InputError, match="error"):
        apply_plan(release, new, tmp_path / "no", unseen="drop")


def test_unseen_missing_values(tmp_path: Path) -> None:
    write_csv(tmp_path / "t.csv", [["q", "x"], *([["a", "1"], ["b", "2"]] * 4)])
    write_csv(tmp_path / "n.csv", [["q", "x"], *([["a", "1"], ["", "2"]] * 4)])
    columns = {"q": {"role": "quasi_identifier"}, "x": {"role": "other"}}
    study = sf.Study(data={"path": str(tmp_path / "t.csv"), "missing": "category"}, columns=columns)
    folder = publish(front_of(study, [{"q": 0}]), 0, tmp_path / "out", state=tmp_path / "state").folder
    with pytest.raises(DataError, match="missing"):
        apply_plan(folder, tmp_path / "n.csv", tmp_path / "new", state=tmp_path / "state")
    applied = apply_plan(folder, tmp_path / "n.csv", tmp_path / "new", unseen="star", state=tmp_path / "state")
    assert sorted(row["q"] for row in rows_of(applied)) == ["*"] * 4 + ["a"] * 4


def test_apply_a_front(release: Path, tmp_path: Path) -> None:
    new, state = next_year(tmp_path), tmp_path / "state"
    with pytest.raises(InputError, match="many plans"):
        apply_plan(tmp_path / "front", new, tmp_path / "out")
    one = apply_plan(tmp_path / "front", new, tmp_path / "one", point=0, state=state)
    two = apply_plan(release, new, tmp_path / "two", state=state)
    assert sorted(one.data.read_text().splitlines()) == sorted(two.data.read_text().splitlines())
    assert one.manifest["figures"] == two.manifest["figures"]
    with pytest.raises(InputError, match="point 0, not 3"):
        apply_plan(release, new, tmp_path / "three", point=3)
    with pytest.raises(InputError, match="not the folder of a front"):
        apply_plan(tmp_path, new, tmp_path / "four")


def ran(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, Any]]:
    code = run([*arguments, "--json"])
    return code, json.loads(capsys.readouterr().out)


@pytest.mark.long
def test_the_commands(
    release: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SFUMATO_STATE", str(tmp_path / "state"))
    front, out = str(tmp_path / "sealed"), str(tmp_path / "cli")
    front_of(small(tmp_path, rows=400), [LEVELS], 20).save(front)  # under the key of this state
    code, found = ran(capsys, "publish", front, "--point", "0", "-o", out, "--reason", "because")
    assert code == 0
    assert found["released"] == 400 - found["suppressed"]
    code, found = ran(capsys, "publish", front, "--point", "0", "-o", out)
    assert code == 2
    assert "already exists" in found["error"]["what"]
    assert ran(capsys, "publish", front, "--point", "9", "-o", out + "x")[0] == 2
    code, found = ran(capsys, "verify", out)
    assert (code, found["verified"], found["differences"]) == (0, True, [])
    assert found["compared"] == ["files", "figures", "reports"]
    assert ran(capsys, "verify", out, "--source", str(tmp_path / "people.csv"))[0] == 0
    assert run(["verify", out]) == 0
    assert "is as it was published" in capsys.readouterr().out
    with (Path(out) / "public" / "data.csv").open("a") as file:
        file.write("*,*,*,flu,1\n")
    code, found = ran(capsys, "verify", out)
    assert code == 1
    assert "public/data.csv" in {difference["file"] for difference in found["differences"]}
    assert run(["verify", out]) == 1
    assert "public/data.csv: its bytes have changed" in capsys.readouterr().out
    assert ran(capsys, "verify", str(tmp_path / "nothing"))[0] == 2
    new, target = str(next_year(tmp_path, (1, 1, "7777"))), str(tmp_path / "new")
    code, found = ran(capsys, "apply", str(release), new, "-o", target)
    assert code == 2
    assert 'unseen = "star"' in found["error"]["try"]
    assert run(["apply", str(release), new, "-o", target, "--unseen", "star"]) == 0
    printed = capsys.readouterr()
    assert "that the plan does not know" in printed.err
    assert "records released" in printed.out
    code, found = ran(capsys, "publish", front, "-o", str(tmp_path / "words"))
    assert code == 2
    assert "--point 0" in found["error"]["expected"]
    assert run(["publish", front, "--point", "0", "-o", str(tmp_path / "words")]) == 0
    assert "Measured on the file" in capsys.readouterr().out
