"""What the page relies on: fronts say what they were searched with, deletions can be undone, replays give the same."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import httpx
import pytest
from fastapi import HTTPException
from tests.web.bench import Server, declare, server, until, wait, write_table

from sfumato.web.routes import while_connected

ACCEPT = dict.fromkeys(("k", "l", "t", "raw", "uniques", "earlier"), "a made-up table for a test")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("bench")
    write_table(root / "people.csv", rows=120)
    return root


@pytest.fixture(scope="module")
def served(root: Path) -> Iterator[Server]:
    with server(root) as started:
        yield started


@pytest.fixture(scope="module")
def bench(served: Server) -> Iterator[httpx.Client]:
    with served.client() as found:
        yield found


@pytest.fixture(scope="module")
def searched(bench: httpx.Client) -> tuple[str, str]:
    study = declare(bench)
    job = str(bench.post(f"/api/studies/{study}/jobs", json={}).json()["id"])
    assert wait(bench, study, job)["status"] == "done"
    return study, job


@pytest.mark.long
def test_limits_that_nothing_meets_are_an_answer(bench: httpx.Client, searched: tuple[str, str]) -> None:
    study, job = searched
    asked = bench.get(f"/api/studies/{study}/jobs/{job}/ask", params={"max_loss": 0.01, "min_k": 50})
    assert asked.status_code == 200, asked.text
    nothing = asked.json()["nothing"]
    assert set(nothing["nearest"]) == {"max_loss", "min_k"}
    assert "--" not in asked.text
    answered = bench.get(
        f"/api/studies/{study}/jobs/{job}/ask", params={"max_loss": nothing["nearest"]["max_loss"], "min_k": 50}
    ).json()
    assert answered["answer"]["k"] >= 50


@pytest.mark.long
def test_a_front_says_what_it_was_searched_with_and_what_changed_since(
    bench: httpx.Client, searched: tuple[str, str]
) -> None:
    study, job = searched
    at = f"/api/studies/{study}"
    front = bench.get(f"{at}/jobs/{job}/front").json()
    assert (front["max_suppression"], front["changes"], front["stopped"]) == (0.02, [], False)
    assert front["policy"]["k"] == 3
    before = bench.get(at).json()["study"]["columns"]
    changed = before | {"sex": {"role": "sensitive"}, "zip": {**before["zip"], "hierarchy": {"build": "flat"}}}
    assert bench.put(at, json={"columns": changed, "search": {"max_suppression": 0.5}}).status_code == 200
    assert sorted(bench.get(f"{at}/jobs/{job}/front").json()["changes"]) == [
        "The hierarchy of zip is another.",
        "sex was quasi-identifier, and is now sensitive.",
    ]
    assert bench.put(at, json={"columns": before, "search": {"max_suppression": 0.02}}).status_code == 200
    assert bench.get(f"{at}/jobs/{job}/front").json()["changes"] == []


def test_deletions_can_be_undone(bench: httpx.Client, root: Path) -> None:
    path = bench.put("/api/uploads/mine.csv", content=b"age,sex\n31,F\n42,M\n").json()["path"]
    study = str(bench.post("/api/studies", json={"path": path}).json()["id"])
    undo = bench.delete(f"/api/studies/{study}").json()["undo"]
    assert bench.get(f"/api/studies/{study}").status_code == 404
    assert (root / path).is_file()
    assert bench.post(f"/api/trash/{undo}").json() == {"restored": 1}
    assert bench.get(f"/api/studies/{study}").json()["name"] == "mine.csv"
    assert bench.post(f"/api/trash/{undo}").status_code == 404
    undo = bench.delete(f"/api/studies/{study}").json()["undo"]
    assert bench.delete(f"/api/trash/{undo}").status_code == 200  # for good
    assert not (root / path).exists()
    assert bench.post(f"/api/trash/{undo}").status_code == 404


@pytest.mark.long
def test_a_release_has_a_date_a_digest_and_a_verdict_and_goes_only_when_asked(
    bench: httpx.Client, searched: tuple[str, str]
) -> None:
    study, job = searched
    at = f"/api/studies/{study}"
    look = bench.post(f"{at}/look", json={"job": job, "point": 0}).json()
    assert {column["name"]: column["released"] for column in look["columns"]} == dict.fromkeys(
        ("age", "zip", "sex", "ill"), True
    )
    assert look["rows"]["columns"][3] == "ill"
    assert len(look["rows"]["rows"]) == 10
    assert {row[3] for row in look["rows"]["rows"]} == {"•••"}
    assert bench.get(f"{at}/releases").json() == []  # looking leaves nothing
    made = wait(bench, study, bench.post(f"{at}/releases", json={"job": job, "point": 0}).json()["id"])
    refused = made["error"]["findings"]  # what classes decide, before anything is written
    assert refused
    assert [found for found in look["findings"] if found in refused] == refused  # it said what would be refused
    assert look["findings"]
    given = {"job": job, "point": 0, "reason": "a test", "accept": ACCEPT}
    made = wait(bench, study, bench.post(f"{at}/releases", json=given).json()["id"])
    assert made["status"] == "done", made
    release = bench.get(f"{at}/releases").json()[0]
    assert release["about"]["verified"] is True
    assert release["created"].startswith("20")
    assert len(release["sha256"]) == 64
    shown = bench.get(f"{at}/run.sh", params={"job": job, "point": 0}).text
    assert "sfumato publish front --point 0 --reason 'a test' --accept" in shown
    assert bench.delete(at).status_code == 409  # it has a release
    undo = bench.delete(f"{at}/releases/{release['name']}").json()["undo"]
    assert bench.get(f"{at}/releases").json() == []
    bench.post(f"/api/trash/{undo}")
    assert bench.get(f"{at}/releases").json()[0]["name"] == release["name"]
    bench.delete(f"{at}/releases/{release['name']}")


def replayed(bench: httpx.Client, at: str, folder: Path, **asked: Any) -> list[str]:
    """The released rows of the commands that the page shows, run as they stand."""
    folder.mkdir()
    job = {"job": asked["job"]}
    (folder / "run.toml").write_text(bench.get(f"{at}/run.toml", params=job).text, "utf-8")
    lines = bench.get(f"{at}/run.sh", params=asked).text.splitlines()
    for line in lines:
        if line.startswith(("sfumato search", "sfumato publish")):
            command = f"{sys.executable} -m {line}"
            done = subprocess.run(command, shell=True, cwd=folder, capture_output=True, text=True, check=False)
            assert done.returncode == 0, (line, done.stderr)
    return sorted((folder / "release" / "public" / "data.csv").read_text("utf-8").splitlines())


def published(bench: httpx.Client, study: str, root: Path, **given: Any) -> list[str]:
    ended = wait(bench, study, bench.post(f"/api/studies/{study}/releases", json=given).json()["id"])
    assert ended["status"] == "done", ended
    return sorted((root / ended["found"]["folder"] / "public" / "data.csv").read_text("utf-8").splitlines())


@pytest.mark.published
def test_the_answer_to_a_question_is_replayed_by_commands(
    bench: httpx.Client, searched: tuple[str, str], root: Path, tmp_path: Path
) -> None:
    study, job = searched
    limits = {"max_loss": 0.4, "max_suppression": 0.1}
    answer = bench.get(f"/api/studies/{study}/jobs/{job}/ask", params=limits).json()["answer"]
    assert not answer["searched"]  # another suppression than that of the search
    given = {"job": job, "point": answer["point"], "limits": limits, "accept": ACCEPT}
    rows = published(bench, study, root, **given)
    assert (
        replayed(bench, f"/api/studies/{study}", tmp_path / "again", job=job, point=answer["point"], **limits) == rows
    )


@pytest.mark.published
def test_a_search_that_was_stopped_is_replayed_to_the_same_file(
    bench: httpx.Client, root: Path, tmp_path: Path
) -> None:
    study = declare(bench, system="cuts", problem=2, generations=100_000)
    at = f"/api/studies/{study}"
    job = bench.post(f"{at}/jobs", json={}).json()["id"]
    until(bench, job, lambda found: bool(found.get("live")))  # after its first generation
    bench.post(f"{at}/jobs/{job}/stop")
    ended = wait(bench, study, job)
    assert ended["status"] == "stopped"
    run = bench.get(f"{at}/run.toml", params={"job": job}).text
    assert "generations = 100000" not in run
    last = ended["found"]["points"] - 1
    rows = published(bench, study, root, job=job, point=last, accept=ACCEPT)
    assert replayed(bench, at, tmp_path / "again", job=job, point=last) == rows


def test_a_question_whose_client_went_away_is_given_up() -> None:
    ended: list[str] = []

    class Gone:
        async def is_disconnected(self) -> bool:
            return True

    async def endless() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ended.append("cancelled")  # the pool stops its worker here
            raise

    # in a thread of its own: a browser of another test may have a loop in this one
    with ThreadPoolExecutor(1) as pool, pytest.raises(HTTPException) as raised:
        pool.submit(lambda: asyncio.run(while_connected(cast(Any, Gone()), endless()))).result()
    assert (raised.value.status_code, ended) == (499, ["cancelled"])
