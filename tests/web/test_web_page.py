"""The page in a real browser: the whole job, from opening a table to a verified release."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import pytest
from tests.web.bench import HOSTILE, confirmed, drawn


@pytest.mark.long
def test_the_whole_job_on_adult(page: Any, tmp_path: Path) -> None:
    page.click("#sample")
    page.wait_for_selector(".profile canvas")
    assert drawn(page, ".profile canvas") > 500
    assert "32,561 rows" in page.inner_text(".step.open")
    page.click("#to-declare")
    page.wait_for_selector("#risk .tile")
    assert "31.7 %" in page.inner_text("#risk")
    assert drawn(page, "#risk canvas") > 500
    page.click("#to-search")
    page.wait_for_selector("#estimate small[title]")
    assert "17,920 nodes" in page.inner_text("#estimate")
    page.click("#start")
    page.wait_for_selector(".job[data-status=done]")
    assert "55 points" in page.inner_text(".job")
    assert drawn(page, ".step.search canvas") > 500
    page.click(".job button.main")
    page.wait_for_selector("#points tr[data-point='4']")
    assert drawn(page, ".step.explore canvas") > 2000
    page.fill("#ask-loss", "40")
    page.click("#ask")
    page.wait_for_selector("#answer .fine")
    assert "k 10" in page.inner_text("#answer")
    page.fill("#ask-suppression", "0.8")  # the search suppressed 1 %: another suppression, without another search
    with page.expect_response("**/ask?**max_suppression=0.008*"):
        page.click("#ask")
    page.click("#answer:not([inert]) .fine button")
    page.wait_for_selector("text=This is the answer to your question")
    page.reload()  # the address knows the question
    page.wait_for_selector("text=This is the answer to your question")
    assert drawn(page, "#point canvas") > 300
    page.locator("#points tr[data-point='9'] button").click()
    page.wait_for_selector("#who-pays")
    assert drawn(page, "#who-pays canvas") > 300
    page.click("#to-publish")
    page.wait_for_selector("text=With the suppression of your question (the limit on loss 40 %")
    page.fill("#reason", "most k within 40 % loss")
    page.click("#publish")
    page.wait_for_selector("#result .verified")
    with page.expect_download() as download:
        page.click("[data-download]")
    target = tmp_path / "pack.zip"
    download.value.save_as(target)
    assert target.stat().st_size > 10_000
    with page.context.expect_page() as opened:
        page.click("[data-report='external.html']")
    opened.value.wait_for_selector("h1")
    assert "?ticket=" in opened.value.url
    ground = "getComputedStyle(document.body).backgroundColor"
    opened.value.emulate_media(color_scheme="dark")
    assert opened.value.evaluate(ground) == "rgb(20, 25, 30)"  # reports follow the reader's colours
    opened.value.reload()
    opened.value.wait_for_selector("text=This address has expired")
    page.click("#tools button")
    assert "sf.ask(front, max_loss=0.4, max_suppression=0.008).choice" in _shown(page, "Python")
    page.reload()
    page.wait_for_selector("[data-download]")  # the address knows where we were


def _shown(page: Any, tab: str) -> str:
    page.get_by_role("tab", name=tab).click()
    return str(page.inner_text("dialog pre"))


@pytest.mark.long
def test_a_tree_is_edited_and_undone(page: Any) -> None:
    confirmed(page, "people.csv")
    page.click("[data-tree=sex]")
    page.wait_for_selector("#hierarchy .node")
    before = page.inner_text("#hierarchy .tree")
    page.get_by_role("button", name="Add a level").click()
    page.wait_for_selector("#hierarchy .node[data-level='2']")
    for label in ("F", "M"):
        page.check(f"#hierarchy .node[data-level='1'][data-label='{label}'] input")
    page.fill("#label-name", "anyone")
    page.click("#join")
    page.wait_for_selector("#hierarchy .node[data-label=anyone]")
    assert "400" in page.inner_text(".node[data-label=anyone]")
    page.click("#undo")
    page.wait_for_selector("#hierarchy .node[data-label=anyone]", state="detached")
    page.keyboard.press("Tab")
    page.click("#undo")
    page.wait_for_selector("#hierarchy .node[data-level='2']", state="detached")
    assert page.inner_text("#hierarchy .tree") == before
    assert "covers all 2 values" in page.inner_text("#badge")
    page.click("#keep")
    page.wait_for_selector("#hierarchy", state="detached")


@pytest.mark.long
def test_intervals_follow_the_slider_and_words_can_be_ordered(page: Any) -> None:
    confirmed(page, "people.csv")
    page.click("[data-order=sex]")
    page.wait_for_selector("#joining")
    assert "in alphabetical order" in page.inner_text("#joining")
    page.fill("#order", "M\nF")
    page.click("#keep-order")
    page.wait_for_selector("#joining", state="detached")
    page.click("[data-tree=age]")
    page.get_by_role("tab", name="Build from values").click()
    page.select_option("#kind", "interval")
    page.locator("#width").fill("10")
    page.wait_for_selector("text=level 1 (5)")
    assert drawn(page, "#hierarchy canvas") > 1000
    page.click("#keep")
    page.wait_for_selector("#hierarchy", state="detached")


@pytest.mark.long
def test_a_search_is_stopped_and_its_best_kept(page: Any) -> None:
    confirmed(page, "people.csv")
    page.click("#to-search")
    page.check("#system-cuts")
    page.click("#advanced summary")
    page.wait_for_selector("#generations")
    page.fill("#generations", "90000")
    with page.expect_request("**/estimate"):  # it is asked for once the change is kept
        page.press("#generations", "Tab")
    page.click("#start")
    page.wait_for_selector(".job[data-status=running]")
    page.wait_for_selector("text=so far")  # a front grows while it runs
    assert drawn(page, ".step.search canvas") > 300
    page.locator(".job").get_by_role("button", name="Stop").click()
    page.wait_for_selector(".job[data-status=stopped]")
    page.locator(".job").get_by_role("button", name="Explore").click()
    page.wait_for_selector("#points tr[data-point='0']")


@pytest.mark.long
def test_a_channel_is_found_and_a_column_disguised(page: Any, tmp_path: Path) -> None:
    confirmed(page, "people.csv")
    assert page.input_value("select[aria-label='Role of ill']") == "sensitive"
    page.click("#to-search")
    page.click("[data-mode=channel]")
    page.fill("#channel-points", "4")
    page.click("#start-channel")
    page.wait_for_selector(".job[data-status=done]")
    page.click(".job button.main")
    page.click("[data-channel='1']")
    page.wait_for_selector("#channel-point canvas")
    assert drawn(page, ".step.explore canvas") > 300  # error against privacy
    assert drawn(page, "#channel-point canvas") > 300  # the matrix
    page.click("#to-publish")
    page.click("#publish")
    page.wait_for_selector("#result .verified")
    page.wait_for_selector(".step.publish >> text=worst posterior")  # in the list, asked for again
    with page.expect_download() as download:
        page.click("[data-download]")
    download.value.save_as(tmp_path / "public.zip")
    with zipfile.ZipFile(tmp_path / "public.zip") as pack:
        names = sorted(name.rsplit("/", 1)[1] for name in pack.namelist())
        assert names == [
            "certificate.json",
            "croissant.json",
            "data.csv",
            "data.csv.channel.json",
            "ddi.xml",
            "dictionary.html",
            "dictionary.json",
            "external.html",
        ]
        data = next(name for name in pack.namelist() if name.endswith("data.csv"))
        assert len(pack.read(data).decode("utf-8").splitlines()) == 401
    page.click("#publish")  # the same people again
    page.wait_for_selector("#refused")
    assert "is of the same table" in page.inner_text("#refused")
    page.fill("#refused textarea", "the first file was never handed out")
    page.click("#accept")
    page.wait_for_selector("#result .verified")


@pytest.mark.long
def test_a_group_is_attacked_and_protected(page: Any) -> None:
    page.click("[data-folder=census]")
    page.click("[data-file='census/run.toml']")
    page.click("#to-declare")
    page.click("#to-search")
    page.click("#start-groups")
    page.wait_for_selector(".job[data-status=done]")
    page.click(".job button.main")
    page.wait_for_selector("text=What the attacker sees")
    assert drawn(page, ".step.explore canvas") > 300
    assert "Cost and sensitive areas still identified" in page.inner_text(".step.explore")
    page.click("#to-publish")
    page.fill("#reason", "no attack finds the base")
    page.click("#publish")
    page.wait_for_selector("#refused")  # most records of so small a census are unique over all columns
    page.fill("#refused textarea", "a synthetic census, made for a test")
    page.click("#accept")
    page.wait_for_selector("#result .verified")
    page.wait_for_selector(".step.publish >> text=attacks find 0 of")  # in the list, asked for again
    page.click("#tools button")
    shown = _shown(page, "Commands")
    assert "sfumato publish front --point 0 --reason 'no attack finds the base' --accept 'uniques=a synthetic" in shown


def test_markup_in_a_column_name_is_only_a_name(page: Any) -> None:
    confirmed(page, "hostile.csv")
    page.wait_for_selector("#risk .tile")
    assert HOSTILE in page.inner_text(".step.declare")
    assert page.locator("main img").count() == 0
    assert "owned" not in page.title()
