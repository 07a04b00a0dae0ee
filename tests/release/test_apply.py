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
from sfumato.release.apply import apply_plan
from sfumato.release.publish import publish

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


def test_apply_a_release_without_its_source(release: Path, tmp_path: Path) -> None:
    new = next_year(tmp_path)
    (tmp_path / "people.csv").unlink()
    applied = apply_plan(release, new, tmp_path / "next-out.csv")
    found = applied.as_dict()
    assert found["records"] == 800
    assert found["released"] == 800 - found["suppressed"]
    assert found["unseen"] == {}
    with applied.data.open() as file:
        rows = list(csv.DictReader(file))
    sizes: dict[tuple[str, ...], int] = {}
    for row in rows:
        key = (row["age"], row["post code"], row["sex"])
        sizes[key] = sizes.get(key, 0) + 1
    assert min(sizes.values()) == found["figures"]["k"]["value"] >= found["plan"]["suppress_below"]
    assert "name" not in rows[0]
    assert json.loads(applied.report.read_text())["loss"] == found["loss"]
    with pytest.raises(InputError, match="there already"):
        apply_plan(release, new, applied.data)


def test_unseen_values_are_an_error_or_hidden(release: Path, tmp_path: Path) -> None:
    new = next_year(tmp_path, (1, 1, "7777"), (2, 1, "7778"), (3, 1, "7777"), (4, 3, "X"))
    with pytest.raises(
        DataError, match=r"2 columns: age: 2 values in 3 records, such as '7777', '7778'; sex: 1 values"
    ):
        apply_plan(release, new, tmp_path / "out.csv")
    assert not (tmp_path / "out.csv").exists()
    plan = json.loads((release / "manifest.json").read_text())["point"]["suppress_below"]
    applied = apply_plan(release, new, tmp_path / "out.csv", unseen="star")
    assert applied.found["unseen"]["age"] == {"values": 2, "records": 3, "examples": ["7777", "7778"]}
    text = applied.data.read_text()
    assert "7777" not in text
    assert applied.found["figures"]["k"]["value"] >= plan
    many = [(row, 1, "7777") for row in range(1, 500)]
    wide = apply_plan(release, next_year(tmp_path, *many), tmp_path / "wide.csv", unseen="star")
    assert "\n*," in wide.data.read_text()
    assert wide.found["loss"] > 0
    with pytest.raises(InputError, match="error"):
        apply_plan(release, new, tmp_path / "no.csv", unseen="drop")


def test_unseen_missing_values(tmp_path: Path) -> None:
    write_csv(tmp_path / "t.csv", [["q", "x"], *([["a", "1"], ["b", "2"]] * 4)])
    write_csv(tmp_path / "n.csv", [["q", "x"], *([["a", "1"], ["", "2"]] * 4)])
    columns = {"q": {"role": "quasi_identifier"}, "x": {"role": "other"}}
    study = sf.Study(data={"path": str(tmp_path / "t.csv"), "missing": "category"}, columns=columns)
    folder = publish(front_of(study, [{"q": 0}]), 0, tmp_path / "out", state=tmp_path / "state").folder
    with pytest.raises(DataError, match="missing"):
        apply_plan(folder, tmp_path / "n.csv", tmp_path / "new.csv")
    apply_plan(folder, tmp_path / "n.csv", tmp_path / "new.csv", unseen="star")
    assert (tmp_path / "new.csv").read_text().count("*") == 4


def test_apply_a_front(release: Path, tmp_path: Path) -> None:
    new = next_year(tmp_path)
    with pytest.raises(InputError, match="many plans"):
        apply_plan(tmp_path / "front", new, tmp_path / "out.csv")
    one = apply_plan(tmp_path / "front", new, tmp_path / "one.csv", point=0)
    two = apply_plan(release, new, tmp_path / "two.csv")
    assert sorted(one.data.read_text().splitlines()) == sorted(two.data.read_text().splitlines())
    assert {**one.found, "figures": 0} == {**two.found, "figures": 0}
    with pytest.raises(InputError, match="point 0, not 3"):
        apply_plan(release, new, tmp_path / "three.csv", point=3)
    with pytest.raises(InputError, match="not the folder of a front"):
        apply_plan(tmp_path, new, tmp_path / "four.csv")


def ran(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, Any]]:
    code = run([*arguments, "--json"])
    return code, json.loads(capsys.readouterr().out)


def test_the_commands(
    release: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SFUMATO_STATE", str(tmp_path / "state"))
    front, out = str(tmp_path / "front"), str(tmp_path / "cli")
    code, found = ran(capsys, "publish", front, "--point", "0", "-o", out, "--starred", "--reason", "because")
    assert code == 0
    assert found["released"] == 400
    assert found["warnings"] == []
    code, found = ran(capsys, "publish", front, "--point", "0", "-o", out)
    assert code == 2
    assert "there already" in found["error"]["what"]
    assert ran(capsys, "publish", front, "--point", "9", "-o", out + "x")[0] == 2
    assert ran(capsys, "verify", out) == (0, {"verified": True, "differences": []})
    assert ran(capsys, "verify", out, "--source", str(tmp_path / "people.csv"))[0] == 0
    assert run(["verify", out]) == 0
    assert "is as it was published" in capsys.readouterr().out
    with (Path(out) / "people.csv").open("a") as file:
        file.write("*,*,*,flu,1,true\n")
    code, found = ran(capsys, "verify", out)
    assert code == 1
    assert "people.csv" in {difference["file"] for difference in found["differences"]}
    assert run(["verify", out]) == 1
    assert "people.csv: its bytes have changed" in capsys.readouterr().out
    assert ran(capsys, "verify", str(tmp_path / "nothing"))[0] == 2
    new, target = str(next_year(tmp_path, (1, 1, "7777"))), str(tmp_path / "new.csv")
    code, found = ran(capsys, "apply", str(release), new, "-o", target)
    assert code == 2
    assert "--unseen star" in found["error"]["try"]
    assert run(["apply", str(release), new, "-o", target, "--unseen", "star"]) == 0
    printed = capsys.readouterr()
    assert "values that the plan does not know" in printed.err
    assert "records released" in printed.out
    code, found = ran(capsys, "publish", front, "-o", str(tmp_path / "words"))
    assert code == 2
    assert "an id from 0 to" in found["error"]["expected"]
    assert run(["publish", front, "--point", "0", "-o", str(tmp_path / "words")]) == 0
    assert "Measured on the file" in capsys.readouterr().out
