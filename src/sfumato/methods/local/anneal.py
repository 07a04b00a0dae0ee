"""Method 3, first part: simulated annealing that moves single records between neighbouring classes.

A step moves a record to the class of a neighbour, or swaps it with a record of that class. A class that grows to 2k
records is divided, and a small class is dissolved into the classes of its neighbours. A new class is created from
records that other classes do not need. A change that lowers the cost is always accepted. Any other change is accepted
with a probability that falls with its cost and with the temperature. Random numbers come from a generator whose state
is an array. The budget counts steps, not seconds, so a search can be resumed.

`put` moves a record and keeps the labels and costs of both classes current. Moves are logged, so that a rejected
change can be rolled back.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sfumato.base.arrays import Codes, Counts64, Floats
from sfumato.base.compiled import compiled
from sfumato.methods.local.boxes import Pool, Work, gather
from sfumato.methods.local.improve import State, draw
from sfumato.methods.local.model import Classes, Labels, Unit, cell_cost

TABLE = 1 << 20  # largest table of run costs for a column
LARGE = 16  # at most this many times k records of a cell are annealed; the others are a class without loss
DISSOLVED = 200  # with a larger k classes are not dissolved, because a step would cost too much
NONE = -1
Numbers = npt.NDArray[np.int32]


class Sizes(NamedTuple):
    """Tables of label costs: `cost[start[j] + low * units + high]` for column j, where -1 means too many units."""

    start: Counts64
    units: Counts64
    cost: Floats


class Records(NamedTuple):
    """Records and their classes: record r belongs to `cell[r]` and to class `home[r]`, as `member[home, slot[r]]`.

    The records of cell c are `first[c]` to below `first[c + 1]`, and its neighbours are `near[c]`. Class i has
    `rows[i]` records. They lie between the units `low[i]` and `high[i]`, and each of them costs `cost[i]`. `free` is a
    stack of empty classes with `free_size[0]` entries, and `listed[i]` is true if class i is on it. `moved` logs moves
    for the rollback.
    """

    cell: Numbers
    home: Numbers
    slot: Numbers
    first: Counts64
    near: Numbers
    member: Numbers
    rows: Counts64
    low: Numbers
    high: Numbers
    cost: Floats
    free: Counts64
    free_size: Counts64
    listed: npt.NDArray[np.bool_]
    moved: Counts64
    moved_from: Counts64
    spare_low: Numbers
    spare_high: Numbers


def sizes_of(labels: Labels) -> Sizes:
    """Return the costs of all runs of units, for each column that has few enough of them."""
    units = np.diff(labels.unit)
    tables, start, at = [np.zeros(0)], [], 0
    for j, n in enumerate(units.tolist()):
        known = n * n <= TABLE
        start.append(at if known else NONE)
        if known:
            tables.append(run_costs(labels, j, n))
            at += n * n
    return Sizes(np.array(start, np.int64), units, np.concatenate(tables))


@compiled
def run_costs(labels: Labels, j: int, units: int) -> Floats:
    """Return the cost per record of each run of a column's units."""
    table = np.zeros(units * units)
    for low in range(units):
        for high in range(low, units):
            table[low * units + high] = cell_cost(labels, j, low, high)
    return table


@compiled
def run_cost(labels: Labels, sizes: Sizes, j: int, low: Unit, high: Unit) -> float:
    if sizes.start[j] < 0:
        return cell_cost(labels, j, low, high)
    return sizes.cost[sizes.start[j] + low * sizes.units[j] + high]  # type: ignore[no-any-return]


@compiled
def extent_cost(labels: Labels, sizes: Sizes, low: Numbers, high: Numbers) -> float:
    cost = 0.0
    for j in range(len(low)):
        cost += run_cost(labels, sizes, j, np.int64(low[j]), np.int64(high[j]))
    return cost


@compiled
def with_record(labels: Labels, sizes: Sizes, codes: Codes, low: Numbers, high: Numbers, c: int) -> float:
    """Return the cost per record of a class after its labels are widened to cover a cell."""
    cost = 0.0
    for j in range(len(low)):
        v = codes[c, j]
        cost += run_cost(labels, sizes, j, np.int64(min(low[j], v)), np.int64(max(high[j], v)))
    return cost


@compiled
def without(codes: Codes, records: Records, r: int) -> None:
    """Write the units of the class of r without r to `spare_low` and `spare_high`; the class has another record."""
    i, c = records.home[r], records.cell[r]
    rows = records.rows[i]
    for j in range(codes.shape[1]):
        low, high = records.low[i, j], records.high[i, j]
        v = codes[c, j]
        # Only a record at the edge of its class can narrow it, so most columns need no scan.
        if low < high and v in (low, high):
            new_low, new_high, alone = high, low, True
            for e in range(rows):
                other = records.member[i, e]
                if other != r:
                    u = codes[records.cell[other], j]
                    if u == v:
                        alone = False
                        break
                    new_low, new_high = min(new_low, u), max(new_high, u)
            if alone:
                low, high = new_low, new_high
        records.spare_low[j], records.spare_high[j] = low, high


