"""SQLite databases of the folder: listed with their tables; opened, searched and published like any file."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.web.bench import client, wait, write_table


def write_database(path: Path, folder: Path) -> None:
    lines = write_table(folder / "people.csv", rows=120).read_text("utf-8").splitlines()
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE people (age INTEGER, zip TEXT, sex TEXT, ill TEXT)")
        database.executemany("INSERT INTO people VALUES (?, ?, ?, ?)", [line.split(",") for line in lines[1:]])
        database.execute("CREATE VIEW young AS SELECT * FROM people WHERE age < 30")


def test_the_tables_of_a_database_are_listed(tmp_path: Path) -> None:
    write_database(tmp_path / "census.sqlite", tmp_path)
    (tmp_path / "no.db").write_text("no database", "utf-8")
    with client(tmp_path) as bench:
        kinds = {file["name"]: file["kind"] for file in bench.get("/api/files").json()["files"]}
        assert kinds == {"census.sqlite": "database", "no.db": "database", "people.csv": "table"}
        assert bench.get("/api/tables", params={"path": "census.sqlite"}).json() == {"tables": ["people", "young"]}
        assert bench.get("/api/tables", params={"path": "no.db"}).status_code == 422
        assert bench.get("/api/tables", params={"path": "../people.db"}).status_code == 422


@pytest.mark.scale
def test_a_table_of_a_database_is_released(tmp_path: Path) -> None:
    root = tmp_path / "served"
    root.mkdir()
    write_database(root / "census.sqlite", tmp_path)
    with client(root) as bench:
        opened = bench.post("/api/studies", json={"path": "census.sqlite", "table": "people"}).json()
        assert opened["name"] == "census.sqlite: people"
        at = f"/api/studies/{opened['id']}"
        columns = {
            "age": {"role": "quasi_identifier", "hierarchy": {"build": "interval", "widths": [10, 20]}},
            "zip": {"role": "quasi_identifier", "hierarchy": {"build": "prefix"}},
            "sex": {"role": "quasi_identifier", "hierarchy": {"build": "flat"}},
            "ill": {"role": "sensitive"},
        }
        assert bench.put(at, json={"columns": columns, "reviewed": True}).status_code == 200
        job = bench.post(f"{at}/jobs", json={}).json()["id"]
        assert wait(bench, opened["id"], job)["status"] == "done"
        accept = dict.fromkeys(("k", "l", "t", "raw", "uniques"), "a made-up table for a test")
        made = bench.post(f"{at}/releases", json={"job": job, "point": 2, "accept": accept}).json()["id"]
        ended = wait(bench, opened["id"], made)
        assert ended["status"] == "done", ended
        assert ended["found"]["verified"]
        with closing(sqlite3.connect(root / "census.sqlite")) as database, database:
            database.execute("DELETE FROM people WHERE age < 40")
        assert bench.get(at).json()["table_changed"] is True
