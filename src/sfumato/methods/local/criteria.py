"""Criteria of classes in addition to k: ℓ, t and every other measure that a class either satisfies or not.

The sensitive values of a class are known only if it holds whole tuples, so the records of a tuple are united first.
A class that fails is merged with the class where that costs least. It is suppressed instead where that is cheaper and
allowed. This is repeated until all classes pass.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sfumato.base.arrays import Counts64, Flags, Floats
from sfumato.base.compiled import compiled
from sfumato.errors import StudyError
from sfumato.measures.classes import ClassTable
from sfumato.measures.measure import Measure
from sfumato.measures.registry import K, measure
from sfumato.measures.thresholds import failing, is_criterion
from sfumato.measures.units import class_table
from sfumato.methods.local.model import Cells, Classes, Labels, cell_cost
from sfumato.study import Study
from sfumato.tables.frequency import FrequencyTable

Limits = Sequence[tuple[Measure, float]]


def limits_of(study: Study) -> list[tuple[Measure, float]]:
    """Return the criteria that a study requires in addition to k."""
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


def merged_equal(classes: Classes) -> Classes:
    """Merge classes with the same labels, because a reader of the file cannot distinguish them."""
    if not len(classes.rows):
        return classes
    boxes = np.concatenate([classes.low, classes.high], axis=1)
    _, number = np.unique(boxes, axis=0, return_inverse=True)
    owner = np.where(classes.owner >= 0, number.reshape(-1)[classes.owner], -1)
    return Classes.of(classes.labels, classes.cells, classes.cell, owner, classes.count)


def whole_tuples(classes: Classes) -> Classes:
    """Assign every tuple to the class that has most of its records.

    A tuple is suppressed only if no class has any of its records, so no more records are suppressed than before. Some
    classes may become smaller.
    """
    order = np.lexsort((classes.owner, -classes.count, classes.owner < 0, classes.cell))
    cell, first = np.unique(classes.cell[order], return_index=True)
    owner = classes.owner[order][first]
    return Classes.of(classes.labels, classes.cells, cell, owner, classes.cells.counts[cell])


def measured(classes: Classes, table: FrequencyTable, weights: Sequence[float] = ()) -> ClassTable:
    """Return the class table of classes with undivided tuples."""
    owner = np.empty(table.tuples, dtype=np.int64)
    owner[classes.cell] = classes.owner
    return class_table(table, owner, len(classes.rows), weights)


def feasible(classes: Classes, table: FrequencyTable, k: int, limits: Limits, budget: int) -> Classes | None:
    """Return classes of whole tuples with k units that satisfy the limits; None if even one class of all fails.

    Suppression can leave too few records to merge with, so the search is repeated without it, and with one single
    class. The budget counts units.
    """
    whole = whole_tuples(classes)
    cells = Cells(classes.cells.codes, table.counts)
    start = merged_equal(Classes.of(classes.labels, cells, whole.cell, whole.owner, table.counts[whole.cell]))
    for spent in dict.fromkeys((budget, suppressed_units(start, table))):
        met = _until_met(start, table, k, limits, spent)
        if met is not None:
            return met
    every = np.arange(table.tuples)
    one = Classes.of(classes.labels, cells, every, np.zeros(table.tuples, np.int64), table.counts)
    return None if _failing(one, table, k, limits).any() else one


def units_of(classes: Classes, table: FrequencyTable) -> Counts64:
    """Return the number of distinct units of each class: its records where every row is a unit."""
    return classes.rows if table.units is None else measured(classes, table).size[: len(classes.rows)]


def suppressed_units(classes: Classes, table: FrequencyTable) -> int:
    """Return the number of units with a suppressed row."""
    released = measured(classes, table)
    return released.counted(released.suppressed)


def _until_met(current: Classes, table: FrequencyTable, k: int, limits: Limits, budget: int) -> Classes | None:
    """Merge or suppress failing classes until none fails."""
    while True:
        fails = _failing(current, table, k, limits)
        if not fails.any():
            return current if len(current.rows) else None
        joined = _joined(current, table, fails, budget)
        if joined is None:
            return None
        current = merged_equal(joined)


def _failing(classes: Classes, table: FrequencyTable, k: int, limits: Limits) -> Flags:
    released = measured(classes, table)
    return ((released.size < k) | violating(limits, released))[: len(classes.rows)]


def violating(limits: Limits, released: ClassTable) -> Flags:
    """Return the classes that violate a limit."""
    fails: Flags = np.zeros(len(released.size), dtype=np.bool_)
    for chosen, limit in limits:
        fails |= failing(chosen, limit, released)
    return fails


def _joined(classes: Classes, table: FrequencyTable, fails: Flags, budget: int) -> Classes | None:
    """Merge or suppress every failing class, small ones first; return None if only one class is left."""
    low, high = classes.low.copy(), classes.high - 1
    rows, costs = classes.rows.copy(), classes.costs.copy()
    home = np.arange(len(rows))
    units = units_of(classes, table).copy()  # of joined classes no fewer than they have: some are in both
    left = budget - suppressed_units(classes, table)
    changed = False
    order = np.argsort(rows, kind="stable")
    for i in order[fails[order]]:
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
def join_costs(labels: Labels, low: Counts64, high: Counts64, rows: Counts64, costs: Floats, i: int) -> Floats:
    """Return the additional cost of merging class i with each other class; `high` are last units."""
    more = np.empty(len(rows))
    for c in range(len(rows)):
        cost = 0.0
        for j in range(low.shape[1]):
            cost += cell_cost(labels, j, min(low[c, j], low[i, j]), max(high[c, j], high[i, j]))
        more[c] = cost * (rows[c] + rows[i]) - costs[c] * rows[c] - costs[i] * rows[i]
    return more
