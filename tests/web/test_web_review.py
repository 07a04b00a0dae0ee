"""More defects of the review, in a browser: what is slow can be cancelled, bars are named, fronts are compared."""

from __future__ import annotations

from typing import Any

import pytest
from tests.web.bench import Server, declare, wait

NAMED = """async () => {
  const written = [];
  const draw = CanvasRenderingContext2D.prototype.fillText;
  CanvasRenderingContext2D.prototype.fillText = function (text, ...at) {
    written.push(text); draw.call(this, text, ...at); };
  const { bars } = await import("/static/charts/bars.js");
  const labels = Array.from({ length: 60 }, (_, place) => `51-5${1000 + place}`);
  const chart = bars(labels.map(() => 5), { labels, height: 220, marked: (place) => place === 17 || place === 18 });
  document.querySelector("main").append(chart);
  chart.chart.now();
  CanvasRenderingContext2D.prototype.fillText = draw;
  return written;
}"""


@pytest.mark.long
def test_what_takes_long_says_so_and_can_be_cancelled(page: Any, workbench: Server) -> None:
    """A10: the risk of a large table."""
    with workbench.client() as bench:
        study = declare(bench)
    held: list[Any] = []
    page.route("**/audit", lambda route: route.continue_() if held else held.append(route))  # the first never answers
    page.goto(f"{workbench.origin}/#/declare/{study}")
    page.wait_for_selector("#risk:has-text('Measuring the raw table … 1 s')")
    page.click("#cancel-audit")
    page.get_by_role("button", name="Measure", exact=True).click()
    page.wait_for_selector("#risk .tile")
    held[0].abort()
    page.unroute("**/audit")


def test_marked_bars_have_their_names(page: Any) -> None:
    """A18: of sixty areas, the two that matter."""
    written = page.evaluate(NAMED)
    assert {"51-51017", "51-51018"} & set(written)
    assert len(written) < 40  # and not every other one


def test_what_singles_nobody_out_is_not_said_to(page: Any, workbench: Server) -> None:
    """A26."""
    rows = "".join(f"{place % 2},{place % 3}\n" for place in range(60))
    (workbench.root / "alike.csv").write_text("region,religion\n" + rows, "utf-8")
    page.reload()
    page.click("[data-file='alike.csv']")
    page.wait_for_selector(".profile canvas")
    assert page.locator("#singled-out").count() == 0
    assert "tell" not in page.inner_text(".step.open")


def test_a_file_without_names_is_given_them(page: Any, workbench: Server) -> None:
    """Its columns are then recognised by name, and no second study of it is left."""
    rows = "".join(f"A{place % 4 + 11} {20 + place % 47} {place % 9000} A{place % 3 + 91}\n" for place in range(90))
    (workbench.root / "bare.data").write_text(rows, "utf-8")
    page.reload()
    page.click("[data-file='bare.data']")
    page.wait_for_selector("#headless")
    page.fill("#names", "status, age, sex")
    page.click("#use-names")
    page.wait_for_selector("#headless .error:has-text('3 different names for 4 columns')")
    page.fill("#names", "status, age, amount, sex")
    page.click("#use-names")
    page.wait_for_selector(".profile b:has-text('status')")
    page.wait_for_selector("#headless", state="detached")
    assert page.locator("[data-study]:has-text('bare.data')").count() == 1
    page.click("#to-declare")
    page.wait_for_selector("[data-column=age]")
    assert page.input_value("select[aria-label='Role of age']") == "quasi_identifier"


def test_a_study_that_was_begun_is_not_given_other_names(page: Any, workbench: Server) -> None:
    """Naming its columns opens the file anew, so what was declared and searched in it would be lost."""
    (workbench.root / "begun.data").write_text("".join(f"A{n % 4} {n % 47} B{n % 3}\n" for n in range(90)), "utf-8")
    with workbench.client() as bench:
        study = bench.post("/api/studies", json={"path": "begun.data", "header": False}).json()["id"]
        flat = {"role": "quasi_identifier", "hierarchy": {"build": "flat"}}
        columns = {f"column{number}": flat for number in (1, 2, 3)}
        answer = bench.put(f"/api/studies/{study}", json={"columns": columns, "reviewed": True})
        assert answer.status_code == 200, answer.text
    page.reload()
    page.click(f"[data-study='{study}']")
    page.wait_for_selector(".profile canvas")
    assert page.locator("#headless").count() == 0


@pytest.mark.long
def test_fronts_are_compared_by_what_both_were_searched_for(page: Any, workbench: Server) -> None:
    """A31, A35: and a point whose ℓ is 1 says so before it is published."""
    with workbench.client() as bench:
        study = declare(bench, objectives=["k", "distinct_l", "general_loss"])
        first = bench.post(f"/api/studies/{study}/jobs", json={}).json()["id"]
        assert wait(bench, study, first)["status"] == "done"
        search = {"system": "cuts", "problem": 2, "generations": 5, "max_suppression": 0.02}
        assert bench.put(f"/api/studies/{study}", json={"search": search}).status_code == 200
        second = bench.post(f"/api/studies/{study}/jobs", json={}).json()["id"]
        assert wait(bench, study, second)["status"] == "done"
    page.goto(f"{workbench.origin}/#/search/{study}")
    page.get_by_role("button", name="Compare", exact=True).click()
    page.wait_for_selector("text=Compared by what both were searched for: k-anonymity and general loss")
    page.wait_for_selector("[aria-label='Two searches'] td:has-text('hypervolume')")
    page.goto(f"{workbench.origin}/#/explore/{study}/{first}/0")
    page.wait_for_selector("#point-warnings:has-text('ℓ is 1')")
