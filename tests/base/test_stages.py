"""What a stage says of the process it ran in."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import sfumato as sf
from sfumato.base import progress
from sfumato.base.progress import recording, stage

PEAK = "from sfumato.base.progress import peak_memory; print(peak_memory())"


def test_the_memory_of_the_process_that_started_this_one_does_not_count() -> None:
    held = np.ones(100_000_000)  # 800 MB
    peak = int(subprocess.run([sys.executable, "-c", PEAK], capture_output=True, text=True, check=True).stdout)
    assert 0 < peak < held.nbytes / 2


class Clock:
    """A clock that the test moves on, so that a busy machine does not decide the outcome."""

    def __init__(self) -> None:
        self.now = 0.0

    def perf_counter(self) -> float:
        return self.now

    process_time = perf_counter

    def work(self, seconds: float) -> None:
        self.now += seconds


def test_the_stages_of_nested_work_add_up_to_no_more_than_it_took(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search that runs other searches was counted twice: 30.7 s of stages in 15.7 s."""
    clock = Clock()
    monkeypatch.setattr(progress, "time", clock)
    with recording() as outer, stage("search"):
        clock.work(1)
        for _ in range(2):
            with recording() as inner, stage("search"):
                clock.work(5)
                with stage("count classes"):
                    clock.work(3)
            assert [(done.name, done.seconds) for done in inner.done] == [("count classes", 3), ("search", 5)]
    assert [done.name for done in outer.done] == ["count classes", "search", "count classes", "search", "search"]
    assert [done.seconds for done in outer.done] == [3, 5, 3, 5, 1]
    assert sum(done.cpu_seconds for done in outer.done) == clock.now


@pytest.mark.parametrize("reading", ["strict", "agreeing"])
@pytest.mark.parametrize("after", [None, "lattice"])
def test_the_stages_of_cells_are_within_the_time_of_the_search(reading: str, after: str | None, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({name: rng.integers(0, 5, 300) for name in "abc"})
    column = {"role": "quasi_identifier", "hierarchy": {"build": "flat"}}
    frame.to_csv(tmp_path / "p.csv", index=False)
    cells = {"k": [3, 5], "reading": reading, "after": after, "bases": 2, "exact": 0}
    study = sf.Study(
        data={"path": str(tmp_path / "p.csv")},
        columns=dict.fromkeys("abc", column),
        search={"system": "cells"},
        cells=cells,
    )
    began = time.perf_counter()
    front = sf.search(study)
    took = time.perf_counter() - began
    searched = sum(float(done["seconds"]) for done in front.stages if done["stage"] == "search")
    assert len([done for done in front.stages if done["stage"] == "search"]) > 1
    assert searched == pytest.approx(front.seconds, rel=0.1, abs=0.05)
    assert sum(float(done["seconds"]) for done in front.stages) <= took + 0.01
