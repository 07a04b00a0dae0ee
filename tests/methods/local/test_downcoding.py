"""The attack that knows small boxes were wanted: by hand, and against plain code."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.release.fronts import ANYTHING, small

import sfumato as sf
from sfumato.errors import SfumatoError
from sfumato.release.classes_labels import BoxColumn
from sfumato.release.classes_rows import Assigned
from sfumato.release.downcoding import downcode, values_left


def plan_of(codes: list[int], owner: list[int], boxes: list[tuple[int, int]], width: int) -> Assigned:
    values = tuple(map(str, range(width)))
    tuples, of = np.unique(codes, return_inverse=True)
    column = BoxColumn("age", values, {box: str(box) for box in boxes}, nodes=False)
    low, high = (np.array([[box[end]] for box in boxes]) for end in (0, 1))
    counts = np.bincount(of)
    pairs, count = np.unique(np.stack([of, owner], axis=1), axis=0, return_counts=True)
    plan = Assigned((column,), tuples[None, :].astype(np.int32), counts, low, high, pairs[:, 0], pairs[:, 1], count, "")
    plan.check()
    return plan


def test_a_record_inside_a_smaller_box_would_have_been_put_there() -> None:
    """Ages 0 to 4 and 0 to 2: someone of the first class aged 0 to 2 would be in the second, so they are 3 or 4."""
    plan = plan_of([3, 4, 4, 0, 1, 2], [0, 0, 0, 1, 1, 1], [(0, 5), (0, 3)], 5)
    found = downcode(plan, np.ones(1), 3)
    assert (found.narrowed, found.narrowed_right, found.pinned, found.sure) == (3, 3, 0, 0)
    wrong = plan_of([0, 4, 4, 0, 1, 2], [0, 0, 0, 1, 1, 1], [(0, 5), (0, 3)], 5)
    found = downcode(wrong, np.ones(1), 2)
    assert (found.narrowed, found.narrowed_right, found.sure) == (3, 2, 3)


def test_a_value_is_pinned_where_one_is_left() -> None:
    plan = plan_of([4, 4, 0, 1, 2, 3], [0, 0, 1, 1, 1, 1], [(0, 5), (0, 4)], 5)
    found = downcode(plan, np.ones(1), 2)
    assert (found.pinned, found.pinned_right) == (2, 2)


BOX = st.tuples(st.integers(0, 4), st.integers(1, 5), st.integers(0, 4), st.integers(1, 5)).filter(
    lambda box: box[0] < box[1] and box[2] < box[3]
)


@given(st.lists(BOX, min_size=1, max_size=6))
def test_what_is_crossed_out_lies_in_cheaper_boxes(boxes: list[tuple[int, int, int, int]]) -> None:
    low, high = np.array([[b[0], b[2]] for b in boxes]), np.array([[b[1], b[3]] for b in boxes])
    costs = (high - low - 1).sum(axis=1).astype(float)
    left, attacked = values_left(low, high, costs, np.array([0, 5, 10]), 25)
    assert attacked.all()
    for c in range(len(boxes)):
        own = {(a, b) for a in range(low[c, 0], high[c, 0]) for b in range(low[c, 1], high[c, 1])}
        cheaper = [d for d in range(len(boxes)) if costs[d] < costs[c]]
        free = {
            (a, b)
            for a, b in own
            if not any(low[d, 0] <= a < high[d, 0] and low[d, 1] <= b < high[d, 1] for d in cheaper)
        }
        kept = free or own
        assert set(np.flatnonzero(left[c, :5]).tolist()) == {a for a, _ in kept}
        assert set(np.flatnonzero(left[c, 5:]).tolist()) == {b for _, b in kept}


def test_a_box_of_too_many_cells_is_left_alone() -> None:
    left, attacked = values_left(np.array([[0]]), np.array([[5]]), np.ones(1), np.array([0, 5]), 4)
    assert (attacked.tolist(), left.tolist()) == ([0], [[1] * 5])


def test_a_drawn_recoding_keeps_k_and_loses_no_more_than_promised(tmp_path: Path) -> None:
    study = small(tmp_path, rows=300).with_search(system="local")
    study = study.model_copy(update={"policy": ANYTHING})
    plain = sf.search(study.with_settings({"local": {"k": [4], "passes": 0}}))
    front = sf.search(study.with_settings({"local": {"k": [4], "passes": 0, "draw": 0.3, "test_seed": 3}}))
    assert front.points[0].loss == pytest.approx(1.3 * plain.points[0].loss)
    accept = {"uniques": "a small table made for a test", "dependence:income": "a small table made for a test"}
    release = sf.publish(sf.pick(front, point=0), tmp_path / "out", accept=accept, state=tmp_path / "state")
    manifest = release.manifest
    assert manifest["figures"]["k"]["value"] >= 4
    assert plain.points[0].loss < manifest["loss"] <= front.points[0].loss
    assert manifest["point"]["details"]["promised"] == front.points[0].loss
    assert sf.verify(release.folder, study.data.path)
    forged = replace(front.points[0], loss=front.points[0].loss * 1.1)
    lying = replace(front, points=(forged,))
    with pytest.raises(SfumatoError, match="promises"):
        sf.publish(sf.pick(lying, point=0), tmp_path / "no", accept=accept, state=tmp_path / "s2")
    assert not (tmp_path / "no").exists()
