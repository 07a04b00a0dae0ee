"""A short form of `benchmarks.publish_every_table`: what is published without acceptances is safe, or it is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pandas as pd
import pytest
from benchmarks import publish_every_table as every

pytestmark = pytest.mark.long


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(every.SECTIONS, "local", {"k": (3,), "passes": 0})


@pytest.mark.parametrize("method", ["lattice", "local"])
@pytest.mark.parametrize("name", ["German credit", "testdata"])
def test_a_release_without_acceptances(name: str, method: str, shared: Path, tmp_path: Path) -> None:
    rows = every.TABLES[name].rows(shared, every.ROWS)
    (found,) = every.outcomes(name, rows, method, tmp_path, [3])
    assert (found.said, list(found.why), found.violations) == ("published", [], [])
    assert found.smallest >= 3
    assert found.holders >= (2 if every.TABLES[name].household else 0)
    public = pd.read_parquet(tmp_path / "release-3" / "public" / "data.parquet")
    assert not {"ori_hid", "amount"} & set(public.columns)


@pytest.mark.parametrize("method", ["lattice", "local"])
def test_an_exact_amount_is_refused(method: str, shared: Path, tmp_path: Path) -> None:
    name = "German credit, exact amount"
    rows = every.TABLES[name].rows(shared, 1_000)
    assert rows["amount"].map(rows["amount"].value_counts()).eq(1).mean() > 0.8
    (found,) = every.outcomes(name, rows, method, tmp_path, [3])
    assert found.said == "refused"
    assert "identifying" in found.why
    assert not (tmp_path / "release-3").exists()


def test_left_out_records_are_named(shared: Path, tmp_path: Path) -> None:
    """Some children are too young for a school grade, and the study leaves them out."""
    name = "ACS 2018 Hawaii, complete rows"
    rows = every.TABLES[name].rows(shared, 2_000)
    (found,) = every.outcomes(name, rows, "lattice", tmp_path, [3])
    assert (found.said, found.violations) == ("published", [])
    assert 0 < found.left_out == rows["SCHL"].isna().sum()
    page = tmp_path / "release-3" / "public" / "external.html"
    page.write_text(page.read_text("utf-8").replace("left out", "looked at"), "utf-8")
    assert every.pages_at_fault(tmp_path / "release-3", found.left_out, len(rows))


def test_planted_faults_are_counted(shared: Path, tmp_path: Path) -> None:
    name = "German credit"
    rows = every.TABLES[name].rows(shared, every.ROWS)
    (found,) = every.outcomes(name, rows, "lattice", tmp_path, [3])
    assert not found.violations
    file = tmp_path / "release-3" / "public" / "data.parquet"
    public = pd.read_parquet(file)
    public.loc[0, "housing"] = "a label of one record"
    public["class"] = range(len(public))
    public.assign(amount=range(len(public))).to_parquet(file)
    again = every.measured(name, rows, "lattice", 3, cast(Any, None), tmp_path / "release-3")
    assert [violation.split(" ")[0] for violation in again.violations] == ["released", "a", "class", "amount"]
