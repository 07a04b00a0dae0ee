"""Dependences on Spark are those on DuckDB, though each draws other rows to look at."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.data.engine import open_engine
from sfumato.data.open import open_source
from sfumato.data.settings import DataSettings, EngineOptions
from sfumato.tables.dependence import Dependences, Protected, dependences
from tests.scale.cluster import Cluster

pytestmark = pytest.mark.scale


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("cluster")) as found:
        yield found


def test_the_same_dependences_on_both_engines(cluster: Cluster, tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    n = 60_000
    place, age = rng.integers(0, 8_000, n), rng.integers(0, 100, n)
    wage, rent = np.round(rng.lognormal(9, 1, n)), np.round(rng.lognormal(8, 1, n))
    born = np.datetime64("2020-06-01") - (age * 365.25 + rng.random(n) * 364).astype(int)
    columns = {
        "place": place,
        "code": rng.permutation(8_000)[place],
        "county": place // 80,
        "age": age,
        "born": born.astype("datetime64[D]").astype(str),
        "wage": wage,
        "rent": rent,
        "total": wage + rent,
        "one": rng.integers(0, 4, n),
        "two": rng.integers(0, 5, n),
        "noise": rng.integers(0, 50, n),
    }
    columns["mixed"] = (3 * columns["one"] + 7 * columns["two"]) % 11
    pq.write_table(pa.table(columns), tmp_path / "t.parquet", row_group_size=10_000)
    source = open_source(DataSettings(path=str(tmp_path / "t.parquet")))
    protected = [
        Protected("place", "generalized", ({str(p): str(p // 800) for p in range(8_000)},)),
        Protected("age", "generalized", ({str(a): str(a // 20) for a in range(100)},)),
        Protected("wage", "sensitive"),
        Protected("mixed", "withheld"),
    ]
    kept = ["code", "county", "born", "rent", "total", "one", "two", "noise"]

    def searched(engine_name: str, options: EngineOptions | None) -> Dependences:
        with open_engine(engine_name, options) as engine:
            engine.attach(source, "raw")
            return dependences(engine, source, kept, protected)

    here = searched("duckdb", None)
    there = searched("spark", EngineOptions.checked(**cluster.options))
    assert {d.kept for d in here.dependences} >= {("code",), ("county",), ("born",), ("one", "two")}
    assert [(d.kept, d.protected, d.way, d.kind) for d in here.dependences] == [
        (d.kept, d.protected, d.way, d.kind) for d in there.dependences
    ]
    assert [d.right for d in here.dependences] == pytest.approx([d.right for d in there.dependences], abs=1e-3)
    assert [one.column for one in here.identifying] == [one.column for one in there.identifying]
