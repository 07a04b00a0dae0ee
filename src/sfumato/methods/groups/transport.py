"""Pairs of givers and takers at the least total cost, while linear totals per place stay within bounds.

This is a flow problem: each record is in at most one pair. With one signal the vertices of the linear program are
integral and its optimum is exact. With several signals the program bounds the integer optimum, and the gap is reported.

Most pairs are never needed. The program starts with the nearest takers of each giver in each place (column generation).
The dual prices of its optimum show which other pairs have negative reduced cost. If there are none, the optimum is that
of all pairs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, linprog, milp
from scipy.sparse import csr_array

from sfumato.base.arrays import Codes, Counts64, Flags, Floats
from sfumato.errors import SfumatoError, StoppedError
from sfumato.methods.groups.attack.rule_walk import Stop

NEAREST = 2
NEAR = 24
PRICED = 3
TOLERANCE = 1e-7
HALF = 0.5
GAP = 2e-3
KEPT = 6
BEYOND = 1e-6


@dataclass(frozen=True)
class Transport:
    """Givers (rows of `cost`) and takers (columns), their places, and their weights in each signal.

    Signal k may grow by `room[k, j]` in place j; it must fall if this is negative. A pair moves the giver's weights
    from its place to the taker's, and the taker's weights the other way. A pair of infinite cost is impossible. The
    price of exceeding a bound of signal k by one is `price[k]`; bounds with an infinite price are hard.
    """

    cost: Floats
    giver_area: Codes
    taker_area: Codes
    giver_weights: Floats
    taker_weights: Floats
    room: Floats
    price: Floats


@dataclass(frozen=True)
class Pairs:
    """The chosen pairs, their cost, and a lower bound on the cost of all choices with no larger soft violations.

    `pool` are all pairs that the program had.
    """

    givers: Counts64
    takers: Counts64
    cost: float
    bound: float
    exact: bool
    pool: tuple[Counts64, Counts64]


def least_cost(
    problem: Transport,
    nodes: int = 4,
    stop: Stop | None = None,
    *,
    pool: tuple[Counts64, Counts64] | None = None,
    close: float = 0.0,
    beyond: float = 0.0,
) -> Pairs | None:
    """Return the cheapest pairs within the bounds, or None if they are infeasible. It can stop between two programs.

    If bounds contradict each other, any may be exceeded by `beyond`, at a price above the cost of every pair. The
    program may start from a `pool` of pairs. It may end when the optimum is within a share of a lower bound on that of
    all pairs: each giver is in at most one pair, so other pairs save at most each giver's least reduced cost.
    """
    rows, columns = nearest_pairs(problem.cost, problem.taker_area, NEAREST) if pool is None else pool
    priced = np.unique(np.concatenate([columns, nearest_pairs(problem.cost, problem.taker_area, NEAR)[1]]))
    all_takers = np.arange(problem.cost.shape[1])
    while True:
        if stop is not None and stop():
            raise StoppedError("interrupted while searching for pairs; nothing was saved")
        share, prices, cost, passed = _solve(problem, rows, columns)
        # Near takers are priced first, and all takers only if no near one has negative reduced cost.
        more = None if close else _reducing_pairs(problem, rows, columns, prices, priced)
        saving = 0.0
        if more is None:
            more = _reducing_pairs(problem, rows, columns, prices, all_takers)
            if more is None:
                break
            saving = more.saving
            if close and passed <= BEYOND + beyond and saving <= close * cost:
                break
            priced = np.union1d(priced, more.takers)
        rows, columns = np.concatenate([rows, more.givers]), np.concatenate([columns, more.takers])
    if passed > BEYOND + beyond:
        return None
    exact = saving == 0.0 and bool(np.abs(share - share.round()).max(initial=0.0) <= 1e-6)
    if not exact:
        share = _integral(problem, rows, columns, share, nodes)
    chosen = share > 0.5
    total = float(problem.cost[rows[chosen], columns[chosen]].sum())
    return Pairs(rows[chosen], columns[chosen], total, max(cost - saving, 0.0), exact, (rows, columns))


@dataclass(frozen=True)
class _ReducingPairs:
    """Pairs with negative reduced cost, and the most that all such pairs together could save."""

    givers: Counts64
    takers: Counts64
    saving: float


def nearest_pairs(cost: Floats, taker_area: Codes, limit: int) -> tuple[Counts64, Counts64]:
    """Return some of the nearest takers of each giver in each place."""
    near_rows, near_columns = [], []
    for area in np.unique(taker_area):
        there = np.flatnonzero(taker_area == area)
        count = min(limit, len(there))
        near = np.argpartition(cost[:, there], count - 1, axis=1)[:, :count]
        rows, columns = np.repeat(np.arange(len(cost)), count), there[near].reshape(-1)
        possible = np.isfinite(cost[rows, columns])
        near_rows.append(rows[possible])
        near_columns.append(columns[possible])
    return np.concatenate(near_rows), np.concatenate(near_columns)


def _program(problem: Transport, rows: Counts64, columns: Counts64) -> tuple[Any, Floats, Floats]:
    """Return the constraints and costs: each giver and taker once, each signal of each place within its bound.

    Every bound has an expensive slack, so that dual prices always exist.
    """
    givers, takers = problem.cost.shape
    signals, areas = problem.room.shape
    edges, slacks, once = np.arange(len(rows)), np.arange(problem.room.size), np.ones(len(rows))
    shift = problem.giver_weights[:, rows] - problem.taker_weights[:, columns]
    parts = [(rows, edges, once), (givers + columns, edges, once)]
    for k in range(signals):
        first = givers + takers + k * areas
        parts.append((first + problem.giver_area[rows], edges, -shift[k]))
        parts.append((first + problem.taker_area[columns], edges, shift[k]))
    parts.append((givers + takers + slacks, len(rows) + slacks, -np.ones(len(slacks))))
    row, edge, value = (np.concatenate([part[i] for part in parts]) for i in range(3))
    matrix = csr_array((value, (row, edge)), shape=(givers + takers + len(slacks), len(rows) + len(slacks)))
    limits = np.concatenate([np.ones(givers + takers), problem.room.reshape(-1)])
    expensive = 1000.0 * (float(problem.cost.max(where=np.isfinite(problem.cost), initial=0.0)) + 1)
    price = np.repeat(np.where(np.isinf(problem.price), expensive, problem.price), areas)
    return matrix, limits, np.concatenate([problem.cost[rows, columns], price])


def _solve(problem: Transport, rows: Counts64, columns: Counts64) -> tuple[Floats, Floats, float, float]:
    """Return the share of each pair, the dual prices, the cost of the pairs, and how far hard bounds are exceeded."""
    matrix, limits, cost = _program(problem, rows, columns)
    solved = linprog(cost, A_ub=matrix, b_ub=limits, bounds=(0, None), method="highs-ds")
    if solved.status != 0 or solved.x is None:
        raise SfumatoError(f"the linear program failed: {solved.message}")
    shares = solved.x[: len(rows)]
    passed = solved.x[len(rows) :].reshape(problem.room.shape)[np.isinf(problem.price)]
    return shares, solved.ineqlin.marginals, float(cost[: len(rows)] @ shares), float(passed.max(initial=0.0))


def _reducing_pairs(
    problem: Transport, rows: Counts64, columns: Counts64, prices: Floats, takers: Counts64
) -> _ReducingPairs | None:
    """Return pairs outside the program with negative reduced cost: the best few of each giver, or None."""
    givers, total = problem.cost.shape
    per_area = prices[givers + total :].reshape(problem.room.shape)
    pairs: list[tuple[Counts64, Counts64]] = []
    saving = 0.0
    listed = np.full(total, -1)
    listed[takers] = np.arange(len(takers))
    for a in np.unique(problem.giver_area):
        mine = np.flatnonzero(problem.giver_area == a)
        step = per_area[:, a][:, None] - per_area[:, problem.taker_area[takers]]
        reduced = problem.cost[np.ix_(mine, takers)]
        reduced -= prices[mine][:, None]
        reduced -= prices[givers + takers] + (step * problem.taker_weights[:, takers]).sum(axis=0)
        reduced += problem.giver_weights[:, mine].T @ step
        inside = np.isin(rows, mine) & (listed[columns] >= 0)
        reduced[np.searchsorted(mine, rows[inside]), listed[columns[inside]]] = 0.0
        saving -= float(np.minimum(reduced.min(axis=1, initial=0.0), 0.0).sum())
        few = _best_few(reduced, -TOLERANCE)
        if few is not None:
            pairs.append((mine[few[0]], takers[few[1]]))
    if not pairs:
        return None
    givers_, takers_ = (np.concatenate([pair[side] for pair in pairs]) for side in (0, 1))
    return _ReducingPairs(givers_, takers_, saving)


def _best_few(worth: Floats, limit: float, count: int = PRICED) -> tuple[Counts64, Counts64] | None:
    count = min(count, worth.shape[1])
    near = np.argpartition(worth, count - 1, axis=1)[:, :count]
    rows = np.repeat(np.arange(len(worth)), count)
    columns = near.reshape(-1)
    good = worth[rows, columns] < limit
    return (rows[good], columns[good]) if good.any() else None


def _integral(problem: Transport, rows: Counts64, columns: Counts64, share: Floats, nodes: int) -> Floats:
    """Return integral pairs near the program's optimum: what is integral stays, and split givers are decided anew.

    If no nodes are allowed, the largest shares are taken. Integral pairs cannot meet a bound exactly, so each may be
    exceeded by half a record.
    """
    if not nodes:
        return _rounded(rows, columns, share)
    sure = share > 1 - 1e-6
    settled = np.isin(rows, rows[sure]) | np.isin(columns, columns[sure])
    open_ = np.flatnonzero(~settled & ((share > 1e-6) | _cheapest(problem, rows, columns, ~settled)))
    matrix, limits, cost = _program(problem, rows, columns)
    bounds = problem.room.size
    limits[-bounds:] += HALF
    whole = np.where(sure, 1.0, 0.0)
    left = limits - matrix[:, : len(rows)] @ whole
    chosen = np.concatenate([open_, len(rows) + np.arange(bounds)])
    solved = milp(
        cost[chosen],
        integrality=np.concatenate([np.ones(len(open_)), np.zeros(bounds)]),
        bounds=Bounds(0, np.concatenate([np.ones(len(open_)), np.full(bounds, np.inf)])),
        constraints=LinearConstraint(matrix[:, chosen], -np.inf, left),
        # No time limit, because the result must not depend on the load of the machine.
        options={"node_limit": nodes, "mip_rel_gap": GAP},
    )
    tried = [_rounded(rows, columns, share)]
    if solved.x is not None:
        whole[open_] = solved.x[: len(open_)].round()
        tried.append(whole)

    def worth(pairs: Floats) -> float:
        over = np.maximum(matrix[-bounds:, : len(rows)] @ pairs - limits[-bounds:], 0)
        return float(cost[: len(rows)] @ pairs + cost[-bounds:] @ over)

    return min(tried, key=worth)


def _cheapest(problem: Transport, rows: Counts64, columns: Counts64, free: Flags) -> Flags:
    """Return the few cheapest of each giver's free pairs; others would only slow down the integer program."""
    cost = np.where(free, problem.cost[rows, columns], np.inf)
    order = np.lexsort((cost, rows))
    first = np.searchsorted(rows[order], rows[order])
    chosen = np.zeros(len(rows), np.bool_)
    chosen[order] = np.arange(len(rows)) - first < KEPT
    return chosen & free


def _rounded(rows: Counts64, columns: Counts64, share: Floats) -> Floats:
    """Return integral pairs by rounding: the largest shares first, each giver and taker once, as many as there were."""
    chosen, givers, takers = np.zeros(len(rows)), set[int](), set[int]()
    for edge in np.argsort(-share, kind="stable")[: int((share > 1e-6).sum())].tolist():
        if len(givers) >= np.ceil(share.sum() - 1e-6):
            break
        if int(rows[edge]) not in givers and int(columns[edge]) not in takers:
            chosen[edge] = 1.0
            givers.add(int(rows[edge]))
            takers.add(int(columns[edge]))
    return chosen
