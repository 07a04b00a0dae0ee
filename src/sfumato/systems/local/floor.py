"""The floor: what no recoding with the same labels can go below, by prices that every box can pay.

Give each record a price of at least 0 and at most 1 such that in every box that holds at least k records the mean of
its k highest prices is at most the cost of the box. Then the mean of all prices is below the loss of every recoding,
global or local, with any suppression. The costs of cheapest boxes are such prices. A pass looks, for each record, for
the box that comes nearest to its cost, and raises the price by what is left; the prices stay sound and never fall.

Where rows belong to persons a class has rows of k persons, and may have any more of their rows: the mean is then over
the highest row of each of k persons and every further row whose price exceeds the mean. A person with rows in several
tuples is counted in each: more sets are looked at than there are classes, so the prices are sound all the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.runtime.arrays import Codes, Counts64, Floats
from sfumato.runtime.compiled import compiled
from sfumato.systems.local.model import Cells, Labels, cell_cost, label

SAFE = 1e-12  # prices stay this much below what boxes can pay, relatively, for sums that are rounded
MIX = 0.3  # how far first prices lie from cheapest boxes towards what a recoding pays, on the scale of logarithms
CLOSE = 0.97  # a box counts from this share of its cost on: steps of at most 3 %
FIRST_CLOSE = 0.9  # of the first passes: large steps gain more in a second, and later small ones end as high
FIRST = 3  # so many passes


class UnfinishedError(Exception):
    """A pass that would have looked at more than its budget allows. It proves nothing."""


@dataclass(frozen=True, eq=False)
class Floor:
    """A price for each cell, and the loss that they prove."""

    k: int
    prices: Floats
    loss: float


def floor_of(k: int, prices: Floats, counts: Counts64) -> Floor:
    return Floor(k, prices, float((prices * counts).sum()) / float(counts.sum()))


def lifted(labels: Labels, cells: Cells, floor: Floor, paid: Floats, budget: int) -> Floor:
    """Prices between those of a floor and what a recoding makes each cell pay, scaled down to what all boxes can pay.

    Whatever prices a pass begins with, dividing each by the largest share that a box around it has to pay makes them
    sound. A recoding knows who must take others along, so passes from here end higher than from cheapest boxes.
    """
    mixed = floor.prices ** (1 - MIX) * np.maximum(paid, floor.prices) ** MIX
    try:
        return max(
            floor, raised(labels, cells, Floor(floor.k, mixed, 0.0), FIRST_CLOSE, budget), key=lambda one: one.loss
        )
    except UnfinishedError:
        return floor


def raised(labels: Labels, cells: Cells, floor: Floor, close: float, budget: int) -> Floor:
    """Prices after a pass over all boxes: sound, whatever they were; raised by a factor of at most 1/close."""
    order = np.argsort(-floor.prices, kind="stable")
    codes, counts, rows = np.ascontiguousarray(cells.codes[order]), cells.counts[order], cells.lost[order]
    prices = floor.prices[order]
    filled, _ = nearest_boxes(labels, codes, counts, rows, prices, floor.k, close, column_order(labels), budget)
    if len(filled) == 0:
        raise UnfinishedError
    prices = np.empty_like(floor.prices)
    prices[order] = floor.prices[order] / np.maximum(filled, close) * (1 - SAFE)
    prices = np.minimum(prices, 1.0)
    return floor_of(floor.k, prices, cells.lost)


def column_order(labels: Labels) -> Counts64:
    """Columns whose one step is dear first: what they cost ends most branches."""
    return np.array(sorted(range(labels.columns), key=lambda j: (-labels.price[j], j)), dtype=np.int64)


def dual_bound(labels: Labels, cells: Cells, floor: Floor, passes: int, budget: int) -> Floor:
    """The floor after some passes; a pass within the budget of cells looked at, or none.

    The first passes take large steps as long as the budget allows, then small ones.
    """
    close = FIRST_CLOSE
    for number in range(passes):
        close = close if number < FIRST else CLOSE
        try:
            floor = max(floor, raised(labels, cells, floor, close, budget), key=lambda one: one.loss)
        except UnfinishedError:
            if close == CLOSE:
                break
            close = CLOSE
    return floor


@compiled
def highest(prices: Floats, counts: Counts64, rows: Counts64, some: npt.NDArray[np.int32], size: int, k: int) -> float:
    """The highest mean of prices of rows of k persons among some cells, which are in the order of falling prices.

    `counts` are the persons of each cell. Where each has one row, it is the mean of the k highest prices.
    """
    need, total, more = k, 0.0, np.int64(0)
    for i in range(size):
        c = some[i]
        part = min(need, counts[c])
        total += part * prices[c]
        need -= part
        more += rows[c] - counts[c]
        if need == 0:
            break
    if more == 0:
        return total / k
    need, number = k, np.int64(k)
    for i in range(size):
        c = some[i]
        part = min(need, counts[c])
        need -= part
        if prices[c] * number <= total:
            break
        total += (rows[c] - part) * prices[c]
        number += rows[c] - part
    return total / number


@compiled
def options(labels: Any, codes: Codes, some: npt.NDArray[np.int32], size: int, j: int, runs: Codes) -> int:
    """The labels of a column that differ in which of some cells they hold, as runs (first, behind the last)."""
    first = labels.unit[j]
    units = labels.unit[j + 1] - first
    present = np.zeros(units, np.bool_)
    for i in range(size):
        present[codes[some[i], j]] = True
    made = 0
    if labels.leaf[first] < 0:
        for a in range(units):
            if present[a]:
                for b in range(a, units):
                    if present[b]:
                        low, high = label(labels, j, a, b)
                        runs[made, 0], runs[made, 1] = low, high
                        made += 1
        return made
    for u in range(units):
        if not present[u]:
            continue
        node = labels.leaf[first + u]
        held = -1
        while node >= 0:
            before = False
            inside = 0
            for v in range(labels.low[node], labels.high[node]):
                if present[v]:
                    inside += 1
                    if v < u:
                        before = True
                        break
            if before:
                break  # listed at an earlier unit
            if inside > held:
                runs[made, 0], runs[made, 1] = labels.low[node], labels.high[node]
                made += 1
            held = inside
            node = labels.parent[node]
    return made


@compiled
def nearest_boxes(
    labels: Any,
    codes: Codes,
    counts: Counts64,
    rows: Counts64,
    prices: Floats,
    k: int,
    close: float,
    order: Counts64,
    budget: int,
) -> tuple[Floats, int]:
    """For each cell the largest share of its cost that any box around it has to pay, where that is above `close`.

    Cells stand in the order of falling prices. A branch has decided the labels of some columns: its boxes cost at least
    what these cost and hold no dearer records than those left, so it ends when the share falls to `close`. Gives an
    empty array if more cells are looked at than the budget allows; and how many were.
    """
    size, columns = codes.shape
    widest = 1
    for j in range(columns):
        units = labels.unit[j + 1] - labels.unit[j]
        widest = max(widest, units * (units + 1) // 2 if labels.leaf[labels.unit[j]] < 0 else 2 * units)
    filled, more = np.zeros(size), np.sum(rows - counts)
    lists, sizes = np.empty((columns + 1, size), np.int32), np.zeros(columns + 1, np.int64)
    runs, made = np.empty((columns, widest, 2), np.int32), np.zeros(columns, np.int64)
    at, base = np.zeros(columns, np.int64), np.zeros(columns + 1)
    for c in range(size):
        lists[0, c] = c
    sizes[0] = size
    made[0] = options(labels, codes, lists[0], size, order[0], runs[0])
    looked, depth = 0, 0
    while depth >= 0:
        if at[depth] == made[depth]:
            depth -= 1
            continue
        j = order[depth]
        a, b = runs[depth, at[depth], 0], runs[depth, at[depth], 1]
        at[depth] += 1
        cost = base[depth] + cell_cost(labels, j, a, b - 1)
        if depth > 0 and highest(prices, counts, rows, lists[depth], sizes[depth], k) <= close * cost:
            continue
        held, kept = 0, 0
        for i in range(sizes[depth]):
            c = lists[depth, i]
            u = codes[c, j]
            if a <= u and u < b:
                lists[depth + 1, kept] = c
                kept += 1
                held += counts[c]
        looked += sizes[depth]
        if held < k:
            continue
        mean = highest(prices, counts, rows, lists[depth + 1], kept, k)
        if mean <= close * cost:
            continue
        if depth + 1 == columns:
            need, last = k, 0.0
            for i in range(kept):
                c = lists[depth + 1, i]
                share = mean / cost
                if need > 0 or more > 0:  # with more rows than persons the share of the box is a bound
                    need, last = need - counts[c], prices[c]
                else:  # the dearest set with a record of this cell has it instead of the last of the k
                    share -= (last - prices[c]) / (k * cost)
                    if share <= close:
                        break
                filled[c] = max(filled[c], share)
            continue
        if looked > budget:
            return np.zeros(0), looked
        depth += 1
        sizes[depth], base[depth], at[depth] = kept, cost, 0
        made[depth] = options(labels, codes, lists[depth], kept, order[depth], runs[depth])
    return filled, looked
