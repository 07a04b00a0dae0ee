"""The memetic search for swaps: lists of pairs are crossed and mutated, and each pair is repaired with near records.

The paper's fitness (equation 28) stops one record before the target in each area, because the length of a list
outweighs its restriction on the remaining signal. Ours has a price for every record above the target that exceeds the
cost of any swap (docs/readings.md, 4.9).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sfumato.base.arrays import Codes, Counts64, Flags, Floats
from sfumato.base.compiled import compiled
from sfumato.methods.groups.attack.rule_walk import Stop


class Swapping(NamedTuple):
    """The problem: the cost of each pair, the places of givers and takers, and how many must leave each place.

    The signal of place j is `held[j]`; `needed[j]` givers must leave it, and it may take `caps[j]`.
    """

    cost: Floats
    giver_area: Codes
    taker_area: Codes
    held: Counts64
    needed: Counts64
    caps: Counts64
    largest_cost: float

    @property
    def swaps(self) -> int:
        return int(self.needed.sum())


# The paper's values.
POPULATION, CHILDREN, TOURNAMENT = 100, 40, 5
MUTATION, NEAREST, FLAT = 0.001, 0.75, 0.03


def search_swaps(
    problem: Swapping, generations: int, rng: np.random.Generator, stop: Stop | None = None
) -> tuple[Counts64, Counts64]:
    """Return the best list found, at the end or when asked to stop: givers and takers, pair by pair."""
    longest = min(2 * problem.swaps + 4, len(problem.giver_area), len(problem.taker_area))
    order = np.argsort(problem.cost, axis=1, kind="stable").astype(np.int32)
    givers = np.zeros((POPULATION + CHILDREN, longest), np.int32)
    takers, length, worth = np.zeros_like(givers), np.zeros(len(givers), np.int64), np.zeros(len(givers))

    def improve(i: int) -> None:
        _repaired(problem, order, givers[i], takers[i], length[i], rng)
        worth[i] = worth_of(problem, givers[i, : length[i]], takers[i, : length[i]])

    for i in range(POPULATION):
        length[i] = _first(problem, givers[i], takers[i], rng)
        improve(i)
    for _ in range(generations):
        rate = MUTATION * (10 if float(worth[:POPULATION].std()) < FLAT else 1)
        drawn = rng.integers(0, POPULATION, size=(2 * CHILDREN, TOURNAMENT))
        parents = drawn[np.arange(len(drawn)), np.argmax(worth[drawn], axis=1)]
        for child in range(CHILDREN):
            a, b = parents[2 * child], parents[2 * child + 1]
            i = POPULATION + child
            parts = (givers[a, : length[a]], takers[a, : length[a]], givers[b, : length[b]], takers[b, : length[b]])
            length[i] = _crossed(problem, *parts, givers[i], takers[i], rng)
            length[i] = _capped(problem, givers[i], takers[i], length[i])
            _mutated(problem, givers[i], takers[i], length[i], rate, rng)
            improve(i)
        best = np.argsort(-worth, kind="stable")
        givers, takers, length, worth = givers[best], takers[best], length[best], worth[best]
        if stop is not None and stop():
            break
    return givers[0, : length[0]].astype(np.int64), takers[0, : length[0]].astype(np.int64)


def worth_of(problem: Swapping, givers: Codes, takers: Codes) -> float:
    """Return the fitness of a list: 1 less its cost and the price of each record that is missing, on a common scale."""
    gone = np.bincount(problem.giver_area[givers], minlength=len(problem.held))
    price = problem.largest_cost + 1
    short = np.maximum(problem.needed - gone, 0).sum()
    return float(1 - (float(problem.cost[givers, takers].sum()) + price * short) / (price * max(problem.swaps, 1)))


@compiled
def _shuffled(count: int, rng: np.random.Generator) -> Counts64:
    """Return numbers in random order: a Fisher–Yates shuffle, so that each order is equally likely."""
    order = np.arange(count)
    for i in range(count - 1, 0, -1):
        j = int(rng.random() * (i + 1))
        order[i], order[j] = order[j], order[i]
    return order


@compiled
def _first(problem: Swapping, givers: Codes, takers: Codes, rng: np.random.Generator) -> int:
    """Return a random list: as many givers from each place as must leave, and takers from any place below its cap."""
    giver_area, taker_area = problem.giver_area, problem.taker_area
    left, free_places = problem.needed.copy(), problem.caps.copy()
    order, others = _shuffled(len(giver_area), rng), _shuffled(len(taker_area), rng)
    size, next_taker = 0, 0
    for g in order:
        if left[giver_area[g]] <= 0 or size == len(givers):
            continue
        while next_taker < len(others) and free_places[taker_area[others[next_taker]]] <= 0:
            next_taker += 1
        if next_taker == len(others):
            break
        left[giver_area[g]] -= 1
        free_places[taker_area[others[next_taker]]] -= 1
        givers[size], takers[size] = g, others[next_taker]
        next_taker += 1
        size += 1
    return size


@compiled
def _crossed(
    problem: Swapping,
    givers_a: Codes,
    takers_a: Codes,
    givers_b: Codes,
    takers_b: Codes,
    givers: Codes,
    takers: Codes,
    rng: np.random.Generator,
) -> int:
    """Return the head of one list and the tail of another, without pairs of records that occur twice."""
    head = int(rng.random() * (len(givers_a) + 1))
    tail = int(rng.random() * (len(givers_b) + 1))
    # A record can move only once, so the first of two pairs with it stays.
    used_g = np.zeros(len(problem.giver_area), np.bool_)
    used_t = np.zeros(len(problem.taker_area), np.bool_)
    size = 0
    for i in range(head + len(givers_b) - tail):
        g = givers_a[i] if i < head else givers_b[tail + i - head]
        t = takers_a[i] if i < head else takers_b[tail + i - head]
        if size < len(givers) and not used_g[g] and not used_t[t]:
            used_g[g] = True
            used_t[t] = True
            givers[size], takers[size] = g, t
            size += 1
    return size


@compiled
def _capped(problem: Swapping, givers: Codes, takers: Codes, length: int) -> int:
    """Return the pairs of a list without those beyond a place's signal or cap."""
    # A place cannot lose more members than it has: signals are counts of records.
    free_places, left = problem.caps.copy(), problem.held.copy()
    size = 0
    for i in range(length):
        a, b = problem.giver_area[givers[i]], problem.taker_area[takers[i]]
        if free_places[b] > 0 and left[a] > 0:
            free_places[b] -= 1
            left[a] -= 1
            givers[size], takers[size] = givers[i], takers[i]
            size += 1
    return size


