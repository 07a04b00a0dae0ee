"""Killed or stopped half-way, a protection and its release are whole or not there at all, and can be made again."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.methods.groups.files import protected_study

from sfumato.cli import run
from sfumato.errors import StoppedError
from sfumato.methods.groups.attack.attack import attack_with
from sfumato.methods.groups.files import read_auxiliary, read_target, settings_of
from sfumato.methods.groups.planner import Planner
from sfumato.methods.groups.search import protect
from sfumato.methods.publish import verify
from sfumato.methods.registry import load_front
from sfumato.methods.run import Run
from sfumato.study import Study, read

ROOT = Path(__file__).parents[3]
KILLER = """
import os, random, sys
from pathlib import Path
from sfumato.cli import run
from tests.moments import attempt
import plotly.graph_objects, plotly.offline, pyarrow.dataset, pyarrow.parquet, scipy.optimize
import sfumato.data.duckdb
import sfumato.methods.groups.system

folder = Path(sys.argv[1])

def protect(name):
    return ["search", str(folder / "run.toml"), "-o", str(folder / name), "--set", "groups.protect.test_seed=1"]

def publish(name):
    accepted = [word for rule in ("uniques", "attacks", "earlier") for word in ("--accept", f"{rule}=made for a test")]
    return ["publish", str(folder / "p"), "-o", str(folder / name), *accepted]

sys.stdout, report = open(os.devnull, "w"), sys.stdout
rng = random.Random(3)
for command, name in ((protect, "p"), (publish, "r")):
    code, moments = attempt(lambda: run(command(name)), folder)
    assert code in (0, 3) and moments > 4, (code, moments)
    for number in range(4):
        at = rng.randint(1, moments)
        print(f"{name}{number}", attempt(lambda: run(command(f"{name}{number}")), folder, at)[0], file=report)
"""


@pytest.mark.published
def test_killed_at_random_moments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SFUMATO_STATE", str(tmp_path / "state"))
    protected_study(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", KILLER, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    codes = {line.split()[0]: int(line.split()[1]) for line in done.stdout.splitlines()}
    assert len(codes) == 8
    assert list(codes.values()).count(-9) >= 6  # a run may have fewer moments than the one that was counted
    for name, code in codes.items():
        folder = tmp_path / name
        if not folder.exists():
            assert code == -9
        elif name.startswith("p"):
            assert load_front(folder).points  # renamed whole
        else:
            verify(folder).raise_if_failed()
    killed = next(name for name, code in codes.items() if code == -9)
    if not (tmp_path / killed).exists():  # leftovers of a killed process do not block a new run
        kind, source = ("search", "run.toml") if killed.startswith("p") else ("publish", "p")
        assert run([kind, str(tmp_path / source), "-o", str(tmp_path / killed)]) in (0, 3)


@pytest.fixture
def study(tmp_path: Path) -> Study:
    protected_study(tmp_path)
    return read(tmp_path / "run.toml")


@pytest.mark.parametrize("attacker", ["exact", "evolutionary", "boosted"])
def test_an_attacker_stops_while_it_learns(study: Study, attacker: str) -> None:
    target, other = read_target(study), read_auxiliary(study, settings_of(study).auxiliary[0])
    with pytest.raises(StoppedError, match="interrupted while"):
        attack_with(study, target, other, attacker, "secret", [1], lambda done, total: True)


def test_what_is_finished_is_kept(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    target, other = read_target(study), read_auxiliary(study, settings_of(study).auxiliary[0])
    told: list[int] = []

    def stop_in_the_second(done: int, total: int) -> bool:
        told.append(done)
        return told.count(1) > 5

    found = attack_with(study, target, other, "evolutionary", "secret", [1, 2, 3], stop_in_the_second)
    assert [one.seed for one in found] == [1]
    whole = attack_with(study, target, other, "evolutionary", "secret", [1])
    assert found[0].as_dict() == whole[0].as_dict()


def test_a_protection_keeps_its_finished_levels(study: Study) -> None:
    levels: list[int] = []

    def stop_after_a_level(done: int, total: int) -> bool:
        levels.append(done)
        return done >= 1

    found = protect(study, Run(stop_after_a_level), test_seed=1)
    assert [level.level for level in found.levels] in ([0.5], [0.0])  # what was finished, or nothing if that is no gain
    with pytest.raises(StoppedError, match="interrupted while"):
        protect(study, Run(lambda done, total: True), test_seed=1)


def test_a_stop_after_the_first_plans_keeps_them_with_their_verdict(study: Study) -> None:
    """Whoever stops once and for all while other plans are made has those so far, judged; progress is never over."""
    told: list[tuple[int, int]] = []

    def stop_from_the_last_level_on(done: int, total: int) -> bool:
        told.append((done, total))
        return (total, total) in told

    run = Run(stop_from_the_last_level_on)
    found = protect(study, run, test_seed=1)
    assert run.stopped
    assert found.levels
    assert found.sealed
    assert all(level.sealed for level in found.levels)
    assert all(done <= total for done, total in told)
    protect(study, Run(lambda done, total: told.append((done, total)) or False), test_seed=1)
    assert all(done <= total for done, total in told)


def test_where_no_plan_bounds_attackers_like_the_known_ones_they_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    protected_study(tmp_path, attackers='["forest"]')
    exact = Planner._exact
    monkeypatch.setattr(Planner, "_exact", lambda *way, likes: None if likes else exact(*way, likes=likes))
    assert protect(read(tmp_path / "run.toml"), Run(), test_seed=1).choice.plan.swaps > 0


@pytest.mark.long
def test_ctrl_c_while_it_learns(tmp_path: Path) -> None:
    """A search that would take hours hears Ctrl-C at once, and leaves nothing behind."""
    protected_study(tmp_path, attack="generations = 1000000\n", attackers='["evolutionary"]')
    (tmp_path / "before").touch()
    command = [sys.executable, "-c", STOPPED, str(tmp_path)]
    before = {path.name for path in tmp_path.iterdir()}
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 130, done.stderr
    assert "interrupted while" in done.stderr
    assert {path.name for path in tmp_path.iterdir()} == before


STOPPED = """
import os, signal, sys
from sfumato.methods.groups.attack.rules import RuleMeasure
from sfumato.cli import main
quality, calls = RuleMeasure.quality, []
def struck(self, *given):  # Ctrl-C in the middle of learning
    calls.append(1)
    if len(calls) == 50:
        os.kill(os.getpid(), signal.SIGINT)
    return quality(self, *given)
RuleMeasure.quality = struck
main(["search", sys.argv[1] + "/run.toml", "-o", sys.argv[1] + "/out"])
"""
