"""A column cut anew is the best that it can be with the others as they are."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.methods.cuts.spaces import valid

from sfumato.hierarchies import Hierarchy
from sfumato.methods.cuts import kernels
from sfumato.methods.cuts.problem import CutProblem
from sfumato.methods.cuts.space import CutSpace
from sfumato.tables.domain import domain_of
from sfumato.tables.frequency import FrequencyTable, from_codes

TREE = [("a", "ab", "*"), ("b", "ab", "*"), ("c", "cde", "*"), ("d", "cde", "*"), ("e", "cde", "*")]


def one_column(*counts: int) -> FrequencyTable:
    """A column of the numbers 1, 2, …, each in so many records."""
    column = domain_of("x", {str(value): count for value, count in enumerate(counts, start=1)})
    return from_codes([column], np.repeat(np.arange(len(counts)), counts)[None, :].astype(np.int32))


@pytest.mark.parametrize(
    ("counts", "budget", "bits"),
    [
        ((2, 1, 1, 4), 8, [1, 0, 1]),  # 2 and 3 together: two records at a third each, nobody goes
        ((4, 1, 4), 1, [1, 1]),  # the one record goes: loss 1 instead of 5 · 1/2
        ((4, 1, 4), 0, [1, 0]),  # nobody may go, so it joins its neighbours
    ],
)
def test_by_hand(counts: tuple[int, ...], budget: int, bits: list[int]) -> None:
    table = one_column(*counts)
    problem = CutProblem(table, CutSpace.of(table), "demanded", budget, least_size=2)
    start = np.zeros((1, len(counts) - 1), dtype=np.uint8)
    found, looked = problem.rebuilt(start, np.array([2]), np.array([[0]]), np.ones(1))
    assert found[0].tolist() in (bits, bits[::-1])
    assert looked >= 1


@given(data=st.data())
def test_no_cut_of_the_column_is_better(data: st.DataObject) -> None:
    """Against every cut of one column: numbers with a place for missing values, words freely or along a tree."""
    missing, along = data.draw(st.booleans()), data.draw(st.booleans())
    tree = Hierarchy.from_paths("word", TREE)
    numbers = domain_of("number", dict.fromkeys([*"1234", *([""] if missing else [])], 1), missing="category")
    words = domain_of("word", dict.fromkeys("abcde", 1), tree, along_tree=along)
    size = data.draw(st.integers(1, 30))
    codes = [
        data.draw(st.lists(st.integers(0, len(d.labels) - 1), min_size=size, max_size=size)) for d in (numbers, words)
    ]
    table = from_codes([numbers, words], np.array(codes, dtype=np.int32))
    space = CutSpace.of(table)
    floor, budget = data.draw(st.integers(1, 6)), data.draw(st.sampled_from([0, 2, size]))
    problem = CutProblem(table, space, "demanded", budget, least_size=floor)
    start = space.sampled(np.random.default_rng(data.draw(st.integers(0, 99))), 1)
    column = data.draw(st.integers(0, 1))
    found, _ = problem.rebuilt(start, np.array([floor]), np.array([[column]]), np.ones(1))
    assert valid(space, found[0])
    low, high = int(space.first[column]), int(space.first[column + 1])
    assert np.array_equal(np.delete(found[0], np.s_[low:high]), np.delete(start[0], np.s_[low:high]))
    every = []
    for bits in itertools.product((0, 1), repeat=high - low):
        other = start[0].copy()
        other[low:high] = bits
        if valid(space, other):
            every.append(other)
    figures = problem.figures(np.stack([*every, found[0], start[0]]))[:, 0]
    loss = np.sum(problem.losses(figures), axis=0)
    if budget == size:  # where all may go, one price is the true one
        assert loss[-2] == pytest.approx(loss[:-2].min(), abs=1e-9)
    assert loss[-2] <= loss[-1]
    if not np.isfinite(loss[-2]):
        assert figures[-2, kernels.SUPPRESSED] == figures[:-2, kernels.SUPPRESSED].min()
    again, _ = problem.rebuilt(found, np.array([floor]), np.array([[column]]), np.ones(1))
    assert np.array_equal(again, found)
