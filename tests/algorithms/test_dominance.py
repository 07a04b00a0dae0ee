"""Dominance, the box archive and its two theorems, the metrics of the paper."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.points import dominates

from sfumato.algorithms.dominance import (
    BoxArchive,
    boxes_of,
    comparable,
    convergence_error,
    first_dominator,
    first_non_dominated,
    hypervolume,
    non_dominated,
    representation_ratio,
)

points = st.integers(2, 3).flatmap(
    lambda r: st.lists(st.tuples(*[st.integers(0, 12) for _ in range(r)]), min_size=1, max_size=40)
)


@given(points)
def test_non_dominated_by_definition(rows: list[tuple[int, ...]]) -> None:
    values = np.array(rows, dtype=np.float64)
    expected = [not any(dominates(other, row) for other in values) for row in values]
    assert non_dominated(values).tolist() == expected


@given(points, st.lists(st.integers(1, 5), min_size=3, max_size=3))
def test_archive_holds_only_minimal_candidates(rows: list[tuple[int, ...]], steps: list[int]) -> None:
    """Theorem 1: nothing that was offered dominates a member; and no two members share a box."""
    values = np.array(rows, dtype=np.float64)
    epsilon = np.array(steps[: values.shape[1]], dtype=np.float64)
    archive = BoxArchive(epsilon)
    for i, value in enumerate(values):
        archive.add(value, i)
    for member in archive.values:
        assert not any(dominates(other, member) for other in values)
    boxes = boxes_of(archive.values, epsilon)
    assert len(np.unique(boxes, axis=0)) == len(boxes)
    assert non_dominated(boxes).all()


@given(points, st.lists(st.integers(1, 5), min_size=3, max_size=3))
def test_archive_is_bounded(rows: list[tuple[int, ...]], steps: list[int]) -> None:
    """Theorem 2: its size is at most the product of all but the smallest K/ε."""
    values = np.array(rows, dtype=np.float64)
    epsilon = np.array(steps[: values.shape[1]], dtype=np.float64)
    archive = BoxArchive(epsilon)
    for i, value in enumerate(values):
        archive.add(value, i)
    boxes = np.sort(np.floor(13 / epsilon) + 1)
    assert len(archive.members) <= np.prod(boxes[1:])


def test_boxes_by_hand() -> None:
    boxes = boxes_of(np.array([[-7.0, 250.0], [-5.0, 99.0]]), np.array([5.0, 100.0]))
    assert boxes.tolist() == [[-2.0, 2.0], [-1.0, 0.0]]


@given(points, points)
def test_first_dominator_by_definition(rows: list[tuple[int, ...]], others: list[tuple[int, ...]]) -> None:
    width = min(len(rows[0]), len(others[0]))
    bounds = np.array([row[:width] for row in rows], dtype=np.float64)
    archive = np.array([row[:width] for row in others], dtype=np.float64)
    for bound, found in zip(bounds, first_dominator(bounds, archive), strict=True):
        assert (found >= 0) == any(dominates(member, bound) for member in archive)
        assert found < 0 or dominates(archive[found], bound)


def test_rounding_noise_does_not_decide() -> None:
    noisy = np.array([[201700.36300000001, 1.0], [201700.363, 2.0]])
    assert non_dominated(comparable(noisy)).tolist() == [True, False]
    assert comparable(np.array([0.0, np.inf, -3.0])).tolist() == [0.0, np.inf, -3.0]


def test_metrics_by_hand() -> None:
    front = np.array([[1.0, 4.0], [2.0, 2.0], [4.0, 1.0]])
    assert convergence_error(front, front) == (0.0, 0.0)
    total, mean = convergence_error(np.array([[2.0, 3.0], [4.0, 1.0]]), front)
    assert total == pytest.approx(0.25)
    assert mean == pytest.approx(0.125)
    assert representation_ratio(front[:2], front, np.ones(2)) == pytest.approx(2 / 3)
    assert hypervolume(front, np.array([5.0, 5.0])) == pytest.approx(4 * 1 + 3 * 2 + 1 * 1)


def test_of_one_objective_the_first_least_value_is_kept() -> None:
    assert first_non_dominated(np.array([[3.0], [1.0], [1.0], [2.0]])).tolist() == [False, True, False, False]
