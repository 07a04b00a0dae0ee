"""On real tables the suggestions alone release nothing that is not within the policy, and decisions reach a release."""

from __future__ import annotations

import csv
import gzip
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
from tests.published.ten_tables import EVALUATIONS, TABLES, decided, inspected, reached

import sfumato as sf
from sfumato.data.settings import Role
from sfumato.data.source import Source
from sfumato.errors import StudyError
from sfumato.study import read

# How many columns of each table nothing is known about, by name and values.
UNDECIDED = {
    "ACS 2018, Hawaii": 0,
    "ACS 2015, Hawaii": 0,
    "ACS 2018, 14 states": 0,
    "Adult, without names": 10,
    "Adult, named": 0,
    "Adult of ARX": 0,
    "Census Income (KDD)": 1,
    "German credit, without names": 21,
    "German credit, named": 11,
    "NHANES 2017–2018": 70,
    "testdata (sdcMicro)": 0,
    "free1 (µ-Argus)": 5,
    "CASC census": 0,
    "Tarragona": 0,
    "EIA": 0,
    "SD2011": 14,
    "Credit card clients": 0,
    "MACH 2019": 10,
}
WIDE = [name for name in TABLES if name.startswith(("ACS", "NHANES"))]
QUICK = {"German credit, without names": 200}  # with so many evaluations


def dear(names: list[str]) -> list[Any]:
    """Every table, those with some names only among the published experiments."""
    return [pytest.param(name, marks=pytest.mark.published if name in names else ()) for name in TABLES]


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SFUMATO_STATE", str(tmp_path / "state"))


@pytest.mark.long
@pytest.mark.parametrize("name", dear(WIDE))
def test_suggestions_accepted_as_they_are(name: str, shared: Path, tmp_path: Path) -> None:
    """A decision is missing, so that nothing runs; or every column that leaves is counted in some figure."""
    inspection, run = inspected(TABLES[name], shared, tmp_path)
    roles = [suggestion.role for suggestion in inspection.suggestions]
    assert len(inspection.undecided) == UNDECIDED[name]
    assert Role.OTHER not in roles
    study = read(run)
    if inspection.undecided:
        with pytest.raises(StudyError, match=f"{UNDECIDED[name]} columns? ha(s|ve) no role"):
            sf.search(study)
    else:
        counted = (Role.QUASI_IDENTIFIER, Role.SENSITIVE, Role.WEIGHT)
        assert all(column.role in counted or not column.role.released for column in study.columns.values())


def rows_of(file: Source, path: Path) -> list[tuple[Any, ...]]:
    """The rows of a released file, text or Parquet, read without us."""
    if file.dialect is None:
        return list(zip(*pyarrow.parquet.read_table(path).to_pydict().values(), strict=True))
    text = gzip.decompress(path.read_bytes()).decode() if path.suffix == ".gz" else path.read_text("utf-8")
    rows = list(csv.reader(text.splitlines(), delimiter=file.dialect.separator))
    return [tuple(row) for row in rows[1 if file.dialect.header else 0 :]]


def unique_by_hand(rows: list[tuple[Any, ...]], names: list[str], over: set[str]) -> float:
    """The share of rows whose cells in some columns no other row has."""
    places = [place for place, name in enumerate(names) if name in over]
    counts = Counter(tuple(row[place] for place in places) for row in rows)
    return sum(count == 1 for count in counts.values()) / len(rows)


@pytest.mark.long
@pytest.mark.parametrize("name", QUICK)
def test_small_tables_reach_a_release_after_a_short_search(name: str, shared: Path, tmp_path: Path) -> None:
    released(name, shared, tmp_path, QUICK[name])


@pytest.mark.published
@pytest.mark.parametrize("name", TABLES)
def test_decided_tables_reach_a_release_within_the_policy(name: str, shared: Path, tmp_path: Path) -> None:
    released(name, shared, tmp_path, EVALUATIONS)


def released(name: str, shared: Path, tmp_path: Path, evaluations: int) -> None:
    """What is undecided is made a quasi-identifier; the file is counted again by hand."""
    inspection, run = inspected(TABLES[name], shared, tmp_path)
    outcome = reached(inspection, decided(run), tmp_path, evaluations)
    manifest = outcome.release.manifest
    assert sf.verify(outcome.release.folder)
    assert manifest["figures"]["k"]["value"] >= outcome.study.policy.k
    own = read(outcome.release.folder / "private" / "run.toml").source()
    rows = rows_of(own, outcome.release.data)
    for figure, over in (
        ("quasi_identifiers_and_kept", set(own.names) - set(outcome.study.named(Role.SENSITIVE))),
        ("all_columns", set(own.names)),
    ):
        counted = unique_by_hand(rows, list(own.names), over)
        assert manifest["whole"][figure]["unique_share"] == pytest.approx(counted)
    assert manifest["whole"]["quasi_identifiers_and_kept"]["unique_share"] <= outcome.study.policy.uniques
