"""The same study on DuckDB and on a Spark cluster of two workers, one of which is killed in the middle."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.release.publish import publish
from sfumato.release.verify import verify
from tests.scale.cluster import Cluster

pytestmark = pytest.mark.scale

ROWS = int(os.environ.get("SFUMATO_SCALE_ROWS", "200000"))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("cluster")) as found:
        yield found


@pytest.fixture(scope="module")
def census(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Synthetic people as a folder of Parquet parts, as Spark writes them."""
    folder = tmp_path_factory.mktemp("data") / "people.parquet"
    folder.mkdir()
    rng = np.random.default_rng(8)
    for part in range(4):
        n = ROWS // 4
        columns = {
            "id": np.arange(n) + part * n,
            "age": rng.integers(18, 90, n),
            "sex": pa.array(rng.choice(["F", "M"], n)),
            "hours": np.where(rng.random(n) < 0.02, np.nan, np.round(rng.random(n) * 8) * 5 + 0.5),
            "educ": pa.array(rng.choice(["none", "school", " college", "it's \\ more"], n, p=[0.1, 0.5, 0.3, 0.1])),
            "ill": pa.array(rng.choice(["flu", "gout", "cold", "none"], n)),
            "income": rng.integers(0, 90_000, n),
        }
        pq.write_table(pa.table(columns), folder / f"part-{part}.parquet", row_group_size=max(n // 8, 1))
    (folder / "_SUCCESS").touch()
    return folder


def study_of(path: Path, **more: Any) -> sf.Study:
    columns = {
        "id": {"role": "identifier"},
        "age": {"role": "quasi_identifier", "hierarchy": {"build": "interval", "widths": [5, 10, 20, 40]}},
        "sex": {"role": "quasi_identifier", "hierarchy": {"build": "flat"}},
        "hours": {"role": "quasi_identifier", "hierarchy": {"build": "interval", "widths": [10, 20]}},
        "educ": {"role": "quasi_identifier", "hierarchy": {"build": "flat"}},
        "ill": {"role": "sensitive"},
        "income": {"role": "other"},
    }
    data = {"path": str(path), "missing": "category"}
    return sf.Study(data=data, columns=columns, search={"max_suppression": 0.02}, **more)


@pytest.fixture(scope="module")
def plain(census: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[sf.Front, Path, Path]:
    """The front and a release of it from DuckDB, with the folders of both."""
    folder = tmp_path_factory.mktemp("plain")
    front = sf.search(study_of(census))
    front.save(folder / "front")
    publish(front, point_of(front), folder / "release", state=folder)
    return front, folder / "front", folder / "release"


def point_of(front: sf.Front) -> int:
    """A point that suppresses records and leaves something of every kind to recode."""
    return max((p for p in front.points if p.suppressed), key=lambda p: p.values["k"] * (p.loss < 0.6)).id


@pytest.fixture
def when_running(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], list[str]]:
    """Kill a worker while the tasks of a statement run. The list says when it was done."""
    from sfumato.data.spark import SparkEngine

    def arm(start: str) -> list[str]:
        done: list[str] = []
        run = SparkEngine.run

        def wait_and_kill(tracker: Any, before: set[int]) -> None:
            while not done:
                active = [tracker.getStageInfo(s) for s in tracker.getActiveStageIds()]
                if any(stage and stage.numActiveTasks and stage.numCompletedTasks for stage in active):
                    cluster.kill_worker()
                    done.append("killed")
                time.sleep(0.01)

        def watched(engine: SparkEngine, sql: str) -> None:
            if not sql.startswith(start) or done:
                run(engine, sql)
                return
            tracker = engine._session.sparkContext.statusTracker()
            thread = threading.Thread(target=wait_and_kill, args=(tracker, set()))
            thread.start()
            run(engine, sql)
            done.append("ended")
            thread.join()

        monkeypatch.setattr(SparkEngine, "run", watched)
        return done

    return arm


def test_the_front_is_the_same_to_the_byte_though_a_worker_dies(
    cluster: Cluster, census: Path, plain: tuple[sf.Front, Path, Path], tmp_path: Path, when_running: Any
) -> None:
    done = when_running("CREATE OR REPLACE TEMP TABLE cells")
    front = sf.search(study_of(census, engine="spark", engine_options=cluster.options))
    cluster.start_worker()
    assert done == ["killed", "ended"], "the worker was to die while the rows were grouped"
    front.save(tmp_path / "front")
    assert (tmp_path / "front" / "front.parquet").read_bytes() == (plain[1] / "front.parquet").read_bytes()


def test_a_release_is_right_though_a_worker_dies(
    cluster: Cluster, census: Path, plain: tuple[sf.Front, Path, Path], tmp_path: Path, when_running: Any
) -> None:
    front = sf.load_front(plain[1])
    study = study_of(census, engine="spark", engine_options=cluster.options)
    front = sf.Front(**{name: getattr(front, name) for name in front.__dataclass_fields__} | {"study": study})
    done = when_running("CREATE OR REPLACE TEMP TABLE recoded")
    release = publish(front, point_of(front), tmp_path / "release", state=tmp_path)
    cluster.start_worker()
    assert done == ["killed", "ended"], "the worker was to die while the rows were recoded"
    parts = sorted(release.data.iterdir())
    assert release.data.name == "people.parquet"
    assert parts[0].name == "part-00000.parquet"
    other = verified(plain[2])
    assert release.manifest["figures"] == other["figures"]
    assert release.manifest["suppressed"] == other["suppressed"]
    assert rows_that_differ(f"{release.data}/*.parquet", str(plain[2] / "people.parquet")) == 0
    assert verify(tmp_path / "release") == []  # by DuckDB, from the files alone


def verified(folder: Path) -> dict[str, Any]:
    from sfumato.release.pack import read_manifest

    return read_manifest(folder)


def rows_that_differ(one: str, two: str) -> int:
    sides = [f"SELECT * FROM read_parquet('{path}')" for path in (one, two)]
    both = [f"SELECT count(*) FROM ({a} EXCEPT ALL {b})" for a, b in (sides, sides[::-1])]
    return sum(duckdb.execute(sql).fetchall()[0][0] for sql in both)
