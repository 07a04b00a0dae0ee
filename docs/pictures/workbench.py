"""Draw the pictures of the workbench anew: every view, wide and narrow. `make pictures` runs it.

With a folder as argument, every view and report is drawn there as well, whole pages, at three widths, light and dark,
to be looked at.
"""

from __future__ import annotations

import base64
import contextlib
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright
from tests.web.bench import server

import sfumato as sf
from sfumato.report.audit_page import audit_page
from sfumato.samples.groups_census import make_census

HERE = Path(__file__).parent
WIDTHS = {"wide": (1280, 860), "middle": (1024, 768), "narrow": (390, 1180)}
VIEWPORT = (
    "declare",
    "at-risk",
)  # what stays in place while the page scrolls would stand in the middle of a whole page
KEPT = ("wide", "narrow")  # in the documents, in light colours
# Chromium writes WebP itself: no library for pictures is needed.
ENCODE = """async (png) => {
  const image = new Image();
  image.src = `data:image/png;base64,${png}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [image.width, image.height];
  canvas.getContext("2d").drawImage(image, 0, 0);
  return canvas.toDataURL("image/webp", 0.88).split(",")[1];
}"""


def main() -> None:
    look = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        root = Path(folder) / "statistics"
        root.mkdir()
        made = make_census(root / "census", 6_000, 300, 12, seed=3)
        more = "\n[groups.attack]\nseeds = 1\nfolds = 3\n[groups.protect]\nattackers = ['exact']\nlevels = 2\n"
        seeds = "known_seeds = 1\nfresh_seeds = 1\nsealed_attackers = []\n"
        made.run.write_text(made.run.read_text("utf-8") + more + seeds, "utf-8")
        chromium = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        written_pages(chromium, Path(folder))
        with server(root) as served:
            page = chromium.new_page()
            page.set_default_timeout(150_000)
            served.enter(page)
            encoder = chromium.new_page()
            for name in views(page):
                draw(page, encoder, name, look)
                if look and name == "publish":
                    reports(page, look)
        chromium.close()


def written_pages(chromium: Browser, folder: Path) -> None:
    """The pages that the command line writes: the map of the sample's front, and its audit."""
    study = sf.read(sf.sample("adult"))
    front = sf.search(study)
    sf.draw(front, folder / "map.html", chosen=4)
    (folder / "audit.html").write_text(audit_page(sf.audit(study), "adult.data.gz"), "utf-8")
    for name, width, height in (("map", 1200, 900), ("audit", 1100, 1330)):
        page = chromium.new_page(viewport={"width": width, "height": height})
        page.goto((folder / f"{name}.html").as_uri())
        page.wait_for_timeout(1500)
        page.screenshot(path=HERE / f"{name}.png")
        page.close()


def draw(page: Page, encoder: Page, name: str, look: Path | None) -> None:
    for width, size in WIDTHS.items():
        page.set_viewport_size({"width": size[0], "height": size[1]})
        for scheme in ("light", "dark") if look else ("light",):
            page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
            page.mouse.move(0, 0)
            page.wait_for_selector("#busy:not(.on)", state="attached")
            page.wait_for_timeout(350)
            if look:
                look.mkdir(exist_ok=True, parents=True)
                page.screenshot(
                    path=look / f"{name}-{width}-{scheme}.png", full_page=name not in VIEWPORT and "dialog" not in name
                )
            if scheme == "light" and width in KEPT:
                picture = base64.b64encode(page.screenshot()).decode()
                encoded = base64.b64decode(encoder.evaluate(ENCODE, picture))
                (HERE / f"workbench-{name}-{width}.webp").write_bytes(encoded)
    page.set_viewport_size({"width": 1280, "height": 860})
    page.emulate_media(color_scheme="light")


