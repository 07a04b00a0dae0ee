"""Requests made up from the OpenAPI schema: whatever is sent, the server answers with a sentence and never breaks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import hypothesis
import pytest
from tests.doors.bench import Server, declare, server, wait, write_table

schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed")
STREAM = "/api/events"  # it does not end


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    root = tmp_path_factory.mktemp("bench")
    write_table(root / "people.csv", rows=60)
    with server(root) as found:
        yield found


@pytest.fixture(scope="module")
def known(served: Server) -> dict[str, str]:
    """A study and a search that exist, so that requests get past the first check."""
    with served.client() as bench:
        study = declare(bench)
        job = bench.post(f"/api/studies/{study}/jobs", json={}).json()["id"]
        assert wait(bench, study, job)["status"] == "done"
    return {"study": study, "job": job}


def test_no_request_breaks_the_server(served: Server, known: dict[str, str]) -> None:
    headers = {"authorization": f"Bearer {served.token}"}
    contract = schemathesis.openapi.from_url(f"{served.origin}/api/openapi.json", headers=headers)
    asked = 0
    for found in contract.get_all_operations():
        operation = found.ok()
        if operation.path == STREAM or operation.method.upper() == "DELETE":
            continue

        @hypothesis.settings(max_examples=6, deadline=None, suppress_health_check=list(hypothesis.HealthCheck))
        @hypothesis.given(case=operation.as_strategy())
        def ask(case: Any) -> None:
            nonlocal asked
            asked += 1
            for name in ("study", "job"):
                if name in (case.path_parameters or {}):
                    case.path_parameters[name] = known[name]
            answer = case.call(headers=headers)
            assert answer.status_code < 500, (case.method, case.path, answer.text[:300])
            if answer.status_code >= 400 and "application/json" in str(answer.headers.get("content-type")):
                assert set(answer.json()["error"]) == {"what", "expected", "try"}

        ask()
    assert asked > 100
