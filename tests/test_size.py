"""The counts of files and lines are right on a package that is small enough to be counted by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tools import size

ONE = '''"""First."""
from typing import Any

from pack import two
from pack.three import three


def one(given: Any) -> Any:
    import json

    def inner() -> None:
        import os
'''
THREE = "import pack.two\n\n\ndef three():\n" + "    x = 1\n" * 39 + "\n\ndef four():\n" + "    x = 1\n" * 40


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "pack").mkdir()
    for name, text in (("__init__", ""), ("one", ONE), ("two", ""), ("three", THREE)):
        (tmp_path / "pack" / f"{name}.py").write_text(text, "utf-8")
    return tmp_path


def test_what_is_counted(source: Path) -> None:
    """`two` has two importers and `three` one; a function of 40 lines is not long, one of 41 is."""
    assert size.counts(source) == {
        "files": 4,
        "lines": 12 + 4 + 39 + 3 + 40,
        "any": 2,
        "deferred_imports": 2,
        "one_importer": 1,
        "long_functions": 1,
    }


def test_a_count_above_its_record_fails(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = size.counts(source)
    monkeypatch.setattr(size, "counts", lambda: found)
    monkeypatch.setattr(size, "RECORD", tmp_path / "size.json")
    assert size.main(["--record"]) == 0
    size.RECORD.write_text(json.dumps(found | {"lines": 99}), "utf-8")
    assert size.main([]) == 0
    size.RECORD.write_text(json.dumps(found | {"lines": 97}), "utf-8")
    assert size.main([]) == 1
    assert "98  lines in them, more than the 97 that are recorded" in capsys.readouterr().out
