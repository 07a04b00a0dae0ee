"""What stands in front of the engines: folders of parts, addresses, options, and packages that are not installed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.web.api.shelf import paths_of

QUASI = {"role": "quasi_identifier"}


def test_a_folder_of_parts_is_one_table(tmp_path: Path) -> None:
    folder = tmp_path / "people"
    folder.mkdir()
    for part in range(3):
        pq.write_table(pa.table({"age": [part, part, 9]}), folder / f"part-{part}.snappy.parquet")
    (folder / "_SUCCESS").touch()
    (folder / ".part-0.crc").touch()
    table = sf.Study(data={"path": str(folder)}, columns={"age": QUASI}).table()
    assert table.records == 9
    assert table.counts.tolist() == [2, 2, 2, 3]
    glob = sf.Study(data={"path": str(folder / "*.parquet")}, columns={"age": QUASI}).table()
    assert table.fingerprint == glob.fingerprint


@pytest.mark.parametrize("other", ["notes.txt", "year=2020"])
def test_a_folder_of_anything_is_not_a_table(tmp_path: Path, other: str) -> None:
    pq.write_table(pa.table({"age": [1, 2]}), tmp_path / "part-0.parquet")
    (tmp_path / other).mkdir() if "=" in other else (tmp_path / other).touch()
    with pytest.raises(sf.DataError, match="folder"):
        sf.Study(data={"path": str(tmp_path)}, columns={"age": QUASI}).table()


def test_a_hidden_nan_is_missing(tmp_path: Path) -> None:
    values = np.concatenate([[np.nan, -0.0, 3e38], np.linspace(0, 1, 97)]).astype(np.float32)
    pq.write_table(pa.table({"size": values}), tmp_path / "t.parquet")
    table = sf.Study(data={"path": str(tmp_path / "t.parquet")}, columns={"size": QUASI}).table()
    domain = table.domains[0]
    assert (domain.missing is not None, int(domain.counts[domain.missing or 0])) == (True, 1)


@pytest.mark.parametrize(
    "address",
    ["postgresql://me:hush@host/db", "postgres://host/db?password=hush", "postgresql://host/db?sslpassword=hush"],
)
def test_a_password_in_an_address_is_refused_and_not_shown(address: str) -> None:
    with pytest.raises(sf.StudyError, match="holds a password") as found:
        sf.Study(data={"path": address, "table": "people"}, columns={"age": QUASI})
    assert "hush" not in repr(found.value) + str(found.value)


def test_secrets_in_the_settings_of_spark_are_refused_and_not_shown() -> None:
    with pytest.raises(sf.StudyError, match="looks like a secret") as found:
        sf.Study(data={"path": "t.csv"}, engine_options={"conf": {"spark.hadoop.fs.s3a.secret.key": "hush"}})
    assert "hush" not in str(found.value)


def test_addresses_are_not_paths() -> None:
    study = sf.Study(data={"path": "postgresql://host/db", "table": "people"}, columns={"age": QUASI})
    assert 'path = "postgresql://host/db"' in study.as_toml()
    lite = sf.Study(data={"path": "sqlite:people.db", "table": "people"}, columns={"age": QUASI})
    assert f'path = "sqlite:{Path.cwd()}/people.db"' in lite.as_toml()


@pytest.mark.parametrize(
    "settings",
    [
        {"data": {"path": "t.csv"}, "population": {"path": "postgresql://host/db", "table": "people"}},
        {"data": {"path": "t.csv"}, "engine": "spark"},
    ],
)
def test_the_workbench_opens_files_only(settings: dict[str, Any]) -> None:
    with pytest.raises(sf.InputError, match="the workbench reads files"):
        paths_of(sf.Study(**settings))


def test_the_file_of_a_database_is_among_those_that_must_be_in_the_folder() -> None:
    study = sf.Study(data={"path": "sqlite:/etc/people.db", "table": "people"})
    assert paths_of(study) == [Path("/etc/people.db")]


@pytest.mark.parametrize(
    ("settings", "what"),
    [
        ({"data": {"path": "t.csv", "table": "people"}}, "are for databases"),
        ({"data": {"path": "t.csv"}, "engine_options": {"master": "local"}}, "are Spark's"),
        ({"data": {"path": "t.csv"}, "engine": "sparc"}, 'did you mean "spark"'),
    ],
)
def test_settings_that_do_not_go_together(settings: dict[str, Any], what: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("age\n1\n2\n")
    study = sf.Study(**settings, columns={"age": QUASI}).placed(tmp_path)
    with pytest.raises(sf.InputError) as found:
        study.table()
    assert what in str(found.value)


@pytest.mark.parametrize(
    ("package", "extra", "settings"),
    [
        ("pyspark", "spark", {"data": {"path": "t.csv"}, "engine": "spark"}),
        ("adbc_driver_manager", "db", {"data": {"path": "postgresql://host/db", "table": "people"}}),
    ],
)
def test_a_package_that_is_not_installed(
    package: str, extra: str, settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "t.csv").write_text("age\n1\n2\n")
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(sf.InputError) as found:
        sf.Study(**settings, columns={"age": QUASI}).placed(tmp_path).table()
    assert f"pip install 'sfumato[{extra}]'" in str(found.value)


def test_the_shared_sql_is_in_words_that_every_engine_knows() -> None:
    """A cast to VARCHAR, a bare trim or a number for rows that have none would stop Spark, or mean something else."""
    package = Path(sf.__file__).parent
    own = {
        "duckdb.py",
        "source.py",
        "opening.py",
        "spark.py",
        "spark_files.py",
        "database.py",
        "microfile.py",
        "swapped.py",
        "wide.py",
    }
    for path in package.rglob("*.py"):
        text = path.read_text("utf-8")
        if path.name not in own:
            for word in ("AS VARCHAR)", " trim(", "(trim(", "row_number() OVER ()"):
                assert word not in text, f"{path.relative_to(package)} says {word}"
