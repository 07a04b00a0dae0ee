"""The same study on DuckDB and on a Spark cluster of two workers, one of which is killed in the middle."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.data.cells import cleaned
from sfumato.data.engine import open_engine
from sfumato.data.open import open_source
from sfumato.data.settings import DataSettings, EngineOptions
from sfumato.methods.publish import verify
from sfumato.release.history.compare import join_releases
from sfumato.release.history.description import Description, ShownColumn
from sfumato.release.history.people import hashed_rows
from sfumato.release.rows import differing_rows
from sfumato.samples.census import people, plant
from tests.points import points_in
from tests.release.fronts import publish
from tests.release.test_rows import Meant, files
from tests.scale.cluster import Cluster

pytestmark = pytest.mark.scale

ROWS = int(os.environ.get("SFUMATO_SCALE_ROWS", "200000"))


ACCEPT = {"uniques": "nobody in the synthetic census exists"}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    large = {} if ROWS <= 1_000_000 else {"memory": "2g", "split": "16m"}
    with Cluster(tmp_path_factory.mktemp("cluster"), **large) as found:
        yield found


@pytest.fixture(scope="module")
def census(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Synthetic people as a folder of Parquet parts, as Spark writes them; some cells are odd."""
    folder = tmp_path_factory.mktemp("data") / "people.parquet"
    folder.mkdir()
    words = np.array(["none", " school", "it's \\ more", "\u00a0blank\u00a0"])
    for number, chunk in enumerate(people(plant(ROWS, ROWS // 200, 60))):
        half = np.where(chunk["uhrs"] % 23 == 0, np.nan, chunk["uhrs"] // 10 * 5 + 0.5)
        table = pa.table(chunk | {"half": half, "word": words[chunk["wkswork"] % 4]})
        pq.write_table(table, folder / f"part-{number}.parquet", row_group_size=len(table) // 8)
    (folder / "_SUCCESS").touch()
    return folder


def study_of(path: Path, **more: Any) -> sf.Study:
    flat = {"role": "quasi_identifier", "hierarchy": {"build": "flat"}}
    unused = ("uhrs", "hisp", "tran", "depart", "ttime", "english", "state", "puma", "military", "race", "marst")
    columns: dict[str, Any] = {name: {"role": "drop"} for name in unused}
    columns |= dict.fromkeys(("sex", "word"), flat)
    columns |= {
        "age": {"role": "quasi_identifier", "hierarchy": {"build": "interval", "widths": [5, 10, 20]}},
        "half": {"role": "quasi_identifier", "hierarchy": {"build": "interval", "widths": [10, 20]}},
        "educ": {"role": "sensitive"},
        "wkswork": {"role": "drop"},
        "inctot": {"role": "other"},
    }
    data = {"path": str(path), "missing": "category"}
    return sf.Study(data=data, columns=columns, search={"max_suppression": 0.02}, **more)


@pytest.fixture(scope="module")
def plain(census: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[sf.Front, Path, Path]:
    """The front and a release of it from DuckDB, with the folders of both."""
    folder = tmp_path_factory.mktemp("plain")
    front = sf.search(study_of(census))
    front.save(folder / "front")
    publish(front, point_of(front), folder / "release", state=folder, accept=ACCEPT)
    return front, folder / "front", folder / "release"


def point_of(front: sf.Front) -> int:
    """A point that suppresses records and leaves something of every kind to recode."""
    return max((p for p in front.points if p.suppressed), key=lambda p: p.values["k"] * (p.loss < 0.6)).id


@pytest.fixture
def when_running(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], list[str]]:
    """Kill a worker while the tasks of the first call of a method with such a statement run. The list says when."""
    from sfumato.data.spark import SparkEngine

    def arm(method: str, start: str) -> list[str]:
        done: list[str] = []
        plain = getattr(SparkEngine, method)

        def wait_and_kill(tracker: Any, ended: threading.Event) -> None:
            while not done and not ended.wait(0.01):
                active = [tracker.getStageInfo(s) for s in tracker.getActiveStageIds()]
                if any(stage and stage.numActiveTasks and stage.numCompletedTasks for stage in active):
                    cluster.kill_worker()
                    done.append("killed")

        def watched(engine: SparkEngine, sql: str, *rest: Any) -> None:
            if not sql.startswith(start) or done:
                plain(engine, sql, *rest)
                return
            tracker = engine._session.sparkContext.statusTracker()
            ended = threading.Event()
            thread = threading.Thread(target=wait_and_kill, args=(tracker, ended))
            thread.start()
            plain(engine, sql, *rest)
            done.append("ended")
            ended.set()
            thread.join()

        monkeypatch.setattr(SparkEngine, method, watched)
        return done

    return arm


def test_the_front_is_the_same_to_the_byte_though_a_worker_dies(
    cluster: Cluster, census: Path, plain: tuple[sf.Front, Path, Path], tmp_path: Path, when_running: Any
) -> None:
    done = when_running("run", "CREATE OR REPLACE TEMP TABLE cells")
    front = sf.search(study_of(census, engine="spark", engine_options=cluster.options))
    cluster.start_worker()
    assert done == ["killed", "ended"], "the worker was to die while the rows were grouped"
    front.save(tmp_path / "front")
    assert points_in(tmp_path / "front") == points_in(plain[1])


def test_a_release_is_right_though_a_worker_dies(
    cluster: Cluster, census: Path, plain: tuple[sf.Front, Path, Path], tmp_path: Path, when_running: Any
) -> None:
    front = sf.load_front(plain[1])
    study = study_of(census, engine="spark", engine_options=cluster.options)
    front = sf.Front(**{name: getattr(front, name) for name in front.__dataclass_fields__} | {"study": study})
    done = when_running("write", "SELECT * FROM (SELECT")
    release = publish(front, point_of(front), tmp_path / "release", state=tmp_path, accept=ACCEPT)
    cluster.start_worker()
    assert done == ["killed", "ended"], "the worker was to die while the rows were recoded and written"
    parts = sorted(release.data.iterdir())
    assert release.data.name == "data.parquet"
    assert parts[0].name == "part-00000.parquet"
    other = verified(plain[2])
    assert release.manifest["figures"] == other["figures"]
    assert release.manifest["suppressed"] == other["suppressed"]
    assert rows_that_differ(f"{release.data}/*.parquet", str(plain[2] / "public" / "data.parquet")) == 0
    verify(tmp_path / "release").raise_if_failed()  # by DuckDB, from the files alone


def test_odd_cells_read_alike(cluster: Cluster, tmp_path: Path) -> None:
    """Numbers of every kind, blanks, quotes, backslashes and line breaks are the same text in both engines."""
    rng = np.random.default_rng(3)
    doubles = np.concatenate([[0.1, 1e16, 2e23, -0.0, np.nan, np.inf, 5e-324, 3.0], rng.random(92) * 1e-3])
    count = len(doubles)
    words = ["a'b", "x\\y", "\u3000w\u3000", " ", "", "é", "?", None]
    odd = {
        "double": doubles,
        "single": np.clip(doubles, 0, 3e38).astype(np.float32),
        "large": pa.array(rng.integers(0, 2**63, count, dtype=np.uint64) * 2, pa.uint64()),
        "truth": pa.array([None if i % 5 == 0 else bool(i % 2) for i in range(count)]),
        "day": pa.array(rng.integers(-30_000, 60_000, count).astype(np.int32), pa.date32()),
        "time": pa.array(rng.integers(0, 10**15, count), pa.timestamp("us")),
        "exact": pa.array([Decimal(int(x)).scaleb(-7) for x in rng.integers(-(10**9), 10**9, count)]),
        "word": pa.array([words[i % 8] for i in range(count)]),
    }
    pq.write_table(pa.table(odd), tmp_path / "odd.parquet")
    (tmp_path / "text").mkdir()
    text = 'a,b\n1,"x, y"\n2,"say ""hi"""\n3,"line\nbreak"\n4,\n5,""\n6," p "\n7,back\\"q\n8,é\n9,\'\n'
    (tmp_path / "text" / "part-0.csv").write_text(text, "utf-8")
    (tmp_path / "text" / "part-1.csv").write_text("a,b\n10,z\n", "utf-8")
    for path in (tmp_path / "odd.parquet", tmp_path / "text"):
        source = open_source(DataSettings(path=str(path), na=("?", "x\\y")))
        cells = ", ".join(cleaned(source, column) for column in source.columns)
        found = []
        for name, options in (("duckdb", None), ("spark", EngineOptions.checked(**cluster.options))):
            with open_engine(name, options) as engine:
                engine.attach(source, "raw")
                found.append(sorted(map(repr, engine.rows(f"SELECT {cells} FROM raw"))))
        assert found[0] == found[1]


def test_what_spark_would_misread_is_refused(cluster: Cluster, tmp_path: Path) -> None:
    texts = {"open quote": '1,"x\n2,y\n', "return": '1,"x\ry"\n', "ragged": "1,x\n2\n"}
    options = EngineOptions.checked(**cluster.options)
    for name, text in texts.items():
        (tmp_path / f"{name}.csv").write_text("a,b\n1,1\n" + text, newline="")
        source = open_source(DataSettings(path=str(tmp_path / f"{name}.csv")))
        with open_engine("spark", options) as engine, pytest.raises(sf.DataError):
            engine.attach(source, "raw")


def test_a_file_is_read_by_its_very_name(cluster: Cluster, tmp_path: Path) -> None:
    options = EngineOptions.checked(**cluster.options)
    for name, other in (("data[1].csv", "data1.csv"), ("wh?t{a}.csv", "what{a}.csv")):
        (tmp_path / name).write_text("a\n50\n51\n", "utf-8")
        (tmp_path / other).write_text("a\n20\n", "utf-8")
        with open_engine("spark", options) as engine:
            engine.attach(open_source(DataSettings(path=str(tmp_path / name))), "raw")
            assert sorted(engine.rows("SELECT c0 FROM raw")) == [("50",), ("51",)]
    (tmp_path / "a:b.csv").write_text("a\n50\n51\n", "utf-8")
    with open_engine("spark", options) as engine, pytest.raises(sf.DataError, match="colon"):
        engine.attach(open_source(DataSettings(path=str(tmp_path / "a:b.csv"))), "raw")


@pytest.mark.parametrize(
    ("one", "two", "differ"), [(["a,b", "c,d", "a,b"], ["c,d", "a,b", "a,b"], 0), (["a,b"], ["a,c"], 2)]
)
def test_rows_are_compared(cluster: Cluster, tmp_path: Path, one: list[str], two: list[str], differ: int) -> None:
    meant, written = (open_source(DataSettings(path=str(path))) for path in files(tmp_path, one, two))
    with open_engine("spark", EngineOptions.checked(**cluster.options)) as engine:
        engine.attach(meant, "raw")
        assert differing_rows(engine, Meant(meant, list(meant.names)), written) == differ


def test_a_column_is_disguised_once_for_each_record(cluster: Cluster, census: Path, tmp_path: Path) -> None:
    study = study_of(census, engine="spark", engine_options=cluster.options)
    columns = study.columns | {"sex": sf.Study(data=study.data, columns={"sex": {"role": "sensitive"}}).columns["sex"]}
    study = sf.Study(data=study.data, columns=columns, engine="spark", engine_options=cluster.options)
    channel = sf.Channel(("sex",), ("1", "2"), ("1", "2"), np.array([[0.75, 0.25], [0.25, 0.75]]))
    accept = {"k": "ages of a synthetic census", "uniques": "ages of a synthetic census"}
    done = sf.disguise(study, [channel], tmp_path / "told", keep=["age"], name="data.parquet", accept=accept)
    read = duckdb.execute(f"SELECT sex, count(*) FROM read_parquet('{done.data}/*.parquet') GROUP BY sex").fetchall()
    true = duckdb.execute(f"SELECT sex, count(*) FROM read_parquet('{census}/*.parquet') GROUP BY sex").fetchall()
    expected = sum(n * (0.75 if str(sex) == "1" else 0.25) for sex, n in true)
    assert sum(n for _, n in read) == ROWS
    assert abs(dict(read)["1"] - expected) < 6 * (ROWS * 0.75 * 0.25) ** 0.5
    with pytest.raises(sf.StudyError, match="needs numbered rows"):
        sf.disguise(study, [channel], tmp_path / "again", test_seed=1)
    sf.verify(done.folder, census, engine="spark", engine_options=study.engine_options).raise_if_failed()


def test_two_releases_tell_the_same_on_both_engines(cluster: Cluster, tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    cells = [rng.integers(18, 80, 2000), rng.choice(["F", "M", ""], 2000), rng.choice(list("abc"), 2000)]
    names = ["age", "sex", "s", "t"]
    rows = [",".join(map(str, row)) for row in zip(*cells, rng.integers(0, 900, 2000), strict=True)]
    for name, count in (("old", 1990), ("new", 2000)):
        (tmp_path / f"{name}.csv").write_text("\n".join([",".join(names), *rows[:count]]) + "\n")
    ages = tuple(map(str, range(18, 80)))
    bands = [
        ShownColumn("recoded", ages, tuple((int(a) + s) // 10 - 1 for a in ages), tuple("abcdefgh")) for s in (0, 3)
    ]
    kept = ShownColumn("kept")
    sex = ShownColumn("recoded", ("F", "M", ""), (0, 1, 2), ("F", "M", ""))
    first = Description("lattice", {"age": bands[0], "sex": sex, "t": kept, "s": kept}, 20, 2, sensitive=("s",))
    second = Description(
        "lattice", {"age": bands[1], "sex": sex, "t": kept}, 15, 0, sensitive=("s",), complete=("sex",)
    )
    counted = []
    for engine_name, options in (("duckdb", None), ("spark", EngineOptions.checked(**cluster.options))):
        with open_engine(engine_name, options) as engine:
            old, new = (open_source(DataSettings(path=str(tmp_path / f"{name}.csv"))) for name in ("old", "new"))
            engine.attach(old, "raw")
            known = hashed_rows(engine, old, old.names, "k" * 64)
            engine.attach(new, "raw")
            joint = join_releases(engine, new, first, second, k=5, l=2, known=known, key="k" * 64)
            counted.append((known.hashes.tolist(), known.counts.tolist(), joint))
    assert counted[0] == counted[1]
    assert counted[0][2].small
    assert counted[0][2].linked


def verified(folder: Path) -> dict[str, Any]:
    from sfumato.release.manifest import read_manifest

    return read_manifest(folder)


def rows_that_differ(one: str, two: str) -> int:
    sides = [f"SELECT * FROM read_parquet('{path}')" for path in (one, two)]
    both = [f"SELECT count(*) FROM ({a} EXCEPT ALL {b})" for a, b in (sides, sides[::-1])]
    return sum(duckdb.execute(sql).fetchall()[0][0] for sql in both)
