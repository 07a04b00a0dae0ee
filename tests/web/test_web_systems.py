"""Local recodings and suppressed cells on the page: searched, explored above their floor, published, downloaded."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.web.bench import Server, declare, drawn, wait

FLOOR = "Grey: no recoding with"


def searched(workbench: Server, system: str) -> tuple[str, str]:
    with workbench.client() as bench:
        study = declare(bench)
        assert bench.put(f"/api/studies/{study}", json={"search": {"system": system}}).status_code == 200
        job = bench.post(f"/api/studies/{study}/jobs", json={}).json()["id"]
        assert wait(bench, study, job)["status"] == "done"
    return study, job


def points_with_floor(bench: httpx.Client, study: str, job: str) -> list[list[float]]:
    """The floor of a front, which none of its points passes."""
    front = bench.get(f"/api/studies/{study}/jobs/{job}/front").json()
    assert front["floor"]
    for point in front["points"]:
        assert all(point["loss"] >= share - 1e-9 for k, share in front["floor"] if point["values"]["k"] >= k)
    return list(front["floor"])


def explored(page: Any) -> None:
    """The chosen point as those of other systems: its floor, its risks, and rows before and after."""
    assert page.locator("#points tr[aria-selected] td:nth-child(4)").inner_text().endswith("×")  # of the floor
    assert "the proven minimum" in page.inner_text("#point")
    tiles = page.locator("#point .tile").all_inner_texts()
    assert any("ℓ-diversity" in tile for tile in tiles)
    assert any("marketer risk" in tile for tile in tiles)
    page.click("#rows-after summary")
    rows = page.locator("#rows-after tbody tr").all_inner_texts()
    assert any(" → " in row for row in rows)
    assert all("•••" in row for row in rows)  # sensitive values are masked


def asked(page: Any, best: dict[str, Any]) -> None:
    """Limits lead to the best point of the front; those that no point meets, to the nearest that one does."""
    assert page.locator("#ask-l").count() == 0  # the points do not state their ℓ
    page.fill("#ask-loss", "")
    page.fill("#ask-k", "4")
    page.click("#ask")
    page.wait_for_selector(f"#answer .fine:has-text('k {best['values']['k']:.0f}')")
    page.fill("#ask-loss", "0.1")
    page.click("#ask")
    page.locator("#nothing button:has-text('loss at most')").click()
    page.wait_for_selector(f"#answer .fine:has-text('k {best['values']['k']:.0f}')")
    page.click("#answer:not([inert]) .fine button")
    page.wait_for_selector(f"#points tr[aria-selected][data-point='{best['id']}']")
    page.wait_for_selector("#point .over-all-columns")


@pytest.mark.published
@pytest.mark.parametrize("system", ["local", "cells"])
def test_from_search_to_download(page: Any, workbench: Server, system: str, tmp_path: Path) -> None:
    with workbench.client() as bench:
        study = declare(bench)
    page.goto(f"{workbench.origin}/#/search/{study}")
    page.reload()
    page.click(f"#system-{system}")
    page.wait_for_selector("#start:enabled")
    page.click("#start")
    page.wait_for_selector(".job[data-status=done]")
    page.click(".job button.main")
    page.wait_for_selector("#points tr[data-point='0']")
    assert drawn(page, ".step.explore canvas") > 2000
    assert FLOOR in page.inner_text(".step.explore")
    assert page.locator("#points button:has-text('compare')").count() == 0  # their records are not compared one by one
    page.locator("#points tbody tr").last.click()
    page.wait_for_selector("#point .over-all-columns")
    assert "{" not in page.inner_text("#point .words")  # in words, not as they are kept
    with workbench.client() as bench:
        job = page.url.split("/")[-2]
        points_with_floor(bench, study, job)
        points = bench.get(f"/api/studies/{study}/jobs/{job}/front").json()["points"]
    explored(page)
    asked(page, min((each for each in points if each["values"]["k"] >= 4), key=lambda each: each["loss"]))
    page.click("#to-publish")
    page.click("#last-look")
    page.wait_for_selector("#verdict")
    page.fill("#reason", "a made-up table for a test")
    page.click("#publish")
    page.wait_for_selector("#result .verified, #refused")
    for field in page.query_selector_all("#refused textarea"):
        field.fill("a made-up table for a test")
    if page.locator("#refused").count():
        page.click("#accept")
    page.wait_for_selector("#result .verified")
    with page.expect_download() as download:
        page.click("[data-download]")
    download.value.save_as(tmp_path / "pack.zip")
    names = zipfile.ZipFile(io.BytesIO((tmp_path / "pack.zip").read_bytes())).namelist()
    assert any(name.endswith("data.csv") for name in names)
    assert not any("internal" in name for name in names)


@pytest.mark.published
def test_the_floor_of_local_recodings_is_under_the_other_fronts_of_a_study(workbench: Server) -> None:
    study, job = searched(workbench, "local")
    with workbench.client() as bench:
        floor = points_with_floor(bench, study, job)
        bench.put(f"/api/studies/{study}", json={"search": {"system": "lattice"}})
        levels = bench.post(f"/api/studies/{study}/jobs", json={}).json()["id"]
        wait(bench, study, levels)
        found = bench.get(f"/api/studies/{study}/jobs/{levels}/front").json()["floor"]
        columns = {"sex": {"role": "drop"}}
        declared = bench.get(f"/api/studies/{study}").json()["study"]["columns"]
        bench.put(f"/api/studies/{study}", json={"columns": {**declared, **columns}, "reviewed": True})
        fewer = bench.post(f"/api/studies/{study}/jobs", json={}).json()["id"]
        wait(bench, study, fewer)
        other = bench.get(f"/api/studies/{study}/jobs/{fewer}/front").json()["floor"]
    assert found == floor
    assert other == []  # it was proven for other columns
