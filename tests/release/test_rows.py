"""Rows are compared so that nobody can forge a file whose sums agree."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from sfumato.data.engine import open_engine
from sfumato.data.open import open_source
from sfumato.data.settings import DataSettings
from sfumato.data.source import Source
from sfumato.release.rows import differing_rows

# DuckDB 2 hashes the two texts alike, alone and behind any other cell: made in a second by a birthday search.
COLLIDING = ("ramvfwifaaav", "rfxujxppang9")


@dataclass(frozen=True)
class Meant:
    """The rows of a table, meant to be released as they are."""

    source: Source
    names: list[str]

    def sql(self) -> str:
        return "SELECT * FROM raw"


def compared(meant: Path, written: Path) -> int:
    source = open_source(DataSettings(path=str(meant)))
    with open_engine() as engine:
        engine.attach(source, "raw")
        return differing_rows(engine, Meant(source, list(source.names)), open_source(DataSettings(path=str(written))))


def files(folder: Path, one: list[str], two: list[str]) -> tuple[Path, Path]:
    paths = folder / "one.csv", folder / "two.csv"
    for path, rows in zip(paths, (one, two), strict=True):
        path.write_text("name,job\n" + "\n".join(rows) + "\n", "utf-8")
    return paths


def test_texts_with_the_same_hash_are_different_rows(tmp_path: Path) -> None:
    one, two = ([f"ann,{text}", "bea,cook"] for text in COLLIDING)
    assert compared(*files(tmp_path, one, two)) == 2


@pytest.mark.parametrize(
    ("one", "two", "differ"),
    [
        (["a,b", "c,d", "a,b"], ["c,d", "a,b", "a,b"], 0),
        (["a,b", "c,d"], ["a,d", "c,b"], 4),
        (["a,b", "a,b", "c,d"], ["a,b", "c,d", "c,d"], 2),
        (["1:a,b", "x,y"], ["1,a:b", "x,y"], 2),
        (["ab,c", "x,y"], ["a,bc", "x,y"], 2),
        (["a,", "x,y"], [",a", "x,y"], 2),
        (["a,b"], ["a,b", "a,b"], 1),
    ],
)
def test_rows_are_compared_as_they_are(tmp_path: Path, one: list[str], two: list[str], differ: int) -> None:
    assert compared(*files(tmp_path, one, two)) == differ


def test_the_key_is_drawn_at_every_comparison(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = files(tmp_path, ["a,b", "c,d"], ["c,d", "a,b"])
    sums: list[object] = []
    from sfumato.data import duckdb as duck

    plain = duck.DuckEngine.rows

    def noted(self: duck.DuckEngine, sql: str) -> list[tuple[object, ...]]:
        found = plain(self, sql)
        sums.extend(found)
        return found

    monkeypatch.setattr(duck.DuckEngine, "rows", noted)
    assert compared(*paths) == 0
    first = list(sums)
    sums.clear()
    assert compared(*paths) == 0
    assert first != sums
