"""A choice of a front of a frame: applied, published, verified; the same kind of frame comes back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import pandas
import polars
import pyarrow
import pyarrow.parquet
import pytest
from tests.frames.kinds import MAKERS, ROLES, SIX, columns_of

import sfumato as sf

KINDS = pytest.mark.parametrize("kind", list(MAKERS))
TREES = {"age": sf.intervals(20), "zip": sf.prefixes(2)}


def study_of(frame: Any, **settings: Any) -> sf.Study:
    return sf.Study(frame, **(ROLES | settings)).with_hierarchies(TREES)


def choice_of(frame: Any, **limits: Any) -> sf.Choice:
    return sf.pick(sf.search(study_of(frame)), **limits)


@KINDS
def test_applied_by_hand(kind: str) -> None:
    """k = 3 with the least loss: ages 20–39 and 40–59, the first two digits of the zip code; nobody is suppressed."""
    frame = MAKERS[kind](SIX)
    choice = choice_of(frame, min_k=3)
    safe = choice.apply(frame)
    assert type(safe) is type(frame)
    assert columns_of(safe) == {
        "age": ["20-39"] * 3 + ["40-59"] * 3,
        "zip": ["10***"] * 3 + ["20***"] * 3,
        "disease": SIX["disease"],
    }
    assert columns_of(frame) == SIX


LENIENT = {"k": 1, "l": 1, "t": 1.0, "uniques": 1.0, "identifying": 1.0, "reason": "a table made for a test"}


@pytest.mark.long
@KINDS
def test_applied_rows_are_the_published_ones(kind: str, tmp_path: Path) -> None:
    frame = MAKERS[kind]({**SIX, "age": [31, 31, 35, 42, 42, 80]})
    front = sf.search(study_of(frame, policy=LENIENT), max_suppression=0.2)
    choice = next(sf.pick(front, point=p.id) for p in front.points if p.suppressed)
    release = sf.publish(choice, tmp_path / "release", state=tmp_path / "state")
    written = pyarrow.parquet.read_table(release.data)
    assert written.num_rows == 6 - choice.point.suppressed
    assert sorted(zip(*columns_of(written).values(), strict=True)) == sorted(
        zip(*columns_of(choice.apply()).values(), strict=True)
    )
    sf.verify(release.folder, source=frame).raise_if_failed()
    other = MAKERS[kind]({**SIX, "age": [31, 31, 35, 42, 42, 81]})
    with pytest.raises(sf.SfumatoError, match="the table in memory: it is not the source of this release"):
        sf.verify(release.folder, source=other).raise_if_failed()
    again = sf.load_front(front.save(tmp_path / "front"), source=frame)
    assert columns_of(sf.pick(again, point=choice.point.id).apply(frame)) == columns_of(choice.apply())
    with pytest.raises(sf.DataError, match="the table was in memory"):
        sf.load_front(tmp_path / "front").study.source()


def test_types_and_index_survive() -> None:
    """Columns that are kept have their types, recoded categories are categories, rows keep their index."""
    frame = pandas.DataFrame(SIX, index=list("uvwxyz")).assign(
        zip=lambda d: d["zip"].astype("category"),
        disease=lambda d: d["disease"].astype("string"),
        seen=pandas.to_datetime(["2020-01-01"] * 6).tz_localize("UTC"),
        visits=pandas.array([1, None, 3, 4, 5, 6], dtype="Int64"),
    )
    study = study_of(frame, keep=["seen", "visits"])
    safe = sf.pick(sf.search(study), min_k=3).apply(frame)
    assert list(safe.index) == list("uvwxyz")
    for name in ("disease", "seen", "visits"):
        pandas.testing.assert_series_equal(safe[name], frame[name])
    assert isinstance(safe["zip"].dtype, pandas.CategoricalDtype)
    assert list(safe["zip"]) == ["10***"] * 3 + ["20***"] * 3
    same = polars.DataFrame(SIX).with_columns(polars.col("zip").cast(polars.Categorical))
    out = sf.pick(sf.search(study_of(same)), min_k=3).apply(same)
    assert out.schema["zip"] == polars.Categorical
    assert out.schema["disease"] == polars.String


def test_other_tables_and_missing_values() -> None:
    """Another table is recoded by the same plan, suppressed by its own classes; a missing value stays."""
    choice = choice_of(pandas.DataFrame(SIX), min_k=3)
    more = polars.DataFrame({**SIX, "age": [31, 31, 31, 35, 42, 42]})
    assert columns_of(choice.apply(more))["age"] == ["20-39"] * 3  # the others are in classes of 1 and 2 records
    with pytest.raises(sf.DataError, match="the hierarchies lack values of zip") as caught:
        choice.apply(polars.DataFrame({**SIX, "zip": ["99999"] * 6}))
    assert "99999" not in str(caught.value)
    relation = duckdb.from_arrow(pyarrow.table(SIX))
    assert isinstance(choice.apply(relation), duckdb.DuckDBPyRelation)
    reader = pyarrow.table(SIX).to_reader()
    assert columns_of(choice.apply(reader)) == columns_of(choice.apply(polars.DataFrame(SIX)))
    spelt = {**SIX, "zip": ["10115", "?", "10117", "20095", "?", "20097"]}
    study = sf.Study(polars.DataFrame(spelt), **ROLES, na=["?"], missing="category").with_hierarchies(
        age=sf.intervals(20), zip=sf.flat()
    )
    front = sf.search(study)
    raw = next(point for point in front.points if point.plan.levels["zip"] == 0)
    assert columns_of(sf.pick(front, point=raw.id).apply())["zip"] == spelt["zip"]


def test_a_channel_of_a_frame(tmp_path: Path) -> None:
    """Reports are drawn while the frame is read by a second connection."""
    frame = polars.DataFrame({name: cells * 40 for name, cells in SIX.items()})
    study = sf.Study(frame, **ROLES, channel={"columns": ["disease"], "points": 2})
    front = sf.search(study, system="channel")
    release = sf.publish(sf.pick(front, point=0), tmp_path / "survey", state=tmp_path / "state")
    assert len(pandas.read_csv(release.data)) == 240
    sf.verify(release.folder, source=frame).raise_if_failed()


@pytest.mark.long
def test_a_plan_is_applied_to_next_years_frame(tmp_path: Path) -> None:
    frame = pandas.DataFrame({name: cells * 2 for name, cells in SIX.items()})
    choice = sf.pick(sf.search(study_of(frame, policy=LENIENT)), min_k=6)
    release = sf.publish(choice, tmp_path / "release", state=tmp_path / "state")
    later = polars.DataFrame({name: cells * 3 for name, cells in SIX.items()})
    again = sf.apply_plan(release.folder, later, tmp_path / "next", state=tmp_path / "state")
    assert again.manifest["released"] == 18
    sf.verify(again.folder, source=later).raise_if_failed()


def test_limits_that_nothing_meets_name_what_can_be_had() -> None:
    study = study_of(pandas.DataFrame(SIX)).with_search(objectives=["general_loss"], constraints={"k": 10_000})
    with pytest.raises(sf.UnreachableError) as caught:
        sf.search(study)
    assert "k = 6 instead of 10000" in caught.value.remedy


def test_text_of_digits_is_described_as_text(tmp_path: Path) -> None:
    frame = pandas.DataFrame(SIX | {"zip": ["10115"] * 3 + ["20095"] * 3})
    choice = sf.pick(sf.search(study_of(frame)), min_k=3)
    sf.publish(choice, tmp_path / "release", state=tmp_path / "state", accept={"l": "an example with few values"})
    about = json.loads((tmp_path / "release" / "public" / "dictionary.json").read_text("utf-8"))
    kinds = {entry["name"]: entry["kind"] for entry in about["columns"]}
    assert kinds["zip"] == "text"


def test_another_table_is_held_to_every_criterion_of_the_plan() -> None:
    """The plan demands t: of another table other classes fall short, and those are the ones that go."""
    mixed = {"age": ["a"] * 4 + ["b"] * 4, "ill": ["x", "y"] * 4}
    skewed = {"age": ["a"] * 4 + ["b"] * 4 + ["c"] * 4, "ill": ["x", "y"] * 4 + ["x"] * 4}
    study = sf.Study(pandas.DataFrame(skewed), quasi_identifiers=["age"], sensitive=["ill"])
    study = study.with_hierarchies(age=sf.flat()).with_search(
        objectives=["general_loss"], constraints={"k": 2, "t_closeness": 0.2}, max_suppression=0.4
    )
    choice = sf.pick(sf.search(study), point=0)
    assert set(choice.apply()["age"]) == {"a", "b"}
    assert set(choice.apply(pandas.DataFrame(mixed))["age"]) == {"a", "b"}
    other = {"age": ["a"] * 4 + ["b"] * 4 + ["c"] * 4, "ill": ["x"] * 4 + ["x", "y"] * 4}
    assert set(choice.apply(pandas.DataFrame(other))["age"]) == {"b", "c"}
