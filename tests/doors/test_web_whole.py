"""Columns that are released unchanged are said on every step, with how unique records are with them."""

from __future__ import annotations

import csv
import io
import random
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.doors.bench import Server, server, wait

COLUMNS = {
    "age": {"role": "quasi_identifier", "hierarchy": {"build": "interval", "widths": [5, 10, 20]}},
    "zip": {"role": "quasi_identifier", "hierarchy": {"build": "prefix"}},
    "income": {"role": "other"},
    "ill": {"role": "sensitive"},
}
ACCEPTED = {
    "uniques": "a made-up table for a test",
    "l": "a made-up table for a test",
    "t": "a made-up table for a test",
}


def write_incomes(path: Path) -> Path:
    """A table with a column that is kept as it is and tells many records apart."""
    chance = random.Random(4)
    lines = ["age,zip,income,ill"]
    for _ in range(400):
        cells = (chance.randint(20, 69), chance.choice(["8001", "8002", "9001"]), chance.randint(1, 90) * 1000)
        lines.append(",".join(map(str, cells)) + "," + chance.choice(["flu", "cold", "none"]))
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


def unique_share(rows: list[dict[str, str]]) -> float:
    """The share of rows that no other row equals in what is not sensitive."""
    classes = Counter((row["age"], row["zip"], row["income"]) for row in rows)
    return sum(size for size in classes.values() if size == 1) / len(rows)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    root = tmp_path_factory.mktemp("bench")
    write_incomes(root / "incomes.csv")
    with server(root) as found:
        yield found


@pytest.fixture(scope="module")
def bench(served: Server) -> Iterator[httpx.Client]:
    with served.client() as found:
        yield found


@pytest.fixture(scope="module")
def searched(bench: httpx.Client) -> tuple[str, str]:
    study = str(bench.post("/api/studies", json={"path": "incomes.csv"}).json()["id"])
    settings = {"columns": COLUMNS, "search": {"max_suppression": 0.02}, "reviewed": True}
    assert bench.put(f"/api/studies/{study}", json=settings).status_code == 200
    job = str(bench.post(f"/api/studies/{study}/jobs", json={}).json()["id"])
    assert wait(bench, study, job)["status"] == "done"
    return study, job


def test_a_point_says_how_unique_its_records_would_be_over_all_columns(
    bench: httpx.Client, searched: tuple[str, str]
) -> None:
    study, job = searched
    at = f"/api/studies/{study}"
    said = bench.get(f"{at}/jobs/{job}/points/2/whole").json()
    assert said["columns_in_no_figure"] == ["income"]
    made = bench.post(f"{at}/releases", json={"job": job, "point": 2, "accept": ACCEPTED}).json()
    ended = wait(bench, study, made["id"])
    assert ended["status"] == "done", ended
    pack = zipfile.ZipFile(io.BytesIO(bench.get(f"{at}/releases/{ended['found']['release']}/public.zip").content))
    assert sorted(name.rsplit("/", 1)[1] for name in pack.namelist()) == [
        "data.csv",
        "dictionary.html",
        "dictionary.json",
        "external.html",
    ]
    name = next(name for name in pack.namelist() if name.endswith("data.csv"))
    rows = list(csv.DictReader(io.StringIO(pack.read(name).decode("utf-8"))))
    share = unique_share(rows)
    assert share > 0.1
    assert said["quasi_identifiers_and_kept"]["unique_share"] == pytest.approx(share, abs=1e-12)
    assert ended["found"]["whole"]["quasi_identifiers_and_kept"]["unique_share"] == pytest.approx(share, abs=1e-12)
    assert ended["found"]["whole"] == said
    k = bench.get(f"{at}/jobs/{job}/points/2").json()["figures"]["k"]["after"]
    other = bench.get(f"{at}/jobs/{job}/points/2/whole", params={"size": int(k) + 1}).json()  # another suppression
    assert other["all_columns"]["records"] < said["all_columns"]["records"]


def test_the_page_says_it_where_a_point_is_looked_at_and_published(page: Any, workbench: Server) -> None:
    write_incomes(workbench.root / "incomes.csv")
    with workbench.client() as bench:
        study = bench.post("/api/studies", json={"path": "incomes.csv"}).json()["id"]
        settings = {"columns": COLUMNS, "search": {"max_suppression": 0.02}, "reviewed": True}
        bench.put(f"/api/studies/{study}", json=settings)
        job = bench.post(f"/api/studies/{study}/jobs", json={}).json()["id"]
        wait(bench, study, job)
        share = bench.get(f"/api/studies/{study}/jobs/{job}/points/2/whole").json()["quasi_identifiers_and_kept"]
    rate = f"{share['unique_share'] * 100:.1f} %"
    sentence = f"1 column is released unchanged and is not counted in any figure; with it {rate} of the records"
    page.goto(f"{workbench.origin}/#/declare/{study}")
    page.reload()
    page.wait_for_selector("#whole")
    assert "in none of the figures: income" in page.inner_text("#whole")
    page.goto(f"{workbench.origin}/#/explore/{study}/{job}/2")
    page.wait_for_selector("#point .all-columns")
    assert sentence in page.inner_text("#point .all-columns")
    page.click("#to-publish")
    page.wait_for_selector(".step.publish .all-columns")
    assert sentence in page.inner_text(".step.publish .all-columns")
