"""`sfumato doctor`: what is there, what is missing for which feature, and folders that cannot be written."""

from __future__ import annotations

import importlib.metadata
import json
from pathlib import Path

import pytest

import sfumato as sf
from sfumato.base import doctor
from sfumato.cli import run

LINES = ["numpy>=2,<3", 'fastapi>=0.121; extra == "web"', "no-such-package>=1 ; extra == 'db'"]


def test_three_lines_of_metadata() -> None:
    found = doctor.requirements(LINES)
    assert [one.name for one in found[""]] == ["numpy"]
    assert found[""][0].version == importlib.metadata.version("numpy")
    assert (found["db"][0].name, found["db"][0].bounds, found["db"][0].version) == ("no-such-package", ">=1", None)


def test_what_is_missing_is_said_with_its_remedy(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(importlib.metadata, "requires", lambda _: LINES)
    assert run(["doctor"]) == 0
    printed = capsys.readouterr().out
    assert f"sfumato {sf.__version__}, Python" in printed
    assert "pip install 'sfumato[db]'" in printed
    assert "Everything that Sfumato itself needs is there." in printed
    monkeypatch.setattr(importlib.metadata, "requires", lambda _: ["no-such-package"])
    assert run(["doctor", "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["problems"] == ["no-such-package is not installed"]


def test_a_folder_that_cannot_be_written_is_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SFUMATO_STATE", str(tmp_path / "file" / "state"))
    assert run(["doctor", "--json"]) == 2
    told = json.loads(capsys.readouterr().out)
    assert [one["purpose"] for one in told["folders"] if not one["usable"]] == ["ledger and keys"]
    assert told["memory_bytes"] > 0
    assert told["threads"] >= 1


def test_every_extra_for_users_is_a_feature() -> None:
    import tomllib

    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))["project"]
    extras = set(project["optional-dependencies"]) - {"dev", "bench", "peers"}
    assert extras == set(doctor.FEATURES)
