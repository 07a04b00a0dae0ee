"""The check of the language finds planted words and long sentences, and nothing in code."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools import prose

SOURCE = '''"""Return what a column tells.

>>> told = "nobody"
"""

LIMIT = 3  # whoever asks; the `told` column
{long}

def one() -> str:
    """Return a text; it is short."""
    return "This message tells the reader something."
'''


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(prose, "ROOT", tmp_path)
    path = tmp_path / "module.py"
    path.write_text(SOURCE.format(long="# " + "long " * 41), "utf-8")
    return path


def found(path: Path, messages: bool = False) -> list[str]:
    return [finding for text in prose.texts(path, messages) for finding in prose.findings(text)]


def test_words_and_long_sentences_are_found(module: Path) -> None:
    assert [finding.split('"')[1] if '"' in finding else "long" for finding in found(module)] == [
        "tells",
        "whoever",
        "long",
    ]


def test_messages_are_read_where_they_are_asked_for(module: Path) -> None:
    assert [finding for finding in found(module, messages=True) if "in a message" in finding]


def test_more_than_recorded_fails(module: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(prose, "SOURCE", tmp_path)
    monkeypatch.setattr(prose, "PAGES", (tmp_path,))
    monkeypatch.setattr(prose, "RECORD", tmp_path / "prose.json")
    assert prose.main(["--record"]) == 0
    assert prose.main([]) == 0
    module.write_text(module.read_text("utf-8") + "# somebody\n", "utf-8")
    assert prose.main([]) == 1


def test_pages_are_read_without_their_code(module: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("Nobody knows `told`.\n\n```sh\necho somebody\n```\n\n| a | whoever |\n", "utf-8")
    findings = [finding.split('"')[1] for text in prose.page_texts(page) for finding in prose.findings(text)]
    assert findings == ["Nobody", "whoever"]
    assert prose.main([str(page)]) == 1