@compiled
def take_free(records: Records) -> int:
    """Return the number of an empty class, or -1 if there is none."""
    while records.free_size[0] > 0:
        records.free_size[0] -= 1
        i = records.free[records.free_size[0]]
        records.listed[i] = False
        if records.rows[i] == 0:
            return i  # type: ignore[no-any-return]
    return NONE


@compiled
def list_free(records: Records, i: int) -> None:
    if not records.listed[i]:
        records.listed[i] = True
        records.free[records.free_size[0]] = i
        records.free_size[0] += 1


@compiled
def put(labels: Labels, sizes: Sizes, codes: Codes, records: Records, r: int, to: int) -> float:
    """Move a record to another class and return the change of the total cost."""
    i, c = records.home[r], records.cell[r]
    change = -records.cost[i] * records.rows[i] - records.cost[to] * records.rows[to]
    if records.rows[i] > 1:
        without(codes, records, r)
        records.low[i], records.high[i] = records.spare_low, records.spare_high
        records.cost[i] = extent_cost(labels, sizes, records.low[i], records.high[i])
    last = records.member[i, records.rows[i] - 1]
    records.member[i, records.slot[r]] = last
    records.slot[last] = records.slot[r]
    records.rows[i] -= 1
    if records.rows[i] == 0:
        records.cost[i] = 0.0
        list_free(records, i)
    rows = records.rows[to]
    for j in range(codes.shape[1]):
        v = codes[c, j]
        records.low[to, j] = v if rows == 0 else min(records.low[to, j], v)
        records.high[to, j] = v if rows == 0 else max(records.high[to, j], v)
    records.cost[to] = extent_cost(labels, sizes, records.low[to], records.high[to])
    records.member[to, rows] = r
    records.slot[r], records.home[r] = rows, to
    records.rows[to] = rows + 1
    return change + records.cost[i] * records.rows[i] + records.cost[to] * records.rows[to]  # type: ignore[no-any-return]


@compiled
def put_logged(labels: Labels, sizes: Sizes, codes: Codes, records: Records, r: int, to: int, logged: int) -> float:
    records.moved[logged], records.moved_from[logged] = r, records.home[r]
    return put(labels, sizes, codes, records, r, to)


@compiled
def undo(labels: Labels, sizes: Sizes, codes: Codes, records: Records, logged: int) -> None:
    for n in range(logged - 1, -1, -1):
        put(labels, sizes, codes, records, records.moved[n], records.moved_from[n])


@compiled
def near_cells(labels: Labels, pool: Pool, wanted: int, work: Work) -> Numbers:
    """Return the nearest cells of each cell by the cost of a shared box, cheapest first; -1 where there are no more."""
    size = len(pool.live)
    near = np.full((size, wanted), NONE, np.int32)
    limit = 0.01
    for c in range(size):  # neighbouring cells are similar, so the last limit is a good start
        gather(labels, pool, c, limit, work)
        while work.size[0] <= wanted and limit < 1.5:
            limit *= 1.5
            gather(labels, pool, c, limit, work)
        order = np.argsort(work.rest[0, : work.size[0]], kind="mergesort")
        at = 0
        for i in order:
            other = work.cells[0, i]
            if other != c and at < wanted:
                near[c, at] = other
                at += 1
        if work.size[0] > 4 * wanted:
            limit /= 1.5
    return near


