"""Draw the pictures of the workbench anew: every view, wide and narrow. `make pictures` runs it.

With a folder as argument, every view and report is drawn there as well, whole pages, at three widths, light and dark,
to be looked at.
"""

from __future__ import annotations

import base64
import shutil
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright
from tests.web.bench import server, write_table
from tests.web.views import views

import sfumato as sf
from sfumato.papers.groups import make_census
from sfumato.report.audit_page import audit_page

HERE = Path(__file__).parent
WIDTHS = {"wide": (1280, 860), "middle": (1024, 768), "narrow": (390, 1180)}
# What stays in place while the page scrolls would stand in the middle of a whole page.
VIEWPORT = ("declare-suggested", "declare", "at-risk", "selected")
SHOWN = (HERE.parent / "workbench.md").read_text("utf-8")  # a picture that it does not name is not kept
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
        write_table(root / "people.csv")
        made = make_census(root / "census", 6_000, 300, 12, seed=3)
        more = "\n[groups.attack]\nseeds = 1\nfolds = 3\n[groups.protect]\nattackers = ['exact']\nlevels = 2\n"
        seeds = "known_seeds = 1\nfresh_seeds = 1\nsealed_attackers = []\n"
        made.run.write_text(made.run.read_text("utf-8") + more + seeds, "utf-8")
        chromium = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        written_pages(chromium, Path(folder), look)
        with server(root) as served:
            page = chromium.new_page()
            page.set_default_timeout(150_000)
            served.enter(page)
            encoder = chromium.new_page()
            for name in views(page, served):
                draw(page, encoder, name, look)
                if look and name == "publish":
                    reports(page, look)
        chromium.close()


def written_pages(chromium: Browser, folder: Path, look: Path | None) -> None:
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
        if look:
            drawn_report(page, name, look)
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
            if scheme == "light" and f"workbench-{name}-{width}.webp" in SHOWN:
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
        drawn_report(report, name, look)
        report.close()


def drawn_report(page: Page, name: str, look: Path) -> None:
    """A report at every width, light and dark."""
    look.mkdir(exist_ok=True, parents=True)
    for width, size in WIDTHS.items():
        page.set_viewport_size({"width": size[0], "height": size[1]})
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
            page.wait_for_timeout(300)
            page.screenshot(path=look / f"report-{name}-{width}-{scheme}.png", full_page=True)


if __name__ == "__main__":
    main()
