"""One browser for all tests of the page, a workbench for each file of them, one for tests without a browser;
a small disk."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from tests.methods.groups.files import protected_study
from tests.web.bench import HOSTILE, Server, server, write_table

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


@pytest.fixture(scope="module")
def workbench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server over a folder with small tables; as many jobs run at once as one test asks for.

    Each file of tests has its own: studies that another file left would be in its lists.
    """
    root = tmp_path_factory.mktemp("bench")
    write_table(root / "people.csv")
    write_table(root / "hostile.csv", names=f"age,{HOSTILE},sex,ill")
    (root / "census").mkdir()
    protected_study(root / "census")
    with server(root, "--jobs", "5") as found:
        yield found


@pytest.fixture(scope="session")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one small table. Files of tests share it, so they look only at studies that they opened."""
    root = tmp_path_factory.mktemp("bench")
    write_table(root / "people.csv", rows=60)
    return root


@pytest.fixture(scope="session")
def served(root: Path) -> Iterator[Server]:
    """A server over it, for tests without a browser."""
    with server(root) as started:
        yield started


@pytest.fixture
def bench(served: Server) -> Iterator[httpx.Client]:
    with served.client() as client:
        yield client


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("there is no chromium to drive (apt-get install chromium)")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    read = playwright.Page.inner_text

    # A number and its sign stay on one line by a space that does not break: tests read it as any other.
    def plain(page: Any, *given: Any, **more: Any) -> str:
        return str(read(page, *given, **more)).replace("\u00a0", " ")

    with pytest.MonkeyPatch.context() as patch, playwright.sync_playwright() as driver:
        patch.setattr(playwright.Page, "inner_text", plain)
        found = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture
def page(browser: Any, workbench: Server) -> Iterator[Any]:
    """A page of its own; at its end, no word on the console and no request off loopback."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, accept_downloads=True)
    found = context.new_page()
    said: list[str] = []
    asked: set[str] = set()
    found.set_default_timeout(120_000)
    found.on("console", lambda message: said.append(message.text) if message.type in ("error", "warning") else None)
    found.on("pageerror", lambda error: said.append(str(error)))
    found.on("response", lambda answer: said.append(answer.url) if answer.status >= 400 else None)
    found.on("request", lambda request: asked.add(urlsplit(request.url).hostname or request.url[:5]))
    workbench.enter(found)
    yield found
    context.close()
    assert said == []
    assert asked <= {"127.0.0.1", "file:", "data:", "blob:"}


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of two megabytes."""
    if os.getuid() != 0:
        pytest.skip("only root can mount a small disk")
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "none", str(tmp_path)], check=False)
    if mounted.returncode:
        pytest.skip("this machine does not let root mount a small disk")
    yield tmp_path
    subprocess.run(["umount", str(tmp_path)], check=True)
