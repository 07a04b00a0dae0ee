"""Files that are no files, and tables that are too wide, end at once with a sentence."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from sfumato.cli import run
from sfumato.data.open import MOST_COLUMNS

Capture = pytest.CaptureFixture[str]
RUN = 'version = 1\n[data]\npath = "{table}"\n[columns]\nage = {{ role = "quasi_identifier", hierarchy = "{tree}" }}\n'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text("age\n1\n2\n", "utf-8")
    (tmp_path / "age.csv").write_text("1,*\n2,*\n", "utf-8")
    os.mkfifo(tmp_path / "fifo.csv")
    (tmp_path / "parts").mkdir()
    os.mkfifo(tmp_path / "parts/a.csv")
    for table, tree in (("t.csv", "fifo.csv"), ("fifo.csv", "age.csv")):
        name = "tree.toml" if tree == "fifo.csv" else "table.toml"
        (tmp_path / name).write_text(RUN.format(table=table, tree=tree), "utf-8")
    return tmp_path


@pytest.mark.long
@pytest.mark.parametrize(
    "arguments",
    [
        ["inspect", "fifo.csv"],
        ["inspect", "parts"],
        ["inspect", "fi*.csv"],
        ["inspect", "/dev/zero"],
        ["audit", "--run", "table.toml"],
        ["audit", "--run", "tree.toml"],
        ["audit", "--run", "fifo.csv"],
        ["hierarchy", "show", "fifo.csv"],
        ["search", "tree.toml", "-o", "front"],
    ],
)
def test_pipes_and_devices_are_refused(folder: Path, arguments: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "sfumato", *arguments],
        capture_output=True,
        text=True,
        timeout=60,  # one that waits for the pipe would wait for ever
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert "not a regular file" in done.stderr


def test_a_hundred_thousand_columns_are_refused(folder: Path, capsys: Capture) -> None:
    names = ",".join(f"c{number}" for number in range(100_000))
    cells = ",".join("1" for _ in range(100_000))
    (folder / "wide.csv").write_text(f"{names}\n{cells}\n{cells}\n", "utf-8")
    assert run(["inspect", "wide.csv"]) == 2
    assert "100,000 columns" in capsys.readouterr().err


def test_wide_parquet_files_are_refused(folder: Path, capsys: Capture) -> None:
    wide = {f"c{number}": ["1", "2"] for number in range(MOST_COLUMNS + 1)}
    pyarrow.parquet.write_table(pyarrow.table(wide), folder / "wide.parquet")
    assert run(["inspect", "wide.parquet"]) == 2
    assert f"{MOST_COLUMNS + 1:,} columns" in capsys.readouterr().err