@compiled
def _used(records: Codes, length: int, count: int) -> Flags:
    """Return which of a number of records are in a list."""
    used = np.zeros(count, np.bool_)
    for i in range(length):
        used[records[i]] = True
    return used


@compiled
def _exchanged(records: Codes, i: int, length: int, rate: float, rng: np.random.Generator) -> None:
    if rng.random() < rate:
        j = int(rng.random() * length)
        records[i], records[j] = records[j], records[i]


@compiled
def _reset(area_of: Codes, records: Codes, used: Flags, i: int, rate: float, rng: np.random.Generator) -> None:
    if rng.random() < rate:
        other = int(rng.random() * len(area_of))
        if not used[other] and area_of[other] == area_of[records[i]]:
            used[records[i]] = False
            used[other] = True
            records[i] = other


@compiled
def _mutated(
    problem: Swapping, givers: Codes, takers: Codes, length: int, rate: float, rng: np.random.Generator
) -> None:
    """Apply swap mutation to the givers and to the takers, then random resetting of each within its place."""
    giver_area, taker_area = problem.giver_area, problem.taker_area
    used_g, used_t = _used(givers, length, len(giver_area)), _used(takers, length, len(taker_area))
    # Resetting stays within the place, so that the numbers that leave and arrive do not change.
    for i in range(length):
        _exchanged(givers, i, length, rate, rng)
        _exchanged(takers, i, length, rate, rng)
        _reset(giver_area, givers, used_g, i, rate, rng)
        _reset(taker_area, takers, used_t, i, rate, rng)


@compiled
def _repaired(
    problem: Swapping, order: Codes, givers: Codes, takers: Codes, length: int, rng: np.random.Generator
) -> None:
    """Apply local search: each pair gets the nearest free taker of its giver, or the nearest giver of its taker.

    The paper keeps the taker's place. Ours may take the nearest free record of any place below its cap.
    """
    cost, giver_area, taker_area = problem.cost, problem.giver_area, problem.taker_area
    used_g, used_t = _used(givers, length, len(giver_area)), _used(takers, length, len(taker_area))
    free_places = problem.caps.copy()
    for i in range(length):
        free_places[taker_area[takers[i]]] -= 1
    for i in range(length):
        g, t = givers[i], takers[i]
        if rng.random() <= NEAREST:
            own = taker_area[t]
            for column in range(order.shape[1]):
                other = order[g, column]
                if cost[g, other] >= cost[g, t]:  # takers are in the order of their cost
                    break
                there = taker_area[other]
                if not used_t[other] and (there == own or free_places[there] > 0):
                    used_t[t] = False
                    used_t[other] = True
                    free_places[own] += 1
                    free_places[there] -= 1
                    takers[i] = other
                    break
        else:
            best = g
            for other in range(len(giver_area)):
                available = not used_g[other] and giver_area[other] == giver_area[g]
                if available and cost[other, t] < cost[best, t]:
                    best = other
            used_g[g] = False
            used_g[best] = True
            givers[i] = best
