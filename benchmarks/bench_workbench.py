"""The workbench in a browser: a million rows, three hundred columns, ten thousand points. Needs chromium.

Wall times are those of a person before the page; the processor seconds are of the server and all its workers.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

import duckdb
from tests.web.bench import Server, server
from tests.web.test_web_use import MANY, SELECT

from benchmarks.timing import show

ROWS = int(os.environ.get("SFUMATO_BENCH_ROWS", "1000000"))
SENSITIVE = 100_000
COLUMNS = 300
# From the answer to a measurement until it stands on the screen: the answer's end as the browser noted it, and a task
# after the frame in which the figures were drawn.
PAINTED = """() => new Promise((done) => {
  const card = document.getElementById("risk");
  const before = performance.getEntriesByType("resource").filter((each) => each.name.endsWith("/audit")).length;
  new MutationObserver((_, watch) => {
    const answers = performance.getEntriesByType("resource").filter((each) => each.name.endsWith("/audit"));
    if (!card.querySelector(".tile") || answers.length === before) return;
    watch.disconnect();
    requestAnimationFrame(() => setTimeout(() => done(performance.now() - answers.at(-1).responseEnd)));
  }).observe(card, { childList: true, subtree: true });
  const role = document.querySelector("select[aria-label='Role of c7']");
  role.value = role.value === "drop" ? "quasi_identifier" : "drop";
  role.dispatchEvent(new Event("change"));
})"""


def main() -> None:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        print("The workbench is not measured: there is no chromium.\n")
        return
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        root = Path(folder)
        _write_tables(root)
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        with server(root) as served:
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            page.set_default_timeout(580_000)
            served.enter(page)
            _million(page, served)
            _wide(page)
            _points(page)
        browser.close()


def _write_tables(root: Path) -> None:
    income = f"12000 + hash(i) % {SENSITIVE}"
    other = (
        "18 + hash(i * 3) % 70 AS age, hash(i * 5) % 2 AS sex, hash(i * 7) % 50 AS region, hash(i * 11) % 9 AS marital"
    )
    duckdb.sql(f"COPY (SELECT {other}, {income} AS income FROM range({ROWS}) r(i)) TO '{root}/million.csv' (HEADER)")
    cells = ", ".join(f"hash(i * {column + 3}) % 4 AS c{column}" for column in range(COLUMNS))
    duckdb.sql(f"COPY (SELECT {cells} FROM range(2000) r(i)) TO '{root}/wide.csv' (HEADER)")


def _spent(served: Server) -> float:
    """Processor seconds of the server and of all that it started, dead children included."""
    ticks: dict[int, int] = {}
    parents: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parts = stat.read_text("utf-8").rsplit(")", 1)[1].split()
        except OSError:
            continue
        number = int(stat.parent.name)
        parents[number], ticks[number] = int(parts[1]), sum(map(int, parts[11:15]))
    mine = {served.process.pid}
    for _ in range(5):  # generations
        mine |= {number for number, parent in parents.items() if parent in mine}
    return sum(ticks.get(number, 0) for number in mine) / os.sysconf("SC_CLK_TCK")


def _million(page: Any, served: Server) -> None:
    rows = []

    def timed(what: str, act: Any) -> None:
        began, spent = time.monotonic(), _spent(served)
        act()
        rows.append([what, f"{time.monotonic() - began:.1f}", f"{_spent(served) - spent:.1f}"])

    def opened() -> None:
        page.click("[data-file='million.csv']")
        page.wait_for_selector("#to-declare")

    def offered() -> None:
        page.click("#to-declare")
        page.wait_for_selector("#cancel-audit, #risk .tile")

    def sensitive() -> None:
        """Every column gets its role, the last one the sensitive one; until a figure of it stands there."""
        with page.expect_response("**/audit"):
            page.select_option("select[aria-label='Role of income']", "sensitive")
        page.wait_for_selector("#risk .tile:has-text('fewest sensitive values')")

    timed("open and profile", opened)
    timed("declare: roles shown, and figures or a way to cancel them", offered)
    if page.locator("#cancel-audit").count():
        timed("cancelled", lambda: (page.click("#cancel-audit"), page.wait_for_selector("text=Not measured")))
    for name in ("age", "sex", "region", "marital"):
        page.select_option(f"select[aria-label='Role of {name}']", "quasi_identifier")
    page.select_option("select[aria-label='Role of income']", "drop")
    page.wait_for_selector("#blocked:has-text('not confirmed')")
    page.wait_for_selector("#risk .tile")
    page.wait_for_selector("#busy:not(.on)", state="attached")
    timed("income made sensitive: until its figures are shown", sensitive)
    title = f"The workbench on {ROWS:,} rows, a sensitive column of {SENSITIVE:,} values"
    show(title, ["what", "wall s", "CPU s of the server"], rows)


def _wide(page: Any) -> None:
    page.click("[data-step=open]")
    page.click("[data-file='wide.csv']")
    page.wait_for_selector("h2:has-text('wide.csv')")
    page.click("#to-declare")
    page.wait_for_selector("#select-all")
    page.check("#select-all")
    page.select_option("#bulk-role", "drop")
    page.wait_for_selector("#blocked:has-text('not confirmed')")
    for column in range(12):
        with page.expect_response("**/api/studies/*"):
            page.select_option(f"select[aria-label='Role of c{column}']", "quasi_identifier")
    page.wait_for_selector("#risk .tile")
    page.wait_for_selector("#busy:not(.on)", state="attached")
    took = [page.evaluate(PAINTED) for _ in range(5)]
    row = [f"{COLUMNS} columns", "a role changed: from the server's answer to the painted risk", _milliseconds(took)]
    show("The page itself, milliseconds by the clock", ["of", "what", "least, middle, most"], [row])


def _points(page: Any) -> None:
    page.evaluate(MANY)
    row = ["10,000 points", "a selection until it is painted", _milliseconds(page.evaluate(SELECT, 9))]
    show("The page itself, milliseconds by the clock", ["of", "what", "least, middle, most"], [row])


def _milliseconds(took: list[float]) -> str:
    ranked = sorted(took)
    return ", ".join(f"{each:.0f}" for each in (ranked[0], ranked[len(ranked) // 2], ranked[-1]))
