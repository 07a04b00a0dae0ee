"""The Python of the first page and of docs/python.md, followed to the letter in an empty folder."""

from __future__ import annotations

import re
from pathlib import Path

import pandas
import pytest
from tests.frames.test_lines import people

ROOT = Path(__file__).parents[2]


def blocks(path: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", path.read_text("utf-8"), re.DOTALL)


@pytest.mark.long
@pytest.mark.parametrize("name", ["README.md", "docs/python.md"])
def test_as_written(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Done when, 5: a first audit and a first release, in ten lines."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SFUMATO_STATE", str(tmp_path / "state"))
    pandas.DataFrame(people()).to_csv("people.csv", index=False)
    found = blocks(ROOT / name)
    lines = [line for line in found[0].splitlines() if line and not line.startswith("import")]
    assert len(lines) <= 10
    known: dict[str, object] = {}
    for block in found:
        exec(compile(block, name, "exec"), known)
    assert (tmp_path / "release" / "public" / "data.parquet").is_file()
    safe = known["safe"]
    assert isinstance(safe, pandas.DataFrame)
    assert safe.groupby(["age", "zip", "job"]).size().min() >= 5
