"""Method 3, second part: large neighbourhood search that rebuilds a few neighbouring classes and keeps cheaper ones.

A step draws a cell and takes its class and the classes whose boxes can be widened to it at the least cost. It frees
their records and rebuilds classes: the cheapest box of a drawn cell becomes a class, repeatedly. Remaining cells join
the class where that costs least, and single cells are moved where that lowers the cost. Random numbers come from a
generator whose state is an array, so a search can be resumed. The budget counts cells visited, not seconds.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sfumato.base.arrays import Codes, Counts64, Floats
from sfumato.base.compiled import compiled
from sfumato.methods.local.boxes import TINY, Pool, Work, cheapest, joined_cost, link
from sfumato.methods.local.model import Cells, Classes, Labels, cell_cost

State = npt.NDArray[np.uint64]


class EditableClasses(NamedTuple):
    """Classes during the improvement: the entries of each, its box (first and last units), records and cost.

    `cell[i, :entries[i]]` are the cells of class i, and `records` has the number of records of each. `home[c]` is a
    class with records of cell c. A class without entries is a free slot.
    """

    cell: Counts64
    records: Counts64
    entries: Counts64
    low: Counts64
    high: Counts64
    rows: Counts64
    cost: Floats
    home: Counts64


@compiled
def draw(state: State, below: int) -> int:
    """Return a random number from 0 to below `below` (splitmix64)."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return np.int64(z % np.uint64(below))  # type: ignore[return-value]


@compiled
def fitted(labels: Labels, codes: Codes, share: Counts64, low: Counts64, high: Counts64) -> float:
    """Compute the smallest box around the cells of which a class has records; return its cost."""
    columns = codes.shape[1]
    for j in range(columns):
        low[j], high[j] = 1 << 40, -1
    for c in range(len(share)):
        if share[c] > 0:
            for j in range(columns):
                low[j] = min(low[j], codes[c, j])
                high[j] = max(high[j], codes[c, j])
    cost = 0.0
    for j in range(columns):
        cost += cell_cost(labels, j, low[j], high[j])
    return cost


@compiled
def select(pool: Pool, bound: Floats, r: int, k: int, exact: bool, work: Work, share: Counts64) -> int:
    """Give a class all free records of the box in `work`, or k of them: cell r, then the most expensive ones."""
    taken = 0
    inside = work.cells[1]
    size = 0
    for i in range(work.size[0]):
        c = work.cells[0, i]
        fits = True
        for j in range(pool.codes.shape[1]):
            if pool.codes[c, j] < work.best_low[j] or pool.codes[c, j] > work.best_high[j]:
                fits = False
                break
        if fits:
            inside[size] = c
            work.rest[1, size] = -9.0 if c == r else -bound[c]
            size += 1
            taken += pool.live[c]
    if not exact:
        for i in range(size):
            share[inside[i]] += pool.live[inside[i]]
            pool.live[inside[i]] = 0
        return taken
    need = k
    order = np.argsort(work.rest[1, :size], kind="mergesort")
    for i in order:
        c = inside[i]
        part = min(need, pool.live[c])
        share[c] += part
        pool.live[c] -= part
        need -= part
        if need == 0:
            break
    return k


@compiled
def rebuild(
    labels: Labels, pool: Pool, bound: Floats, k: int, capacity: int, state: State, work: Work, share: Counts64
) -> tuple[int, float]:
    """Build classes of all free records of a small pool; return their number (0: no result) and total cost."""
    codes, live = pool.codes, pool.live
    size, columns = codes.shape
    low, high = np.empty((capacity, columns), np.int64), np.empty((capacity, columns), np.int64)
    cost, rows = np.zeros(capacity), np.zeros(capacity, np.int64)
    free = live.sum()
    made = 0
    style = draw(state, 4)
    while free >= k:
        if made == capacity:
            return 0, 0.0
        r = draw(state, size)
        tries = 1 if style == 0 else 4
        best = -1
        # An expensive cell is mostly the better start, because cheap ones find a class in any case.
        for _ in range(size + tries):
            if live[r] > 0:
                if best < 0 or (bound[r] > bound[best] if style < 3 else bound[r] < bound[best]):
                    best = r
                tries -= 1
                if tries <= 0:
                    break
                r = draw(state, size)
            else:
                r = (r + 1) % size
        r = best
        limit = bound[r] * 1.5 + 0.01
        while True:
            got = cheapest(labels, pool, r, k, limit, work)
            if got < limit - TINY or limit > 1.5:
                break
            limit *= 2.0
        for c in range(size):
            share[made, c] = 0
        exact = draw(state, 2) == 0
        if got < limit - TINY:
            rows[made] = select(pool, bound, r, k, exact, work, share[made])
        else:
            return 0, 0.0
        free -= rows[made]
        cost[made] = fitted(labels, codes, share[made], low[made], high[made])
        made += 1
    for c in range(size):  # remaining cells join the class where they cost least
        if live[c] > 0:
            best, least = -1, np.inf
            for i in range(made):
                new = joined_cost(labels, codes, low[i], high[i], c)
                more = new * (rows[i] + live[c]) - cost[i] * rows[i]
                if more < least:
                    best, least = i, more
            share[best, c] += live[c]
            rows[best] += live[c]
            live[c] = 0
            cost[best] = fitted(labels, codes, share[best], low[best], high[best])
    relocate(labels, codes, k, made, share, low, high, rows, cost)
    total = 0.0
    for i in range(made):
        total += cost[i] * rows[i]
    return made, total


