"""What `search` and `publish` say at their end: commands that can be pasted, limits that ended the work."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from tests.release.fronts import ANYTHING, small, write_csv

import sfumato as sf
from sfumato.cli import run
from sfumato.cli.search import SYSTEMS
from sfumato.cli.show import Watch, counted_plans
from sfumato.errors import InputError
from sfumato.methods.registry import MODULES, system_named

Capture = pytest.CaptureFixture[str]
FLAT: dict[str, Any] = {"role": "quasi_identifier", "hierarchy": {"build": "flat"}}
SECTIONS: dict[str, dict[str, Any]] = {
    "lattice": {},
    "cuts": {"search": {"generations": 3, "population": 8, "local_search": 1}},
    "local": {"local": {"k": [2, 5], "passes": 0}},
    "cells": {"cells": {"k": [2, 3], "exact": 0, "effort": 1, "passes": 0}},
    "channel": {"channel": {"columns": ["ill"], "points": 4}},
}


def run_file(folder: Path, system: str, name: str = "my run.toml") -> Path:
    study = small(folder, rows=60, sex=FLAT, income={"role": "drop"}).model_copy(update={"policy": ANYTHING})
    study = study.with_search(system=system).with_settings(SECTIONS[system])
    (folder / name).write_text(study.as_toml(), "utf-8")
    return folder / name


def test_help_names_every_system() -> None:
    assert re.split(", | or ", SYSTEMS) == list(MODULES)


def test_one_plan_is_one_plan() -> None:
    found = {name: counted_plans(1, system_named(name).plans) for name in MODULES}
    assert found == {
        "lattice": "1 non-dominated generalization",
        "cuts": "1 non-dominated generalization",
        "channel": "1 channel",
        "groups": "1 plan of swaps",
        "local": "1 local recoding",
        "cells": "1 suppression of cells",
    }
    assert counted_plans(2, system_named("cells").plans) == "2 suppressions of cells"


def continued(told: str) -> list[str]:
    match = re.search(r"kept\. (sfumato .*) continues it", told)
    assert match is not None, told
    return shlex.split(match[1])[1:]


def test_the_command_that_continues_is_the_one_that_was_given(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["search", str(run_file(tmp_path, "lattice")), "-o", str(tmp_path / "my front"), "--system", "local"]
    words += ["--set", "local.k=[2, 3]", "--set", "local.passes=0", "--seed", "4"]

    def interrupted(self: Watch, done: int, total: int) -> bool:
        self.interrupted = self.interrupted or done > 0
        return self.interrupted

    with monkeypatch.context() as patch:
        patch.setattr(Watch, "__call__", interrupted)
        assert run(words) == 130
    again = continued(capsys.readouterr().err)
    assert again == [*words, "--resume"]
    assert run(again) == 0
    assert [point.values["k"] for point in sf.load_front(tmp_path / "my front").points] == [2, 3]


@pytest.mark.parametrize("system", SECTIONS)
def test_a_time_limit_that_cut_a_search_short_is_told(system: str, tmp_path: Path, capsys: Capture) -> None:
    words = ["search", str(run_file(tmp_path, system)), "-o", str(tmp_path / "out"), "--seconds"]
    assert run([*words, "0"]) == 0
    told = capsys.readouterr().err
    assert "stopped by the time limit; the best so far was kept" in told
    assert ("--resume continues it" in told) == (tmp_path / ".out.state").exists()
    if "continues it" in told:
        assert continued(told) == [*words, "0", "--resume"]
    words[3] = str(tmp_path / "whole")
    assert run([*words, "500"]) == 0
    assert "time limit" not in capsys.readouterr().err


def test_a_table_that_is_set_replaces_that_of_the_run_file(tmp_path: Path, capsys: Capture) -> None:
    study = small(tmp_path, rows=60, sex=FLAT).with_search(constraints={"k": 8})
    (tmp_path / "run.toml").write_text(study.as_toml(), "utf-8")

    def least_k(*words: str) -> float:
        assert run(["search", str(tmp_path / "run.toml"), "--json", *words]) == 0
        return float(min(point["values"]["k"] for point in json.loads(capsys.readouterr().out)["points"]))

    assert least_k() >= 8
    assert least_k("--set", "search.constraints={}") < 8
    assert least_k("--set", "search.constraints={distinct_l=2}") < 8
    assert run(["search", str(tmp_path / "run.toml"), "--system", "local", "--set", "local.k=[]"]) == 2


def test_a_problem_of_a_system_that_has_none_is_refused(tmp_path: Path, capsys: Capture) -> None:
    file = str(run_file(tmp_path, "local"))
    for words in ((), ("--system", "cells")):
        assert run(["search", file, *words, "--problem", "2"]) == 2
        assert "which has no problems" in capsys.readouterr().err


def test_a_key_of_the_run_file_is_no_option(tmp_path: Path, capsys: Capture) -> None:
    assert run(["search", str(run_file(tmp_path, "lattice")), "--max-suppression", "5"]) == 2
    assert "search.max_suppression = 5.0 is not valid" in capsys.readouterr().err


def test_the_command_that_verifies_runs(tmp_path: Path, capsys: Capture) -> None:
    front, release = tmp_path / "my front", tmp_path / "release"
    assert run(["search", str(run_file(tmp_path, "lattice", "other.toml")), "-o", str(front)]) == 0
    assert run(["publish", str(front), "-o", str(release)]) == 2
    last = len(sf.load_front(front).points) - 1
    assert f"0 to {last}" in capsys.readouterr().err
    assert run(["publish", str(front), "-p", str(last), "-o", str(release)]) == 0

    def verified() -> None:
        told = capsys.readouterr().err
        command = shlex.split(told.split("check it at any time: ")[1].splitlines()[0])
        assert run(command[1:]) == 0
        assert "the rows are those of the source" in capsys.readouterr().out

    verified()
    lines = (tmp_path / "people.csv").read_text("utf-8").splitlines()
    name = lines[0].split(",").index("name")
    born = [[cell + (" II" if i == name else "") for i, cell in enumerate(line.split(","))] for line in lines[1:9]]
    new = write_csv(tmp_path / "new people.csv", [*(line.split(",") for line in lines), *born])
    again = ["apply", str(release), str(new), "-o", str(tmp_path / "second")]
    assert run([*again, "--accept", "earlier=a table made for a test"]) == 0
    verified()


def test_a_front_of_one_point_has_one_id(tmp_path: Path, capsys: Capture) -> None:
    words = ["search", str(run_file(tmp_path, "local")), "-o", str(tmp_path / "out"), "--set", "local.k=[3]"]
    assert run(words) == 0
    assert capsys.readouterr().out.startswith("1 local recoding:")
    assert run(["publish", str(tmp_path / "out"), "-o", str(tmp_path / "release")]) == 2
    assert "--point 0, which is the only one" in capsys.readouterr().err
    with pytest.raises(InputError):
        sf.load_front(tmp_path / "out").point(1)
