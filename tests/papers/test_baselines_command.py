"""`sfumato baselines`, end to end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sfumato.cli import run

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def run_file(tmp_path: Path) -> str:
    assert run(["sample", "adult-complete", "-o", str(tmp_path / "adult")]) == 0
    return str(tmp_path / "adult" / "run.toml")


@pytest.mark.long
def test_for_people_and_as_a_page(run_file: str, tmp_path: Path, capsys: Capture) -> None:
    page = tmp_path / "baselines.html"
    assert run(["search", run_file, "-o", str(tmp_path / "front")]) == 0
    capsys.readouterr()
    command = ["baselines", run_file, "--k", "5", "--k", "10", "--front", str(tmp_path / "front"), "-o", str(page)]
    assert run(command) == 0
    printed = capsys.readouterr()
    assert "lattice front (ours)" in printed.out
    assert "Mondrian, strict" in printed.out
    assert "the same value can carry different labels in different classes" in printed.out
    assert f"page: {page}" in printed.err
    text = page.read_text("utf-8")
    assert text.count("Plotly.newPlot(") == 1
    assert "<script src" not in text
    assert "Global recodings (lattice front (ours), lattice optimum, Datafly)" in text
    assert run(command) == 2
    assert "already exists" in capsys.readouterr().err
    assert run([*command, "--force"]) == 0


def test_json(run_file: str, capsys: Capture) -> None:
    capsys.readouterr()
    assert run(["baselines", run_file, "--k", "10", "--l", "3", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["records"], found["max_suppressed"], found["l"]) == (30162, 301, 3)
    rows = {row["method"]: row for row in found["rows"]}
    assert list(rows) == ["lattice_optimum", "datafly", "mondrian_strict", "mondrian_relaxed"]
    assert all(row["k"] >= 10 and row["l"] >= 3 for row in rows.values())
    assert rows["mondrian_strict"]["labels_per_value"] > 3


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--k", "0"], 2, "k = 0"),
        (["--k", "40000"], 3, "more than the 30,162 records"),
        (["--l", "99"], 3, "l = 99 is more than the 14 different values"),
        (["--method", "incognito"], 2, 'unknown method "incognito"'),
        (["--front", "nowhere"], 2, "is not the folder of a front"),
        (["-o", "nowhere/page.html"], 2, "there is no folder nowhere"),
    ],
)
def test_what_is_refused(run_file: str, capsys: Capture, words: list[str], code: int, said: str) -> None:
    capsys.readouterr()
    assert run(["baselines", run_file, *words, "--json"]) == code
    error = json.loads(capsys.readouterr().out)["error"]
    assert said in error["what"]
    assert error["expected"]
