"""Local recoding of Adult: reference losses and bounds, with interval labels and with ARX's hierarchies."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import sfumato as sf
from sfumato.methods.local.floor import LowerBound, dual_bound, lower_bound, recoding_bound
from sfumato.methods.local.model import Classes
from sfumato.methods.local.search import BOUND_BUDGET, Solver, model_of
from sfumato.papers.cuts import paper_setting
from sfumato.study.sections import LocalSettings

BOX_BOUNDS = {5: 0.929, 10: 1.429, 20: 2.064, 50: 3.160, 100: 4.338}  # percent
NODE_BOUNDS = {2: 1.415, 5: 3.015, 10: 4.307, 20: 5.829, 50: 8.459}
BY_RUNS = {5: 2.1, 10: 3.6, 20: 5.65, 50: 9.6, 100: 13.9}
BY_BOXES = {5: 1.85, 10: 3.1, 20: 4.65, 50: 7.3, 100: 10.0}
INTERVALS = {5: (4, 1.81), 10: (4, 3.06), 20: (4, 4.60), 50: (3, 7.26), 100: (3, 9.97)}  # rounds and mark
NODES = {2: (4, 2.0, 2.98), 5: (6, 4.95, 5.38), 10: (3, 7.5, 7.72), 20: (3, 10.4, 10.94), 50: (3, 14.7, 14.90)}  # ARX


def quiet(_: int, __: int) -> bool:
    return False


def solver_of(study: sf.Study) -> Solver:
    _, labels, cells = model_of(study, study.table())
    return Solver(labels, cells, 0, 1)


@pytest.fixture(scope="module")
def intervals() -> Solver:
    """Eight quasi-identifiers of Adult, occupation sensitive."""
    return solver_of(paper_setting(4))


@pytest.fixture(scope="module")
def nodes(shared: Path) -> Solver:
    """Nine quasi-identifiers of Adult along ARX's hierarchies."""
    folder = shared / "data" / "arx" / "adult"
    names = (folder / "adult.csv").read_text("utf-8").splitlines()[0].split(";")
    columns = {
        name: {
            "role": "quasi_identifier",
            "constrained": True,
            "hierarchy": {"path": str(folder / f"adult_hierarchy_{name}.csv"), "header": False, "separator": ";"},
        }
        for name in names
    }
    return solver_of(sf.Study(data={"path": str(folder / "adult.csv"), "separator": ";"}, columns=columns))


@pytest.mark.published
def test_order_and_runs_on_adult(intervals: Solver) -> None:
    orders = intervals.candidates(list(BY_RUNS), 100, quiet)
    losses = {k: 100 * intervals.orders.value(k, orders[k]) for k in BY_RUNS}
    print(losses)
    assert all(losses[k] <= mark for k, mark in BY_RUNS.items())


@pytest.mark.published
def test_best_boxes_on_adult(intervals: Solver) -> None:
    losses = {k: 100 * intervals.by_boxes(k).loss for k in BY_BOXES}
    print(losses)
    assert all(losses[k] <= mark for k, mark in BY_BOXES.items())


@pytest.mark.published
def test_box_bounds_are_the_reference_figures(intervals: Solver, nodes: Solver) -> None:
    for solver, reference in ((intervals, BOX_BOUNDS), (nodes, NODE_BOUNDS)):
        assert {k: round(100 * solver.box_bound(k), 3) for k in reference} == reference


@pytest.mark.published
@pytest.mark.parametrize("k", INTERVALS)
def test_interval_labels_improved(intervals: Solver, k: int) -> None:
    """Below the marks for 300 CPU seconds for all five k together, with so many rounds; and above the default floor."""
    rounds, mark = INTERVALS[k]
    boxes = intervals.by_boxes(k)
    classes = intervals.improved(boxes, k, rounds, quiet)
    first = lower_bound(k, np.minimum(intervals.cheapest_costs(k), 1.0), intervals.cells.counts)
    start = recoding_bound(intervals.labels, intervals.cells, first, boxes.paid, BOUND_BUDGET)
    floor = dual_bound(intervals.labels, intervals.cells, start, LocalSettings().passes, BOUND_BUDGET)
    print(k, boxes.loss, classes.loss, first.loss, floor.loss, floor.loss / first.loss)
    assert 100 * classes.loss < mark
    assert floor.loss >= 1.3 * first.loss
    assert_paid(floor, boxes, k)
    assert_paid(floor, classes, k)


@pytest.mark.published
@pytest.mark.parametrize("k", NODES)
def test_nodes_of_arx_improved(nodes: Solver, k: int) -> None:
    """Boxes lose less than ARX's local transformation; improved, they reach the marks for 300 CPU seconds each."""
    rounds, mark, arx = NODES[k]
    boxes = nodes.by_boxes(k)
    assert 100 * boxes.loss < arx
    classes = nodes.improved(boxes, k, rounds, quiet)
    print(k, boxes.loss, classes.loss)
    assert 100 * classes.loss <= mark


@pytest.mark.published
@pytest.mark.parametrize(
    ("k", "least", "passes"), [(2, 1.75, 30), (5, 4.3, 30), (10, 6.35, 30), (20, 8.8, 30), (50, 12.7, 30)]
)
def test_the_floor_of_nodes_is_near_what_is_reached(nodes: Solver, k: int, least: float, passes: int) -> None:
    boxes = nodes.by_boxes(k)
    first = lower_bound(k, np.minimum(nodes.cheapest_costs(k), 1.0), nodes.cells.counts)
    start = recoding_bound(nodes.labels, nodes.cells, first, boxes.paid, 10**10)
    floor = dual_bound(nodes.labels, nodes.cells, start, passes, 10**10)
    print(k, floor.loss)
    assert 100 * floor.loss >= least
    assert_paid(floor, boxes, k)


def assert_paid(floor: LowerBound, classes: Classes, k: int) -> None:
    """Every class has k records and pays at least their prices."""
    assert classes.rows.min() >= k
    owed = np.bincount(classes.owner, weights=classes.count * floor.prices[classes.cell])
    assert np.all(owed <= classes.rows * classes.costs + 1e-9)
