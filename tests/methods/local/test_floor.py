"""The floor is below the optimum of every tiny table, and the checker accepts what it proves and nothing more."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.methods.local import oracle
from tests.methods.local.tables import Rows, cells_of, tiny_tables
from tests.methods.local.test_local import AGE_AND_SEX, FOUR, solved
from tests.release.fronts import small

import sfumato as sf
from sfumato.base.arrow import read_numbers, write_numbers
from sfumato.cli import run
from sfumato.errors import DataError
from sfumato.front import PRICE_UNIT, PRICES
from sfumato.methods.local.floor import (
    check_floor,
    check_front,
    dual_bound,
    label_model,
    lower_bound,
    recoding_bound,
)
from sfumato.methods.local.model import Labels
from sfumato.methods.local.search import Solver, model_of
from sfumato.methods.registry import load_front


def floors(
    labels: Labels, rows: Rows, k: int, passes: int = 12, paid: Callable[[Solver], np.ndarray] | None = None
) -> tuple[Solver, float, np.ndarray]:
    solver = Solver(labels, cells_of(rows), 0, 1)
    first = lower_bound(k, np.minimum(solver.cheapest_costs(k), 1.0), solver.cells.counts)
    start = first if paid is None else recoding_bound(labels, solver.cells, first, paid(solver), 10**9)
    assert start.loss >= first.loss
    last = dual_bound(labels, solver.cells, start, passes, 10**9)
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


@given(tiny_tables(), st.integers(2, 3), st.sampled_from([0.0, 0.1, 1.0]))
def test_floors_are_sound_whatever_prices_they_begin_with(table: tuple[Labels, Rows], k: int, price: float) -> None:
    """What the best boxes make each cell pay, and prices far above what any box could pay."""
    labels, rows = table
    for paid in (lambda s: s.by_boxes(k).paid, lambda s: np.full(len(s.cells.counts), price)):
        solver, loss, prices = floors(labels, rows, k, 3, paid)
        assert loss <= oracle.optimum(labels, rows, k) + 1e-9
        check_floor(oracle.model_of(labels), solver.cells.codes, solver.cells.counts, k, prices)


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
    first = lower_bound(2, solver.cheapest_costs(2), solver.cells.counts)
    assert dual_bound(AGE_AND_SEX, solver.cells, first, 5, budget=0).loss == first.loss


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("certificate")
    study = small(folder, rows=60).with_search(system="local").with_settings({"local": {"k": [1, 2, 5], "passes": 3}})
    return sf.search(study).save(folder / "front")


def test_the_floor_of_a_saved_front_is_proven_by_its_prices(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    front = load_front(saved)
    proven = check_front(front, front.study.table())
    floors = {int(point.values["k"]): point.details["floor"] for point in front.points}
    assert proven == pytest.approx(floors)
    assert 0 < proven[2] < proven[5]
    assert run(["floor", str(saved), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["proven"] == {str(k): loss for k, loss in proven.items()}


def test_the_label_model_is_that_of_the_search(saved: Path) -> None:
    """Worked out twice, from the columns and from the arrays of the search: the same labels at the same costs."""
    front = load_front(saved)
    table = front.study.table()
    segments, labels, _ = model_of(front.study, table)
    one, two = label_model(segments, front.study.weights_for(table)), oracle.model_of(labels)
    for j in range(labels.columns):
        assert dict(zip(one.runs[j], one.costs[j], strict=True)) == pytest.approx(
            dict(zip(two.runs[j], two.costs[j], strict=True))
        )


@pytest.mark.parametrize("forgery", ["higher prices", "more said", "no prices", "too few prices"])
def test_a_front_with_a_forged_certificate_is_refused(saved: Path, tmp_path: Path, forgery: str) -> None:
    folder = tmp_path / "front"
    shutil.copytree(saved, folder)
    path = folder / PRICES
    prices = read_numbers(path, expected="prices")
    if forgery == "higher prices":
        prices["k5"] = np.minimum(2 * prices["k5"], PRICE_UNIT)
    elif forgery == "more said":
        text = (folder / "front.json").read_text("utf-8")
        about = json.loads(text)
        about["points"][-1]["details"]["floor"] *= 1.01
        (folder / "front.json").write_text(json.dumps(about), "utf-8")
    elif forgery == "no prices":
        del prices["k5"]
    else:
        prices = {name: column[:-1] for name, column in prices.items()}
    write_numbers(path, prices)
    front = replace(load_front(folder), study=load_front(saved).study)
    with pytest.raises(DataError):
        check_front(front, front.study.table())
