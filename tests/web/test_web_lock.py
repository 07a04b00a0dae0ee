"""One server for each folder: a second one is refused with the name of the first, a dead one is succeeded."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.web.bench import client, declare, server, write_table


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write_table(tmp_path / "people.csv")
    return tmp_path


def second(root: Path) -> subprocess.CompletedProcess[str]:
    """Start another server on the folder; one that comes up instead of being refused is ended."""
    command = [sys.executable, "-m", "sfumato", "serve", str(root), "--no-browser", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        text = process.stdout.readline()
        if text.startswith("workbench:"):
            process.send_signal(signal.SIGINT)
        text += process.stdout.read()
    return subprocess.CompletedProcess(command, process.returncode, text)


@pytest.mark.long
def test_a_second_server_is_refused_and_the_jobs_of_the_first_go_on(root: Path) -> None:
    with server(root) as first, first.client() as bench:
        study = declare(bench, system="cuts", problem=2, generations=100_000)
        job = bench.post(f"/api/studies/{study}/jobs", json={}).json()["id"]
        while not bench.get(f"/api/studies/{study}/jobs/{job}/live").json():
            pass
        done = second(root)
        state = bench.get(f"/api/studies/{study}/jobs/{job}").json()
        assert state["status"] == "running", state
        assert done.returncode == 2, done.stdout
        assert f"process {first.process.pid}" in done.stdout
        assert os.uname().nodename in done.stdout
        bench.post(f"/api/studies/{study}/jobs/{job}/stop")


@pytest.mark.long
def test_the_folder_of_a_server_that_was_killed_is_taken_over(root: Path) -> None:
    with server(root) as first, first.client() as bench:
        study = declare(bench, system="cuts", problem=2, generations=100_000)
        job = bench.post(f"/api/studies/{study}/jobs", json={}).json()["id"]
        while not bench.get(f"/api/studies/{study}/jobs/{job}/live").json():
            pass
        worker = int(bench.get(f"/api/studies/{study}/jobs/{job}").json()["process"])
        first.process.kill()
        first.process.wait()
    while Path(f"/proc/{worker}/cmdline").exists() and Path(f"/proc/{worker}/cmdline").read_bytes():
        pass  # the worker ends with its server: two must never work in one folder
    with client(root) as bench:
        assert bench.get(f"/api/studies/{study}/jobs/{job}").json()["status"] == "interrupted"
