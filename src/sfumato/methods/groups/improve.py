"""The improvement of a plan of swaps pair by pair: what attackers find, or nearly find, against the cost of pairs.

Bounds on sums only approximate the objective, which is whether an attacker finds an area. Here the objective is
evaluated directly. A step drops a pair, adds one, gives a giver another partner, or replaces a pair by one of another
giver. It is accepted if it improves the objective. Steps are drawn beforehand from a given generator, and the budget
counts steps, not seconds, so the result is reproducible.

The shift of a plan is its effect on the tables of areas: how far shares of categories move, and how the mixture
changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sfumato.base.arrays import Codes, Counts64, Flags, Floats
from sfumato.base.compiled import compiled
from sfumato.errors import StoppedError
from sfumato.methods.groups.attack.exposure import Criteria, Spare, exposure, spare_of
from sfumato.methods.groups.attack.rule_walk import Stop
from sfumato.methods.groups.microfile import Microfile, quantile_groups

PRICE = 50.0  # the cost that is accepted for one unit of exposure
STEPS, EACH, WORK = 15_000, 50, 30_000_000  # most steps: for each giver, and times signals times areas
BATCH, BATCH_WORK = 500, 1_000_000  # steps between two stop requests, and times signals times areas
DROP, ADD, PARTNER, GIVER = range(4)
ROUNDING = 1e-9


class Edges(NamedTuple):
    """Possible pairs, by giver: those of giver g are numbers `start[g]` to `start[g + 1]`."""

    start: Counts64
    taker: Counts64
    cost: Floats
    giver_area: Codes
    taker_area: Codes


class Weights(NamedTuple):
    """The weights of givers and takers (rows) in signals (columns), each signal's group, and one record's part."""

    giver: Floats
    taker: Floats
    group: Counts64
    per_record: Floats


@dataclass(frozen=True)
class Improved:
    """The pair of each giver, -1 for none, and the exposure of the areas before and after."""

    used: Counts64
    before: float
    after: float


def edges_of(cost: Floats, giver_area: Codes, taker_area: Codes, givers: Counts64, takers: Counts64) -> Edges:
    """Return pairs of a giver and a taker, in any order, as edges without duplicates."""
    pairs = np.unique(givers.astype(np.int64) * cost.shape[1] + takers)
    givers, takers = pairs // cost.shape[1], pairs % cost.shape[1]
    start = np.searchsorted(givers, np.arange(len(cost) + 1)).astype(np.int64)
    return Edges(start, takers, cost[givers, takers], giver_area, taker_area)


def improve(
    edges: Edges,
    weights: Weights,
    held: Floats,
    used: Counts64,
    criteria: Criteria,
    noise: np.random.Generator,
    stop: Stop | None = None,
) -> Improved:
    """Improve the pairs in use. `held` is each signal (row) in each area with these pairs; it is not changed."""
    held, used = held.copy(), used.copy()
    spare = spare_of(held.shape[1], criteria.sensitive.shape[1])
    signals = zip(held, weights.group, weights.per_record, strict=True)
    exposed = np.array([exposure(shown, group, one, criteria, spare) for shown, group, one in signals])
    before = float(exposed.sum())
    steps = min(STEPS, EACH * len(used), WORK // held.size)
    busy = np.zeros(len(edges.taker_area), np.bool_)
    busy[edges.taker[used[used >= 0]]] = True
    part = max(min(BATCH, BATCH_WORK // held.size), 1)
    for done in range(0, steps, part):
        if stop is not None and stop():
            raise StoppedError("interrupted while a plan was improved; nothing was saved")
        drawn = noise.random((min(part, steps - done), 4))
        _steps(edges, weights, held, exposed, used, busy, criteria, spare, drawn)
    return Improved(used, before, float(exposed.sum()))


@compiled
def _steps(
    edges: Edges,
    weights: Weights,
    held: Floats,
    exposed: Floats,
    used: Counts64,
    busy: Flags,
    criteria: Criteria,
    spare: Spare,
    drawn: Floats,
) -> None:
    """Try a step for each row of random numbers, and accept those that improve the objective."""
    # The numbers are drawn outside, so that with a seed the result does not depend on how steps are divided into calls.
    signals, areas = held.shape
    givers = len(used)
    row, new = np.zeros(areas), np.zeros(signals)
    for step in range(len(drawn)):
        kind = int(drawn[step, 0] * 4)
        out, into, edge = -1, -1, -1
        if kind != ADD:  # the next giver in a pair, searched from a random one onwards
            at = int(drawn[step, 1] * givers)
            for further in range(givers):
                if used[(at + further) % givers] >= 0:
                    out = (at + further) % givers
                    break
            if out < 0:
                continue
        if kind == PARTNER:
            into = out
        elif kind != DROP:
            into = int(drawn[step, 2] * givers)
            if used[into] >= 0 and into != out:
                continue
        change = 0.0
        if out >= 0:
            change -= edges.cost[used[out]]
        if into >= 0:
            choices = edges.start[into + 1] - edges.start[into]
            if choices == 0:
                continue
            edge = edges.start[into] + int(drawn[step, 3] * choices)
            taken = edges.taker[edge]
            if busy[taken] and (out < 0 or edges.taker[used[out]] != taken):
                continue
            change += edges.cost[edge]
        # The areas to which each amount returns and from which it leaves; without a pair the amount is 0.
        first, second = edges.taker[used[out]] if out >= 0 else 0, edges.taker[edge] if into >= 0 else 0
        left, total = exposed.sum(), 0.0
        for a in range(signals):
            left -= exposed[a]
            back = weights.giver[out, a] - weights.taker[first, a] if out >= 0 else 0.0
            away = weights.giver[into, a] - weights.taker[second, a] if into >= 0 else 0.0
            new[a] = exposed[a]
            if back != 0 or away != 0:
                for j in range(areas):
                    row[j] = held[a, j]
                _move(row, edges.taker_area[first], edges.giver_area[out], back)
                _move(row, edges.giver_area[into], edges.taker_area[second], away)
                new[a] = exposure(row, weights.group[a], weights.per_record[a], criteria, spare)
            total += new[a] - exposed[a]
            # reject early, since the remaining groups cannot make up for it
            if (total - left) * PRICE + change >= -ROUNDING:
                total = np.inf
                break
        if total * PRICE + change >= -ROUNDING:  # nothing was changed yet, so a rejected step needs no rollback
            continue
        for a in range(signals):
            exposed[a] = new[a]
            if out >= 0:
                back = weights.giver[out, a] - weights.taker[first, a]
                _move(held[a], edges.taker_area[first], edges.giver_area[out], back)
            if into >= 0:
                away = weights.giver[into, a] - weights.taker[second, a]
                _move(held[a], edges.giver_area[into], edges.taker_area[second], away)
        if out >= 0:
            busy[first] = False
            used[out] = -1
        if into >= 0:
            busy[second] = True
            used[into] = edge


@compiled
def _move(row: Floats, one: int, other: int, amount: float) -> None:
    """Move an amount from one area to another. A remainder that is only rounding becomes 0."""
    # A sum that should be 0 must be exactly 0: ties and the test for a value above 0 depend on it.
    row[one] -= amount
    row[other] += amount
    for area in (one, other):
        if abs(row[area]) < ROUNDING:
            row[area] = 0.0


GROUPS = 8  # an attribute with more values is divided into this number of groups


@dataclass(frozen=True)
class Shift:
    """The shares of records and cells that moved, and the change of the tables of area by attribute.

    The change is the mean and the largest change of a category's share (bias), and the mean change of an area's entropy
    in bits, with its sign and without.
    """

    rate: float
    bias: float
    largest: float
    entropy: float
    entropy_change: float


def shift_of(before: Microfile, after: Codes) -> Shift:
    """Return the shift that other areas of the same records cause."""
    biases, gains = [], []
    for position, values in enumerate(before.values):
        codes = before.codes[position].astype(np.int64)
        if len(values) > GROUPS:
            codes = quantile_groups(np.bincount(codes, minlength=len(values)), GROUPS)[codes]
        one, two = (_shares(codes, areas, len(before.areas)) for areas in (before.area_of, after))
        biases.append(np.abs(two - one).reshape(-1))
        gains.append(_entropy(two) - _entropy(one))
    bias, gain = np.concatenate(biases), np.concatenate(gains)
    figures = ((before.area_of != after).mean(), bias.mean(), bias.max(), np.abs(gain).mean(), gain.mean())
    return Shift(*(round(float(figure), 6) for figure in figures))


def _shares(codes: Counts64, area_of: Codes, areas: int) -> Floats:
    width = int(codes.max(initial=0)) + 1
    table = np.bincount(area_of.astype(np.int64) * width + codes, minlength=areas * width).reshape(areas, width)
    shares: Floats = table / np.maximum(table.sum(axis=1, keepdims=True), 1)
    return shares


def _entropy(shares: Floats) -> Floats:
    """Return the entropy of each row in bits.

    >>> _entropy(np.array([[0.5, 0.5], [1.0, 0.0]])).tolist()
    [1.0, 0.0]
    """
    logs = np.log2(shares, out=np.zeros_like(shares), where=shares > 0)
    bits: Floats = np.maximum(-(shares * logs).sum(axis=1), 0.0)
    return bits
