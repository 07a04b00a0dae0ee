"""Draw the picture of the two bands anew: Adult's front, the floor of every recoding, and what lies between."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

import sfumato as sf
from sfumato.decide.floor import with_floor
from sfumato.methods.publish import draw

HERE = Path(__file__).parent


def main() -> None:
    study = sf.read(sf.sample("adult"))
    front = sf.search(study)
    local = sf.search(study.with_search(system="local").with_settings({"local": {"passes": 20}}))
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        page = draw(with_floor(front, local), Path(folder) / "map.html")
        chromium = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        screen = chromium.new_page(viewport={"width": 1100, "height": 800})
        screen.goto(page.as_uri())
        screen.wait_for_selector("#bands .main-svg")
        screen.locator("#bands").screenshot(path=HERE / "bands.png")
        chromium.close()


if __name__ == "__main__":
    main()
