"""An audit says how unique records are over everything that would be released, counted in its figures or not."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from tests.release.fronts import people, small

import sfumato as sf
from sfumato.cli import run


def unique(places: tuple[int, ...]) -> float:
    counts = Counter(tuple(row[place] for place in places) for row in people()[1:])
    return sum(count == 1 for count in counts.values()) / 200


def test_an_audit_counts_over_all_columns_that_are_released(tmp_path: Path) -> None:
    found = sf.audit(small(tmp_path)).as_dict()["whole"]
    assert found["all_columns"]["unique_share"] == pytest.approx(unique((1, 2, 3, 4, 5)))
    assert found["all_columns"]["columns"] == 5  # the name is never released
    assert found["quasi_identifiers_and_kept"]["unique_share"] == pytest.approx(unique((1, 2, 3, 5)))
    assert found["columns_in_no_figure"] == ["income"]


def test_a_column_that_is_left_out_is_not_counted(tmp_path: Path) -> None:
    whole = sf.audit(small(tmp_path, income={"role": "drop"})).whole
    assert whole.everything.columns == 4
    assert whole.uncounted == ()


def test_the_command_says_which_columns_are_in_no_figure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "run.toml").write_text(small(tmp_path).as_toml(), "utf-8")
    assert run(["audit", "--run", str(tmp_path / "run.toml"), "--html", str(tmp_path / "audit.html")]) == 0
    said = capsys.readouterr().err
    share = f"{100 * unique((1, 2, 3, 4, 5)):.1f} %"
    sentence = f"Over all 5 columns that are released, {share} of the records are unique; 1 column is not included in"
    assert sentence in said
    assert "income" in said.split(sentence)[1]
    assert sentence in (tmp_path / "audit.html").read_text("utf-8").replace("\N{NO-BREAK SPACE}", " ")
