"""Local recoding on tables small enough to try everything."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.methods.local import oracle
from tests.methods.local.tables import Rows, cells_of, in_order, tiny_tables

from sfumato.methods.local.boxes import box_costs, sorted_pool, work_of
from sfumato.methods.local.model import Classes, Column, Labels, labels_of
from sfumato.methods.local.orders import Orders, divide, reflected, search_orders
from sfumato.methods.local.search import Solver
from sfumato.methods.shared import best_for_each_k

FOUR: Rows = ((0, 0), (1, 0), (2, 1), (3, 1))  # an age among four, and one of two sexes
AGE_AND_SEX = labels_of([Column([1, 1, 1, 1]), Column([1, 1])])


def quiet(_: int, __: int) -> bool:
    return False


def solved(labels: Labels, rows: Rows, k: int, budget: int = 0, effort: int = 1) -> Classes | None:
    solver = Solver(labels, cells_of(rows), budget, seed=1)
    found = solver.solve(k, solver.candidates([k], 6, quiet)[k], boxes=True, effort=effort, tell=quiet)
    return None if found is None else found.classes


def test_four_records_by_hand() -> None:
    """k = 2: the two young women and the two older men; each pays 1/3 of an age of weight 1/2 and nothing for a sex."""
    assert oracle.optimum(AGE_AND_SEX, FOUR, 2) == pytest.approx(1 / 6)
    found = solved(AGE_AND_SEX, FOUR, 2)
    assert found is not None
    assert found.loss == pytest.approx(1 / 6)
    assert found.rows.tolist() == [2, 2]
    assert (found.low.tolist(), found.high.tolist()) == ([[0, 0], [2, 1]], [[2, 1], [4, 2]])
    assert Solver(AGE_AND_SEX, cells_of(FOUR), 0, 1).box_bound(2) == pytest.approx(1 / 6)


def test_the_records_of_a_tuple_are_divided_where_that_pays() -> None:
    """Three alike and one other, k = 2: two of the three stay as they are, the third goes with the other."""
    rows: Rows = ((0, 0), (0, 0), (0, 0), (3, 1))
    found = solved(AGE_AND_SEX, rows, 2)
    assert found is not None
    assert found.loss == pytest.approx(2 / 4)
    assert sorted(found.rows.tolist()) == [2, 2]


def test_a_record_far_from_all_others_is_suppressed_if_that_is_allowed() -> None:
    """Five alike and one other, k = 5: joined, all six pay 1; suppressed, one does."""
    rows: Rows = ((0, 0),) * 5 + ((3, 1),)
    joined, without = solved(AGE_AND_SEX, rows, 5), solved(AGE_AND_SEX, rows, 5, budget=1)
    assert joined is not None
    assert without is not None
    assert (joined.loss, joined.suppressed) == (pytest.approx(1.0), 0)
    assert (without.loss, without.suppressed) == (pytest.approx(1 / 6), 1)


def test_fewer_than_k_records_make_no_class() -> None:
    assert solved(AGE_AND_SEX, FOUR, 5) is None


def test_a_tuple_of_very_many_records_is_one_class_and_lends_to_its_neighbours() -> None:
    rows: Rows = ((0, 0),) * 100 + ((1, 0),)
    found = Orders(AGE_AND_SEX, cells_of(rows)).classes(2, ((1, 0), (0, 0)))
    assert found.rows.sum() == 101
    assert found.loss * 101 == pytest.approx(2 / 6)


@given(tiny_tables(), st.integers(2, 3), st.randoms(use_true_random=False))
def test_the_order_is_that_of_its_definition_and_its_runs_are_the_cheapest(
    table: tuple[Labels, Rows], k: int, random: object
) -> None:
    labels, rows = table
    cells = cells_of(rows)
    columns = list(range(labels.columns))
    random.shuffle(columns)  # type: ignore[attr-defined]
    turned = [random.randint(0, 1) for _ in columns]  # type: ignore[attr-defined]
    units = np.diff(labels.unit)
    order = reflected(cells.codes, units, np.array(columns), np.array(turned, np.int32))
    assert order.tolist() == oracle.reflected_order(cells.codes.tolist(), columns, turned)
    for fee in (np.inf, 1.0):
        total, ends, kept = divide(labels, cells.codes, cells.counts, order, k, fee)
        assert total == pytest.approx(oracle.best_runs(labels, in_order(cells, order.tolist()), k, fee))
        assert np.all(np.diff(ends, prepend=0)[kept == 1] >= k)
    classes = Orders(labels, cells).classes(k, (tuple(columns), tuple(turned)))
    assert classes.loss * len(rows) == pytest.approx(divide(labels, cells.codes, cells.counts, order, k, np.inf)[0])
    assert classes.rows.min() >= k


@given(tiny_tables(), st.integers(1, 4))
def test_the_box_of_a_record_is_the_cheapest_of_all_boxes(table: tuple[Labels, Rows], k: int) -> None:
    labels, rows = table
    solver = Solver(labels, cells_of(rows), 0, 1)
    cells = solver.cells
    pool = sorted_pool(labels, cells.codes, cells.counts)
    costs, low, high = box_costs(labels, pool, k, work_of(labels, len(cells.counts)))
    for c, row in enumerate(cells.codes.tolist()):
        assert costs[c] == pytest.approx(oracle.cheapest_box(labels, rows, rows.index(tuple(row)), k))
        inside = np.all((cells.codes >= low[c]) & (cells.codes <= high[c]), axis=1)
        assert cells.counts[inside].sum() >= k
        assert inside[c]


@given(tiny_tables(), st.integers(2, 3))
def test_no_method_is_below_the_optimum_and_no_floor_above_it(table: tuple[Labels, Rows], k: int) -> None:
    labels, rows = table
    least = oracle.optimum(labels, rows, k)
    assert Solver(labels, cells_of(rows), 0, 1).box_bound(k) <= least + 1e-9
    found = solved(labels, rows, k)
    assert found is not None
    assert found.rows.min() >= k
    assert found.rows.sum() == len(rows)
    assert found.loss >= least - 1e-9
    held = [[] for _ in found.rows]  # type: list[list[tuple[int, ...]]]
    for cell, owner, count in zip(found.cell.tolist(), found.owner.tolist(), found.count.tolist(), strict=True):
        held[owner] += [tuple(found.cells.codes[cell].tolist())] * count
    assert sorted(row for own in held for row in own) == list(rows)
    paid = sum(oracle.class_cost(labels, own) for own in held)
    assert found.loss * len(rows) == pytest.approx(paid)


def test_the_same_seed_gives_the_same_classes() -> None:
    rng = np.random.default_rng(3)
    rows: Rows = tuple(map(tuple, np.stack([rng.integers(0, 4, 60), rng.integers(0, 2, 60)], axis=1).tolist()))
    one, two = solved(AGE_AND_SEX, rows, 4), solved(AGE_AND_SEX, rows, 4)
    assert one is not None
    assert two is not None
    assert one.owner.tolist() == two.owner.tolist()
    assert one.low.tolist() == two.low.tolist()


def test_a_front_has_no_beaten_point() -> None:
    solver = Solver(AGE_AND_SEX, cells_of(FOUR), 0, 1)
    orders = solver.candidates([2, 4], 6, quiet)
    points = [solver.solve(k, orders[k], boxes=True, effort=0, tell=quiet) for k in (2, 4)]
    found = [point.classes for point in points if point is not None]
    best = best_for_each_k(found, lambda classes: int(classes.rows.min()), lambda classes: classes.loss)
    assert [(classes.rows.min(), round(classes.loss, 6)) for classes in best] == [(4, 1.0), (2, round(1 / 6, 6))]


def test_no_more_orders_are_tried_than_there_are() -> None:
    """Two columns have two orders and four pairs of directions; a hundred are asked for."""
    orders, calls = Orders(AGE_AND_SEX, cells_of(FOUR)), []
    search_orders(orders, [2], 100, np.random.default_rng(1), lambda done, of: bool(calls.append((done, of))))
    assert len(orders.values) == 8
    assert calls[-1] == (8, 8)
    assert len(calls) < 200
