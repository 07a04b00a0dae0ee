"""What a plan bounds beside the signals of known attackers: those of others like them, who draw the line elsewhere."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from tests.methods.groups.files import microfile

from sfumato.base.arrays import Floats
from sfumato.methods.groups.attack.attack import Attack
from sfumato.methods.groups.microfile import Microfile
from sfumato.methods.groups.signals import Sides, alike, middle, signals_of


@dataclass(frozen=True)
class Grader:
    """A model whose grades are given."""

    attacker: str = "forest"
    threshold: float = 0.5
    graded: bool = True
    everything: bool = False
    about: dict[str, Any] = field(default_factory=dict)

    def memberships(self, file: Microfile) -> Floats:
        return np.zeros(file.records)


GRADES = np.array([0.9, 0.64, 0.36, 0.25, 0.16, 0.09, 0.04, 0.01, 0.0, 0.0])


def attack_of(grades: Floats, seed: int = 1, **model: Any) -> Attack:
    file = microfile(np.random.default_rng(1), len(grades))
    return Attack(Grader(**model), "elsewhere", "g", seed, file, grades, None, 0.01)


def test_like_attackers_flag_three_times_as_many_or_hesitate() -> None:
    """Two records are flagged. Three times as many are six; everybody counts with the grade, or with its root."""
    own, wider, expected, hesitant = alike([attack_of(GRADES)])
    assert own.weights.tolist() == [0.9, 0.64, *[0.0] * 8]
    assert wider.weights.tolist() == [*GRADES[:6].tolist(), 0.0, 0.0, 0.0, 0.0]
    assert expected.weights.tolist() == GRADES.tolist()
    assert hesitant.weights == pytest.approx(np.sqrt(GRADES))
    assert [one.marks for one in (own, wider, expected, hesitant)] == [True, True, False, False]


def test_the_mean_over_seeds_is_bounded() -> None:
    own, wider, *_ = alike([attack_of(GRADES), attack_of(GRADES[::-1].copy(), 2)])
    assert own.weights[:2].tolist() == own.weights[:-3:-1].tolist() == [0.45, 0.32]
    assert wider.weights == pytest.approx(
        (np.where(GRADES >= 0.09, GRADES, 0) + np.where(GRADES >= 0.09, GRADES, 0)[::-1]) / 2
    )


def test_rules_know_no_line_and_have_their_own_signal_alone() -> None:
    assert len(alike([attack_of(GRADES, attacker="exact", graded=False)])) == 1


def test_who_adds_up_all_grades_may_only_hesitate() -> None:
    own, hesitant = alike([attack_of(GRADES, threshold=0.0)])
    assert own.weights.tolist() == GRADES.tolist()
    assert hesitant.weights == pytest.approx(np.sqrt(GRADES))
    assert not own.marks


def test_equal_signals_are_bounded_once_and_pages_show_the_attackers_own() -> None:
    file, known = microfile(np.random.default_rng(1), 10), [attack_of(GRADES), attack_of(GRADES, threshold=0.0)]
    assert [one.name for one in signals_of(file, [], known)] == ["forest from elsewhere"]
    assert len(signals_of(file, [], known, likes=True)) == 4


def test_sensitive_areas_lie_nearer_to_the_areas_that_stay() -> None:
    """One sensitive area with 20, one that stays at 1, two that rise from 2: a third of the way up from 1 to the level
    h of those that rise, x = 1 + (h - 1)/3 and x + 2h = 24, so h = 10 and x = 4."""
    sides = Sides(np.array([False, False, True, True]), np.array([False, True, False, False]))
    assert middle(np.array([20.0, 1, 2, 2]), [0], sides) == pytest.approx(4.0)
