"""The page for everybody: names, labels, contrast, sizes and tab stops, checked by a script of our own.

test_web_axe runs axe-core; this looks for what axe does not: contrast of borders, sizes of text, tab stops.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.web.bench import Server, declare, wait

CHECK = (Path(__file__).parent / "access.js").read_text("utf-8").partition("\n")[2]


@pytest.fixture(scope="module")
def searched(workbench: Server) -> tuple[str, str]:
    with workbench.client() as bench:
        study = declare(bench)
        job = str(bench.post(f"/api/studies/{study}/jobs", json={}).json()["id"])
        assert wait(bench, study, job)["status"] == "done"
    return study, job


def checked(page: Any, view: str) -> None:
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        assert page.evaluate(CHECK) == [], (view, scheme)
    page.emulate_media(color_scheme="light")


@pytest.mark.long
def test_every_view_has_names_contrast_and_readable_text(
    page: Any, workbench: Server, searched: tuple[str, str]
) -> None:
    study, job = searched
    page.wait_for_selector("[data-study]")
    checked(page, "open")
    page.goto(f"{workbench.origin}/#/declare/{study}")
    page.wait_for_selector("#risk .tile")
    page.click("#at-risk summary")
    page.wait_for_selector("#grid")
    checked(page, "declare")
    page.click("[data-tree=age]")
    page.wait_for_selector("#levels")
    checked(page, "hierarchy")
    page.keyboard.press("Escape")
    page.goto(f"{workbench.origin}/#/search/{study}")
    page.wait_for_selector("#estimate small[title]")
    page.click("#advanced summary")
    checked(page, "search")
    page.goto(f"{workbench.origin}/#/explore/{study}/{job}/2")
    page.wait_for_selector("#point .over-all-columns")
    page.click("#ask")
    page.wait_for_selector("#answer .fine")
    checked(page, "explore")
    page.goto(f"{workbench.origin}/#/publish/{study}/{job}/2")
    page.click("#last-look")
    page.wait_for_selector("#verdict")
    checked(page, "publish")


@pytest.mark.long
def test_a_definition_is_shown_on_focus(page: Any, workbench: Server, searched: tuple[str, str]) -> None:
    """And there are few tab stops from the head of Explore to its question."""
    study, job = searched
    page.goto(f"{workbench.origin}/#/explore/{study}/{job}")
    page.reload()
    page.wait_for_selector("#points tr[data-point='1']")
    stops = 0
    while not page.evaluate("document.activeElement.id === 'ask-loss'"):
        page.keyboard.press("Tab")
        stops += 1
        assert stops < 40
    assert "share of all detail" in page.inner_text("#tip")
    page.keyboard.press("Enter")  # asks
    page.wait_for_selector("#answer .fine")
    while not page.evaluate("document.activeElement.matches('#points tr')"):
        page.keyboard.press("Tab")
        stops += 1
        assert stops < 40
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_selector("#point-title:text-is('Point 1')")
