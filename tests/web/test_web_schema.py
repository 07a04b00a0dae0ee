"""Requests made up from the OpenAPI schema: whatever is sent, the server answers with a sentence and never breaks."""

from __future__ import annotations

import contextlib
import json
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import hypothesis
import pytest
from tests.web.bench import Server, declare, server, until, wait, write_table

schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed")
STREAM = "/api/events"  # it does not end, so it has a test of its own
REQUESTS = int(os.environ.get("SFUMATO_REQUESTS", "200"))  # at least; a quarter of them on a full disk
SEED = int(os.environ.get("SFUMATO_FUZZ_SEED", "20261115"))


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    root = tmp_path_factory.mktemp("bench")
    write_table(root / "people.csv", rows=60)
    with server(root, "--jobs", "1") as found:
        yield found


@pytest.fixture(scope="module")
def known(served: Server) -> dict[str, str]:
    return searched(served)


def searched(served: Server) -> dict[str, str]:
    """A study and a search that exist, so that requests get past the first check."""
    with served.client() as bench:
        study = declare(bench)
        job = bench.post(f"/api/studies/{study}/jobs", json={}).json()["id"]
        assert wait(bench, study, job)["status"] == "done"
        bench.put(f"/api/studies/{study}", json={"reviewed": False})  # made-up searches are refused, not run
    return {"study": study, "job": job}


@pytest.mark.long
def test_what_is_at_work_is_not_deleted_and_what_is_deleted_is_gone(served: Server) -> None:
    with served.client() as bench:
        study = declare(bench, system="cuts", problem=2, generations=100_000)
        at = f"/api/studies/{study}"
        job = bench.post(f"{at}/jobs", json={}).json()["id"]
        until(bench, job, lambda found: found["status"] != "queued")
        for path in (at, f"{at}/jobs/{job}"):
            refused = bench.delete(path)
            assert (refused.status_code, refused.json()["error"]["try"]) in (
                (422, "stop them first"),
                (422, "stop it first"),
            )
        bench.post(f"{at}/jobs/{job}/stop")
        assert wait(bench, study, job)["status"] == "stopped"
        for path in (f"{at}/jobs/{job}", at):
            assert bench.delete(path).status_code == 200
            for method in ("GET", "DELETE"):
                assert bench.request(method, path).status_code == 404
        assert bench.get("/api/files", params={"folder": ""}).json()["files"][0]["name"] == "people.csv"


@pytest.mark.long
@hypothesis.settings(max_examples=8, deadline=None, suppress_health_check=list(hypothesis.HealthCheck))
@hypothesis.given(
    query=hypothesis.strategies.dictionaries(
        hypothesis.strategies.text(max_size=20), hypothesis.strategies.text(), max_size=3
    ),
    last=hypothesis.strategies.text("0123456789abc;", max_size=30),
    method=hypothesis.strategies.sampled_from(["GET", "GET", "POST", "DELETE", "HEAD", "PUT"]),
)
def test_the_stream_of_events_begins_with_every_job_whatever_is_asked(
    served: Server, known: dict[str, str], query: dict[str, str], last: str, method: str
) -> None:
    with (
        served.client() as bench,
        bench.stream(method, STREAM, params=query, headers={"last-event-id": last}) as answer,
    ):
        assert answer.status_code == (200 if method == "GET" else 405)
        if method == "GET":
            lines = answer.iter_lines()
            assert next(lines).startswith("retry:")
            told = next(line for line in lines if line.startswith("data:"))
            assert {"id", "study", "kind", "status"} <= set(json.loads(told[5:]))


def attacked(served: Server, known: dict[str, str], secret: str, requests: int) -> Counter[int]:
    """Send so many made-up requests or more to all operations; returns the answers by status.

    Nothing but "no room" (507) may be a 5xx.
    """
    headers = {"authorization": f"Bearer {secret}"}
    contract = schemathesis.openapi.from_url(f"{served.origin}/api/openapi.json", headers=headers)
    operations = [found.ok() for found in contract.get_all_operations()]
    operations = [operation for operation in operations if operation.path != STREAM]
    examples = min(max(requests // len(operations), 2), 25)
    answers: Counter[int] = Counter()
    turn = SEED
    while answers.total() < requests:
        turn += 1
        for operation in operations:

            @hypothesis.seed(turn)
            @hypothesis.settings(
                max_examples=examples,
                deadline=None,
                derandomize=False,
                database=None,
                suppress_health_check=list(hypothesis.HealthCheck),
            )
            @hypothesis.given(case=operation.as_strategy())
            def ask(case: Any) -> None:
                answers[_answer(served, known, headers, case, answers.total())] += 1

            ask()
    return answers


def _answer(served: Server, known: dict[str, str], headers: dict[str, str], case: Any, number: int) -> int:
    """Send one request; the status of the answer."""
    for name in ("study", "job"):
        # What the others need is not deleted: what a path ends with is then made up.
        spared = case.method.upper() == "DELETE" and case.path.endswith(f"{{{name}}}")
        if name in (case.path_parameters or {}) and not spared:
            case.path_parameters[name] = known[name]
    own = dict(headers)
    if case.method.upper() in ("PUT", "POST") and case.path.startswith("/api/studies/{study}"):
        # Half of the changes are made to the study as it is, so that they get past the check of the version.
        read = httpx.get(f"{served.origin}/api/studies/{known['study']}", headers=headers)
        own |= {"if-match": read.headers.get("etag", "")} if number % 2 else {}
    answer = case.call(headers=own)
    assert answer.status_code < 500 or answer.status_code == 507, (case.method, case.path, answer.text[:300])
    if answer.status_code >= 400 and "application/json" in str(answer.headers.get("content-type")):
        assert set(answer.json()["error"]) == {"what", "expected", "try"}
    return int(answer.status_code)


@pytest.mark.long
def test_no_request_breaks_the_server(served: Server, known: dict[str, str]) -> None:
    answers = attacked(served, known, served.secret(), REQUESTS * 3 // 4)
    print(f"{answers.total()} requests: {dict(sorted(answers.items()))}")
    with served.client() as bench:
        assert bench.get(f"/api/studies/{known['study']}/audit").status_code == 200


@pytest.mark.long
def test_no_request_breaks_a_server_whose_disk_is_full(small_disk: Path) -> None:
    write_table(small_disk / "people.csv", rows=60)
    with server(small_disk, "--jobs", "1") as served:
        known, secret = searched(served), served.secret()
        with (small_disk / "filler").open("wb", buffering=0) as filler, contextlib.suppress(OSError):
            while True:
                filler.write(b"x" * 512)
        answers = attacked(served, known, secret, REQUESTS // 4)
        print(f"{answers.total()} requests on a full disk: {dict(sorted(answers.items()))}")
        (small_disk / "filler").unlink()
        with served.client() as bench:
            assert bench.get(f"/api/studies/{known['study']}/audit").status_code == 200
            assert bench.post("/api/studies", json={"path": "people.csv"}).status_code == 200
