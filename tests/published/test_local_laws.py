"""Local recoding of ten real tables: no class of any method has prices above its cost, and floors are proven."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.published.ten_tables import TABLES, decided, inspected

from sfumato.data.settings import Role
from sfumato.errors import DataError
from sfumato.methods.local.floor import (
    LowerBound,
    check_floor,
    dual_bound,
    label_model,
    lower_bound,
    recoding_bound,
)
from sfumato.methods.local.model import Classes
from sfumato.methods.local.search import Solver, model_of
from sfumato.study import ColumnSettings, Study

TEN = (
    "ACS 2018, Hawaii",
    "Adult, named",
    "Census Income (KDD)",
    "German credit, named",
    "NHANES 2017–2018",
    "testdata (sdcMicro)",
    "free1 (µ-Argus)",
    "SD2011",
    "Credit card clients",
    "MACH 2019",
)
COLUMNS, VALUES = 5, 80
BOUND_BUDGET = 2 * 10**8


def narrowed(name: str, shared: Path, folder: Path) -> Study:
    """The first quasi-identifiers of a table that have some values and not very many."""
    inspection, run = inspected(TABLES[name], shared, folder)
    study = decided(run)
    distinct = {column.name: column.distinct for column in inspection.columns}
    names = [name for name in study.named(Role.QUASI_IDENTIFIER) if 2 <= distinct[name] <= VALUES][:COLUMNS]
    assert len(names) >= 3
    return study.replace(columns={name: ColumnSettings(role=Role.DROP) for name in study.columns if name not in names})


def quiet(_: int, __: int) -> bool:
    return False


def in_debt(floor: LowerBound, classes: Classes) -> bool:
    """Whether the prices of some class are above what it costs."""
    inside = classes.owner >= 0
    paid = classes.count[inside] * floor.prices[classes.cell[inside]]
    owed = np.bincount(classes.owner[inside], paid, len(classes.rows))
    return bool(np.any(owed > classes.rows * classes.costs + 1e-9))


@pytest.mark.published
@pytest.mark.parametrize("name", TEN)
def test_no_class_of_any_method_has_prices_above_its_cost(name: str, shared: Path, tmp_path: Path) -> None:
    study = narrowed(name, shared, tmp_path)
    table = study.table()
    segments, labels, cells = model_of(study, table)
    solver = Solver(labels, cells, cells.records // 50, 1)
    for k in (3, 10):
        order = solver.candidates([k], 10, quiet)[k]
        runs, boxes = solver.orders.within(k, order, solver.budget), solver.by_boxes(k)
        assert runs is not None
        better = solver.improved(boxes, k, 1, quiet)
        first = lower_bound(k, np.minimum(solver.cheapest_costs(k), 1.0), solver.cells.counts)
        floor = dual_bound(
            labels,
            solver.cells,
            recoding_bound(labels, solver.cells, first, better.paid, BOUND_BUDGET),
            5,
            BOUND_BUDGET,
        )
        print(name, k, len(cells.counts), *(f"{100 * x.loss:.3f}" for x in (first, floor, better, boxes, runs)))
        assert first.loss <= floor.loss <= better.loss + 1e-9 <= boxes.loss + 2e-9
        for classes in (runs, boxes, better):
            assert not in_debt(floor, classes)
            assert classes.rows.min() >= k
        model = label_model(segments, study.weights_for(table))
        proven = check_floor(model, solver.cells.codes, solver.cells.counts, k, floor.prices)
        assert proven == pytest.approx(floor.loss)
        forged = LowerBound(k, np.minimum(floor.prices * 1.5 + 0.05, 1.0), 0.0)
        assert in_debt(forged, better)
        with pytest.raises(DataError, match="has to pay more"):
            check_floor(model, solver.cells.codes, solver.cells.counts, k, forged.prices)