@compiled
def relocate(
    labels: Labels,
    codes: Codes,
    k: int,
    made: int,
    share: Counts64,
    low: Counts64,
    high: Counts64,
    rows: Counts64,
    cost: Floats,
) -> None:
    """Move the records of single cells to other classes while that lowers the cost; a class keeps k records."""
    size, columns = codes.shape
    spare_low, spare_high = np.empty(columns, np.int64), np.empty(columns, np.int64)
    moved = True
    rounds = 0
    while moved and rounds < 4:
        moved = False
        rounds += 1
        for a in range(made):
            for c in range(size):
                part = min(share[a, c], rows[a] - k)
                if part <= 0:
                    continue
                edge = part == share[a, c]
                if edge:
                    edge = False
                    for j in range(columns):
                        if low[a, j] < high[a, j] and (codes[c, j] == low[a, j] or codes[c, j] == high[a, j]):
                            edge = True
                            break
                shrunk = cost[a]
                if edge:
                    share[a, c] -= part
                    shrunk = fitted(labels, codes, share[a], spare_low, spare_high)
                    share[a, c] += part
                saved = cost[a] * rows[a] - shrunk * (rows[a] - part)
                best, least = -1, saved - TINY
                for b in range(made):
                    if b != a and cost[b] * part < least:
                        new = joined_cost(labels, codes, low[b], high[b], c)
                        more = new * (rows[b] + part) - cost[b] * rows[b]
                        if more < least:
                            best, least = b, more
                if best >= 0:
                    share[a, c] -= part
                    share[best, c] += part
                    rows[a] -= part
                    rows[best] += part
                    cost[a] = fitted(labels, codes, share[a], low[a], high[a])
                    cost[best] = fitted(labels, codes, share[best], low[best], high[best])
                    moved = True


@compiled
def improve(
    labels: Labels,
    codes: Codes,
    bound: Floats,
    k: int,
    held: EditableClasses,
    state: State,
    budget: int,
    work: Work,
    capacity: int,
) -> tuple[int, int, float]:
    """Make steps until the budget is spent; return the steps, the accepted steps and the reduction of the cost."""
    classes, columns = held.low.shape
    steps, kept, gain = 0, 0, 0.0
    chosen = np.empty(16, np.int64)
    near = np.empty(16)
    position = np.full(len(codes), -1, np.int64)
    ids = np.empty(capacity, np.int64)
    share = np.zeros((20, capacity), np.int64)
    own, jump = np.zeros((capacity, columns), np.int32), np.zeros((capacity, columns), np.int32)
    lives, differs, proxies = np.zeros(capacity, np.int64), np.zeros(capacity, np.int64), np.zeros(capacity)
    work.spent[0] = 0
    while work.spent[0] < budget:
        steps += 1
        r = draw(state, len(codes))
        many = 2 + draw(state, 5)
        size = 0
        for i in range(classes):
            if held.entries[i] == 0:
                continue
            cost, limit = 0.0, near[size - 1] if size == many else np.inf
            for jj in range(columns):
                j = work.order[jj]
                v = np.int64(codes[r, j])
                cost += cell_cost(labels, j, min(held.low[i, j], v), max(held.high[i, j], v))
                if cost >= limit:
                    break
            if i == held.home[r]:
                cost = -1.0
            if cost < limit:
                at = size if size < many else many - 1
                while at > 0 and near[at - 1] > cost:
                    near[at], chosen[at] = near[at - 1], chosen[at - 1]
                    at -= 1
                near[at], chosen[at] = cost, i
                size = min(size + 1, many)
        work.spent[0] += classes
        cells, old = 0, 0.0
        fits = True
        for n in range(size):
            i = chosen[n]
            old += held.cost[i] * held.rows[i]
            for e in range(held.entries[i]):
                c = held.cell[i, e]
                if position[c] < 0:
                    if cells == capacity:
                        fits = False
                        break
                    position[c] = 0
                    ids[cells] = c
                    cells += 1
        some = np.sort(ids[:cells])
        if fits and old > TINY:
            for n in range(cells):
                position[some[n]] = n
            live = lives[:cells]
            live[:] = 0
            for n in range(size):
                i = chosen[n]
                for e in range(held.entries[i]):
                    live[position[held.cell[i, e]]] += held.records[i, e]
                    proxies[position[held.cell[i, e]]] = bound[held.cell[i, e]]
            for n in range(cells):
                for j in range(columns):
                    own[n, j] = codes[some[n], j]
            link(own[:cells], work.order, differs[:cells], jump[:cells])
            pool = Pool(own[:cells], live, differs[:cells], jump[:cells])
            made, new = rebuild(labels, pool, proxies, k, 20, state, work, share[:, :cells])
            if made > 0 and new < old - 1e-9:
                has_slots = True
                filled = 0
                for i in range(classes):
                    if held.entries[i] == 0:
                        filled += 1
                if made > size + filled:
                    has_slots = False
                for i in range(made):
                    if np.count_nonzero(share[i, :cells]) > held.cell.shape[1]:
                        has_slots = False
                if has_slots:
                    kept += 1
                    gain += old - new
                    store(labels, codes, held, chosen, size, some, share, made)
        for n in range(cells):
            position[ids[n]] = -1
    return steps, kept, gain


