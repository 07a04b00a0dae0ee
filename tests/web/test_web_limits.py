"""What is sent is bounded and checked before anything is written; a full disk and Ctrl-C leave no mess."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import re
import signal
import threading
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.web.bench import Server, declare, server, write_table

from sfumato.web.routes import while_connected

LARGE = b'{"path": "' + b"x" * (40 << 20) + b'"}'
UNWRITABLE = [
    b'{"search": {"constraints": {"k": NaN}}}',
    b'{"search": {"constraints": {"k": 1e309}}}',
    b'{"search": {"epsilon": [-Infinity, 1]}}',
    b'{"measures": {"recursive_l": {"c": Infinity}}}',
    b'{"columns": {"age": {"role": "quasi_identifier", "breaks": [NaN]}}}',
    b'{"data": {"na": ["\\u007f"]}}',
    b'{"data": {"na": ["\\ud800"]}}',
    b'{"name": "\\ud800"}',
    b'{"name": "\\u0000"}',
    b'{"\\ud800": 1}',
    b'{"data": {"encoding": "punycode"}}',
    b'{"search": {"seed": ' + b"9" * 5000 + b"}}",
    b'{"search": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    b'{"name": "\xff"}',
]


@pytest.mark.parametrize("announced", [True, False])
def test_a_body_has_a_limit(served: Server, bench: httpx.Client, announced: bool) -> None:
    body: Any = LARGE if announced else iter([LARGE[: 1 << 20]] * 40)
    answer = bench.post("/api/studies", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 413, answer.text[:200]
    assert "larger than" in answer.json()["error"]["what"]
    assert served.resident < 250


def test_the_form_that_hands_over_a_key_has_a_limit(served: Server) -> None:
    answer = httpx.post(f"{served.origin}/start", content=b"key=" + b"x" * (40 << 20))
    assert answer.status_code == 413


@pytest.mark.long
@pytest.mark.parametrize("body", UNWRITABLE, ids=lambda body: body[:44].decode("latin-1"))
def test_what_cannot_be_written_is_refused_before_anything_is(bench: httpx.Client, root: Path, body: bytes) -> None:
    study = bench.post("/api/studies", json={"path": "people.csv"}).json()["id"]
    folder = root / "workbench" / "studies" / study
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    answer = bench.put(f"/api/studies/{study}", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 422, answer.text
    assert answer.json()["error"]["what"]
    assert {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()} == before
    assert bench.get(f"/api/studies/{study}").status_code == 200


def test_files_whose_names_are_not_text_are_passed_over(bench: httpx.Client, root: Path) -> None:
    odd = os.fsencode(root) + b"/\xff.csv"
    with open(odd, "wb") as file:  # noqa: PTH123  no text names it
        file.write(b"a\n1\n")
    try:
        answer = bench.get("/api/files")
        assert answer.status_code == 200
        assert [file["name"] for file in answer.json()["files"]] == ["people.csv"]
    finally:
        os.unlink(odd)  # noqa: PTH108


def test_ids_of_jobs_have_128_bits(bench: httpx.Client) -> None:
    study = declare(bench)
    job = bench.post(f"/api/studies/{study}/jobs", json={}).json()["id"]
    assert re.fullmatch(r"search-[0-9a-f]{32}", job)
    assert re.fullmatch(r"people-[0-9a-f]{32}", study)


@pytest.mark.long
def test_a_full_disk_leaves_no_study_and_no_job_behind(small_disk: Path) -> None:
    write_table(small_disk / "people.csv", rows=60)
    with server(small_disk) as served, served.client() as bench:
        study = declare(bench)
        version = {"if-match": bench.get(f"/api/studies/{study}").headers["etag"]}
        _fill(small_disk / "filler")
        before = _folders(small_disk)
        for path, body in (
            ("", {"path": "people.csv"}),
            ("", {"sample": "adult"}),
            (f"/{study}/jobs", {}),
            (f"/{study}/releases", {"job": study, "point": 0}),
        ):
            answer = bench.post(f"/api/studies{path}", json=body, headers=version)
            assert 400 <= answer.status_code < 600, (path, answer.text)
            assert answer.status_code != 500, (path, answer.text)
            assert _folders(small_disk) == before, path
        answer = bench.put(f"/api/studies/{study}", json={"name": "another"}, headers=version)
        assert answer.status_code in (422, 507)
        (small_disk / "filler").unlink()
        assert bench.get(f"/api/studies/{study}").status_code == 200
        assert bench.post("/api/studies", json={"path": "people.csv"}).status_code == 200


def _fill(path: Path) -> None:
    with path.open("wb", buffering=0) as file:
        for size in (1 << 16, 1 << 9, 1):
            try:
                while True:
                    file.write(b"x" * size)
            except OSError:
                continue


def _folders(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in (root / "workbench" / "studies").rglob("*") if path.is_dir())


@pytest.mark.long
@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM])
def test_a_server_that_is_stopped_while_a_page_listens_says_nothing(tmp_path: Path, kind: signal.Signals) -> None:
    write_table(tmp_path / "people.csv", rows=60)
    with server(tmp_path) as served, served.client() as bench:
        study = declare(bench)
        begun = threading.Event()

        def listen() -> None:
            with bench.stream("GET", "/api/events") as stream:
                for _ in stream.iter_lines():
                    begun.set()

        def ask() -> None:
            with contextlib.suppress(httpx.HTTPError), served.client() as other:
                while other.get(f"/api/studies/{study}/audit"):
                    pass

        threads = [threading.Thread(target=act) for act in (listen, ask)]
        for thread in threads:
            thread.start()
        begun.wait()
        os.killpg(os.getpgid(served.process.pid), kind)  # as a terminal does: the workers get it too
        for thread in threads:
            thread.join()
        assert served.process.wait(30) == 0
        assert served.process.stdout is not None
        assert served.process.stdout.read() == ""


def test_a_question_that_nobody_waits_for_fails_in_silence() -> None:
    """As when the server is stopped: the request is cancelled, then its worker is gone."""
    said: list[Any] = []

    async def scene() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, report: said.append(report))
        gone = asyncio.Event()

        async def answer() -> None:
            await gone.wait()
            raise RuntimeError

        class Connected:
            async def is_disconnected(self) -> bool:
                return False

        request: Any = Connected()
        waiting = asyncio.ensure_future(while_connected(request, answer()))
        await asyncio.sleep(0)
        waiting.cancel()
        gone.set()
        await asyncio.gather(waiting, return_exceptions=True)
        await asyncio.sleep(0)

    thread = threading.Thread(target=lambda: asyncio.run(scene()))  # that of the tests may have the browser's loop
    thread.start()
    thread.join()
    gc.collect()
    assert said == []
