"""Every view of the workbench, one after the other, as a publisher meets them: for pictures and for axe."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.web.bench import Server, declare


@dataclass(frozen=True)
class Walk:
    """What a walk opens: a table, and columns whose dialogs are looked at."""

    opener: str = "#sample"
    words: str = "marital-status"  # a column of words
    unordered: str = "workclass"
    numbers: str = "age"
    width: str = "7"
    points: str = "8"  # channels to look for
    loss: str = "30"


ADULT = Walk()
PEOPLE = Walk("[data-file='people.csv']", "sex", "sex", "age", "10", "4", "60")


def views(page: Any, served: Server, walk: Walk = ADULT) -> Iterator[str]:
    """Walk through the whole job, and say the name of each view when it stands.

    The folder has the table people.csv, for local recodings and cells, and census/run.toml, for groups.
    """
    page.wait_for_selector("#welcome")
    yield "start"
    yield from declaring(page, walk)
    yield from searching(page)
    yield from exploring(page, walk)
    yield from publishing(page)
    yield from channels(page, walk)
    yield from groups(page)
    for system in ("cuts", "local", "cells"):
        yield from other_system(page, served, system)
    yield from studies(page, served)
    page.evaluate("sessionStorage.clear()")
    page.reload()
    page.wait_for_selector("#key")
    yield "key"


def declaring(page: Any, walk: Walk) -> Iterator[str]:
    page.click(walk.opener)
    page.wait_for_selector(".profile canvas")
    yield "open"
    page.click("#to-declare")
    page.wait_for_selector("#risk .tile")
    if page.locator("#reviewed").count():
        yield "declare-suggested"
        for _ in range(page.locator("select.open").count()):
            page.locator("select.open").first.select_option("quasi_identifier")
        page.click("#reviewed")
        page.wait_for_selector("#reviewed", state="detached")
    yield "declare"
    page.click("#at-risk summary")
    page.wait_for_selector("#grid")
    page.wait_for_timeout(1500)
    page.locator(".sticky").evaluate("place => place.scrollTo(0, document.getElementById('at-risk').offsetTop - 80)")
    yield "at-risk"
    page.click("#select-all")
    page.wait_for_selector("#bulk-role")
    yield "selected"
    page.click("#select-all")
    with dialog(page, f"[data-tree='{walk.words}']", "#hierarchy .node"):
        yield "tree-dialog"
        page.get_by_role("tab", name="Import a file").click()
        page.wait_for_selector("#import")
        yield "import-dialog"
    with dialog(page, f"[data-tree={walk.numbers}]", "#hierarchy .tabs"):
        page.get_by_role("tab", name="Build from values").click()
        page.select_option("#kind", "interval")
        page.locator("#width").fill(walk.width)
        page.wait_for_selector("#badge")
        page.wait_for_timeout(1000)
        yield "interval-dialog"
        page.select_option("#kind", "ends")
        page.wait_for_selector("#levels td:has-text('>=')")
        page.locator("#levels").scroll_into_view_if_needed()
        yield "ends-dialog"
        page.keyboard.press("Escape")
        page.wait_for_selector("#leaving")
        yield "leaving-dialog"
    with dialog(page, f"[data-order={walk.unordered}]", "#joining"):
        yield "order-dialog"


def searching(page: Any) -> Iterator[str]:
    page.click("#to-search")
    page.wait_for_selector("#estimate small[title]")
    page.click(".pills label:has-text('distinct ℓ')")
    page.wait_for_timeout(1500)
    page.check("#system-cuts")
    page.click("#advanced summary")
    page.fill("#generations", "90000")
    with page.expect_request("**/estimate"):  # it is asked for once the change is kept
        page.press("#generations", "Tab")
    page.click("#start")
    page.wait_for_selector(".job[data-status=running] small:has-text('generations')")
    yield "running"
    page.locator(".job").get_by_role("button", name="Stop").click()
    page.wait_for_selector(".job[data-status=stopped]")
    page.locator(".job[data-status=stopped] .danger").click()
    page.wait_for_selector("#toast")
    yield "deleted"
    page.click("#toast [aria-label='Close this note']")
    page.check("#system-lattice")
    page.wait_for_selector("#estimate small[title]")
    page.click("#advanced summary")
    page.click("#start")
    page.wait_for_selector(".job[data-status=done]")
    yield "search"


def exploring(page: Any, walk: Walk) -> Iterator[str]:
    page.click(".job button.main")
    page.wait_for_selector("#points tr[data-point='1']")
    yield "explore-none"
    page.fill("#ask-loss", "1")
    page.fill("#ask-k", "40")
    page.click("#ask")
    page.wait_for_selector("#nothing")
    yield "nothing"
    page.fill("#ask-k", "")
    page.fill("#ask-loss", walk.loss)
    page.click("#ask")
    page.click("#answer:not([inert]) .fine button")
    page.wait_for_selector("#point .over-all-columns")
    page.evaluate("scrollTo(0, 0)")
    yield "explore"
    page.click("#rows-after summary")
    page.click("#point details summary >> nth=0")
    page.click("#presets summary")
    yield "explore-details"
    page.evaluate("scrollTo(0, 0)")
    chosen = page.get_attribute("#points tr[aria-selected]", "data-point")
    page.locator(f"#points tbody tr:not([data-point='{chosen}']) button").nth(1).click()
    page.wait_for_selector("#who-pays")
    page.wait_for_timeout(300)
    page.evaluate("scrollTo(0, 0)")
    yield "who-pays"


def publishing(page: Any) -> Iterator[str]:
    page.click("#to-publish")
    page.click("#last-look")
    page.wait_for_selector("#verdict")
    page.evaluate("scrollTo(0, 0)")
    yield "look"
    page.fill("#reason", "The most privacy within 30 % loss: agreed with the users of the last release.")
    page.click("#publish")
    page.wait_for_selector("#refused, #result .verified")
    if page.locator("#refused").count():
        yield "refused"
        for field in page.query_selector_all("#refused textarea"):
            field.fill("a made-up table for a test")
        page.click("#accept")
    page.wait_for_selector("#result .verified")
    page.wait_for_selector("[data-download]")
    page.evaluate("scrollTo(0, 0)")
    yield "publish"
    with dialog(page, "#tools button", "dialog pre"):
        page.get_by_role("tab", name="Commands").click()
        yield "show-as-dialog"


def channels(page: Any, walk: Walk) -> Iterator[str]:
    page.click("[data-step=search]")
    page.click("[data-mode=channel]")
    page.fill("#channel-points", walk.points)
    yield "channel-form"
    page.click("#start-channel")
    page.wait_for_selector(".job[data-job^=channel][data-status=done]")
    page.click(".job[data-job^=channel] button.main")
    page.click(f"[data-channel='{int(walk.points) // 2}']")
    page.wait_for_selector("#channel-point canvas")
    page.evaluate("scrollTo(0, 0)")
    yield "channel"
    page.click("#to-publish")
    page.click("#last-look")
    page.wait_for_selector("#verdict")
    yield "channel-look"


def groups(page: Any) -> Iterator[str]:
    page.click("[data-step=open]")
    page.click("[data-folder=census]")
    page.click("[data-file='census/run.toml']")
    page.wait_for_selector("#where:has-text('census')")
    page.click("#to-declare")
    page.wait_for_selector("#group-form, #group-withhold")
    yield "groups-declared"
    page.click("#to-search")
    page.wait_for_selector("#start-groups")
    yield "groups-form"
    page.click("#start-groups")
    page.wait_for_selector(".job[data-status=done]")
    page.click(".job button.main")
    page.wait_for_selector("#protections")
    page.evaluate("scrollTo(0, 0)")
    yield "groups"
    page.click("#to-publish")
    page.wait_for_selector("#publish")
    yield "groups-publish"


def other_system(page: Any, served: Server, system: str) -> Iterator[str]:
    """A front of another system, of the small table."""
    with served.client() as bench:
        study = declare(bench, **{"system": system} | ({"problem": 2, "generations": 20} if system == "cuts" else {}))
    page.goto(f"{served.origin}/#/search/{study}")
    page.wait_for_selector(f"#system-{system}:checked")
    page.wait_for_selector("#start:enabled")
    page.click("#start")
    page.wait_for_selector(".job[data-status=done]", timeout=600_000)  # its loops may have to be compiled first
    yield f"{system}-search"
    page.click(".job button.main")
    page.wait_for_selector("#points tr[data-point='0']")
    page.locator("#points tbody tr").last.click()
    page.wait_for_selector("#point-title")
    page.wait_for_timeout(1500)
    page.evaluate("scrollTo(0, 0)")
    yield system
    page.click("#to-publish")
    page.click("#last-look")
    page.wait_for_selector("#verdict")
    yield f"{system}-look"


def studies(page: Any, served: Server) -> Iterator[str]:
    with contextlib.closing(sqlite3.connect(served.root / "tables.sqlite")) as database, database:
        database.execute("CREATE TABLE people (age INTEGER, sex TEXT)")
    with served.client() as bench:
        released = next(study["id"] for study in bench.get("/api/studies").json() if study["releases"])
    page.click("[data-step=open]")
    page.wait_for_selector("[data-study]")
    yield "studies"
    with dialog(page, "[data-study] + * [aria-label^='Rename'], [aria-label^='Rename']", "#ask-text"):
        yield "rename-dialog"
    with dialog(page, f"li:has([data-study='{released}']) .danger", "#ask-text"):
        yield "delete-dialog"
    with dialog(page, "[data-file='tables.sqlite']", "[data-table]"):
        yield "tables-dialog"


@contextlib.contextmanager
def dialog(page: Any, opener: str, shown: str) -> Iterator[None]:
    """A dialog while it is open."""
    page.locator(opener).first.click()
    page.wait_for_selector(shown)
    yield
    if not page.locator("#discard").count():
        page.keyboard.press("Escape")
    if page.locator("#discard").count():
        page.click("#discard")
    page.wait_for_selector("dialog", state="detached")
