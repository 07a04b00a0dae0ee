"""Pairs that cannot be, plans near the least cost, targeted record swapping, and what swaps do to tables of areas."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.methods.groups.files import microfile
from tests.methods.groups.test_protect import problem

from sfumato.methods.groups.improve import shift_of
from sfumato.methods.groups.planner import Influence, Units, risks, targeted_pairs
from sfumato.methods.groups.transport import Transport, least_cost


@given(st.integers(0, 2000))
def test_near_the_least_cost_the_bound_holds(seed: int) -> None:
    given_, _ = problem(np.random.default_rng(seed))
    best, near = least_cost(given_), least_cost(given_, 0, close=0.3)
    assert best is not None
    assert near is not None
    assert near.bound <= best.cost + 1e-6 <= near.cost + 2e-6
    again = least_cost(given_, 0, pool=near.pool)
    assert again is not None
    assert again.cost == pytest.approx(best.cost)


@pytest.mark.parametrize("seed", range(4))
def test_a_priced_bound_that_cannot_be_kept_makes_no_plan_dear(seed: int) -> None:
    """What is paid for it is much more than the pairs cost, and is no part of what "close" is a share of."""
    rng = np.random.default_rng(seed)
    giver_area, taker_area = rng.integers(0, 2, 60).astype(np.int32), rng.integers(2, 8, 600).astype(np.int32)
    room = np.full((2, 8), 1e9)
    room[0, :2], room[0, 2:], room[1, :2] = -0.7 * np.bincount(giver_area), 12, -40
    given_ = Transport(
        rng.integers(1, 15, (60, 600)) + rng.random((60, 600)) * 1e-5,
        giver_area,
        taker_area,
        np.stack([np.ones(60), rng.random(60) * 0.3]),
        np.stack([np.zeros(600), rng.random(600) * 0.3]),
        room,
        np.array([np.inf, 700.0]),
    )
    best, near = least_cost(given_, 0), least_cost(given_, 0, close=0.02)
    assert best is not None
    assert near is not None
    assert near.bound >= 0.95 * best.bound
    assert near.cost <= 1.05 * best.cost


def test_pairs_of_infinite_cost_are_never_made() -> None:
    given_, leaving = problem(np.random.default_rng(1))
    cost = given_.cost.copy()
    cost[:, 5:] = np.inf
    pairs = least_cost(replace(given_, cost=cost))
    assert pairs is None or (pairs.takers < 5).all()
    cost = given_.cost.copy()
    cost[:, 0] = np.inf
    other = least_cost(replace(given_, cost=cost))
    assert other is not None
    assert 0 not in other.takers
    assert len(other.givers) == leaving.sum()


def test_targeted_swapping_pairs_similar_units_of_other_areas() -> None:
    rng = np.random.default_rng(3)
    file = microfile(rng, 200)
    homes = np.arange(200) // 2
    where = file.area_of[homes * 2]
    file = replace(file, area_of=where, unit_of=homes)
    units = Units.of(file)
    assert (units.size == 2).all()
    one, two = targeted_pairs(file, units, Influence(file), 0.2, 3, rng)
    assert len(one) == len(two) == 10
    assert len(np.unique([*one, *two])) == 20
    assert (units.area_of[one] != units.area_of[two]).all()
    at_risk = np.zeros(units.count)
    np.maximum.at(at_risk, units.unit_of, risks(file, 3))
    assert at_risk[one].min() >= np.sort(at_risk)[-40]  # the greatest risks first


def test_risk_is_one_over_those_alike() -> None:
    file = microfile(np.random.default_rng(1), 60, areas=1)
    alike = [sum((file.codes[:, i] == file.codes[:, j]).all() for j in range(60)) for i in range(60)]
    assert risks(file, 2).tolist() == [1.0 if count == 1 else 0.0 for count in alike]


def test_the_shift_of_a_table_worked_by_hand() -> None:
    """Two areas of two records, a = 0 0 | 1 1: one swap makes both areas half and half, one bit each."""
    file = microfile(np.random.default_rng(1), 4, areas=2)
    values = (np.array([0.0, 1.0]),)
    file = replace(
        file,
        attributes=("a",),
        values=values,
        codes=np.array([[0, 0, 1, 1]], np.int32),
        area_of=np.array([0, 0, 1, 1], np.int32),
    )
    shift = shift_of(file, np.array([0, 1, 0, 1], np.int32))
    assert (shift.rate, shift.bias, shift.largest) == (0.5, 0.5, 0.5)
    assert (shift.entropy, shift.entropy_change) == (1.0, 1.0)
    assert vars(shift_of(file, file.area_of)) == dict.fromkeys(vars(shift), 0.0)
