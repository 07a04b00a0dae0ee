"""Tables of PostgreSQL and SQLite from inspect to verify, and what is said when something is wrong with them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import sfumato as sf
from sfumato.cli import application
from sfumato.data.database import Database
from sfumato.methods.publish import verify
from tests.release.fronts import publish
from tests.scale.servers import Server

pytestmark = pytest.mark.scale

MAKE = """
CREATE TABLE people AS
SELECT i AS id, 18 + i * 7 % 60 AS age, CASE WHEN i % 3 = 0 THEN 'F' ELSE 'M' END AS sex,
       CAST(i % 4 AS numeric(5, 2)) AS size, 'ill' || i % 5 AS ill
FROM {numbers}
"""
ROLES = {
    "id": {"role": "identifier"},
    "age": {"role": "quasi_identifier", "hierarchy": {"build": "interval", "widths": [5, 10, 20, 40]}},
    "sex": {"role": "quasi_identifier", "hierarchy": {"build": "flat"}},
    "size": {"role": "quasi_identifier", "hierarchy": {"build": "flat"}},
    "ill": {"role": "sensitive"},
}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server() as found:
        found.execute(
            MAKE.format(numbers="generate_series(1, 3000) AS i"),
            "CREATE ROLE reader LOGIN PASSWORD 'let me read'",
            "GRANT SELECT ON people TO reader",
            "CREATE TABLE wide AS SELECT i, repeat('x', 300) AS t FROM generate_series(1, 400000) AS i",
            "GRANT SELECT ON wide TO reader",
            "CREATE TABLE hidden AS SELECT 1 AS a",
        )
        yield found


@pytest.fixture
def postgresql(server: Server, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("PGUSER", "reader")
    monkeypatch.setenv("PGPASSWORD", "let me read")
    return server.address


@pytest.fixture
def sqlite(tmp_path: Path) -> str:
    """The same people in SQLite; the first values of a column are missing and a later one is text."""
    with sqlite3.connect(tmp_path / "people.db") as found:
        found.execute("CREATE TABLE people (id INTEGER, age INTEGER, sex TEXT, size REAL, ill)")
        rows = [(i, 18 + i * 7 % 60, "MFM"[i % 3], i % 4 / 2, f"ill{i % 5}" if i > 2500 else None) for i in range(3000)]
        found.executemany("INSERT INTO people VALUES (?, ?, ?, ?, ?)", rows)
    found.close()
    return f"sqlite:{tmp_path / 'people.db'}"


def study_of(path: str, **data: Any) -> sf.Study:
    return sf.Study(data={"path": path, "table": "people", "missing": "category", **data}, columns=ROLES)


@pytest.mark.parametrize("kind", ["postgresql", "sqlite"])
def test_from_inspect_to_verify(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    address = request.getfixturevalue(kind)
    told = CliRunner().invoke(
        application(), ["inspect", address, "--table", "people", "-o", str(tmp_path / "run.toml"), "--json"]
    )
    assert told.exit_code == 0
    assert json.loads(told.stdout)["rows"] == 3000
    assert sf.read(tmp_path / "run.toml").source(undecided=True).names == tuple(ROLES)
    study = study_of(address)
    assert sf.audit(study).rows == 3000
    front = sf.search(study)
    front.save(tmp_path / "front")
    accepted = dict.fromkeys(("raw", "l"), "the table itself, to try databases")
    release = publish(sf.load_front(tmp_path / "front"), 0, tmp_path / "release", state=tmp_path, accept=accepted)
    assert release.data.name == "data.parquet"
    verify(tmp_path / "release", address).raise_if_failed()
    for path in tmp_path.rglob("*"):
        assert not path.is_file() or b"let me read" not in path.read_bytes(), f"{path.name} holds the password"


def test_a_numeric_column_is_what_a_parquet_file_would_give(postgresql: str) -> None:
    assert [column.type for column in study_of(postgresql).source().columns][3] == "DECIMAL(5, 2)"
    assert study_of(postgresql).table().domains[2].labels == ("0", "1", "2", "3")


def test_the_fingerprint_is_of_the_rows_and_not_of_their_order(server: Server, postgresql: str) -> None:
    ordered = study_of(postgresql, table=None, query="SELECT * FROM people ORDER BY age, id").source()
    again = study_of(postgresql, table=None, query="SELECT * FROM people ORDER BY id DESC").source()
    other = study_of(postgresql, table=None, query="SELECT * FROM people WHERE id <> 7").source()
    assert ordered.fingerprint == again.fingerprint != other.fingerprint
    assert study_of(postgresql).table().fingerprint == ordered.fingerprint


def test_a_wrong_password(postgresql: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPASSWORD", "open sesame")
    with pytest.raises(sf.DataError, match="refused the user or the password") as found:
        study_of(postgresql).table()
    assert "sesame" not in str(found.value)


def test_a_password_file(postgresql: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("PGPASSWORD")
    (tmp_path / "pass").write_text("127.0.0.1:*:*:reader:let me read\n")
    (tmp_path / "pass").chmod(0o644)
    study = study_of(postgresql, password_file=str(tmp_path / "pass"))
    with pytest.raises(sf.InputError, match="can be read by others"):
        study.source()
    (tmp_path / "pass").chmod(0o600)
    assert study.table().records == 3000


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"table": "peple"}, 'did you mean "people"'),
        ({"table": "hidden"}, "no right to read"),
        ({"table": None}, "tables: people, wide"),
        ({"table": None, "query": "SELECT nothing FROM people"}, "did not understand"),
        ({"table": None, "query": "DELETE FROM people RETURNING *"}, "did not understand"),
    ],
)
def test_what_cannot_be_read_is_told(postgresql: str, change: dict[str, Any], what: str) -> None:
    with pytest.raises(sf.InputError) as found:
        study_of(postgresql, **change).table()
    assert what in str(found.value)


def test_no_server(tmp_path: Path) -> None:
    from tests.scale.cluster import free_port

    with pytest.raises(sf.DataError, match="no server answers"):
        study_of(f"postgresql://127.0.0.1:{free_port()}/postgres").table()


def test_a_connection_that_breaks_off(server: Server, postgresql: str, monkeypatch: pytest.MonkeyPatch) -> None:
    study = sf.Study(data={"path": postgresql, "table": "wide"}, columns={"i": ROLES["id"], "t": ROLES["sex"]})
    before = Database.batches

    @contextmanager
    def broken(database: Database) -> Iterator[Any]:
        with before(database) as found:
            server.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'COPY%'")
            yield found

    monkeypatch.setattr(Database, "batches", broken)
    with pytest.raises(sf.DataError, match="the connection was lost"):
        study.table()


def test_a_table_that_vanishes(server: Server, postgresql: str, tmp_path: Path) -> None:
    server.execute("CREATE TABLE brief AS SELECT * FROM people", "GRANT SELECT ON brief TO reader")
    study = study_of(postgresql, table="brief")
    front = sf.search(study)
    server.execute("DROP TABLE brief")
    with pytest.raises(sf.DataError, match=r"brief of .*: there is no such table"):
        sf.search(study)
    with pytest.raises(sf.DataError, match=r"brief of .*: there is no such table"):
        publish(front, 0, tmp_path / "release", state=tmp_path)
    assert not (tmp_path / "release").exists()


def test_a_table_that_changes_is_not_published(server: Server, postgresql: str, tmp_path: Path) -> None:
    server.execute("CREATE TABLE moving AS SELECT * FROM people", "GRANT SELECT ON moving TO reader")
    front = sf.search(study_of(postgresql, table="moving"))
    server.execute("UPDATE moving SET age = age + 1 WHERE id = 1")
    with pytest.raises(sf.InputError, match="has changed since the search"):
        publish(front, 0, tmp_path / "release", state=tmp_path)


def test_files_that_are_no_database(tmp_path: Path) -> None:
    with pytest.raises(sf.DataError, match="there is no file"):
        study_of(f"sqlite:{tmp_path / 'none.db'}").table()
    (tmp_path / "text.db").write_text("age,sex\n" * 1000)
    with pytest.raises(sf.DataError, match="not an SQLite database"):
        study_of(f"sqlite:{tmp_path / 'text.db'}").table()
