"""Method 3, first part: anneal classes record by record, between neighbours.

A record moves to the class of a neighbour, or changes places with a record there; a class that grows to 2k records is
divided, one of few records is dissolved, its records going to the classes of their neighbours, and a new class is made
of records that others can spare. A change that pays is made; one that does not is made with a probability that falls
with what it costs and with the temperature. Steps are drawn from a generator whose state is an array, and a budget
counts steps, not seconds.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sfumato.runtime.arrays import Codes, Floats
from sfumato.runtime.compiled import compiled
from sfumato.systems.local.improve import State, draw
from sfumato.systems.local.records import (
    DISSOLVED,
    NONE,
    extent_cost,
    put,
    put_noted,
    take_free,
    undo,
    with_record,
    without,
)

PARTS = 64  # temperatures of a call
LUCK = 4096  # draws of what a change may cost


def luck_of() -> Floats:
    """What a change may cost at temperature 1, equally likely: an exponential distribution by its quantiles."""
    return -np.log((np.arange(LUCK) + 0.5) / LUCK)


@compiled
def divide_class(labels: Any, sizes: Any, codes: Codes, records: Any, r: int, k: int, noted: int) -> tuple[float, int]:
    """Take k records out of the class of r, r first, then always the one that costs least: a class of their own."""
    i = records.home[r]
    new = take_free(records)
    if new < 0:
        return np.inf, noted
    change = put_noted(labels, sizes, codes, records, r, new, noted)
    noted += 1
    while records.rows[new] < k:
        best, least = NONE, np.inf
        for e in range(records.rows[i]):
            s = records.member[i, e]
            cost = with_record(labels, sizes, codes, records.low[new], records.high[new], records.cell[s])
            if cost < least:
                best, least = s, cost
        change += put_noted(labels, sizes, codes, records, best, new, noted)
        noted += 1
    return change, noted


@compiled
def neighbour(records: Any, r: int, state: State) -> int:
    """A record of a cell near that of r, or of its own."""
    c = records.cell[r]
    n = draw(state, records.near.shape[1])
    n = min(n, draw(state, records.near.shape[1]))
    other = records.near[c, n]
    if other < 0 or records.first[other] == records.first[other + 1]:
        other = c
    return records.first[other] + draw(state, records.first[other + 1] - records.first[other])  # type: ignore[no-any-return]


@compiled
def dissolve(
    labels: Any, sizes: Any, codes: Codes, records: Any, i: int, k: int, state: State, tries: int
) -> tuple[float, int]:
    """Send all records of a class to classes of their neighbours, the best of some; what that changes."""
    change, noted = 0.0, 0
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
            return np.inf, noted
        change += put_noted(labels, sizes, codes, records, r, best, noted)
        noted += 1
        if records.rows[best] >= 2 * k:
            more, noted = divide_class(labels, sizes, codes, records, r, k, noted)
            change += more
    return change, noted


@compiled
def create(labels: Any, sizes: Any, codes: Codes, records: Any, r: int, k: int) -> tuple[float, int]:
    """A new class of r and records near it, from classes that can spare them."""
    new = take_free(records)
    if new < 0:
        return np.inf, 0
    change = put_noted(labels, sizes, codes, records, r, new, 0)
    noted = 1
    for n in range(-1, records.near.shape[1]):
        c = records.cell[r] if n < 0 else records.near[records.cell[r], n]
        if c < 0:
            break
        for s in range(records.first[c], records.first[c + 1]):
            if records.home[s] != new and records.rows[records.home[s]] > k:
                change += put_noted(labels, sizes, codes, records, s, new, noted)
                noted += 1
                if noted == k:
                    return change, noted
    return np.inf, noted


@compiled
def anneal(
    labels: Any,
    sizes: Any,
    codes: Codes,
    records: Any,
    k: int,
    steps: int,
    warm: float,
    cold: float,
    luck: Floats,
    state: State,
) -> float:
    """So many steps while the temperature falls from `warm` to `cold`; by how much the sum of costs changed."""
    total, temperature = 0.0, warm
    often = max(steps // PARTS, 1)
    factor = (cold / warm) ** (1 / PARTS)
    spare_low, spare_high = records.spare_low, records.spare_high
    for step in range(steps):
        if step % often == 0 and step > 0:
            temperature *= factor
        r = draw(state, len(records.cell))
        s = neighbour(records, r, state)
        a, b = records.home[r], records.home[s]
        allowed = temperature * luck[draw(state, len(luck))]
        kind = draw(state, 16)
        if a == b:
            continue
        rows_a, rows_b = records.rows[a], records.rows[b]
        if records.cost[a] == 0.0 and records.cost[b] == 0.0:
            continue
        if kind < 2:
            if kind == 0 and rows_a <= k + 1 and k <= DISSOLVED:
                change, noted = dissolve(labels, sizes, codes, records, a, k, state, 4)
            elif rows_a > k:
                change, noted = create(labels, sizes, codes, records, r, k)
            else:
                continue
            if change < allowed:
                total += change
            else:
                undo(labels, sizes, codes, records, noted)
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
            change = put_noted(labels, sizes, codes, records, r, b, 0)
            more, noted = divide_class(labels, sizes, codes, records, r, k, 1)
            change += more
            if change < allowed:
                total += change
            else:
                undo(labels, sizes, codes, records, noted)
            continue
        t = records.member[b, draw(state, rows_b)]  # r and t change places
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
