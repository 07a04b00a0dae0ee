"""The memetic search for swaps: lists of pairs are crossed and mutated, and each pair is repaired with near records.

A list is judged in one of two ways. The paper's fitness (equation 28) multiplies closeness, a fuzzy restriction on the
remaining signal, and a penalty on length. By itself it stops one record before the target in each area, because the
length outweighs the restriction. Our fitness adds a price for every record above the target that exceeds the cost of
any swap (docs/readings.md, 4.9).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sfumato.base.arrays import Codes, Counts64, Floats
from sfumato.base.compiled import compiled
from sfumato.methods.groups.attack.memberships import z


@dataclass(frozen=True)
class Swapping:
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


@dataclass(frozen=True)
class Memetic:
    """The parameters, with the paper's values. `reproduction` also selects its fitness and its local search."""

    population: int = 100
    children: int = 40
    tournament: int = 5
    mutation: float = 0.001
    nearest: float = 0.75
    generations: int = 1000
    flat: float = 0.03
    reproduction: bool = False
    shoulder: float = 10.0

    def search(
        self,
        problem: Swapping,
        rng: np.random.Generator,
        stop: Callable[[], bool] | None = None,
    ) -> tuple[Counts64, Counts64]:
        """Return the best list found, at the end or when asked to stop: givers and takers, pair by pair."""
        longest = min(2 * problem.swaps + 4, len(problem.giver_area), len(problem.taker_area))
        order = np.argsort(problem.cost, axis=1, kind="stable").astype(np.int32)
        givers = np.zeros((self.population + self.children, longest), np.int32)
        takers, length = np.zeros_like(givers), np.zeros(len(givers), np.int64)
        area_of = (problem.giver_area.astype(np.int64), problem.taker_area.astype(np.int64))
        for i in range(self.population):
            length[i] = _first(*area_of, problem.needed, problem.caps, givers[i], takers[i], rng)
            self._improve(problem, area_of, order, givers[i], takers[i], length[i], rng)
        worth = self._judge(problem, givers, takers, length, range(self.population), np.zeros(len(givers)))
        for _ in range(self.generations):
            spread = float(worth[: self.population].std())
            rate = self.mutation * (10 if spread < self.flat else 1)
            parents = self._parents(worth[: self.population], rng)
            for child in range(self.children):
                a, b = parents[2 * child], parents[2 * child + 1]
                i = self.population + child
                length[i] = _crossed(
                    givers[a, : length[a]], takers[a, : length[a]], givers[b, : length[b]], takers[b, : length[b]],
                    givers[i], takers[i], len(problem.giver_area), len(problem.taker_area), rng,
                )  # fmt: skip
                length[i] = _capped(*area_of, problem.held, problem.caps, givers[i], takers[i], length[i])
                _mutated(*area_of, givers[i], takers[i], length[i], rate, rng)
                self._improve(problem, area_of, order, givers[i], takers[i], length[i], rng)
            self._judge(problem, givers, takers, length, range(self.population, len(givers)), worth)
            best = np.argsort(-worth, kind="stable")
            givers, takers, length, worth = givers[best], takers[best], length[best], worth[best]
            if stop is not None and stop():
                break
        return givers[0, : length[0]].astype(np.int64), takers[0, : length[0]].astype(np.int64)

    def _improve(
        self,
        problem: Swapping,
        area_of: tuple[Counts64, Counts64],
        order: Codes,
        givers: Codes,
        takers: Codes,
        length: int,
        rng: np.random.Generator,
    ) -> None:
        _repaired(
            problem.cost, *area_of, order, problem.caps, givers, takers, length, self.nearest, self.reproduction, rng
        )

    def _parents(self, worth: Floats, rng: np.random.Generator) -> Counts64:
        used = scaled(worth) if self.reproduction else worth
        drawn = rng.integers(0, self.population, size=(2 * self.children, self.tournament))
        best: Counts64 = drawn[np.arange(len(drawn)), np.argmax(used[drawn], axis=1)]
        return best

    def _judge(
        self, problem: Swapping, givers: Codes, takers: Codes, length: Counts64, which: range, worth: Floats
    ) -> Floats:
        for i in which:
            gone = np.bincount(problem.giver_area[givers[i, : length[i]]], minlength=len(problem.held))
            cost = float(problem.cost[givers[i, : length[i]], takers[i, : length[i]]].sum())
            if self.reproduction:
                worth[i] = self._paper_worth(problem, cost, gone, int(length[i]))
            else:
                short = np.maximum(problem.needed - gone, 0).sum()
                scale = (problem.largest_cost + 1) * max(problem.swaps, 1)
                worth[i] = 1 - (cost + (problem.largest_cost + 1) * short) / scale
        return worth

    def _paper_worth(self, problem: Swapping, cost: float, gone: Counts64, length: int) -> float:
        """Return the fitness of equation 28 with its constants scaled to the number of swaps needed.

        In the paper 299 = 13·23 and 25 = 23 + 2.
        """
        largest = problem.largest_cost * problem.swaps
        closeness = max((largest - cost) / largest, 0.0)
        masked = 1.0
        for j in np.flatnonzero(problem.needed):
            target = float(problem.held[j] - problem.needed[j])
            masked *= float(z(np.array([float(problem.held[j] - gone[j])]), target, target + self.shoulder)[0])
        return float(closeness * masked / (1 + np.exp(min(0.5 * (length - problem.swaps - 2), 700.0))))


