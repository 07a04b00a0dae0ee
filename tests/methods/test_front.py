"""Fronts: saved, loaded, chosen from, drawn."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.moments import surroundings
from tests.points import points_in

import sfumato as sf
from sfumato.cli import run
from sfumato.errors import InputError, UnreachableError


@pytest.fixture(scope="module")
def front(adult: sf.FrequencyTable) -> sf.Front:
    return sf.search(sf.read(sf.sample("adult-complete")), table=adult)


def test_a_front_survives_its_folder(front: sf.Front, tmp_path: Path) -> None:
    front.save(tmp_path / "out")
    again = sf.load_front(tmp_path / "out")
    assert again.as_dict() == front.as_dict()
    assert again.study.search == front.study.search
    assert [point["values"]["k"] for point in points_in(tmp_path / "out")] == [p.values["k"] for p in front.points]
    with pytest.raises(InputError, match="already exists"):
        front.save(tmp_path / "out")
    other = sf.search(again.study)
    assert other.as_dict()["points"] == front.as_dict()["points"]
    other.save(tmp_path / "again")
    assert points_in(tmp_path / "again") == points_in(tmp_path / "out")


def test_a_folder_that_is_no_front(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"lacks front.json"):
        sf.load_front(tmp_path)


def test_pick(front: sf.Front) -> None:
    assert sf.pick(front, max_loss=0.30).point.values["k"] == 5
    assert sf.pick(front, min_k=20).point.values["k"] == 20
    assert sf.pick(front, max_risk=0.1).point.values["k"] == 10
    assert sf.pick(front, point=3).point.id == 3
    knee = sf.pick(front, knee=True).point
    assert 1 < knee.values["k"] < 30162
    assert "on a logarithmic scale of k and an even one of loss" in sf.pick(front, knee=True).reason
    with pytest.raises(UnreachableError, match="no point has k of at least 40000"):
        sf.pick(front, min_k=40000)
    with pytest.raises(InputError, match="more than one way"):
        sf.pick(front, min_k=2, knee=True)
    with pytest.raises(InputError, match="no limit, knee or point is given"):
        sf.pick(front)
    with pytest.raises(InputError, match="no point 99"):
        sf.pick(front, point=99)


def test_what_is_printed_of_results_is_one_line_without_values(front: sf.Front, adult: sf.FrequencyTable) -> None:
    results = {"front": front, "choice": sf.pick(front, max_loss=0.3), "table": adult, "audit": sf.audit(front.study)}
    for name, result in results.items():
        text = repr(result)
        assert len(text) < 1500, (name, len(text))
        assert "\n" not in text, name
        assert not any(value in text for value in ("Adm-clerical", "Exec-managerial", "Farming-fishing")), name


def within(front: sf.Front, **limits: float) -> list[sf.Point]:
    """The points that keep some limits, by plain code."""
    read = {"k": lambda p: p.values["k"], "risk": lambda p: 1 / p.values["k"], "loss": lambda p: p.loss}
    read["suppressed"] = lambda p: p.suppressed / front.rows
    kept = list(front.points)
    for name, limit in limits.items():
        way, _, figure = name.partition("_")
        kept = [p for p in kept if (read[figure](p) >= limit if way == "min" else read[figure](p) <= limit)]
    return kept


def test_pick_keeps_several_limits_at_once_and_says_which_bind(front: sf.Front) -> None:
    rng = np.random.default_rng(5)
    for _ in range(200):
        limits = {"min_k": float(rng.integers(1, 60)), "max_loss": float(rng.uniform(0.2, 0.9))}
        limits |= {"max_suppressed": float(rng.uniform(0, 0.02))} if rng.random() < 0.5 else {}
        kept = within(front, **limits)
        if not kept:
            with pytest.raises(UnreachableError) as caught:
                sf.pick(front, **limits)
            reached = front.points[int(caught.value.remedy.rsplit(" ", 1)[1])]
            assert all(p.id != reached.id for p in kept)
            continue
        choice = sf.pick(front, **limits)
        best = min(p.loss for p in kept)
        assert (choice.point in kept, choice.point.loss) == (True, best)
        for name in limits:
            freed = within(front, **{other: limit for other, limit in limits.items() if other != name})
            assert (name in choice.binding) == (min(p.loss for p in freed) < best), (name, choice)


def test_a_limit_on_what_a_front_lacks(front: sf.Front) -> None:
    with pytest.raises(InputError, match="does not limit any figure of this front") as caught:
        sf.pick(front, min_privacy=0.5)
    assert "min_k" in caught.value.expected
    with pytest.raises(InputError, match="is not a number"):
        sf.pick(front, max_loss=float("nan"))


def test_compare(front: sf.Front, adult: sf.FrequencyTable, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = sf.search(front.study.with_search(algorithm="pbg_ea", iterations=1, reproduction=True), table=adult)
    found = sf.compare_fronts(front, other)
    assert found.points == (61, len(other.points))
    assert found.dominated[0] == 0
    assert found.dominated[1] + found.shared == len(other.points)
    assert found.hypervolume[0] > found.hypervolume[1]
    assert sf.compare_fronts(front, front).shared == 61
    front.save(tmp_path / "a")
    other.save(tmp_path / "b")
    assert run(["compare", str(tmp_path / "a"), str(tmp_path / "b")]) == 0
    assert "hypervolume" in capsys.readouterr().out
    more = sf.search(front.study.with_search(objectives=["k", "distinct_l", "general_loss"]), table=adult)
    both = sf.compare_fronts(more, front)  # by what both were searched for
    assert (both.objectives, both.shared) == (("k", "general_loss"), 61)
    with pytest.raises(InputError, match="fewer than two objectives in common"):
        sf.compare_fronts(front, sf.search(front.study.with_search(objectives=["k"]), table=adult))


def test_a_search_within_a_time_limit_keeps_the_best_so_far(tmp_path: Path) -> None:
    assert run(["sample", "adult-complete", "-o", str(tmp_path / "adult")]) == 0
    out = tmp_path / "out"
    assert run(["search", str(tmp_path / "adult/run.toml"), "-o", str(out), "--seconds", "0"]) == 0
    front = sf.load_front(out)
    assert not front.exact
    assert front.points


def test_ctrl_c_keeps_the_best_so_far(tmp_path: Path) -> None:
    """A search over a measure without bounds visits every node, which takes long enough to interrupt."""
    assert run(["sample", "adult-complete", "-o", str(tmp_path / "adult")]) == 0
    text = (
        (tmp_path / "adult/run.toml")
        .read_text("utf-8")
        .replace('["k", "general_loss"]', '["t_closeness", "general_loss"]')
    )
    (tmp_path / "adult/run.toml").write_text(text, "utf-8")
    command = [sys.executable, "-m", "sfumato", "search", str(tmp_path / "adult/run.toml"), "-o", str(tmp_path / "out")]
    interrupted = surroundings(tmp_path / "moment.json", tmp_path, signal.SIGINT, 60)  # while it saves its state
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False, env=interrupted)
    assert done.returncode == 130, done.stderr
    assert "the best so far was kept" in done.stderr
    front = sf.load_front(tmp_path / "out")
    assert front.points
    assert not front.exact
    assert front.certificate["undecided"] > 0


def test_map(front: sf.Front, adult: sf.FrequencyTable, tmp_path: Path) -> None:
    path = sf.draw(front, tmp_path / "map.html", 4, adult)
    text = path.read_text("utf-8")
    assert "61 non-dominated generalizations of 30,162 records" in text
    assert "Plotly.newPlot(" in text
    assert "age hidden" in text


def test_the_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sample", "adult-complete", "-o", str(tmp_path / "adult")]) == 0
    out = tmp_path / "out"
    assert run(["search", str(tmp_path / "adult/run.toml"), "-o", str(out), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found) >= {"system", "algorithm", "exact", "objectives", "points", "evaluations", "space", "seconds"}
    assert found["points"][4]["values"]["k"] == 5
    assert found["points"][4]["loss"] == pytest.approx(0.2998, abs=1e-4)
    assert found["points"][4]["suppressed"] == 301
    assert found["points"][4]["plan"]["age"] == 6
    assert run(["search", str(tmp_path / "adult/run.toml"), "-o", str(out)]) == 2
    assert run(["pick", str(out), "--max-loss", "0.3", "--json"]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out.splitlines()[-1])["point"]["id"] == 4
    assert run(["pick", str(out), "--min-k", "99999"]) == 3
    assert run(["map", str(out), "--point", "4"]) == 0
    assert (out / "map.html").exists()
    assert run(["map", str(out), "--point", "400", "-o", str(tmp_path / "x.html")]) == 2
    assert not (tmp_path / "x.html").exists()
