"""Questions to fronts whose points have classes of their own, and limits that make no sense."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.release.fronts import small

import sfumato as sf
from sfumato.base.text import percent
from sfumato.base.wording import as_options
from sfumato.cli import run
from sfumato.decide.ask import search_command
from sfumato.decide.curve import fitted
from sfumato.decide.limits import Aim, Limits
from sfumato.decide.offers import points_of
from sfumato.decide.sentences import publish_command, unreachable
from sfumato.errors import InputError, UnreachableError
from sfumato.front import Objective
from sfumato.measures.fast_paths import Form

FLAT: dict[str, Any] = {"role": "quasi_identifier", "hierarchy": {"build": "flat"}}
OWN = {
    "local": {"local": {"k": [2, 5, 10], "passes": 0}},
    "cells": {"cells": {"k": [2, 3], "passes": 0, "effort": 0}},
}
OTHER = {
    "channel": {"channel": {"columns": ["ill"], "points": 3}},
    "cells": {"cells": {"k": [2], "reading": "agreeing"}},
}


def front_of(folder: Path, system: str, settings: dict[str, dict[str, object]]) -> sf.Front:
    return sf.search(small(folder, rows=80, sex=FLAT).with_search(system=system).with_settings(settings))


@pytest.mark.parametrize("system", OWN)
def test_the_first_question_is_answered_by_points_with_classes_of_their_own(system: str, tmp_path: Path) -> None:
    front = front_of(tmp_path, system, OWN[system])
    whole = [point for point in front.points if not point.suppressed]
    most = max(point.loss for point in whole)
    answer = sf.ask(front, max_loss=most)
    first, second, third, _ = answer.questions
    assert first.answered
    assert first.offers[0].k == max(point.values["k"] for point in whole)
    assert first.says.startswith(f"k {first.offers[0].k}; ")
    assert second.asks == f"What k with nothing suppressed and a loss of at most {percent(most, 0.0)}?"
    assert "saved without" not in third.says
    none = sf.ask(front, min_k=2).questions[0]  # the usual 25 %
    lowest = min(point.loss for point in whole)
    assert none.answered == (lowest <= 0.25)


def test_no_more_suppression_is_assumed_than_a_front_allows(tmp_path: Path) -> None:
    study = small(tmp_path, rows=80, sex=FLAT)
    for share, says in ((0.0, "nothing suppressed"), (0.05, "at most 5.0 % suppressed")):
        asked = sf.ask(sf.search(study, max_suppression=share), max_loss=0.6)
        assert [says in asked.questions[place].asks for place in (1, 3)] == [True, True]
        assert all(offer.suppression <= share for question in asked.questions for offer in question.offers)
        assert all("0.1" not in question.command for question in asked.questions)


def test_one_step_is_one_step() -> None:
    one = np.array([0.5])
    assert "has 1 step and" in fitted(one, one).reason
    many = np.linspace(0.1, 0.9, 20)
    assert "takes 1 different value and" in fitted(many, np.ones(20)).reason


NONSENSE = ["max_loss=40", "max_loss=-0.1", "min_k=0", "min_k=-3", "max_risk=2", "max_suppressed=-1"]


@pytest.mark.parametrize("text", [*NONSENSE, "max_general_loss=-1", "min_k=inf"])
def test_pick_refuses_what_ask_refuses(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sf.search(small(tmp_path, rows=60, sex=FLAT)).save(tmp_path / "out")
    assert run(["pick", str(tmp_path / "out"), "--limit", text]) == 2
    assert "expected: a " in capsys.readouterr().err
    name, _, value = text.partition("=")
    if name in ("max_loss", "min_k"):
        with pytest.raises(InputError) as asked:
            sf.ask(sf.load_front(tmp_path / "out"), **{name: float(value)})  # type: ignore[arg-type]
        with pytest.raises(InputError) as picked:
            sf.pick(sf.load_front(tmp_path / "out"), **{name: float(value)})  # type: ignore[arg-type]
        assert str(asked.value) == str(picked.value)


@pytest.mark.parametrize("system", OTHER)
def test_fronts_without_k_say_which_limits_they_know(
    system: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    front = front_of(tmp_path, system, OTHER[system])
    front.save(tmp_path / "out")
    known = {"channel": ("min_privacy", "max_error"), "cells": ("min_matching_k", "max_loss")}[system]
    with pytest.raises(InputError, match="no limit, knee or point") as picked:
        sf.pick(front)
    with pytest.raises(InputError, match="have no k, so it cannot be asked") as asked:
        sf.ask(front, min_k=2)
    assert all(name in picked.value.expected and name in asked.value.remedy for name in known)
    assert "--" not in str(picked.value) + str(asked.value)
    assert run(["pick", str(tmp_path / "out")]) == 2
    told = capsys.readouterr().err
    assert "sf." not in told
    assert run(["pick", str(tmp_path / "out"), *told.split("try: ")[1].split()]) == 0
    assert as_options(asked.value.remedy).endswith(told.split("try: ")[1].strip())
    if system == "channel":
        most = max(point.values["mse"] for point in front.points)
        assert run(["pick", str(tmp_path / "out"), "--limit", f"max_error={most}"]) == 0
        assert run(["pick", str(tmp_path / "out"), "--limit", "min_privacy=-1"]) == 2


def test_what_to_try_is_possible_for_every_system(tmp_path: Path) -> None:
    front = front_of(tmp_path, "local", OWN["local"])
    limits = Limits(front.rows, max_loss=0.0, min_k=1e6, min_l=3)
    assert not limits.met(points_of(front)).any()
    error = unreachable(front, limits, Aim(Objective.of(Form.SIZE)))
    assert isinstance(error, UnreachableError)
    assert error.remedy == "relax two limits at once, or search again with other settings"


def test_commands_can_be_pasted(tmp_path: Path) -> None:
    folder = Path("my fronts/one")
    words = shlex.split(search_command(0.05, folder, 2))
    assert words[:3] == ["sfumato", "search", "my fronts/one/run.toml"]
    assert words[-2:] == ["-o", "my fronts/one-problem-2"]
    offer = points_of(front_of(tmp_path, "local", OWN["local"])).at(0, Objective.of(Form.SIZE))
    assert shlex.split(publish_command(folder, offer))[2] == "my fronts/one"
