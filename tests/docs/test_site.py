"""The built site: every link leads somewhere, every page opens in a browser without an error or an outside request.

Run by `make test-docs`, which builds the site first.
"""

from __future__ import annotations

import functools
import shutil
import threading
from collections.abc import Iterator
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

import pytest
from tools.build_site import SITE

pytestmark = pytest.mark.site
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


class _Page(HTMLParser):
    """The links and the anchors of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("href", "src") and value and tag in ("a", "img", "script", "link"):
                self.links.append(value)
            if name in ("id", "name") and value:
                self.anchors.add(value)


def dead_links(folder: Path) -> list[str]:
    """Links of a site that lead to no file or to no anchor of theirs."""
    pages = {path: _Page(path.read_text("utf-8")) for path in folder.rglob("*.html") if path.name != "404.html"}
    dead = []
    for path, page in pages.items():
        for link in page.links:
            target, anchor = urldefrag(link)
            if urlsplit(link).scheme in ("http", "https", "mailto", "data", "javascript"):
                continue
            there = path if not target else (path.parent / unquote(urlsplit(target).path)).resolve()
            there = there / "index.html" if there.is_dir() else there
            known = pages.get(there)
            if not there.is_file() or (anchor and known is not None and unquote(anchor) not in known.anchors):
                dead.append(f"{path.relative_to(folder)}: {link}")
    return dead


@pytest.fixture(scope="module")
def site() -> Path:
    if not (SITE / "index.html").is_file():
        pytest.fail("there is no site: make docs")
    return SITE


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    """The site on loopback."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(site))) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("there is no chromium to drive (apt-get install chromium)")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture
def page(browser: Any, address: str) -> Iterator[Any]:
    """A page; at its end nothing was said on the console, nothing was missing, nothing was asked of another host."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    found = context.new_page()
    said: list[str] = []
    asked: set[str] = set()
    found.on("console", lambda message: said.append(message.text) if message.type in ("error", "warning") else None)
    found.on("pageerror", lambda error: said.append(str(error)))
    found.on("response", lambda answer: said.append(answer.url) if answer.status >= 400 else None)
    found.on("request", lambda request: asked.add(urlsplit(request.url).hostname or request.url[:5]))
    yield found
    context.close()
    assert said == []
    assert asked <= {"127.0.0.1", "data:", "blob:"}


def test_a_dead_link_is_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text('<a href="b.html#no">b</a><a href="c.html">c</a><h1 id="here"></h1>')
    (tmp_path / "b.html").write_text('<a href="a.html#here">a</a>')
    assert dead_links(tmp_path) == ["a.html: b.html#no", "a.html: c.html"]


def test_every_link_leads_somewhere(site: Path) -> None:
    assert dead_links(site) == []


def test_every_page_opens(site: Path, address: str, page: Any) -> None:
    """All pages in one session; each has a heading, and at a phone's width nothing but code and tables is wider."""
    names = sorted(path.relative_to(site).as_posix() for path in site.rglob("*.html") if path.name != "404.html")
    assert len(names) > 30
    for name in names:
        page.set_viewport_size({"width": 1280, "height": 900})
        page.goto(urljoin(address, name))
        assert page.locator("article h1").count() == 1, name
        page.set_viewport_size({"width": 390, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, name


def test_search_finds_a_page(address: str, page: Any) -> None:
    page.goto(address)
    page.wait_for_load_state("networkidle")
    page.keyboard.press("/")
    page.keyboard.type("journalist risk")
    page.wait_for_selector("text=/^[0-9]+ results/")