def _homes(classes: Classes, k: int) -> tuple[Counts64, Counts64]:
    """Return the cell and the class of each annealed record, sorted by cell."""
    known = classes.owner >= 0
    order = np.lexsort((classes.cell[known], classes.owner[known]))
    cell, owner, count = (values[known][order] for values in (classes.cell, classes.owner, classes.count))
    count = np.where(count >= (LARGE + 1) * k, LARGE * k, count)
    cell, owner = np.repeat(cell, count), np.repeat(owner, count)
    rows = np.bincount(owner, minlength=len(classes.rows))
    parts = rows // k
    part = np.minimum((np.arange(len(owner)) - _starts(rows)[owner]) // k, parts[owner] - 1)
    by_cell = np.argsort(cell, kind="stable")
    return cell[by_cell], (_starts(parts)[owner] + part)[by_cell]


def records_of(classes: Classes, sizes: Sizes, near: Numbers, k: int) -> Records:
    """Return all records one by one; classes of at least 2k records are divided in their present order.

    Most records of a large cell are excluded: they form a class of that cell alone, at no cost.
    """
    cell, home = _homes(classes, k)
    size = len(cell) // k + 2
    rows = np.bincount(home, minlength=size)
    by_home = np.argsort(home, kind="stable")
    slot = np.empty(len(home), np.int64)
    slot[by_home] = np.arange(len(home)) - _starts(rows)[home[by_home]]
    member = np.zeros((size, 2 * k + 1), np.int32)
    member[home, slot] = np.arange(len(home))
    columns, empty = classes.labels.columns, np.flatnonzero(rows == 0)
    notes = (min(k, DISSOLVED) + 2) ** 2 + 2 * k
    records = Records(
        cell.astype(np.int32),
        home.astype(np.int32),
        slot.astype(np.int32),
        _starts(np.bincount(cell, minlength=len(classes.cells.counts))),
        near,
        member,
        rows,
        low=np.zeros((size, columns), np.int32),
        high=np.zeros((size, columns), np.int32),
        cost=np.zeros(size),
        free=np.concatenate([empty, np.zeros(size - len(empty), np.int64)]),
        free_size=np.array([len(empty)]),
        listed=rows == 0,
        moved=np.zeros(notes, np.int64),
        moved_from=np.zeros(notes, np.int64),
        spare_low=np.zeros(columns, np.int32),
        spare_high=np.zeros(columns, np.int32),
    )
    fit(classes.labels, sizes, classes.cells.codes, records)
    return records


def _starts(sizes: Counts64) -> Counts64:
    return np.concatenate([[0], np.cumsum(sizes)])


@compiled
def fit(labels: Labels, sizes: Sizes, codes: Codes, records: Records) -> None:
    """Compute the units and the cost of every class."""
    for i in range(len(records.rows)):
        for e in range(records.rows[i]):
            c = records.cell[records.member[i, e]]
            for j in range(codes.shape[1]):
                v = codes[c, j]
                records.low[i, j] = v if e == 0 else min(records.low[i, j], v)
                records.high[i, j] = v if e == 0 else max(records.high[i, j], v)
        if records.rows[i] > 0:
            records.cost[i] = extent_cost(labels, sizes, records.low[i], records.high[i])


def classes_from(records: Records, classes: Classes) -> Classes:
    """Return the annealed classes, together with the suppressed records and the records that were excluded."""
    counts, lost = classes.cells.counts, classes.owner < 0
    suppressed = np.bincount(classes.cell[lost], classes.count[lost], len(counts)).astype(np.int64)
    rest = counts - suppressed - np.bincount(records.cell, minlength=len(counts))
    every = np.arange(len(counts))
    annealed = records.cell.astype(np.int64), records.home.astype(np.int64), np.ones(len(records.cell), np.int64)
    excluded, gone = (every, len(records.rows) + every, rest), (every, np.full(len(counts), -1), suppressed)
    return Classes.joined(classes.labels, classes.cells, annealed, excluded, gone)


TEMPERATURES = 64  # in one call
INCREASES = 4096  # entries of the table, which replaces a logarithm at each step


def increase_table() -> Floats:
    """Return quantiles of an exponential distribution: the cost increases accepted at temperature 1."""
    return -np.log((np.arange(INCREASES) + 0.5) / INCREASES)


@compiled
def divide_class(
    labels: Labels, sizes: Sizes, codes: Codes, records: Records, r: int, k: int, logged: int
) -> tuple[float, int]:
    """Move k records of the class of r into a new class: r first, then always the cheapest to add."""
    i = records.home[r]
    new = take_free(records)
    if new < 0:
        return np.inf, logged
    change = put_logged(labels, sizes, codes, records, r, new, logged)
    logged += 1
    while records.rows[new] < k:
        best, least = NONE, np.inf
        for e in range(records.rows[i]):
            s = records.member[i, e]
            cost = with_record(labels, sizes, codes, records.low[new], records.high[new], records.cell[s])
            if cost < least:
                best, least = s, cost
        change += put_logged(labels, sizes, codes, records, best, new, logged)
        logged += 1
    return change, logged


@compiled
def neighbour(records: Records, r: int, state: State) -> int:
    """Draw a record from a cell near that of r, or from the cell of r."""
    c = records.cell[r]
    # The smaller of two draws prefers near cells.
    n = draw(state, records.near.shape[1])
    n = min(n, draw(state, records.near.shape[1]))
    other = records.near[c, n]
    if other < 0 or records.first[other] == records.first[other + 1]:
        other = c
    return records.first[other] + draw(state, records.first[other + 1] - records.first[other])  # type: ignore[no-any-return]


@compiled
def dissolve(
    labels: Labels, sizes: Sizes, codes: Codes, records: Records, i: int, k: int, state: State, tries: int
) -> tuple[float, int]:
    """Move all records of a class to the best of several neighbours; return the change of cost and the moves."""
    change, logged = 0.0, 0
    for _ in range(records.rows[i]):
        r = records.member[i, records.rows[i] - 1]
        c = records.cell[r]
        best, least = NONE, np.inf
        for _ in range(tries):
            b = records.home[neighbour(records, r, state)]
            if b == i:
                continue
            rows = records.rows[b]
            new = with_record(labels, sizes, codes, records.low[b], records.high[b], c)
            more = new * (rows + 1) - records.cost[b] * rows
            if more < least:
                best, least = b, more
        if best < 0:
            return np.inf, logged
        change += put_logged(labels, sizes, codes, records, r, best, logged)
        logged += 1
        if records.rows[best] >= 2 * k:
            more, logged = divide_class(labels, sizes, codes, records, r, k, logged)
            change += more
    return change, logged


@compiled
def create(labels: Labels, sizes: Sizes, codes: Codes, records: Records, r: int, k: int) -> tuple[float, int]:
    """Create a class from r and near records that can be spared; return the change of cost and the moves."""
    new = take_free(records)
    if new < 0:
        return np.inf, 0
    change = put_logged(labels, sizes, codes, records, r, new, 0)
    logged = 1
    for n in range(-1, records.near.shape[1]):
        c = records.cell[r] if n < 0 else records.near[records.cell[r], n]
        if c < 0:
            break
        for s in range(records.first[c], records.first[c + 1]):
            if records.home[s] != new and records.rows[records.home[s]] > k:
                change += put_logged(labels, sizes, codes, records, s, new, logged)
                logged += 1
                if logged == k:
                    return change, logged
    return np.inf, logged


@compiled
def anneal(
    labels: Labels,
    sizes: Sizes,
    codes: Codes,
    records: Records,
    k: int,
    steps: int,
    warm: float,
    cold: float,
    increases: Floats,
    state: State,
) -> float:
    """Make a number of steps while the temperature falls from `warm` to `cold`; return the change of the total cost."""
    total, temperature = 0.0, warm
    interval = max(steps // TEMPERATURES, 1)
    factor = (cold / warm) ** (1 / TEMPERATURES)
    spare_low, spare_high = records.spare_low, records.spare_high
    for step in range(steps):
        if step % interval == 0 and step > 0:
            temperature *= factor
        r = draw(state, len(records.cell))
        s = neighbour(records, r, state)
        a, b = records.home[r], records.home[s]
        allowed = temperature * increases[draw(state, len(increases))]
        kind = draw(state, 16)
        if a == b:
            continue
        rows_a, rows_b = records.rows[a], records.rows[b]
        if records.cost[a] == 0.0 and records.cost[b] == 0.0:  # nothing can be gained
            continue
        if kind < 2:
            if kind == 0 and rows_a <= k + 1 and k <= DISSOLVED:
                change, logged = dissolve(labels, sizes, codes, records, a, k, state, 4)
            elif rows_a > k:
                change, logged = create(labels, sizes, codes, records, r, k)
            else:
                continue
            if change < allowed:
                total += change
            else:
                undo(labels, sizes, codes, records, logged)
            continue
        c = records.cell[r]
        if rows_a > k and kind < 9:
            without(codes, records, r)
            left = extent_cost(labels, sizes, spare_low, spare_high)
            saved = records.cost[a] * rows_a - left * (rows_a - 1)
            joined = with_record(labels, sizes, codes, records.low[b], records.high[b], c)
            change = joined * (rows_b + 1) - records.cost[b] * rows_b - saved
            if rows_b + 1 < 2 * k:
                if change < allowed:
                    total += put(labels, sizes, codes, records, r, b)
                continue
            change = put_logged(labels, sizes, codes, records, r, b, 0)
            more, logged = divide_class(labels, sizes, codes, records, r, k, 1)
            change += more
            if change < allowed:
                total += change
            else:
                undo(labels, sizes, codes, records, logged)
            continue
        t = records.member[b, draw(state, rows_b)]  # r and t swap classes
        if t == s and rows_b > 1:
            t = records.member[b, draw(state, rows_b)]
        d = records.cell[t]
        if d == c:
            continue
        without(codes, records, r)
        new = with_record(labels, sizes, codes, spare_low, spare_high, d) if rows_a > 1 else 0.0
        change = (new - records.cost[a]) * rows_a
        if change - records.cost[b] * rows_b >= allowed:
            continue
        without(codes, records, t)
        new = with_record(labels, sizes, codes, spare_low, spare_high, c)
        change += (new - records.cost[b]) * rows_b
        if change < allowed:
            total += put(labels, sizes, codes, records, r, b)
            total += put(labels, sizes, codes, records, t, a)
    return total
