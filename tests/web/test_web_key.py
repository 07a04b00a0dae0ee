"""The key of the page: good for one use, on no command line, in no history, in no cookie, and for its owner alone."""

from __future__ import annotations

import contextlib
import http.server
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import httpx
import pytest
from tests.web.bench import Server, server, write_table

SECRET = re.compile(r"[A-Za-z0-9_-]{30,}")
BROWSER = """#!/bin/sh
echo "$@" > {folder}/argv.part
mv {folder}/argv.part {folder}/argv
tail -f /dev/null; exit
"""


@pytest.fixture(scope="module")
def root() -> Iterator[Path]:
    """A folder that every user of the machine may read, as shared ones are; pytest's own are closed to others."""
    folder = Path(tempfile.mkdtemp(prefix="bench-"))
    folder.chmod(0o755)
    write_table(folder / "people.csv")
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def served(root: Path) -> Iterator[Server]:
    with server(root) as found:
        yield found


def as_nobody(*command: str) -> str:
    """What a command prints for another user of this machine."""
    if os.getuid() != 0:
        pytest.skip("only root can start a process of another user")
    done = subprocess.run(command, user="nobody", group="nogroup", extra_groups=(), cwd="/", capture_output=True)
    return done.stdout.decode("utf-8", "replace")


@contextlib.contextmanager
def opened_in_a_browser(root: Path, *options: str) -> Iterator[tuple[str, str]]:
    """`sfumato serve` that opens a browser: what it printed, and the browser's command line."""
    program = root / "browser"
    program.write_text(BROWSER.format(folder=root), "utf-8")
    program.chmod(0o755)
    environment = {**os.environ, "BROWSER": f"{program} %s", "SFUMATO_STATE": str(root / "state")}
    command = [sys.executable, "-m", "sfumato", "serve", str(root), "--port", "0", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment, start_new_session=True)
    try:
        assert process.stdout is not None
        printed = "".join(process.stdout.readline() for _ in range(3))
        while not (root / "argv").exists():
            assert process.poll() is None
        yield printed, (root / "argv").read_text("utf-8").strip()
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


@pytest.mark.long
def test_another_user_finds_no_key_in_the_process_list_and_no_file_to_read(tmp_path: Path) -> None:
    root = Path(tempfile.mkdtemp(prefix="bench-"))
    root.chmod(0o755)
    try:
        with opened_in_a_browser(root) as (printed, arguments):
            listed = as_nobody("ps", "-ww", "-eo", "args")
            assert arguments in listed  # the other user sees the browser and how it was called
            secrets = SECRET.findall(printed)
            assert secrets
            assert not [secret for secret in secrets if secret in listed]
            for secret in secrets:
                assert as_nobody("grep", "-rlF", secret, str(root), tempfile.gettempdir()) == ""
            file = Path(arguments.removeprefix("file://"))
            assert file.stat().st_mode & 0o777 == 0o600
            assert any(secret in file.read_text("utf-8") for secret in secrets)  # its owner's browser reads it
            assert as_nobody("cat", str(file)) == ""
    finally:
        shutil.rmtree(root)


def test_a_key_is_good_for_one_use(served: Server) -> None:
    key = served.key
    first, again = (served.exchange(key) for _ in range(2))
    assert first.status_code == 200
    assert again.status_code == 401


def test_a_change_needs_the_session_whatever_else_is_sent(served: Server) -> None:
    with served.client() as known:
        cookies = {name: known.headers["authorization"].split()[1] for name in ("session", "sfumato-1")}
        cookies[f"sfumato-{known.base_url.port}"] = known.headers["authorization"].split()[1]
    with httpx.Client(base_url=served.origin, cookies=cookies) as other:
        bogus = {"authorization": "Bearer nonsense"}
        for headers in ({}, bogus, {"origin": served.origin}, {**bogus, "origin": served.origin}):
            answer = other.post("/api/studies", json={"path": "people.csv"}, headers=headers)
            assert answer.status_code in (401, 403), (headers, answer.text)


class Listener(http.server.BaseHTTPRequestHandler):
    """Another program on this machine that people's browsers also visit."""

    cookies: ClassVar[list[str | None]] = []

    def do_GET(self) -> None:
        self.cookies.append(self.headers.get("cookie"))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass


@pytest.mark.long
def test_no_cookie_reaches_another_port(page: Any, workbench: Server) -> None:
    with http.server.HTTPServer(("127.0.0.1", 0), Listener) as other:
        threading.Thread(target=other.serve_forever, daemon=True).start()
        tab = page.context.new_page()
        tab.goto(f"http://127.0.0.1:{other.server_address[1]}/")
        other.shutdown()
    assert Listener.cookies
    assert set(Listener.cookies) == {None}
    assert page.context.cookies() == []


def test_the_browser_remembers_no_key(workbench: Server, browser: Any, tmp_path: Path) -> None:
    kept = browser.browser_type.launch_persistent_context(
        tmp_path / "profile", executable_path=shutil.which("chromium"), args=["--no-sandbox"]
    )
    page = kept.new_page()
    key = workbench.enter(page)
    page.goto("about:blank")  # what was visited is written down
    kept.close()
    with contextlib.closing(sqlite3.connect(tmp_path / "profile" / "Default" / "History")) as history:
        visited = [row[0] for row in history.execute("SELECT url FROM urls")]
    assert any(url.startswith(workbench.origin) for url in visited)
    assert not [url for url in visited if key in url]


@pytest.mark.long
def test_a_tab_keeps_its_session_and_a_new_one_asks_for_a_key(page: Any, workbench: Server) -> None:
    page.reload()
    page.wait_for_selector("#sample")
    assert page.url == f"{workbench.origin}/"
    with page.context.new_page() as tab:
        tab.goto(workbench.origin)
        tab.fill("#key", "not a key")
        tab.click("#enter")
        tab.wait_for_selector("text=this key is not valid")
        command = [sys.executable, "-m", "sfumato", "serve", str(workbench.root), "--link", "--no-browser"]
        printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        assert workbench.origin in printed
        tab.fill("#key", SECRET.findall(printed)[0])
        tab.press("#key", "Enter")
        tab.wait_for_selector("#sample")


@pytest.mark.long
def test_a_page_whose_server_was_started_again_asks_for_a_key(browser: Any, tmp_path: Path) -> None:
    write_table(tmp_path / "people.csv")
    page = browser.new_page()
    with server(tmp_path) as first:
        first.enter(page)
        page.click("[data-file='people.csv']")
        page.wait_for_selector("#to-declare")
    page.wait_for_selector("#connection >> text=The server does not answer")
    with server(tmp_path, "--port", first.origin.rsplit(":", 1)[1]) as second:
        page.reload()
        page.fill("#key", second.key)
        page.click("#enter")
        page.wait_for_selector("#to-declare")  # the address knows where we were
    page.close()


def test_a_link_needs_a_server(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "sfumato", "serve", str(tmp_path), "--link", "--no-browser"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "no workbench serves" in done.stderr
