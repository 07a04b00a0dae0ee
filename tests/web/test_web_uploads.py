"""Uploads are kept as they came: one never replaces or mixes with another, and a study knows which table it is of."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.web.bench import Server, confirmed, declare, server, write_table

FIRST = b"name,age,sex\nAnn,30,F\nBob,31,M\n"
SECOND = b"x,y,z,w\n1,2,3,4\n5,6,7,8\n"


def upload(bench: httpx.Client, name: str, content: bytes) -> dict[str, str]:
    answer = bench.put(f"/api/uploads/{name}", content=content)
    assert answer.status_code == 200, answer.text
    found: dict[str, str] = answer.json()
    return found


def test_a_second_upload_of_a_name_leaves_the_first_study_as_it_was(bench: httpx.Client) -> None:
    first = bench.post("/api/studies", json={"path": upload(bench, "dropped.csv", FIRST)["path"]}).json()
    second = bench.post("/api/studies", json={"path": upload(bench, "dropped.csv", SECOND)["path"]}).json()
    assert first["name"] == second["name"] == "dropped.csv"
    columns = [bench.get(f"/api/studies/{study['id']}/preview").json()["columns"] for study in (first, second)]
    assert columns == [["name", "age", "sex"], ["x", "y", "z", "w"]]


def test_uploads_of_one_name_at_one_time_do_not_mix(bench: httpx.Client, root: Path) -> None:
    half = threading.Barrier(2)

    def send(letter: bytes) -> dict[str, str]:
        def blocks() -> Iterator[bytes]:
            yield b"a\n" + letter * 150_000
            half.wait()  # both have begun, and neither has ended
            yield letter * 50_000 + b"\n"

        return bench.put("/api/uploads/race.csv", content=blocks()).json()

    with ThreadPoolExecutor() as pool:
        answers = list(pool.map(send, (b"A", b"B")))
    for letter, answer in zip((b"A", b"B"), answers, strict=True):
        content = (root / answer["path"]).read_bytes()
        assert content == b"a\n" + letter * 200_000 + b"\n"
        assert answer["sha256"] == hashlib.sha256(content).hexdigest()


def test_an_upload_goes_with_its_last_study(bench: httpx.Client, root: Path) -> None:
    path = upload(bench, "short.csv", FIRST + b"Cy,32,M\n")["path"]
    one, two = (bench.post("/api/studies", json={"path": path}).json()["id"] for _ in range(2))
    bench.delete(f"/api/trash/{bench.delete(f'/api/studies/{one}').json()['undo']}")
    assert (root / path).exists()
    undo = bench.delete(f"/api/studies/{two}").json()["undo"]
    assert (root / path).exists()  # until it can no longer be undone
    bench.delete(f"/api/trash/{undo}")
    assert not (root / path).parent.exists()
    assert bench.post("/api/studies", json={"path": "people.csv"}).status_code == 200


def test_a_table_that_changed_is_told_and_nothing_runs_until_it_is_accepted(bench: httpx.Client, root: Path) -> None:
    study = declare(bench)
    at = f"/api/studies/{study}"
    assert bench.get(at).json()["table_changed"] is False
    content = (root / "people.csv").read_bytes()
    os.utime(root / "people.csv")  # touched, but the same
    assert bench.get(at).json()["table_changed"] is False
    (root / "people.csv").write_bytes(content + b"99,8001,F,flu\n")
    try:
        assert bench.get(at).json()["table_changed"] is True
        refused = bench.post(f"{at}/jobs", json={})
        assert refused.status_code == 409
        assert "has changed" in refused.json()["error"]["what"]
        accepted = bench.put(at, json={"accept_table": True}).json()
        assert (accepted["table_changed"], accepted["reviewed"]) == (False, False)
    finally:
        (root / "people.csv").write_bytes(content)


@pytest.mark.long
def test_the_page_says_that_the_table_has_changed(page: Any, workbench: Server) -> None:
    table = write_table(workbench.root / "changing.csv", rows=50)
    page.reload()
    confirmed(page, "changing.csv")
    assert page.locator("#table-changed").count() == 0
    table.write_text(table.read_text("utf-8") + "33,8001,F,flu\n", "utf-8")
    page.reload()
    page.wait_for_selector("#table-changed")
    page.click("#table-changed button")
    page.wait_for_selector("#reviewed")  # roles are to be checked again
    assert page.locator("#table-changed").count() == 0


def test_an_upload_that_fills_the_disk_is_refused_and_leaves_nothing(small_disk: Path) -> None:
    with server(small_disk) as served, served.client() as bench:
        answer = bench.put("/api/uploads/large.csv", content=b"a,b\n" + b"1,2\n" * 1_000_000)
        assert answer.status_code == 507, answer.text
        assert "No space left" in answer.json()["error"]["what"]
        assert list((small_disk / "workbench" / "uploads").rglob("*")) == []
        assert upload(bench, "small.csv", FIRST)["bytes"] == len(FIRST)