@compiled
def store(
    labels: Labels,
    codes: Codes,
    held: EditableClasses,
    chosen: Counts64,
    size: int,
    some: Counts64,
    share: Counts64,
    made: int,
) -> None:
    """Write rebuilt classes to the slots of the old ones, and further ones to free slots."""
    for n in range(size):
        held.entries[chosen[n]] = 0
        held.rows[chosen[n]] = 0
    spare = 0
    for i in range(made):
        if i < size:
            at = chosen[i]
        else:
            while held.entries[spare] > 0 or held.rows[spare] > 0:
                spare += 1
            at = spare
        entries = 0
        for n in range(len(some)):
            if share[i, n] > 0:
                held.cell[at, entries], held.records[at, entries] = some[n], share[i, n]
                held.rows[at] += share[i, n]
                held.home[some[n]] = at
                entries += 1
        held.entries[at] = entries
        held.cost[at] = fitted(labels, codes[some], share[i, : len(some)], held.low[at], held.high[at])


def editable_classes(classes: Classes, k: int) -> EditableClasses:
    """Return classes in the form that is improved, with free slots. Suppressed records are not included."""
    known = classes.owner >= 0
    owner, cell, count = classes.owner[known], classes.cell[known], classes.count[known]
    order = np.lexsort((cell, owner))
    owner, cell, count = owner[order], cell[order], count[order]
    size = len(classes.rows)
    entries = np.bincount(owner, minlength=size).astype(np.int64)
    total = size + size // 4 + 32
    width = max(int(entries.max(initial=1)), 4 * k)
    slot = np.arange(len(owner)) - np.concatenate([[0], np.cumsum(entries)])[owner]
    free = np.zeros(total - size, np.int64)
    held = EditableClasses(
        np.zeros((total, width), np.int64),
        np.zeros((total, width), np.int64),
        np.concatenate([entries, free]),
        np.zeros((total, classes.low.shape[1]), np.int64),
        np.zeros((total, classes.low.shape[1]), np.int64),
        np.concatenate([classes.rows, free]),
        np.concatenate([classes.costs, free]),
        np.full(len(classes.cells.counts), -1, np.int64),
    )
    held.cell[owner, slot], held.records[owner, slot] = cell, count
    held.low[:size], held.high[:size] = classes.low, classes.high - 1
    held.home[cell] = owner
    return held


def classes_of(held: EditableClasses, labels: Labels, cells: Cells) -> Classes:
    """Return the improved classes; records of no class are suppressed."""
    slots = np.arange(held.cell.shape[1]) < held.entries[:, None]
    owner, _ = np.nonzero(slots)
    cell, count = held.cell[slots], held.records[slots]
    rest = cells.counts - np.bincount(cell, weights=count, minlength=len(cells.counts)).astype(np.int64)
    return Classes.joined(labels, cells, (cell, owner, count), (np.arange(len(rest)), np.full(len(rest), -1), rest))
