"""The lower bound on the loss of every recoding with the same labels, by dual prices, and its check.

Give each record a price between 0 and 1. The prices are dual feasible if in every box with at least k records the mean
of the k highest prices is at most the cost of the box. Then the mean of all prices is a lower bound on the loss of
every recoding, global or local, with any suppression. The costs of cheapest boxes are feasible prices. A pass finds for
each record the box with the least slack and raises the price by it. Prices stay feasible and the bound never falls.

Where rows belong to persons, a class has rows of k persons and may have any more of their rows. The mean is then over
the highest row of each of k persons and every further row whose price exceeds the mean. A person with rows in several
tuples is counted in each. This looks at more sets than there are classes, so the prices remain feasible.

The check (`check_front`, `check_floor`) shares no code with the search. It derives the labels from the columns of the
study and takes tuples and counts from the table; only the prices come from the front. It enumerates the boxes with
numpy, column by column. A branch ends where fewer than k records are left. It also ends where the fixed labels already
cost as much as the mean of the k highest prices left, because no box inside can then violate the constraint.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sfumato.base.arrays import Codes, Counts64, Floats
from sfumato.base.compiled import compiled
from sfumato.errors import DataError, InputError
from sfumato.front import PRICE_UNIT, Front
from sfumato.measures.registry import K
from sfumato.methods.local.model import Cells, Labels, cell_cost, label
from sfumato.plans.segments import Segment, segments_of
from sfumato.tables.frequency import FrequencyTable

SAFE = 1e-12  # relative margin of the constraints, because sums are rounded
MIX = 0.3  # weight of a recoding's costs in the first prices, against cheapest boxes; on a logarithmic scale
CLOSE = 0.97  # boxes with a smaller load are ignored, so a pass raises prices by at most 3 %
FIRST_CLOSE = 0.9  # in the first passes: large steps gain more per second, and small ones can follow
FIRST = 3  # number of these passes


@dataclass(frozen=True, eq=False)
class LowerBound:
    """Feasible dual prices of the cells, and the lower bound on the loss that they prove."""

    k: int
    prices: Floats
    loss: float


def lower_bound(k: int, prices: Floats, counts: Counts64) -> LowerBound:
    """Return the lower bound that feasible prices prove."""
    return LowerBound(k, prices, float((prices * counts).sum()) / float(counts.sum()))


def recoding_bound(labels: Labels, cells: Cells, bound: LowerBound, paid: Floats, budget: int) -> LowerBound:
    """Mix feasible prices with the costs of a recoding, make them feasible, and return the better bound.

    Dividing each price by the largest load of a box around its cell makes any prices feasible. A recoding shows which
    records raise the cost of others, so passes from here end higher than passes from the cheapest boxes.
    """
    mixed = LowerBound(bound.k, bound.prices ** (1 - MIX) * np.maximum(paid, bound.prices) ** MIX, 0.0)
    feasible = price_pass(labels, cells, mixed, FIRST_CLOSE, budget)
    return bound if feasible is None else max(bound, feasible, key=lambda one: one.loss)


def price_pass(labels: Labels, cells: Cells, bound: LowerBound, close: float, budget: int) -> LowerBound | None:
    """Return feasible prices after a pass over all boxes, raised by at most 1/close, or None beyond the budget."""
    order = np.argsort(-bound.prices, kind="stable")
    codes, counts, rows = np.ascontiguousarray(cells.codes[order]), cells.counts[order], cells.lost[order]
    prices = bound.prices[order]
    columns = np.array(sorted(range(labels.columns), key=lambda j: (-labels.price[j], j)))  # these prune most branches
    loads, _ = heaviest_boxes(labels, codes, counts, rows, prices, bound.k, close, columns, budget)
    if len(loads) == 0:
        return None
    prices = np.empty_like(bound.prices)
    prices[order] = bound.prices[order] / np.maximum(loads, close) * (1 - SAFE)
    prices = np.minimum(prices, 1.0)  # suppression costs 1, and a recoding may always suppress
    return lower_bound(bound.k, prices, cells.lost)


def dual_bound(labels: Labels, cells: Cells, bound: LowerBound, passes: int, budget: int) -> LowerBound:
    """Return the lower bound after some passes, each within the budget of cells visited.

    The first passes take large steps as long as the budget allows, then small ones.
    """
    close = FIRST_CLOSE
    for number in range(passes):
        close = close if number < FIRST else CLOSE
        raised = price_pass(labels, cells, bound, close, budget)
        if raised is not None:
            bound = max(bound, raised, key=lambda one: one.loss)
        elif close == CLOSE:
            break
        else:
            close = CLOSE
    return bound


@compiled
def top_mean(prices: Floats, counts: Counts64, rows: Counts64, some: npt.NDArray[np.int32], size: int, k: int) -> float:
    """Return the highest mean price of rows of k persons among cells, which are sorted by falling price.

    `counts` are the persons of each cell. If each has one row, this is the mean of the k highest prices.
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
    # Further rows of a person raise the mean as long as their price exceeds it; prices fall, so the first end is final.
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
def distinct_labels(labels: Labels, codes: Codes, some: npt.NDArray[np.int32], size: int, j: int, runs: Codes) -> int:
    """List the labels of a column that cover different sets of cells, as runs (first, one past the last)."""
    first = labels.unit[j]
    units = labels.unit[j + 1] - first
    present = np.zeros(units, np.bool_)
    for i in range(size):
        present[codes[some[i], j]] = True
    made = 0
    # Labels that cover the same cells differ only in cost, so runs begin and end at values that occur.
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
                break  # this node was listed at an earlier unit
            if inside > held:
                runs[made, 0], runs[made, 1] = labels.low[node], labels.high[node]
                made += 1
            held = inside
            node = labels.parent[node]
    return made


