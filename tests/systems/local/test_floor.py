"""The floor is below the optimum of every tiny table, and the checker accepts what it proves and nothing more."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.systems.local.tables import Rows, cells_of, tiny_tables
from tests.systems.local.test_local import AGE_AND_SEX, FOUR, solved

from sfumato.errors import DataError
from sfumato.systems.local import oracle
from sfumato.systems.local.check import check_floor
from sfumato.systems.local.floor import dual_bound, floor_of
from sfumato.systems.local.model import Labels
from sfumato.systems.local.solve import Solver


def floors(labels: Labels, rows: Rows, k: int, passes: int = 12) -> tuple[Solver, float, np.ndarray]:
    solver = Solver(labels, cells_of(rows), 0, 1)
    first = floor_of(k, np.minimum(solver.bound(k), 1.0), solver.cells.counts)
    last = dual_bound(labels, solver.cells, first, passes, 10**9)
    assert last.loss >= first.loss
    return solver, last.loss, last.prices


def test_a_record_that_must_take_another_along() -> None:
    """Two alike and one other, k = 2: the box bound is 0 for the two, but one of them must go with the other.

    The box of all three costs 1 and must pay for its dearest two, so the other can have a price of 1 at most; the true
    loss is 1, because three records make one class.
    """
    rows: Rows = ((0, 0), (0, 0), (3, 1))
    _, loss, prices = floors(AGE_AND_SEX, rows, 2)
    assert loss == pytest.approx(1 / 3)
    assert sorted(prices.tolist()) == [0.0, pytest.approx(1.0)]
    assert oracle.optimum(AGE_AND_SEX, rows, 2) == pytest.approx(1.0)


def test_an_outlier_is_raised_by_hand() -> None:
    """Ages 0, 1 and 3 of 0 to 3, k = 2: cheapest boxes cost 1/3, 1/3 and 2/3 (of weight 1/2: 1/6, 1/6, 1/3).

    The box of ages 1 and 3 must pay (1/6 + 1/3)/2 of its 1/3, and that of all (1/6 + 1/3)/2 of its 1/2: room for the
    last record up to 1/2. The loss is 1/2: one class of three.
    """
    rows: Rows = ((0, 0), (1, 0), (3, 0))
    _, loss, _ = floors(AGE_AND_SEX, rows, 2, passes=80)
    assert (1 / 6 + 1 / 6 + 1 / 3) / 3 < loss <= 1 / 2
    assert loss == pytest.approx((1 / 6 + 1 / 6 + 1 / 2) / 3, rel=1e-3)


@given(tiny_tables(), st.integers(2, 3))
def test_no_floor_is_above_the_optimum_and_no_class_has_prices_above_its_cost(
    table: tuple[Labels, Rows], k: int
) -> None:
    labels, rows = table
    solver, loss, prices = floors(labels, rows, k)
    assert loss <= oracle.optimum(labels, rows, k) + 1e-9
    model = oracle.model_of(labels)
    assert check_floor(model, solver.cells.codes, solver.cells.counts, k, prices) == pytest.approx(loss)
    classes = solved(labels, rows, k)
    assert classes is not None
    by_cell = dict(zip(map(tuple, solver.cells.codes.tolist()), prices.tolist(), strict=True))
    owed = np.zeros(len(classes.rows))
    for cell, owner, count in zip(classes.cell, classes.owner, classes.count, strict=True):
        owed[owner] += count * by_cell[tuple(classes.cells.codes[cell].tolist())]
    assert np.all(owed <= classes.rows * classes.costs + 1e-9)


@given(tiny_tables(), st.integers(2, 3), st.integers(0, 6))
def test_a_forged_certificate_fails(table: tuple[Labels, Rows], k: int, which: int) -> None:
    """A price so high that the cheapest box of its record cannot pay for it."""
    labels, rows = table
    solver, _, prices = floors(labels, rows, k, passes=1)
    at = which % len(prices)
    cost = oracle.cheapest_box(labels, rows, rows.index(tuple(solver.cells.codes[at].tolist())), k)
    forged = prices.copy()
    forged[at] = k * cost + 0.01
    with pytest.raises(DataError):
        check_floor(oracle.model_of(labels), solver.cells.codes, solver.cells.counts, k, forged)


def test_a_pass_beyond_its_budget_proves_nothing_more() -> None:
    solver = Solver(AGE_AND_SEX, cells_of(FOUR), 0, 1)
    first = floor_of(2, solver.bound(2), solver.cells.counts)
    assert dual_bound(AGE_AND_SEX, solver.cells, first, 5, budget=0).loss == first.loss
