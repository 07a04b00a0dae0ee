"""A table with many quasi-identifiers: its lattice is too large for a proof, and the page says what can be done."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from tests.web.bench import Server

NAMES = [f"v{number}" for number in range(26)]  # two levels each: 67 million nodes


def write_wide(path: Path) -> None:
    chance = random.Random(2)
    lines = [",".join(NAMES), *(",".join(chance.choice("ab") for _ in NAMES) for _ in range(60))]
    path.write_text("\n".join(lines) + "\n", "utf-8")


def declared(workbench: Server, **search: Any) -> str:
    write_wide(workbench.root / "wide.csv")
    columns = {name: {"role": "quasi_identifier", "hierarchy": {"build": "flat"}} for name in NAMES}
    with workbench.client() as bench:
        study = str(bench.post("/api/studies", json={"path": "wide.csv"}).json()["id"])
        changes = {"columns": columns, "search": search, "reviewed": True}
        assert bench.put(f"/api/studies/{study}", json=changes).status_code == 200
    return study


def test_what_is_too_large_for_a_proof_is_said_before_it_is_started(workbench: Server) -> None:
    study = declared(workbench)
    with workbench.client() as bench:
        said = bench.get(f"/api/studies/{study}/estimate").json()
        assert (said["space"], said["limit"], said["seconds"]) == (2**26, 20_000_000, None)
        assert said["instead"] == "best_first"
        bench.put(f"/api/studies/{study}", json={"search": {"algorithm": "best_first"}})
        said = bench.get(f"/api/studies/{study}/estimate").json()
        assert (said["limit"], said["seconds"]) == (None, None)


@pytest.mark.long
def test_the_page_offers_a_search_without_a_proof(page: Any, workbench: Server) -> None:
    study = declared(workbench)
    page.goto(f"{workbench.origin}/#/search/{study}")
    page.reload()
    page.wait_for_selector("#too-large")
    assert page.is_disabled("#start")
    assert "provably complete" in page.inner_text(".choices label:has(:checked)")
    page.click("#without-proof")
    page.wait_for_selector("#estimate small[title]")
    assert "nothing proves" in page.inner_text(".choices label:has(:checked)")
    assert page.is_enabled("#start")


@pytest.mark.published
def test_what_is_hidden_whole_is_said_with_what_would_keep_more(page: Any, workbench: Server) -> None:
    study = declared(workbench, algorithm="best_first")
    page.goto(f"{workbench.origin}/#/search/{study}")
    page.reload()
    page.wait_for_selector("#estimate small[title]")
    page.click("#start")
    page.wait_for_selector(".job[data-status=done]")
    assert "nodes evaluated (< 0.1 %)" in page.inner_text(".job")
    page.click(".job button.main")
    page.click("#points tbody tr:last-child")
    page.wait_for_selector("#hidden-whole")
    assert "of 26 columns are hidden whole" in page.inner_text("#hidden-whole")
