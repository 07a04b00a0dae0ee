"""Rows that are shown of a table."""

from __future__ import annotations

import hashlib
from pathlib import Path

from sfumato.data.engine import open_engine
from sfumato.data.open import open_source
from sfumato.data.profile import drawn_rows, first_rows
from sfumato.data.settings import DataSettings


def test_drawn_rows_are_from_all_over_the_table(tmp_path: Path) -> None:
    """A release is often sorted, and its first rows are one class. The digests are taken here once more, by hand."""
    lines = [f"{age},{'' if age % 7 == 0 else 'f'},{number}" for age in range(20) for number in range(50)]
    (tmp_path / "t.csv").write_text("\n".join(["age,sex,number", *lines]) + "\n", "utf-8")
    source = open_source(DataSettings(path=str(tmp_path / "t.csv")))
    with open_engine() as engine:
        assert {row[0] for row in first_rows(engine, source, 10)} == {"0"}
        drawn = drawn_rows(engine, source, 10)
    assert ["|".join(cell or "" for cell in row) for row in drawn] == sorted(
        (line.replace(",", "|") for line in lines), key=lambda text: hashlib.md5(text.encode()).hexdigest()
    )[:10]
    assert all(row[1] is None for row in drawn if int(str(row[0])) % 7 == 0)
    assert len({row[0] for row in drawn}) > 4
