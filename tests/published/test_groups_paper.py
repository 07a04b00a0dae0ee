"""The groups paper at its own size: a synthetic census, a state-sized protection, Hawaii over the seeds."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from sfumato.study import read
from sfumato.systems.groups.attack import attack_with
from sfumato.systems.groups.census import make_census
from sfumato.systems.groups.files import read_auxiliary, read_target, settings_of
from sfumato.systems.groups.protect import Planner, truths_of
from sfumato.systems.groups.reproduce import census_runs, hawaii_lines

pytestmark = pytest.mark.published


def test_the_census_at_the_papers_size(tmp_path: Path) -> None:
    planted = make_census(tmp_path / "census")
    assert (planted.census.records.sum(), planted.census.members.sum()) == (3_205_478, 14_263)
    for run in census_runs(planted, ("exact", "evolutionary")):
        for found in (run.census, run.survey):
            assert found.accuracy >= 0.93, run
            assert (found.printed_j or 0) >= 0.775, run
            assert found.bayes >= 55, run
        assert run.cpu_seconds <= 600
        assert run.peak_gigabytes <= 4


def test_a_state_is_protected_in_a_minute(tmp_path: Path) -> None:
    study = read(make_census(tmp_path / "state", 518_300, 2_300, 38).run)
    target = read_target(study)
    assert 91_000 <= target.records <= 92_000
    other = read_auxiliary(study, settings_of(study).auxiliary[0])
    known = [attack_with(study, target, other, a, "military", [1])[0] for a in ("exact", "evolutionary")]
    began = time.process_time()
    plan = Planner(study, target, truths_of(study, target), known, np.random.default_rng(1)).plan(1.0)
    assert plan is not None
    assert time.process_time() - began <= 60


def test_hawaii_is_disclosed_by_every_attacker(shared: Path) -> None:
    lines = hawaii_lines(shared / "data" / "acs-pums", range(1, 6))
    assert len(lines) == 6
    for line in lines:
        assert line["undisclosed"]["rank"][0] == 0, line
        assert line["undisclosed"]["rank"][1] <= 1, line
        assert line["spearman"][0] > 0.4, line
