"""The groups paper at its own size: a synthetic census, a state-sized protection, Hawaii over the seeds."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from sfumato.methods.groups.attack.attack import attack_with
from sfumato.methods.groups.files import read_auxiliary, read_target, settings_of
from sfumato.methods.groups.planner import Planner
from sfumato.methods.groups.search import truths_of
from sfumato.papers.groups import (
    CENSUS_SEED,
    PAPER_AREAS,
    PAPER_MEMBERS,
    PAPER_RECORDS,
    census_runs,
    hawaii_lines,
    make_census,
)
from sfumato.samples.census import COLUMNS, people, plant
from sfumato.study import read

pytestmark = pytest.mark.published


def test_the_census_at_the_papers_size(tmp_path: Path) -> None:
    """On a seed that no choice was made on."""
    planted = make_census(tmp_path / "census", seed=CENSUS_SEED)
    assert (planted.census.records.sum(), planted.census.members.sum()) == (3_205_478, 14_263)
    exact, evolutionary, boosted = census_runs(planted, ("exact", "evolutionary", "boosted"))
    for run in (exact, evolutionary):
        for found in (run.census, run.survey):
            assert found.accuracy >= 0.93, run
            assert (found.printed_j or 0) >= 0.775, run
            assert found.bayes >= 55, run
        assert run.cpu_seconds <= 600
        assert run.peak_gigabytes <= 4
    assert boosted.held_out_precision == pytest.approx(0.5, abs=0.05)  # how hard the census is


def test_no_value_is_exclusive_to_the_group_at_the_papers_size() -> None:
    planted = plant(PAPER_RECORDS, PAPER_MEMBERS, PAPER_AREAS, CENSUS_SEED)
    mine: dict[str, set[int]] = {}
    others: dict[str, set[int]] = {}
    for chunk in people(planted, CENSUS_SEED):
        member = chunk["military"] == 1
        for name in COLUMNS:
            mine.setdefault(name, set()).update(np.unique(chunk[name][member]).tolist())
            others.setdefault(name, set()).update(np.unique(chunk[name][~member]).tolist())
    assert {name: sorted(mine[name] - others[name]) for name in COLUMNS if mine[name] - others[name]} == {}


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