def reports(page: Page, look: Path) -> None:
    """The reports of the release that was made last, at every width."""
    for name in ("external", "internal", "dictionary"):
        with page.context.expect_page() as opened:
            page.click(f"[data-report='{name}.html']")
        report = opened.value
        report.wait_for_selector("h1")
        for width, size in WIDTHS.items():
            report.set_viewport_size({"width": size[0], "height": size[1]})
            for scheme in ("light", "dark"):
                report.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
                report.wait_for_timeout(300)
                report.screenshot(path=look / f"report-{name}-{width}-{scheme}.png", full_page=True)
        report.close()


def views(page: Page) -> Iterator[str]:
    """Walk through the whole job, and say the name of each view when it stands."""
    page.click("#sample")
    page.wait_for_selector(".profile canvas")
    yield "open"
    page.click("#to-declare")
    page.wait_for_selector("#risk .tile")
    yield "declare"
    page.click("#at-risk summary")
    page.wait_for_selector("#grid")
    page.wait_for_timeout(1500)
    page.locator(".sticky").evaluate("place => place.scrollTo(0, document.getElementById('at-risk').offsetTop - 80)")
    yield "at-risk"
    with dialog(page, "[data-tree='marital-status']", "#hierarchy .node"):
        yield "tree-dialog"
    with dialog(page, "[data-tree=age]", "#hierarchy .tabs"):
        page.get_by_role("tab", name="Build from values").click()
        page.select_option("#kind", "interval")
        page.locator("#width").fill("7")
        page.wait_for_selector("#badge")
        page.wait_for_timeout(1000)
        yield "interval-dialog"
        page.select_option("#kind", "ends")
        page.wait_for_selector("#levels td:has-text('>=')")
        page.locator("#levels").scroll_into_view_if_needed()
        yield "ends-dialog"
    with dialog(page, "[data-order=workclass]", "#joining"):
        yield "order-dialog"
    page.click("#to-search")
    page.wait_for_selector("#estimate small[title]")
    page.click(".pills label:has-text('distinct ℓ')")
    page.wait_for_timeout(1500)
    page.click("#start")
    page.wait_for_selector(".job[data-status=done]")
    yield "search"
    page.click(".job button.main")
    page.click("#ask")
    page.click("#answer .fine button")
    page.wait_for_selector("#point-title")
    page.wait_for_timeout(500)
    page.evaluate("scrollTo(0, 0)")
    yield "explore"
    page.locator("#points tr[data-point='9'] button").click()
    page.wait_for_selector("#who-pays")
    page.wait_for_timeout(300)
    page.evaluate("scrollTo(0, 0)")
    yield "who-pays"
    page.click("#to-publish")
    page.click("#last-look")
    page.wait_for_selector("#verdict")
    page.evaluate("scrollTo(0, 0)")
    yield "look"
    page.fill("#reason", "The most privacy within 30 % loss: agreed with the users of the last release.")
    page.click("#publish")
    page.wait_for_selector("#result .verified")
    page.evaluate("scrollTo(0, 0)")
    yield "publish"
    page.click("#tools button")
    page.get_by_role("tab", name="Commands").click()
    yield "show-as-dialog"
    page.keyboard.press("Escape")
    page.click("[data-step=search]")
    page.click("[data-mode=channel]")
    page.fill("#channel-points", "8")
    yield "channel-form"
    page.click("#start-channel")
    page.wait_for_selector(".job[data-job^=channel][data-status=done]")
    page.click(".job[data-job^=channel] button.main")
    page.click("[data-channel='4']")
    page.wait_for_selector("#channel-point canvas")
    page.evaluate("scrollTo(0, 0)")
    yield "channel"
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


@contextlib.contextmanager
def dialog(page: Page, opener: str, shown: str) -> Iterator[None]:
    """A dialog while it is open."""
    page.click(opener)
    page.wait_for_selector(shown)
    yield
    page.keyboard.press("Escape")
    if page.locator("#discard").count():
        page.click("#discard")
    page.wait_for_selector("dialog", state="detached")


if __name__ == "__main__":
    main()
