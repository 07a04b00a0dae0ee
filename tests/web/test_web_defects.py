"""Defects that a hands-on review found on the page, each looked for again; several to a visit, to spare time.

The numbers are those of the review. What concerns the server alone is tested without a browser in test_web_trust,
test_web_uploads (A2), test_web_versions (A4), test_web_roles (A1, A28) and test_web_whole (A1, A3, A35).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.web.bench import Server, confirmed, declare, server, wait, write_table

DROP = """(where) => {
  const data = new DataTransfer();
  data.items.add(new File(["age,sex\\n31,F\\n42,M\\n35,F\\n"], "dropped.csv"));
  const fire = (kind) => document.querySelector(where).dispatchEvent(
    new DragEvent(kind, { dataTransfer: data, bubbles: true, cancelable: true }));
  fire("dragenter");
  return !fire("dragover") && !fire("drop");  // false: the browser would leave the page
}"""
CANVAS_TEXTS = """() => { window.written = []; const draw = CanvasRenderingContext2D.prototype.fillText;
  CanvasRenderingContext2D.prototype.fillText = function (text, ...at) {
    window.written.push(String(text)); return draw.call(this, text, ...at); }; }"""


@pytest.fixture(scope="module")
def searched(workbench: Server) -> Iterator[tuple[str, str]]:
    people = (workbench.root / "people.csv").read_text(
        "utf-8"
    )  # others: what is released of them concerns no other test
    (workbench.root / "others.csv").write_text(people.replace(",80", ",70"), "utf-8")
    with workbench.client() as bench:
        study = declare(bench, "others.csv")
        job = str(bench.post(f"/api/studies/{study}/jobs", json={}).json()["id"])
        assert wait(bench, study, job)["status"] == "done"
        yield study, job


def at(page: Any, workbench: Server, *parts: object) -> None:
    page.goto(f"{workbench.origin}/#/{'/'.join(map(str, parts))}")
    page.reload()


@pytest.mark.long
def test_opening(page: Any, workbench: Server) -> None:
    """A9, A17, A30, A34 and the deletion of a study (A15)."""
    page.set_viewport_size({"width": 1024, "height": 700})
    assert page.evaluate("getComputedStyle(document.getElementById('main')).outlineStyle") == "none"  # A9
    assert page.evaluate(DROP, "header")  # A17: beside the box
    page.wait_for_selector("#to-declare")
    assert page.inner_text("#where") == "dropped.csv"
    page.dblclick("[data-file='people.csv']")  # A30
    page.wait_for_selector("#where:has-text('people.csv')")
    page.wait_for_selector("#to-declare")
    names = page.locator("[data-study] .long").all_inner_texts()
    first = page.locator("li:has([data-study])").first
    before = page.locator("[data-study]").count()
    assert names[0] == "people.csv"
    assert names[1] == "dropped.csv"  # one study of it, not two
    first.get_by_role("button", name="Rename").click()
    page.fill("#ask-text", "my people, with quite a long name that does not fit beside its date at all, does it")
    page.click("#ask-ok")
    page.wait_for_selector("[data-study] .long:has-text('my people')")
    date, delete = (first.locator(part).bounding_box() for part in ("small", ".danger"))
    assert date["x"] + date["width"] <= delete["x"] + 1  # A34
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.locator("header").bounding_box()["height"] < 110  # A34
    page.set_viewport_size({"width": 1280, "height": 900})
    page.locator("li:has([data-study])").first.locator(".danger").click()
    page.click("#toast-act")  # Undo
    page.locator("[data-study]").nth(before - 1).wait_for()
    assert "my people" in page.locator("[data-study]").first.inner_text()


@pytest.mark.long
def test_many_columns_are_declared_at_once(page: Any, workbench: Server) -> None:
    """A8, and the list of columns: filter, selection, roles in bulk, undo."""
    names = [f"c{number}" for number in range(40)]
    rows = [",".join(str((row * 7 + column) % 5) for column in range(40)) for row in range(60)]
    (workbench.root / "wide.csv").write_text("\n".join([",".join(names), *rows]) + "\n", "utf-8")
    page.reload()
    page.click("[data-file='wide.csv']")
    page.click("#to-declare")
    page.wait_for_selector("#next-undecided")
    page.evaluate("scrollTo(0, 300)")
    covered = """() => { const box = document.getElementById("to-search").getBoundingClientRect();
      return document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2)?.id; }"""
    assert page.evaluate(covered) == "to-search"  # A8
    page.fill("#filter", "c1")
    assert page.locator(".declared:visible").count() == 11  # c1, c10 … c19
    page.check("#select-all")
    page.select_option("#bulk-role", "quasi_identifier")
    page.wait_for_selector("#blocked:has-text('29 columns still without a role')")
    page.fill("#filter", "")
    page.check("#select-all")
    page.select_option("#bulk-role", "drop")
    page.wait_for_selector("#blocked:has-text('roles not confirmed yet')")
    page.click("#undo-role")
    page.wait_for_selector("#blocked:has-text('29 columns still without a role')")
    page.click("#next-undecided")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "Role of c0"
    page.wait_for_selector("#counted-too:has-text('29 columns')")
    # The moment the roles are dropped again, records at risk are asked for: nothing is a quasi-identifier any more.
    page.evaluate("""() => new Promise((done) => {
      const bar = document.getElementById("blocked").parentElement;
      new MutationObserver(() => { if (!bar.textContent.includes("not confirmed yet")) return;
        document.getElementById("at-risk").open = true; setTimeout(done, 200); }).observe(bar, { childList: true });
      document.getElementById("redo-role").click();
    })""")
    page.wait_for_selector("#risk:has-text('No column is a quasi-identifier')")
    page.select_option("[data-column=c1] select", "quasi_identifier")
    page.wait_for_selector("#grid td.risk-many, #grid td.risk-few")
    # An answer that arrives when the roles have changed again is of former roles, and is not shown.
    answers: list[tuple[Any, Any]] = []
    page.route("**/grid", lambda route: answers.append((route, route.fetch())))
    for asked, column in enumerate(("c2", "c3"), 1):
        page.select_option(f"[data-column={column}] select", "quasi_identifier")
        while len(answers) < asked:
            page.wait_for_timeout(50)
    for route, answer in reversed(answers):
        route.fulfill(response=answer)
    page.wait_for_selector("#grid th:has-text('c3')")
    page.wait_for_timeout(300)
    assert page.locator("#grid th:has-text('c3')").count() == 1
    page.unroute("**/grid")


@pytest.mark.long
def test_the_hierarchy_dialog_keeps_what_it_shows(browser: Any, workbench: Server) -> None:
    """A6, A11, A25, A27, A29. A page without the watch over its console: a wrong hierarchy is refused there too."""
    page = browser.new_page()
    page.set_default_timeout(60_000)
    chance = [1, 2, 10, 11, 12, 3]
    rows = [f"{chance[row % 6] if row % 7 else 'N'},{20 + row % 50},{'FM'[row % 2]}" for row in range(120)]
    (workbench.root / "codes.csv").write_text("\n".join(["EDU,age,sex", *rows]) + "\n", "utf-8")
    workbench.enter(page)
    confirmed(page, "codes.csv")
    page.click("[data-tree=EDU]")
    page.wait_for_selector("#hierarchy .node")
    page.get_by_role("tab", name="Build from values").click()
    page.select_option("#kind", "flat")
    page.wait_for_selector("#badge.good")
    values = page.locator("#levels tbody tr td:first-child span").all_inner_texts()
    assert values == ["1", "2", "3", "10", "11", "12", "N"]  # A25
    assert page.locator("#hierarchy [name=level]").first.is_checked()  # A27: not the root
    page.get_by_role("tab", name="Import a file").click()
    page.fill("#import", "1;low;*\n2;low")
    page.wait_for_selector("#hierarchy .error")
    assert page.locator("#keep").is_disabled()  # A6
    assert page.locator("#badge").count() == 0
    page.fill("#import", "\n".join(f"{value};{'low' if value in ('1', '2', '3') else 'high'};*" for value in values))
    page.wait_for_selector("#badge.good")
    page.click("#keep")
    page.wait_for_selector("#hierarchy", state="detached")
    page.click("[data-tree=EDU]")
    page.wait_for_selector("#levels td:has-text('low')")
    page.keyboard.press("Escape")
    page.click("[data-tree=sex]")
    page.wait_for_selector("#hierarchy .node")
    held: list[Any] = []
    page.route(
        "**/hierarchy/edit", lambda route: route.continue_() if held else held.append(route)
    )  # the first is late
    for label in ("F", "M"):
        page.check(f"#hierarchy .node[data-level='0'][data-label='{label}'] input")
    page.fill("#label-name", "anyone")
    page.click("#join")
    page.get_by_role("button", name="Add a level").click()  # before the first answer is there
    while not held:
        page.wait_for_timeout(20)
    held[0].continue_()
    page.wait_for_selector("#hierarchy .node[data-label=anyone][data-level='2']")  # A11: both were made
    page.keyboard.press("Control+z")  # A29: the focus is still in the dialog
    page.wait_for_selector("#hierarchy .node[data-label=anyone][data-level='1']")
    page.keyboard.press("Escape")
    page.wait_for_selector("#leaving")  # A29: not thrown away by a key
    page.click("#discard")
    page.wait_for_selector("#hierarchy", state="detached")
    page.click("[data-tree=age]")
    page.get_by_role("tab", name="Build from values").click()
    page.select_option("#kind", "ends")
    page.fill("#top", "65")
    page.wait_for_selector("#levels td:has-text('>=65')")
    page.click("#keep")
    page.wait_for_selector("#hierarchy", state="detached")
    page.wait_for_selector("[data-column=age] .badge:has-text('ends')")
    page.close()


@pytest.mark.long
def test_exploring(page: Any, workbench: Server, searched: tuple[str, str]) -> None:
    """A12, A13, A19, A20, A21, A22, A23, A24, A31, and what a screen reader is told."""
    study, job = searched
    page.add_init_script(f"({CANVAS_TEXTS})()")
    with workbench.client() as bench:
        bench.put(f"/api/studies/{study}", json={"search": {"max_suppression": 0.3}})  # of the next search
    at(page, workbench, "explore", study, job)
    page.wait_for_selector("#points tr[data-point='1']")
    assert page.input_value("#ask-suppression") == "2"  # A19: that of the front
    assert "complete: no other generalization" in page.inner_text("#about-front")  # A31
    page.fill("#ask-loss", "1")
    page.fill("#ask-k", "40")
    page.click("#ask")
    page.wait_for_selector("#nothing")  # A12: an answer, and no error of the page (which the fixture would tell)
    assert "--" not in page.inner_text("#nothing")
    page.locator("#nothing button:has-text('loss at most')").click()
    page.wait_for_selector("#answer .fine")
    assert float(page.input_value("#ask-loss")) > 1
    page.fill("#ask-k", "")
    page.fill("#ask-loss", "20")
    page.fill("#ask-suppression", "5")
    with page.expect_response("**/ask?**max_suppression=0.05*"):
        page.click("#ask")
    page.evaluate("window.written = []")
    page.click("#answer:not([inert]) .fine button")
    page.wait_for_selector("text=This is the answer to your question")  # A20: it is no point of the search
    assert "the answer" in page.evaluate("window.written")
    last = page.locator("#points tbody tr").count() - 1
    page.locator("canvas").first.focus()
    for _ in range(last + 1):
        page.keyboard.press("ArrowRight")
    page.wait_for_selector("#points tr[aria-selected]")
    seen = """() => { const row = document.querySelector("#points tr[aria-selected]").getBoundingClientRect();
      const box = document.getElementById("points").getBoundingClientRect();
      return row.top >= box.top && row.bottom <= box.bottom + 1; }"""
    assert page.evaluate(seen)  # A21
    chosen = page.get_attribute("#points tr[aria-selected]", "data-point")
    assert f"point {chosen}," in page.inner_text("#spoken")
    page.click("[data-sort=loss]")
    page.click("[data-sort=loss]")
    losses = [float(text.split()[0]) for text in page.locator("#points tbody td:nth-child(3)").all_inner_texts()]
    assert losses == sorted(losses, reverse=True)  # A21
    top = page.evaluate("scrollY")
    page.locator("#points tbody tr").last.locator("button").click()
    page.wait_for_selector("#side-by-side")
    assert page.evaluate("scrollY") == top  # A22
    assert "zip" in page.inner_text("#side-by-side")
    page.select_option("[aria-label='Horizontal axis']", "suppressed")
    page.wait_for_timeout(200)
    ticks = page.evaluate("window.written")
    assert not [tick for tick in ticks if tick.startswith("-0") or tick.endswith(" k")]  # A23
    with page.expect_download() as saved:
        page.locator("[data-save=svg]").first.click()
    assert "<svg" in Path(saved.value.path()).read_text("utf-8")
    with workbench.client() as bench:
        columns = bench.get(f"/api/studies/{study}").json()["study"]["columns"]
        bench.put(f"/api/studies/{study}", json={"columns": columns | {"sex": {"role": "drop"}}, "reviewed": True})
    at(page, workbench, "explore", study, job)
    page.wait_for_selector("#outdated")  # A13
    assert "sex was quasi-identifier, and is now drop" in page.inner_text("#outdated")
    with workbench.client() as bench:
        bench.put(
            f"/api/studies/{study}", json={"columns": columns, "search": {"max_suppression": 0.02}, "reviewed": True}
        )


@pytest.mark.long
def test_searches_and_releases_survive(page: Any, workbench: Server, searched: tuple[str, str]) -> None:
    """A7, A14, A15, A32, A33."""
    study, job = searched
    at(page, workbench, "publish", study, job, 3)
    page.fill("#reason", "a reason that a reload keeps")
    page.click("#last-look")
    page.wait_for_selector("#verdict")
    page.click("#publish")
    page.wait_for_selector("#publishing, #refused, #result .verified")
    page.reload()  # A7
    page.wait_for_selector("#publishing, #refused, #result .verified")
    assert page.input_value("#reason") == "a reason that a reload keeps"
    page.wait_for_selector("#refused, #result .verified")
    if page.locator("#refused").count():
        for field in page.query_selector_all("#refused textarea"):
            field.fill("a made-up table for a test")
        page.click("#accept")
        page.wait_for_selector("#result .verified")
    page.wait_for_selector("#releases .badge:has-text('verified')")
    assert "20" in page.inner_text("#releases .made")
    at(page, workbench, "search", study)
    page.wait_for_selector("#estimate small[title]")
    assert "a tenth" not in page.inner_text("#estimate")  # A14
    page.check("#system-cuts")
    page.click("#advanced summary")
    page.fill("#generations", "90000")
    with page.expect_request("**/estimate"):
        page.press("#generations", "Tab")
    page.click("#start")
    page.wait_for_selector(".job[data-status=running] small:has-text('of 90,000 generations')")  # A14
    page.locator(".job").get_by_role("button", name="Stop").first.click()
    page.wait_for_selector(".job:has-text('Stopping …'), .job[data-status=stopped]")  # A33
    page.wait_for_selector(".job[data-status=stopped]")
    page.locator(".job[data-status=stopped] .danger").click()  # A15
    page.wait_for_selector(".job[data-status=stopped]", state="detached")
    page.click("#toast-act")
    page.wait_for_selector(".job[data-status=stopped]")


def test_limits_must_be_possible(workbench: Server, searched: tuple[str, str]) -> None:
    """A32, without a browser: a limit that no release can miss or meet."""
    with workbench.client() as bench:
        for constraints in ({"k": -5}, {"prosecutor_risk": 1.5}):
            refused = bench.put(f"/api/studies/{searched[0]}", json={"search": {"constraints": constraints}})
            assert refused.status_code == 422, constraints
            assert "a limit of" in refused.json()["error"]["what"]


@pytest.mark.published
def test_a_lost_server_is_told_and_a_new_one_asks_for_its_key(browser: Any, tmp_path: Path) -> None:
    """A16."""
    write_table(tmp_path / "people.csv", rows=60)
    page = browser.new_page()
    page.set_default_timeout(60_000)
    with server(tmp_path) as first:
        first.enter(page)
        port = first.origin.rsplit(":", 1)[1]
        with first.client() as bench:
            study = declare(bench)
            job = bench.post(f"/api/studies/{study}/jobs", json={}).json()["id"]
            wait(bench, study, job)
        page.goto(f"{first.origin}/#/explore/{study}/{job}/1")
        page.reload()
        page.wait_for_selector("#to-publish")
    page.wait_for_selector("#lost")
    page.click("#to-publish")
    page.wait_for_selector("text=Publish >> nth=0")
    page.wait_for_selector(".error")
    assert "No point is chosen" not in page.inner_text("main")
    with server(tmp_path, "--port", port) as second:
        page.wait_for_selector("#key")
        page.fill("#key", second.key)
        page.click("#enter")
        page.wait_for_selector("#publish")
    page.close()


def test_static_files_are_compressed_and_kept(workbench: Server) -> None:
    with workbench.client() as bench:
        first = bench.get("/static/main.js", headers={"accept-encoding": "gzip"})
        assert first.headers["content-encoding"] == "gzip"
        assert first.headers["cache-control"] == "no-cache"
        again = bench.get("/static/main.js", headers={"if-none-match": first.headers["etag"]})
        assert again.status_code == 304
        assert bench.get("/api/about").headers["cache-control"] == "no-store"
        json.dumps(bench.get("/api/about").json()["systems"])


def test_what_a_group_withholds_is_declared_on_the_page(workbench: Server) -> None:
    """A18: what the refusal asks for can be done without a run file."""
    with workbench.client() as bench:
        study = bench.post("/api/studies", json={"path": "census/run.toml"}).json()
        assert study["name"] == "census"  # A30: not the path of the file
        groups = study["study"]["groups"]
        assert groups["auxiliary"][0]["path"] == "census/aux.csv"
        at_ = f"/api/studies/{study['id']}"
        kept = bench.put(at_, json={"groups": groups | {"withhold": ["sex"]}})
        assert kept.status_code == 200, kept.text
        assert kept.json()["study"]["groups"]["withhold"] == ["sex"]
        assert kept.json()["study"]["groups"]["auxiliary"] == groups["auxiliary"]
        away = groups | {"auxiliary": [{"path": "../aux.csv"}]}
        assert bench.put(at_, json={"groups": away}).status_code == 422


@pytest.mark.long
def test_two_kinds_of_bars_are_told_apart(page: Any, workbench: Server, searched: tuple[str, str]) -> None:
    """A24, A26, A27: the same figure is written one way; nothing is red that is not bad; "all others" stands apart."""
    study, _ = searched
    at(page, workbench, "declare", study)
    page.wait_for_selector("#risk .tile")
    tiles = {tile.inner_text(): tile.get_attribute("class") for tile in page.locator("#risk .tile").all()}
    smallest = next(text for text in tiles if "smallest class" in text)
    assert ("bad" in tiles[smallest]) == smallest.startswith("1")  # A26
    drawn = """async () => {
      const { spread } = await import("/static/charts/bars.js");
      const chart = spread({ kind: "values", labels: ["a", "b"], counts: [5, 4], rest: 9 }, 60);
      document.body.append(chart);
      chart.chart.now();
      const row = chart.getContext("2d").getImageData(0, chart.height - 6, chart.width, 1).data;
      const colour = (share) => [...row.slice(4 * Math.round(chart.width * share)).slice(0, 4)];
      const found = [colour(0.16), colour(0.5), colour(0.86)].map(String);
      chart.remove();
      return found;
    }"""
    first, second, others = page.evaluate(drawn)
    assert first == second != others  # A27
    written = """async () => {
      const { valueText } = await import("/static/settings.js");
      return [valueText("t")(0.5633), valueText("t_closeness")(0.5633), valueText("uniques")(0.25)];
    }"""
    one, other, share = page.evaluate(written)
    assert one == other  # A24
    assert share == "25.0 %"
