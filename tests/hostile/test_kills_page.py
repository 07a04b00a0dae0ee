"""Jobs of the page, and the server itself, killed at any moment: nothing unfinished counts, and a job ends the same."""

from __future__ import annotations

import json
import os
import random
import signal
from collections import Counter
from pathlib import Path

import httpx
import pytest

from sfumato.methods.registry import load_front
from tests.hostile.test_kills import KILLS, SEED, open_to_others, repeatable
from tests.moments import FOLDER
from tests.web.bench import Server, declare, server, wait, write_table

NUMBER = max(KILLS // 8, 1)
ENDED = ("killed", "failed", "interrupted", "done", "stopped")
WAYS = [(signal.SIGKILL, False), (signal.SIGKILL, True), (signal.SIGTERM, False), (signal.SIGTERM, True)]
WAYS += [(signal.SIGINT, False)]


class Bench:
    """A folder that is served, and the moment at which its next job, or the server of that job, is killed."""

    def __init__(self, root: Path) -> None:
        self.root, self.moment, self.count = root / "served", root / "moment.json", root / "count"
        self.temp = root / "temp"
        for folder in (self.root, self.temp):
            folder.mkdir()
        write_table(self.root / "people.csv", rows=80)

    def arrange(self, kind: int = 0, at: int = 0, parent: bool = False) -> None:
        asked = {"below": str(self.root), "signal": int(kind), "at": at, "only": "job", "parent": parent}
        self.moment.write_text(json.dumps(asked | {"count": str(self.count)}), "utf-8")


def posted(bench: httpx.Client, study: str) -> str:
    return str(bench.post(f"/api/studies/{study}/jobs", json={}).json()["id"])


def ended(served: Server, bench: httpx.Client, study: str, job: str) -> str:
    """How a job ended; "server" if its server did."""
    try:
        return str(wait(bench, study, job)["status"])
    except httpx.TransportError:
        served.process.wait(60)
        return "server"


def again(bench: httpx.Client, study: str, job: str) -> None:
    """A job that did not end well is run again, and is then done."""
    state = bench.get(f"/api/studies/{study}/jobs/{job}").json()
    assert state["status"] in ENDED, state
    if state["status"] != "done":
        assert bench.post(f"/api/studies/{study}/jobs/{job}/again").status_code == 200
        assert wait(bench, study, job)["status"] == "done"


@pytest.mark.long
@pytest.mark.parametrize("system", ["cuts", "lattice"] if NUMBER > 1 else ["cuts"])
def test_a_job_that_is_killed_ends_the_same_when_it_runs_again(
    system: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    place, rng, counts = Bench(tmp_path), random.Random(f"{SEED} {system}"), Counter[str]()
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(FOLDER), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.setenv("SFUMATO_MOMENT", str(place.moment))
    monkeypatch.setenv("TMPDIR", str(place.temp))
    settings = {"problem": 2, "generations": 4, "population": 8} if system == "cuts" else {}
    place.arrange()
    with server(place.root) as served, served.client() as bench:
        study = declare(bench, system=system, **settings)
        job = posted(bench, study)
        assert wait(bench, study, job)["status"] == "done"
        moments = int(place.count.read_text())
    jobs = place.root / "workbench" / "studies" / study / "jobs"
    reference = repeatable(jobs / job / "front")
    left = NUMBER // 2 + (system == "cuts") * (NUMBER % 2)
    while left:
        with server(place.root) as served, served.client() as bench:
            while left and served.process.poll() is None:
                left -= 1
                kind, parent = WAYS[left % len(WAYS)]
                place.arrange(kind, rng.randint(1, moments), parent)
                job = posted(bench, study)
                how = ended(served, bench, study, job)
                counts[f"{'server' if parent else 'worker'} {kind.name} {how}"] += 1
                place.arrange()
                assert not list(open_to_others(place.root / "workbench"))
                if (jobs / job / "front").exists():
                    assert load_front(jobs / job / "front").points
                if how != "server":
                    again(bench, study, job)
        with server(place.root) as served, served.client() as bench:
            again(bench, study, job)
            assert repeatable(jobs / job / "front") == reference
    with server(place.root) as served, served.client() as bench:
        for state in bench.get("/api/jobs").json() if bench.get("/api/jobs").status_code == 200 else []:
            assert state["status"] == "done"
    for folder in jobs.iterdir():
        assert repeatable(folder / "front") == reference
        assert not [path.name for path in folder.iterdir() if path.name.startswith(".")]
    assert not list(place.temp.iterdir())
    with capsys.disabled():
        print(f"\npage, {system}: {sum(counts.values())} kills over {moments} moments: {dict(sorted(counts.items()))}")
