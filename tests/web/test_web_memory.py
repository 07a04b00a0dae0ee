"""A worker that met its memory limit is replaced at once, and the limit is one of memory in use."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.web.bench import Server, server, write_table


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a small table and one whose first rows are gigabytes of text, in a file of some megabytes."""
    root = tmp_path_factory.mktemp("bench")
    write_table(root / "people.csv", rows=60)
    codes = pa.array([row % 2 for row in range(600)], pa.int32())
    text = pa.DictionaryArray.from_arrays(codes, ["x" * 9_000_000, "y"])
    pq.write_table(pa.table({"text": text, "number": list(range(600))}), root / "long.parquet", store_schema=False)
    return root


@pytest.fixture(scope="module")
def served(root: Path) -> Iterator[Server]:
    with server(root, "--memory", "2") as found:
        yield found


@pytest.fixture
def bench(served: Server) -> Iterator[httpx.Client]:
    with served.client() as found:
        yield found


def workers(served: Server) -> set[int]:
    """The process ids of the server's workers."""
    tasks = Path(f"/proc/{served.process.pid}/task")
    children = {int(pid) for task in tasks.iterdir() for pid in (task / "children").read_text().split()}
    return {pid for pid in children if b"\0worker\0" in Path(f"/proc/{pid}/cmdline").read_bytes()}


@pytest.mark.long
def test_a_worker_that_met_its_limit_is_replaced(served: Server, bench: httpx.Client) -> None:
    for _ in range(3):
        assert bench.post("/api/studies", json={"path": "people.csv"}).status_code == 200
        before = workers(served)
        answer = bench.post("/api/studies", json={"path": "long.parquet"})
        if answer.status_code == 200:
            answer = bench.get(f"/api/studies/{answer.json()['id']}/preview", params={"rows": 500})
        assert answer.status_code >= 400
        assert len(before - workers(served)) == 1
        assert answer.status_code == 507, answer.text
        assert "--memory" in answer.json()["error"]["try"]


@pytest.mark.long
def test_one_gigabyte_is_enough_for_the_sample(tmp_path: Path) -> None:
    with server(tmp_path, "--memory", "1") as served, served.client() as bench:
        study = bench.post("/api/studies", json={"sample": "adult"}).json()["id"]
        answer = bench.get(f"/api/studies/{study}/audit")
        assert answer.status_code == 200, answer.text
