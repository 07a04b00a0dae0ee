"""Columns that are released unchanged are said on every step, with how unique records are with them."""

from __future__ import annotations

import csv
import io
import math
import random
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.web.bench import Server, server, wait

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
    """A table with a column that is released unchanged and tells many records apart."""
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


@pytest.mark.long
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
        "certificate.json",
        "croissant.json",
        "data.csv",
        "ddi.xml",
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
    classes = Counter(tuple(row.values()) for row in rows)
    assert ended["found"]["whole"]["all_columns"] == {
        "columns": 4,
        "records": len(rows),
        "classes": len(classes),
        "unique": sum(size == 1 for size in classes.values()),
        "smallest": min(classes.values()),
        "unique_share": pytest.approx(sum(size == 1 for size in classes.values()) / len(rows)),
        "expected_correct_matches": pytest.approx(len(classes) / len(rows)),
    }
    listed = bench.get(f"{at}/releases").json()
    assert [release["whole"] for release in listed] == [said]


def test_the_figures_over_all_columns_have_a_type(bench: httpx.Client) -> None:
    """A program that reads the interface's description knows what it will get."""
    schema = bench.get("/api/openapi.json").json()
    paths = {
        "/api/studies/{study}/jobs/{job}/points/{number}/whole": "get",
        "/api/studies/{study}/releases": "get",
        "/api/studies/{study}/releases/{release}/verify": "post",
    }
    for path, method in paths.items():
        answer = schema["paths"][path][method]["responses"]["200"]["content"]["application/json"]["schema"]
        assert "$ref" in answer or "$ref" in answer.get("items", {}), path
    figures = schema["components"]["schemas"]["Uniqueness"]
    assert {"unique", "smallest", "expected_correct_matches"} <= set(figures["required"])


@pytest.mark.long
def test_the_page_says_it_where_a_point_is_looked_at_and_published(page: Any, workbench: Server) -> None:
    write_incomes(workbench.root / "incomes.csv")
    with workbench.client() as bench:
        study = bench.post("/api/studies", json={"path": "incomes.csv"}).json()["id"]
        settings = {"columns": COLUMNS, "search": {"max_suppression": 0.02}, "reviewed": True}
        bench.put(f"/api/studies/{study}", json=settings)
        job = bench.post(f"/api/studies/{study}/jobs", json={}).json()["id"]
        wait(bench, study, job)
        whole = bench.get(f"/api/studies/{study}/jobs/{job}/points/2/whole").json()
    share, everything = whole["quasi_identifiers_and_kept"], whole["all_columns"]
    rate = f"{share['unique_share'] * 100:.1f} %"
    sentence = "1 column is released and is not counted in any figure; with it, sensitive columns aside, "
    sentence += f"{rate} of the records"
    page.goto(f"{workbench.origin}/#/declare/{study}")
    page.reload()
    page.wait_for_selector("#whole")
    assert "not included in any measure: income" in page.inner_text("#whole")
    page.goto(f"{workbench.origin}/#/explore/{study}/{job}/2")
    page.wait_for_selector("#point .all-columns")
    assert sentence in page.inner_text("#point .all-columns")
    tiles = [
        (number(everything["unique"]), f"unique records ({percent(everything['unique_share'])})"),
        (number(everything["smallest"]), "smallest class"),
        (percent(everything["expected_correct_matches"]), "expected correct matches"),
        ("1 of 4", "columns in no figure"),
    ]
    assert figures(page, "#point") == tiles
    page.click("#to-publish")
    page.wait_for_selector(".step.publish .all-columns")
    assert sentence in page.inner_text(".step.publish .all-columns")
    page.click("#publish")
    for field in page.wait_for_selector("#refused").query_selector_all("textarea"):
        field.fill("a made-up table for a test")
    page.click("#accept")
    page.wait_for_selector("#result .all-columns")
    assert figures(page, "#result") == tiles
    page.wait_for_selector("[data-download]")
    names = {"[data-download]": "Public pack", "[data-record]": "Internal record: not for release"}
    assert {place: page.inner_text(place) for place in names} == names
    assert [button.inner_text() for button in page.query_selector_all(".step.publish .job button.main")] == [
        "Public pack"
    ]
    with page.expect_download() as kept:
        page.click("[data-record]")
    assert kept.value.suggested_filename.endswith("-internal-not-for-release.zip")


def figures(page: Any, place: str) -> list[tuple[str, str]]:
    """The tiles of the figures over all released columns: what they show, and what it is."""
    tiles = page.query_selector_all(f"{place} .over-all-columns .tile")
    return [(tile.query_selector("b").inner_text(), tile.query_selector("span").inner_text()) for tile in tiles]


def number(value: int) -> str:
    return f"{value:,}"


def percent(share: float) -> str:
    """As the page rounds: halves go up."""
    return f"{math.floor(share * 1000 + 0.5) / 10:.1f}\u00a0%"
