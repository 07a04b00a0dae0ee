"""Persons and households on Spark and on DuckDB: the same table, the same release."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import sfumato as sf
from sfumato.data.settings import EngineOptions
from tests.methods.visits import study_of, visits

pytestmark = pytest.mark.scale


def test_units_and_households_are_the_same_on_both_engines(tmp_path: Path) -> None:
    table = visits(150, varying=True)
    table["family"] = [f"h{int(one[1:]) // 3}" for one in table["patient"]]
    table.to_parquet(tmp_path / "visits.parquet")
    columns = {name: column.model_dump(exclude_unset=True) for name, column in study_of(visits(5)).columns.items()}
    study = sf.Study(
        data={"path": str(tmp_path / "visits.parquet")}, columns=columns | {"family": {"role": "household"}}
    )
    conf = {"spark.sql.shuffle.partitions": "2"}
    options = EngineOptions(master="local[2]", memory_limit="1g", conf=conf)
    spark = study.replace(engine="spark", engine_options=options)
    one, two = study.table(), spark.table()
    for name in ("units", "households"):
        first, second = getattr(one, name), getattr(two, name)
        assert first.number == second.number
        for part in ("tuple_of", "unit", "rows"):
            assert np.array_equal(getattr(first, part), getattr(second, part)), (name, part)
        for column in first.values:
            for part in ("tuple_of", "unit", "values", "rows"):
                assert np.array_equal(getattr(first.values[column], part), getattr(second.values[column], part))
    assert np.array_equal(one.household_of, two.household_of)
    front = sf.search(study, max_suppression=0.05, constraints={"distinct_l": 2, "households": 2})
    choice = sf.pick(sf.search(spark, max_suppression=0.05, constraints={"distinct_l": 2, "households": 2}), min_k=3)
    assert [p.values for p in front] == [p.values for p in choice.front]
    accept = {"t": "a table that was made for a test"}
    release = sf.publish(choice, tmp_path / "r", accept=accept, state=tmp_path / "state")
    again = sf.publish(sf.pick(front, min_k=3), tmp_path / "d", accept=accept, state=tmp_path / "other")
    for name in ("k", "distinct_l", "households", "uniques", "household_risk"):
        assert release.manifest["figures"][name] == again.manifest["figures"][name]
    assert release.manifest["own"]["persons"] == again.manifest["own"]["persons"]
    assert sf.verify(tmp_path / "r", str(tmp_path / "visits.parquet"))