@compiled
def heaviest_boxes(
    labels: Labels,
    codes: Codes,
    counts: Counts64,
    rows: Counts64,
    prices: Floats,
    k: int,
    close: float,
    order: Counts64,
    budget: int,
) -> tuple[Floats, int]:
    """Return for each cell the largest load of a box around it, if above `close`, and the number of cells visited.

    The load of a box is the highest mean price of k of its records, divided by its cost. Cells are sorted by falling
    price. A branch has fixed the labels of some columns: its boxes cost at least as much as these labels, and their
    prices are at most those of the cells left. So it ends when the load falls to `close`. The array is empty if the
    budget of visited cells is exceeded.
    """
    size, columns = codes.shape
    widest = 1
    for j in range(columns):
        units = labels.unit[j + 1] - labels.unit[j]
        widest = max(widest, units * (units + 1) // 2 if labels.leaf[labels.unit[j]] < 0 else 2 * units)
    loads, more = np.zeros(size), np.sum(rows - counts)
    lists, sizes = np.empty((columns + 1, size), np.int32), np.zeros(columns + 1, np.int64)
    runs, made = np.empty((columns, widest, 2), np.int32), np.zeros(columns, np.int64)
    at, base = np.zeros(columns, np.int64), np.zeros(columns + 1)
    for c in range(size):
        lists[0, c] = c
    sizes[0] = size
    made[0] = distinct_labels(labels, codes, lists[0], size, order[0], runs[0])
    # An explicit stack: compiled recursion is slow to compile, and nothing may be allocated inside the loop.
    visited, depth = 0, 0
    while depth >= 0:
        if at[depth] == made[depth]:
            depth -= 1
            continue
        j = order[depth]
        a, b = runs[depth, at[depth], 0], runs[depth, at[depth], 1]
        at[depth] += 1
        cost = base[depth] + cell_cost(labels, j, a, b - 1)
        # The mean over the cells of the branch is an upper bound for every box in it, and needs no filtering.
        if depth > 0 and top_mean(prices, counts, rows, lists[depth], sizes[depth], k) <= close * cost:
            continue
        held, kept = 0, 0
        for i in range(sizes[depth]):
            c = lists[depth, i]
            u = codes[c, j]
            if a <= u and u < b:
                lists[depth + 1, kept] = c
                kept += 1
                held += counts[c]
        visited += sizes[depth]
        if held < k:
            continue
        mean = top_mean(prices, counts, rows, lists[depth + 1], kept, k)
        if mean <= close * cost:
            continue
        if depth + 1 == columns:
            need, last = k, 0.0
            for i in range(kept):
                c = lists[depth + 1, i]
                share = mean / cost
                if need > 0 or more > 0:  # with more rows than persons the load of the box is an upper bound
                    need, last = need - counts[c], prices[c]
                else:  # the most expensive set with a record of this cell has it in place of the last of the k
                    share -= (last - prices[c]) / (k * cost)
                    if share <= close:
                        break
                loads[c] = max(loads[c], share)
            continue
        if visited > budget:
            return np.zeros(0), visited
        depth += 1
        sizes[depth], base[depth], at[depth] = kept, cost, 0
        made[depth] = distinct_labels(labels, codes, lists[depth], kept, order[depth], runs[depth])
    return loads, visited


ROUNDING = 1e-9
BLOCK = 1 << 22  # records times labels in one numpy operation, to bound the memory
PRICED = 'a front of local recodings that were searched with method = "boxes"'


@dataclass(frozen=True, eq=False)
class LabelModel:
    """The allowed labels of each column as runs of units, with the cost of each per record."""

    runs: Sequence[Sequence[tuple[int, int]]]
    costs: Sequence[Sequence[float]]


def label_model(segments: Sequence[Segment], weights: Sequence[float]) -> LabelModel:
    """Return the nodes of the tree where a column keeps to it, else all runs of units.

    A label covers missing values alone, together with all values, or not at all.
    """
    runs, costs = [], []
    for segment, weight in zip(segments, weights, strict=True):
        units, leaves = segment.units, int(segment.leaves.sum())
        own = [(node.low, node.high) for node in segment.nodes]
        if not own:
            every = [(a, b) for a in range(units) for b in range(a + 1, units + 1)]
            own = [(a, b) for a, b in every if not segment.guarded or b < units or a in (0, units - 1)]
        share = weight / sum(weights) if sum(weights) > 0 else 1 / len(segments)
        runs.append(own)
        costs.append([(int(segment.leaves[a:b].sum()) - 1) / max(leaves - 1, 1) * share for a, b in own])
    return LabelModel(runs, costs)


def check_front(front: Front, table: FrequencyTable) -> dict[int, float]:
    """Return the lower bounds that the saved prices of a front prove, for each k.

    Raise if the front states a higher bound, if a loss is below the proven one, or if its bounds have no prices.

    Args:
        front: a front of local recodings, as it was saved.
        table: the frequency table of its study.

    Returns:
        The proven lower bound on the loss of the source, for each k.
    """
    refuse_unpriced(front)
    if table.fingerprint != front.fingerprint:
        raise DataError("the table is not the one that the front is of", expected="the table that was searched")
    segments = segments_of(front.study, table)
    model = label_model(segments, front.study.weights_for(table))
    codes = np.stack([s.unit_of[c] for s, c in zip(segments, table.codes, strict=True)], axis=1)
    proven = {}
    for point in front.points:
        if "floor" not in point.details:
            continue
        k = int(point.values[K.name])
        if k not in front.prices:
            raise DataError(f"the front has no prices for its floor at k = {k}", expected="a front with its prices")
        persons = None if table.units is None else table.units.per_tuple
        prices = front.prices[k] / PRICE_UNIT
        proven[k] = front.loss_of_source(check_floor(model, codes, table.counts, k, prices, persons))
        if float(point.details["floor"]) > proven[k] * (1 + ROUNDING):
            raise DataError(
                f"the front says more at k = {k} than its prices prove", expected="a floor as its prices prove it"
            )
        if point.loss < proven[k] * (1 - ROUNDING) - ROUNDING**2:
            raise DataError(
                f"the front has a loss at k = {k} that is below the floor that its prices prove",
                expected="a loss as the search measured it",
                remedy="search again",
            )
    return proven


def refuse_unpriced(front: Front) -> None:
    """Raise if a front has no lower bound that prices could prove, and state why."""
    if front.system == "cells":
        raise InputError(
            "a front of suppressed cells has no floor with prices: its bound is that of an integer program or of the "
            "search, and no certificate is saved with it",
            expected=PRICED,
        )
    if front.system != "local":
        raise InputError(f"a front of {front.system} has no floor", expected=PRICED)
    if any("floor" in point.details for point in front.points):
        return
    if front.study.local.method == "runs":
        raise InputError(
            'the front has no floor: method = "runs" proves none', expected=PRICED, remedy='method = "boxes" in [local]'
        )
    raise InputError("the front has no floor: none was computed for this table", expected=PRICED)


def check_floor(
    model: LabelModel, codes: Codes, counts: Counts64, k: int, prices: Floats, persons: Counts64 | None = None
) -> float:
    """Return the lower bound that prices prove; raise if a box with k records violates its constraint.

    `persons` are those of each tuple, where rows belong to persons. A class then has a row of each of k persons and any
    further rows, and the mean price of all of them may not exceed the cost of the box.
    """
    if len(prices) != len(counts) or not np.all((prices >= 0) & (prices <= 1)) or k < 1:
        raise DataError("the prices of a floor are not between 0 and 1, one for each tuple", expected="a certificate")
    order = np.argsort(-prices, kind="stable")
    codes, rows, values = codes[order], counts[order], prices[order]
    weights = rows if persons is None else persons[order]
    labels = [
        (np.array(costs)[cheap], np.array(runs)[cheap])
        for costs, runs in zip(model.costs, model.runs, strict=True)
        for cheap in [np.argsort(costs, kind="stable")]
    ]
    sequence = sorted(range(len(labels)), key=lambda j: -min((cost for cost in labels[j][0] if cost > 0), default=0.0))

    def walk(depth: int, some: Counts64, cost: float, mean: float) -> None:
        """Check all boxes of a branch by its records, the cost of its labels, and the mean of the k highest prices."""
        column = sequence[depth]
        own = codes[some, column][:, None]
        label_costs, runs = labels[column]
        # Labels are sorted by cost, so all labels after the first one that costs too much are skipped.
        possible = int((mean > (cost + label_costs) * (1 + ROUNDING) + ROUNDING**2).sum())
        step = max(BLOCK // len(some), 1)
        seen: dict[bytes, float] = {}
        for first in range(0, possible, step):
            part = slice(first, min(first + step, possible))
            inside = (own >= runs[part, 0]) & (own < runs[part, 1])
            held = np.minimum(np.cumsum(inside * weights[some, None], axis=0), k)
            totals = cost + label_costs[part]
            taken = np.diff(held, axis=0, prepend=0)
            means = values[some] @ taken / k
            if persons is not None:  # the class also has all further rows of the first 1, 2, … tuples
                further = inside * rows[some, None] - taken
                total = means * k + np.cumsum(further * values[some, None], axis=0)
                means = np.maximum(means, (total / (k + np.cumsum(further, axis=0))).max(axis=0))
            for i in np.flatnonzero((held[-1] >= k) & (means > totals * (1 + ROUNDING) + ROUNDING**2)).tolist():
                if depth + 1 == len(labels):
                    raise DataError(
                        "a box of the label model has to pay more than it costs",
                        expected="a certificate in which no box costs less than the prices of its k records",
                    )
                members = some[inside[:, i]]
                # Of labels that hold the same records only the cheapest can be violated.
                if seen.setdefault(members.tobytes(), totals[i]) == totals[i]:
                    walk(depth + 1, members, float(totals[i]), float(means[i]))

    walk(0, np.arange(len(counts)), 0.0, 1.0)
    return float((prices * counts).sum()) / float(counts.sum())
