"""How many times the proven floor a point of the page loses: the point that is shown, by the figure it has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sfumato as sf
from sfumato.decide.floor import floor_at, with_floor
from sfumato.front import Front
from sfumato.web.api import front as exploring


class Nowhere:
    """A workbench without other searches."""

    def study(self, _: str) -> Path:
        return Path("/nonexistent")

    def job(self, _: str, __: str) -> Path:
        return Path("/nonexistent")


def study_of(rows: int, system: str, **settings: Any) -> sf.Study:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"a": rng.integers(0, 4, rows), "b": rng.choice(list("xyz"), rows)})
    frame["c"] = rng.integers(0, 3, rows)
    study = sf.Study(frame, quasi_identifiers=["a", "b", "c"])
    return study.with_settings({"search": {"system": system}} | settings)


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Show a front on the page."""
    monkeypatch.setattr(exploring, "read_json", lambda _: {})
    monkeypatch.setattr(exploring, "changes_since", lambda *_: [])

    def show(front: Front) -> None:
        table = front.study.table()
        monkeypatch.setattr(exploring, "front_of", lambda *_: (front, table))

    return show


def test_cells_that_agree_have_the_ratios_of_their_own_bounds(shown: Any) -> None:
    """They have no k: the bound of the largest k was taken for all of them."""
    front = sf.search(study_of(40, "cells", cells={"k": [2, 3, 5], "reading": "agreeing"}))
    shown(front)
    ratios = exploring.front(Nowhere(), "s", "j")["ratios"]  # type: ignore[arg-type]
    assert ratios == {p.id: pytest.approx(p.details["ratio"]) for p in front.points}
    assert min(ratios.values()) >= 1 - 1e-9
    for p in front.points:
        assert exploring.point(Nowhere(), "s", "j", p.id)["ratio"] == pytest.approx(p.details["ratio"])  # type: ignore[arg-type]


def test_an_answer_has_the_ratio_of_its_own_figures(shown: Any) -> None:
    """The same recoding with other classes suppressed has another k and another loss than the point of the search."""
    rng = np.random.default_rng(2)
    frame = pd.DataFrame({"a": rng.integers(0, 12, 400), "b": rng.integers(0, 6, 400)})
    study = sf.Study(frame, quasi_identifiers=["a", "b"])
    study = study.with_hierarchies(a=sf.intervals(3, 6), b=sf.intervals(2, 4))
    local = sf.search(study.with_settings({"search": {"system": "local"}, "local": {"k": [2, 5, 10, 20]}}))
    front = with_floor(sf.search(study, max_suppression=0.3), local)
    shown(front)
    levels = exploring.front(Nowhere(), "s", "j")["floor"]  # type: ignore[arg-type]
    tried = 0
    for p in front.points:
        answer = exploring.point(Nowhere(), "s", "j", p.id, size=6)  # type: ignore[arg-type]
        floor = floor_at(levels, answer["values"]["k"])
        if floor and answer["loss"] != p.loss:
            assert answer["ratio"] == pytest.approx(answer["loss"] / floor)
            tried += 1
    assert tried
