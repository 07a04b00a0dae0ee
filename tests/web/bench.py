"""A small table and a server over it, for the tests of the workbench."""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from sfumato.web.access import new_key

HOSTILE = "<img src=x onerror=document.title='owned'>"  # a column may be called so
PIXELS = """canvas => {
  const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  const colours = new Set();
  let drawn = 0;
  for (let place = 0; place < data.length; place += 4) {
    if (data[place + 3] <= 200) continue;
    drawn += 1;
    colours.add((data[place] << 16) | (data[place + 1] << 8) | data[place + 2]);
  }
  return { drawn, colours: colours.size };
}"""


def write_table(path: Path, rows: int = 400, names: str = "age,zip,sex,ill") -> Path:
    chance = random.Random(1)
    lines = [names]
    for _ in range(rows):
        cells = (chance.randint(20, 69), chance.choice(["8001", "8002", "8003", "9001"]), chance.choice("FM"))
        lines.append(",".join(map(str, cells)) + "," + chance.choice(["flu", "cold", "none"]))
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


@contextlib.contextmanager
def client(root: Path, *options: str) -> Iterator[httpx.Client]:
    """A server over a folder, and someone who talks to it with the key."""
    with server(root, *options) as found, found.client() as bench:
        yield bench


def declare(bench: httpx.Client, table: str = "people.csv", **search: Any) -> str:
    """A study of people.csv, or of a table like it, declared and checked."""
    study = str(bench.post("/api/studies", json={"path": table}).json()["id"])
    columns = {
        "age": {"role": "quasi_identifier", "hierarchy": {"build": "interval", "widths": [5, 10, 20]}},
        "zip": {"role": "quasi_identifier", "hierarchy": {"build": "prefix"}},
        "sex": {"role": "quasi_identifier", "hierarchy": {"build": "flat"}},
        "ill": {"role": "sensitive"},
    }
    settings = {"max_suppression": 0.02, **search}
    answer = bench.put(f"/api/studies/{study}", json={"columns": columns, "search": settings, "reviewed": True})
    assert answer.status_code == 200, answer.text
    return study


def until(
    bench: httpx.Client, job: str, holds: Callable[[dict[str, Any]], bool], seconds: float = 120
) -> dict[str, Any]:
    """The job as soon as something holds of it: the server sends every job that changes."""
    end = time.monotonic() + seconds
    with bench.stream("GET", "/api/events") as stream:
        for line in stream.iter_lines():
            found: dict[str, Any] = json.loads(line[6:]) if line.startswith('data: {"id"') else {}
            if found.get("id") == job and holds(found):
                return found
            assert time.monotonic() < end, f"the job {job} takes too long: {found}"
    raise AssertionError("the server has ended its events")


def wait(bench: httpx.Client, study: str, job: str, seconds: float = 120) -> dict[str, Any]:
    """The job of a study when it has ended."""
    ended = until(bench, job, lambda found: found["status"] not in ("queued", "running"), seconds)
    assert ended["study"] == study
    return ended


CHANGED = re.compile(r"(/api/studies/[a-z0-9-]+)(|/hierarchy|/jobs|/channels|/groups)$")


class Client(httpx.Client):
    """Someone who reads a study before they change it: a change names the version that was read."""

    def request(self, method: str, url: Any, **given: Any) -> httpx.Response:  # type: ignore[override]
        found = CHANGED.match(str(url)) if method in ("PUT", "POST") else None
        headers = dict(given.pop("headers", None) or {})
        if found and "if-match" not in headers:
            headers["if-match"] = self.get(found[1]).headers.get("etag", '"none"')
        return super().request(method, url, headers=headers, **given)


@dataclass
class Server:
    """A server in a process of its own."""

    origin: str
    root: Path
    process: subprocess.Popen[str]

    @property
    def key(self) -> str:
        """A key that nobody has used, as `sfumato serve --link` makes it."""
        return new_key(self.root / "workbench", f"{self.origin}/").text

    def exchange(self, key: str) -> httpx.Response:
        """Exchange a key for a session."""
        return httpx.post(f"{self.origin}/api/session", json={"key": key}, timeout=60)

    def secret(self) -> str:
        """The secret of a new session."""
        return str(self.exchange(self.key).json()["secret"])

    def client(self) -> httpx.Client:
        """Someone with a session of their own."""
        headers = {"authorization": f"Bearer {self.secret()}"}
        return Client(base_url=self.origin, headers=headers, timeout=120)

    def enter(self, page: Any) -> str:
        """Open the page in a browser, by the file that hands over the key; returns the key."""
        key = new_key(self.root / "workbench", f"{self.origin}/")
        page.goto(key.page.as_uri())
        page.wait_for_selector("#sample")
        return key.text

    @property
    def resident(self) -> float:
        """Megabytes of memory that it holds."""
        status = Path(f"/proc/{self.process.pid}/status").read_text("utf-8")
        return int(re.findall(r"VmRSS:\s+(\d+)", status)[0]) / 1024


@contextlib.contextmanager
def server(root: Path, *options: str) -> Iterator[Server]:
    """`sfumato serve` as a user starts it."""
    state = {**os.environ, "SFUMATO_STATE": str(root / "state")}
    command = [sys.executable, "-m", "sfumato", "serve", str(root), "--no-browser", "--port", "0", *options]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=state, start_new_session=True
    )
    try:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(3)]
        found = re.search(r"workbench: (http://\S+)/\n", lines[0])
        assert found, lines
        yield Server(found[1], root, process)
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()
        if process.stdout is not None:
            process.stdout.close()


def drawn(page: Any, selector: str) -> int:
    """Pixels drawn on a canvas; a chart that fails silently has none."""
    page.wait_for_timeout(250)
    found = page.locator(selector).first.evaluate(PIXELS)
    assert found["colours"] > 1, selector
    return int(found["drawn"])


def confirmed(page: Any, table: str) -> None:
    """Open a table of the folder in the browser, make what is undecided a quasi-identifier, and confirm the roles."""
    page.click(f"[data-file='{table}']")
    page.click("#to-declare")
    page.wait_for_selector("#reviewed")
    for open_ in range(page.locator("select.open").count(), 0, -1):
        page.locator("select.open").first.select_option("quasi_identifier")
        page.locator("select.open").nth(open_ - 1).wait_for(state="detached")
    page.click("#reviewed")
    page.wait_for_selector("#reviewed", state="detached")
