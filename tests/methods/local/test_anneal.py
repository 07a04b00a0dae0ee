"""Annealing moves single records between classes: nothing is lost, no class falls below k, and costs are kept true."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.methods.local import oracle
from tests.methods.local.tables import Rows, cells_of, tiny_tables
from tests.methods.local.test_local import AGE_AND_SEX, FOUR, quiet

from sfumato.methods.local import anneal
from sfumato.methods.local.model import Classes, Labels
from sfumato.methods.local.search import Solver


def state(seed: int) -> np.ndarray:
    return np.array([seed], np.uint64)


def one_class(solver: Solver) -> Classes:
    counts = solver.cells.counts
    return Classes.of(solver.labels, solver.cells, np.arange(len(counts)), np.zeros(len(counts), np.int64), counts)


def held_records(solver: Solver, classes: Classes, k: int) -> tuple[anneal.Sizes, anneal.Records]:
    sizes = anneal.sizes_of(solver.labels)
    return sizes, anneal.records_of(classes, sizes, solver.near, k)


def members(labels: Labels, held: anneal.Records, codes: np.ndarray) -> list[list[tuple[int, ...]]]:
    """The records of each class as they are listed, after plain code has compared boxes and costs with them."""
    lists = []
    for i, rows in enumerate(held.rows.tolist()):
        own = held.member[i, :rows]
        assert held.home[own].tolist() == [i] * rows
        assert held.slot[own].tolist() == list(range(rows))
        lists.append([tuple(codes[held.cell[r]].tolist()) for r in own])
        if rows:
            assert held.cost[i] == pytest.approx(oracle.class_cost(labels, lists[-1]) / rows)
    return lists


def test_two_crossed_pairs_by_hand() -> None:
    """k = 2, ages 0 to 3, women and men: {0, 2} and {1, 3} both mix the sexes; {0, 1} and {2, 3} lose 1/6 each."""
    solver = Solver(AGE_AND_SEX, cells_of(FOUR), 0, 1)
    owner = np.array([0, 1, 0, 1])[np.argsort(solver.order)][solver.order]
    crossed = Classes.of(solver.labels, solver.cells, np.arange(4), owner, solver.cells.counts)
    assert crossed.loss == pytest.approx(5 / 6)
    better = solver.annealed(crossed, 2, 10, state(1), quiet)
    assert better.loss == pytest.approx(1 / 6)
    assert better.rows.tolist() == [2, 2]


@given(tiny_tables(least=4, most=12), st.integers(2, 4), st.integers(0, 99))
def test_every_change_keeps_records_sizes_and_costs(table: tuple[Labels, Rows], k: int, seed: int) -> None:
    """Warm, so that hardly anything is refused; the sum of changes is what the classes cost in the end."""
    labels, rows = table
    solver = Solver(labels, cells_of(rows), 0, 1)
    sizes, held = held_records(solver, one_class(solver), k)
    before = float((held.cost * held.rows).sum())
    codes = solver.cells.codes
    change = anneal.anneal(labels, sizes, codes, held, k, 400, 5.0, 1.0, anneal.increase_table(), state(seed))
    lists = members(labels, held, codes)
    assert all(len(own) >= k for own in lists if own)
    assert Counter(row for own in lists for row in own) == Counter(rows)
    after = sum(oracle.class_cost(labels, own) for own in lists if own)
    assert before + change == pytest.approx(after, abs=1e-9)
    classes = anneal.classes_from(held, one_class(solver))
    assert classes.loss * len(rows) == pytest.approx(after, abs=1e-9)
    assert oracle.optimum(labels, rows, k) * len(rows) <= after + 1e-9 if len(rows) < 8 else True


@given(tiny_tables(least=6, most=12), st.integers(2, 3), st.integers(0, 99))
def test_what_is_refused_is_undone(table: tuple[Labels, Rows], k: int, seed: int) -> None:
    labels, rows = table
    solver = Solver(labels, cells_of(rows), 0, 1)
    sizes, held = held_records(solver, one_class(solver), k)
    codes = solver.cells.codes
    homes, costs = held.home.copy(), held.cost.copy()
    for i in range(len(held.rows)):
        if held.rows[i]:
            _, noted = anneal.dissolve(labels, sizes, codes, held, i, k, state(seed), 4)
            anneal.undo(labels, sizes, codes, held, noted)
    for r in range(len(held.cell)):
        if held.rows[held.home[r]] > k:
            _, noted = anneal.create(labels, sizes, codes, held, r, k)
            anneal.undo(labels, sizes, codes, held, noted)
    assert held.home.tolist() == homes.tolist()
    assert held.cost == pytest.approx(costs)
    members(labels, held, codes)


@given(tiny_tables(), st.integers(1, 3))
def test_near_cells_are_those_of_the_cheapest_pairs(table: tuple[Labels, Rows], wanted: int) -> None:
    labels, rows = table
    solver = Solver(labels, cells_of(rows), 0, 1)
    codes = [tuple(row) for row in solver.cells.codes.tolist()]
    pool, work = solver.pool, solver.work()
    near = anneal.near_cells(labels, pool, wanted, work)
    for c, own in enumerate(codes):
        pairs = [oracle.class_cost(labels, [own, other]) for d, other in enumerate(codes) if d != c]
        listed = [oracle.class_cost(labels, [own, codes[d]]) for d in near[c].tolist() if d >= 0]
        assert listed == pytest.approx(sorted(pairs)[:wanted])


def test_of_a_tuple_of_very_many_records_few_take_part() -> None:
    """A thousand alike and one other, k = 2: two records pay 1/6, all others nothing."""
    rows: Rows = ((0, 0),) * 1000 + ((1, 0),)
    solver = Solver(AGE_AND_SEX, cells_of(rows), 0, 1)
    _, held = held_records(solver, one_class(solver), 2)
    assert len(held.cell) == anneal.LARGE * 2 + 1
    better = solver.annealed(one_class(solver), 2, 3, state(1), quiet)
    assert better.rows.sum() == 1001
    assert better.loss * 1001 == pytest.approx(2 / 6)


def test_costs_of_a_wide_column_are_worked_out_when_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    known = anneal.sizes_of(AGE_AND_SEX)
    monkeypatch.setattr(anneal, "TABLE", 4)
    wide = anneal.sizes_of(AGE_AND_SEX)
    assert wide.start.tolist() == [-1, 0]
    assert known.start.tolist() == [0, 16]
    for low in range(4):
        for high in range(low, 4):
            one, two = (anneal.run_cost(AGE_AND_SEX, sizes, 0, low, high) for sizes in (known, wide))
            assert one == pytest.approx(two)


def test_a_search_that_is_stopped_is_no_worse_than_its_start() -> None:
    rng = np.random.default_rng(4)
    rows: Rows = tuple(map(tuple, np.stack([rng.integers(0, 4, 40), rng.integers(0, 2, 40)], axis=1).tolist()))
    solver = Solver(AGE_AND_SEX, cells_of(rows), 0, 1)
    start = solver.by_boxes(3)
    for stop in range(4):
        assert solver.improved(start, 3, 2, lambda done, _, stop=stop: done >= stop).loss <= start.loss  # type: ignore[misc]
