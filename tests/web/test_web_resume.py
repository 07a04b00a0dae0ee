"""A job that is run again continues from its state, for each method whose search keeps one; no method by its name."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import sfumato as sf
import sfumato.methods.search
import sfumato.web.api.jobs
from sfumato.base.files import write_text
from sfumato.methods.registry import MODULES, system_named
from sfumato.methods.run import Checkpoint, Run
from sfumato.methods.search import run_search
from sfumato.web.api import jobs
from sfumato.web.workspace import Places, read_json, write_json

WEB = Path(sf.__file__).parent / "web"
NAME = re.compile(rf"""[=!]==? *["']({"|".join(MODULES)})["']|["']({"|".join(MODULES)})["'] *[=!]==?""")
RECODING = ["lattice", "cuts", "local", "cells"]
SEARCH = {"cuts": {"generations": 3, "population": 8}}


def study_of(folder: Path, method: str) -> sf.Study:
    values = {"a": [i % 5 for i in range(60)], "b": ["xyz"[i % 7 % 3] for i in range(60)]}
    pd.DataFrame(values).to_csv(folder / "people.csv", index=False)
    columns = {name: {"role": "quasi_identifier", "hierarchy": {"build": "flat"}} for name in values}
    study = sf.Study(data={"path": str(folder / "people.csv")}, columns=columns)
    return study.with_search(system=method, **SEARCH.get(method, {}))


@pytest.mark.parametrize("method", RECODING)
def test_a_search_keeps_a_state_where_its_method_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    kept: list[Path] = []
    monkeypatch.setattr(
        "sfumato.methods.run.Checkpoint", lambda path, *given: kept.append(path) or Checkpoint(path, *given)
    )
    run_search(study_of(tmp_path, method), Run(checkpoint=tmp_path / "state"))
    assert system_named(method).abilities.resumable == bool(kept)
    assert set(kept) <= {tmp_path / "state"}


@pytest.mark.parametrize("method", RECODING)
def test_a_job_that_is_run_again_continues_from_its_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    """The first run is broken off with its state written; the second reads it and finds the front of one run."""
    study = study_of(tmp_path, method)
    folder = tmp_path / "job"
    folder.mkdir()
    write_text(folder / "run.toml", study.as_toml())
    write_json(folder / "job.json", {"kind": "search", "study": "s", "with": {}})
    begun: list[tuple[Path, bool]] = []
    real = sfumato.methods.search.search

    def broken_off(*given: Any, checkpoint: Path, resume: bool, **more: Any) -> Any:
        begun.append((checkpoint, resume))
        front = real(*given, checkpoint=checkpoint, resume=resume, **more)
        if not resume:
            key = Checkpoint(checkpoint, front.study, front.fingerprint)
            key.save(dict, now=True)
            raise KeyboardInterrupt
        return front

    monkeypatch.setattr(sfumato.web.api.jobs, "search", broken_off)
    places = Places(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        jobs.run_job(places, folder)
    monkeypatch.setattr(Checkpoint, "load", lambda self: begun.append((self.path, True)))  # nothing was in it
    jobs.run_job(places, folder)
    assert read_json(folder / "done.json")["status"] == "done"
    states = {path for path, _ in begun}
    assert len(states) == 1
    assert [resumed for _, resumed in begun][:2] == [False, True]
    assert len(begun) > 2, "the search did not read its state"
    assert [p.saved() for p in sf.load_front(folder / "front").points] == [p.saved() for p in real(study).points]


def test_channels_and_groups_keep_no_state() -> None:
    assert [name for name in MODULES if not system_named(name).abilities.resumable] == ["channel", "groups"]


def test_no_method_is_compared_by_its_name() -> None:
    """Kinds of jobs are compared: searches for channels and attacks on groups have routes of their own."""
    found = []
    for path in [*sorted(WEB.rglob("*.py")), *sorted(WEB.rglob("*.js"))]:
        for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1):
            if NAME.search(line) and "kind" not in line and "mode" not in line:
                found.append(f"{path.name}:{number}: {line.strip()}")
    assert found == []


@pytest.mark.parametrize("line", ['if front.system == "cuts":', 'now.system === "lattice" && x', "'local' != name"])
def test_the_search_for_comparisons_finds_them(line: str) -> None:
    assert NAME.search(line)
