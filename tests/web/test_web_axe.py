"""axe over every view of the workbench and every report, light and dark, wide and narrow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.methods.test_all_systems import ACCEPT, MAKERS
from tests.web.axe import violations
from tests.web.bench import Server
from tests.web.views import PEOPLE, views

import sfumato as sf
from sfumato.report.audit_page import audit_page

SIZES = {"wide": (1280, 900), "narrow": (390, 844)}


def checked(page: Any, view: str) -> list[str]:
    """What axe finds in a view, at two widths, light and dark."""
    found = []
    for width, (across, down) in SIZES.items():
        page.set_viewport_size({"width": across, "height": down})
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme, reduced_motion="reduce")  # nothing half faded in
            if page.locator("#busy").count():
                page.wait_for_selector("#busy:not(.on)", state="attached")
            found += [f"{view}, {width}, {scheme}: {each}" for each in violations(page)]
    page.set_viewport_size({"width": 1280, "height": 900})
    page.emulate_media(color_scheme="light", reduced_motion="no-preference")
    return found


@pytest.mark.long
def test_axe_finds_nothing_in_any_view(page: Any, workbench: Server) -> None:
    found = []
    for view in views(page, workbench, PEOPLE):
        found += checked(page, view)
    assert found == []


@pytest.mark.long
@pytest.mark.parametrize("system", MAKERS)
def test_axe_finds_nothing_in_any_report(browser: Any, tmp_path: Path, system: str) -> None:
    front = sf.search(sf.read(MAKERS[system](tmp_path)))
    choice = sf.pick(front, point=len(front.points) // 2)
    sf.publish(choice, tmp_path / "release", accept=ACCEPT, state=tmp_path / "state")
    sf.draw(front, tmp_path / "map.html")
    pages = sorted(tmp_path.glob("*.html")) + sorted((tmp_path / "release").rglob("*.html"))
    assert {"internal.html", "external.html", "dictionary.html", "map.html"} <= {path.name for path in pages}
    if system == "lattice":
        pages.append(tmp_path / "audit.html")
        pages[-1].write_text(audit_page(sf.audit(front.study), "people.csv"), "utf-8")
    page = browser.new_page()
    found = []
    for path in pages:
        page.goto(path.as_uri())
        found += checked(page, path.name)
    page.close()
    assert found == []


def test_axe_finds_what_is_wrong(browser: Any) -> None:
    page = browser.new_page()
    text = "<p style='color:#999;background:#fff'>Pale</p><p style='color:#666;background:#fff'>Less pale</p>"
    page.set_content(f"<html><body><img src='data:,'>{text}</body></html>")
    rules = {each.split()[0] for each in violations(page)}
    page.close()
    assert {"image-alt", "color-contrast", "color-contrast-enhanced", "html-has-lang", "region"} <= rules
