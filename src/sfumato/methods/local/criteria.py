"""Criteria of classes beside k: ℓ, t and any other measure that each class has on its own, as a test of feasibility.

What a class has of a sensitive column is known where it holds whole tuples, so the records of a tuple are put together
first. A class that fails is joined with the one where that costs least, or suppressed where that is cheaper and
allowed, until all pass.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sfumato.base.arrays import Counts64, Flags, Floats
from sfumato.base.compiled import compiled
from sfumato.errors import StudyError
from sfumato.measures.measure import Measure
from sfumato.measures.registry import K, measure
from sfumato.measures.thresholds import failing, is_criterion
from sfumato.measures.units import class_table
from sfumato.methods.local.model import Cells, Classes, cell_cost
from sfumato.study import Study
from sfumato.tables.frequency import FrequencyTable

Limits = Sequence[tuple[Measure, float]]


def limits_of(study: Study) -> list[tuple[Measure, float]]:
    """The criteria that a study demands beside k."""
    limits = []
    for name, limit in study.search.constraints.items():
        chosen = measure(name).with_settings(study.measures)
        if not is_criterion(chosen):
            raise StudyError(
                f"{name} is demanded of classes",
                expected="a measure that each class has on its own: k, distinct_l, entropy_l, t_closeness, …",
                remedy=f"leave {name} out of the constraints",
            )
        if chosen.name != K.name:
            limits.append((chosen, limit))
    return limits


def joined_equals(classes: Classes) -> Classes:
    """Classes with the same labels as one: a reader cannot tell them apart."""
    if not len(classes.rows):
        return classes
    boxes = np.concatenate([classes.low, classes.high], axis=1)
    _, number = np.unique(boxes, axis=0, return_inverse=True)
    owner = np.where(classes.owner >= 0, number.reshape(-1)[classes.owner], -1)
    return Classes.of(classes.labels, classes.cells, classes.cell, owner, classes.count)


def whole_tuples(classes: Classes) -> Classes:
    """Every tuple in the class that has most of its records, suppressed only where no class has any; some classes may
    then be smaller, and no more is suppressed than before."""
    order = np.lexsort((classes.owner, -classes.count, classes.owner < 0, classes.cell))
    cell, first = np.unique(classes.cell[order], return_index=True)
    owner = classes.owner[order][first]
    return Classes.of(classes.labels, classes.cells, cell, owner, classes.cells.counts[cell])


def _owners(classes: Classes, table: FrequencyTable) -> Counts64:
    owner = np.empty(table.tuples, dtype=np.int64)
    owner[classes.cell] = classes.owner
    return owner


def feasible(classes: Classes, table: FrequencyTable, k: int, limits: Limits, budget: int) -> Classes | None:
    """Classes of whole tuples that all have k units and pass the limits; None where not even one of all has.

    Suppressing what fails can leave too little to join with, so it is tried without as well, and with one class.
    The budget counts units; classes of units (`by_units.atoms`) become classes of their rows.
    """
    whole = whole_tuples(classes)
    cells = Cells(classes.cells.codes, table.counts)
    start = joined_equals(Classes.of(classes.labels, cells, whole.cell, whole.owner, table.counts[whole.cell]))
    for spent in dict.fromkeys((budget, suppressed_units(start, table))):
        met = _until_met(start, table, k, limits, spent)
        if met is not None:
            return met
    every = np.arange(table.tuples)
    one = Classes.of(classes.labels, cells, every, np.zeros(table.tuples, np.int64), table.counts)
    return None if _failing(one, table, k, limits).any() else one


def units_of(classes: Classes, table: FrequencyTable) -> Counts64:
    """The distinct units of each class: its records where every row is a unit."""
    if table.units is None:
        return classes.rows
    return class_table(table, _owners(classes, table), len(classes.rows), ()).size[: len(classes.rows)]


def suppressed_units(classes: Classes, table: FrequencyTable) -> int:
    """The units of which a row is suppressed."""
    if table.units is None:
        return classes.suppressed
    gone = _owners(classes, table) < 0
    return len(np.unique(table.units.unit[gone[table.units.tuple_of]]))


def _until_met(current: Classes, table: FrequencyTable, k: int, limits: Limits, budget: int) -> Classes | None:
    """Failing classes joined or suppressed until none fails."""
    while True:
        fails = _failing(current, table, k, limits)
        if not fails.any():
            return current if len(current.rows) else None
        joined = _joined(current, table, fails, budget)
        if joined is None:
            return None
        current = joined_equals(joined)


def _failing(classes: Classes, table: FrequencyTable, k: int, limits: Limits) -> Flags:
    measured = class_table(table, _owners(classes, table), len(classes.rows), ())
    fails = measured.size[: len(classes.rows)] < k
    for chosen, limit in limits:
        fails |= failing(chosen, limit, measured)[: len(fails)]
    return np.asarray(fails)


def _joined(classes: Classes, table: FrequencyTable, fails: Flags, budget: int) -> Classes | None:
    """Every failing class joined with another or suppressed, small ones first; None where only one class is left."""
    low, high = classes.low.copy(), classes.high - 1
    rows, costs = classes.rows.copy(), classes.costs.copy()
    home = np.arange(len(rows))
    units = units_of(classes, table).copy()  # of joined classes no fewer than they have: some are in both
    left = budget - suppressed_units(classes, table)
    changed = False
    for i in np.argsort(rows, kind="stable")[fails[np.argsort(rows, kind="stable")]]:
        if home[i] != i:
            continue
        more = join_costs(classes.labels, low, high, rows, costs, i)
        more[home != np.arange(len(rows))] = np.inf
        more[i] = np.inf
        best = int(np.argmin(more))
        gone = float(rows[i]) * (1.0 - costs[i])
        if units[i] <= left and gone < more[best] and np.isfinite(more[best]):  # the last class stays
            left -= int(units[i])
            home[home == i] = -1
            changed = True
        elif np.isfinite(more[best]):
            low[best], high[best] = np.minimum(low[best], low[i]), np.maximum(high[best], high[i])
            costs[best] = (more[best] + costs[best] * rows[best] + costs[i] * rows[i]) / (rows[best] + rows[i])
            rows[best] += rows[i]
            units[best] += units[i]
            home[home == i] = best
            changed = True
    if not changed:
        return None
    owner = np.where(classes.owner >= 0, home[classes.owner], -1)
    return Classes.of(classes.labels, classes.cells, classes.cell, owner, classes.count)


@compiled
def join_costs(labels: Any, low: Counts64, high: Counts64, rows: Counts64, costs: Floats, i: int) -> Floats:
    """What joining class i with each other one costs more than the two apart; `high` are last units."""
    more = np.empty(len(rows))
    for c in range(len(rows)):
        cost = 0.0
        for j in range(low.shape[1]):
            cost += cell_cost(labels, j, min(low[c, j], low[i, j]), max(high[c, j], high[i, j]))
        more[c] = cost * (rows[c] + rows[i]) - costs[c] * rows[c] - costs[i] * rows[i]
    return more


def criterion_values(
    table: FrequencyTable, classes: Classes, limits: Limits, weights: Sequence[float]
) -> Mapping[str, float]:
    """The demanded criteria as the released file has them."""
    measured = class_table(table, _owners(classes, table), len(classes.rows), weights)
    return {chosen.name: float(chosen.value(measured)) for chosen, _ in limits}