def scaled(worth: Floats) -> Floats:
    """Return Goldberg's linear scaling. It keeps the order, so tournaments are not affected.

    >>> scaled(np.array([1.0, 2.0, 3.0])).tolist()
    [0.0, 2.0, 4.0]
    """
    mean, top, low = float(worth.mean()), float(worth.max()), float(worth.min())
    if top == mean:
        return worth
    slope = min(mean / (top - mean), mean / (mean - low) if mean > low else np.inf)
    return slope * (worth - mean) + mean


@compiled
def _first(
    giver_area: Counts64,
    taker_area: Counts64,
    needed: Counts64,
    caps: Counts64,
    givers: Codes,
    takers: Codes,
    rng: np.random.Generator,
) -> int:
    """Return a random list: as many givers from each place as must leave, and takers from any place below its cap."""
    # Fisher–Yates shuffles, so that every list is equally likely to start from any record.
    left, free_places = needed.copy(), caps.copy()
    order = np.arange(len(giver_area))
    others = np.arange(len(taker_area))
    for i in range(len(order) - 1, 0, -1):
        j = int(rng.random() * (i + 1))
        order[i], order[j] = order[j], order[i]
    for i in range(len(others) - 1, 0, -1):
        j = int(rng.random() * (i + 1))
        others[i], others[j] = others[j], others[i]
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
    givers_a: Codes,
    takers_a: Codes,
    givers_b: Codes,
    takers_b: Codes,
    givers: Codes,
    takers: Codes,
    most_givers: int,
    most_takers: int,
    rng: np.random.Generator,
) -> int:
    """Return the head of one list and the tail of another, without pairs of records that occur twice."""
    head = int(rng.random() * (len(givers_a) + 1))
    tail = int(rng.random() * (len(givers_b) + 1))
    # A record can move only once, so the first of two pairs with it stays.
    used_g = np.zeros(most_givers, np.bool_)
    used_t = np.zeros(most_takers, np.bool_)
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
def _capped(
    giver_area: Counts64,
    taker_area: Counts64,
    held: Counts64,
    caps: Counts64,
    givers: Codes,
    takers: Codes,
    length: int,
) -> int:
    """Return the pairs of a list without those beyond a place's signal or cap."""
    # A place cannot lose more members than it has: signals are counts of records.
    free_places, left = caps.copy(), held.copy()
    size = 0
    for i in range(length):
        a, b = giver_area[givers[i]], taker_area[takers[i]]
        if free_places[b] > 0 and left[a] > 0:
            free_places[b] -= 1
            left[a] -= 1
            givers[size], takers[size] = givers[i], takers[i]
            size += 1
    return size


@compiled
def _mutated(
    giver_area: Counts64,
    taker_area: Counts64,
    givers: Codes,
    takers: Codes,
    length: int,
    rate: float,
    rng: np.random.Generator,
) -> None:
    """Apply swap mutation to the givers and to the takers, then random resetting of each within its place."""
    used_g = np.zeros(len(giver_area), np.bool_)
    used_t = np.zeros(len(taker_area), np.bool_)
    for i in range(length):
        used_g[givers[i]] = True
        used_t[takers[i]] = True
    # Resetting stays within the place, so that the numbers that leave and arrive do not change.
    for i in range(length):
        if rng.random() < rate:
            j = int(rng.random() * length)
            givers[i], givers[j] = givers[j], givers[i]
        if rng.random() < rate:
            j = int(rng.random() * length)
            takers[i], takers[j] = takers[j], takers[i]
        if rng.random() < rate:
            g = int(rng.random() * len(giver_area))
            if not used_g[g] and giver_area[g] == giver_area[givers[i]]:
                used_g[givers[i]] = False
                used_g[g] = True
                givers[i] = g
        if rng.random() < rate:
            t = int(rng.random() * len(taker_area))
            if not used_t[t] and taker_area[t] == taker_area[takers[i]]:
                used_t[takers[i]] = False
                used_t[t] = True
                takers[i] = t


@compiled
def _repaired(
    cost: Floats,
    giver_area: Counts64,
    taker_area: Counts64,
    order: Codes,
    caps: Counts64,
    givers: Codes,
    takers: Codes,
    length: int,
    nearest: float,
    same_place: bool,
    rng: np.random.Generator,
) -> None:
    """Apply local search: each pair gets the nearest free taker of its giver, or the nearest giver of its taker.

    The paper keeps the taker's place. Ours may take the nearest free record of any place below its cap.
    """
    used_g = np.zeros(len(giver_area), np.bool_)
    used_t = np.zeros(len(taker_area), np.bool_)
    free_places = caps.copy()
    for i in range(length):
        used_g[givers[i]] = True
        used_t[takers[i]] = True
        free_places[taker_area[takers[i]]] -= 1
    for i in range(length):
        g, t = givers[i], takers[i]
        if rng.random() <= nearest:
            own = taker_area[t]
            for column in range(order.shape[1]):
                other = order[g, column]
                if cost[g, other] >= cost[g, t]:  # takers are in the order of their cost
                    break
                there = taker_area[other]
                if not used_t[other] and (there == own or (not same_place and free_places[there] > 0)):
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
