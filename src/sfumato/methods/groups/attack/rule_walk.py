"""All rules that pass the limits: a complete depth-first walk over the rules of a file.

A condition never adds to a rule's mass. So the walk keeps the records that satisfy the conditions so far, and
backtracks when the group's mass among them has fallen to the limit. It visits a small part of millions of rules, and
misses none that passes.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from sfumato.base.arrays import Codes, Counts64, Flags, Floats
from sfumato.base.compiled import compiled
from sfumato.errors import StoppedError
from sfumato.methods.groups.attack.rules import ALPHA, Graded, Quality

MOST_RULES = 20_000_000
POLL = 0.1  # poll interval for a stop request, in seconds

Stop = Callable[[], bool]
_Found = tuple[Codes, Floats, Floats, int]


@dataclass(frozen=True)
class Walked:
    """The rules that pass with their quality, how many rules were visited, and whether the walk was complete."""

    rules: Codes
    quality: Quality
    visited: int
    complete: bool


@compiled
def _walk(
    stopped: Flags,
    graded: Graded,
    inside: Floats,
    outside: Floats,
    gamma: float,
    floor: float,
    strict: float,
    limit: int,
    prune: bool,
    levels: Floats,
    best: Floats,
) -> _Found:
    """Walk over the rules whose group mass is > `strict` and ≥ `floor`, with DF > 0 and RCF ≥ γ.

    With `prune` the walk does not extend a rule that passes. With `levels` (rising masses) rules are not kept: then
    `best[l, t]` becomes the greatest RCF of the rules that cover tuple t and whose mass exceeds `levels[l]` but no
    later level. The walk ends when another thread sets `stopped[0]`.
    """
    codes, grades, start, terms = graded.codes, graded.grades, graded.start, graded.terms
    width, tuples = codes.shape
    members, everyone = inside.sum(), inside.sum() + outside.sum()
    # One row of surviving tuples and their products for each depth, so that backtracking computes nothing.
    index = np.empty((width + 1, tuples), np.int32)
    product = np.empty((width + 1, tuples), np.float64)
    size = np.zeros(width + 1, np.int64)
    for t in range(tuples):
        index[0, t] = t
        product[0, t] = 1.0
    size[0] = tuples
    last = np.full(width + 2, -1, np.int64)  # the column and the term that were tried last at each depth
    term = np.zeros(width + 2, np.int64)
    rule = np.zeros(width, np.int32)
    capacity = 1024
    rules = np.empty((capacity, width), np.int32)
    mass_in, mass_out = np.empty(capacity), np.empty(capacity)
    passing, visited, depth = 0, 0, 0
    last[0], term[0] = 0, 0
    while depth >= 0:
        if stopped[0]:  # set from outside: compiled code does not see Ctrl-C
            break
        column, value = last[depth], term[depth] + 1
        if column < width and value > terms[column]:
            column, value = column + 1, 1
        if depth >= width or column >= width:
            depth -= 1
            if depth >= 0:
                rule[last[depth]] = 0
            continue
        last[depth], term[depth] = column, value
        row = grades[start[column] + value]
        own = codes[column]
        count = 0
        a, b = 0.0, 0.0
        for position in range(size[depth]):
            t = index[depth, position]
            p = product[depth, position] * row[own[t]]
            if p >= ALPHA:
                index[depth + 1, count] = t
                product[depth + 1, count] = p
                count += 1
                a += p * inside[t]
                b += p * outside[t]
        visited += 1
        # Memberships are at most 1, so no further condition can add mass: no longer rule passes either.
        if a <= strict or a < floor:
            continue
        rule[column] = value
        # RCF ≥ γ without a division, because RCF is infinite where b is 0 (docs/readings.md, 4.5).
        passes = a / members - (a + b) / everyone > 0 and a >= gamma * b
        if passes and len(levels):
            level = 0
            while level + 1 < len(levels) and a > levels[level + 1]:
                level += 1
            confidence = a / b if b > 0 else np.inf
            for position in range(count):
                t = index[depth + 1, position]
                if confidence > best[level, t]:
                    best[level, t] = confidence
        elif passes:
            if passing == limit:  # a negative count says that the walk is not complete
                return rules[:passing], mass_in[:passing], mass_out[:passing], -visited
            if passing == capacity:
                capacity *= 2
                wider = np.empty((capacity, width), np.int32)
                wider[:passing] = rules[:passing]
                rules = wider
                more_in, more_out = np.empty(capacity), np.empty(capacity)
                more_in[:passing] = mass_in[:passing]
                more_out[:passing] = mass_out[:passing]
                mass_in, mass_out = more_in, more_out
            rules[passing] = rule
            mass_in[passing], mass_out[passing] = a, b
            passing += 1
        if passes and prune:  # a longer rule is covered by this one, so it is not minimal
            rule[column] = 0
            continue
        size[depth + 1] = count
        last[depth + 1], term[depth + 1] = column + 1, 0
        depth += 1
    return rules[:passing], mass_in[:passing], mass_out[:passing], visited


def walk_rules(
    graded: Graded,
    members: Flags,
    gamma: float,
    kappa: float,
    least: float,
    *,
    prune: bool = False,
    stop: Stop | None = None,
) -> Walked:
    """Return all rules with DF > 0, RCF ≥ γ, support > κ and at least `least` records of the group.

    `prune` leaves out rules that a found one covers if the walk sees it. All minimal rules are still included.
    """
    inside = graded.counts(members)
    outside = graded.counts() - inside
    total = float(inside.sum())
    limits = (gamma, least, kappa * total, MOST_RULES, prune, np.empty(0), np.empty((0, 0)))
    rules, a, b, visited = _in_thread(stop, lambda stopped: _walk(stopped, graded, inside, outside, *limits))
    return Walked(rules, Quality(a, b, total, total + float(outside.sum())), abs(visited), visited > 0)


def best_confidence(
    graded: Graded,
    inside: Floats,
    outside: Floats,
    kappas: Floats,
    least: float,
    stop: Stop | None = None,
) -> Floats:
    """Return, for each κ (rising) and tuple, the greatest RCF of the rules with DF > 0 and support > κ on it."""
    best = np.zeros((len(kappas), graded.tuples))
    levels = np.asarray(kappas, np.float64) * float(inside.sum())
    limits = (0.0, least, levels[0], 0, False, levels, best)
    _in_thread(stop, lambda stopped: _walk(stopped, graded, inside, outside, *limits))
    passing: Floats = np.maximum.accumulate(best[::-1], axis=0)[::-1]  # a rule that passes a high κ passes a lower one
    return passing


def _in_thread(stop: Stop | None, walk: Callable[[Flags], _Found]) -> _Found:
    """Run the walk in a second thread, so that this one receives Ctrl-C and asks whether to stop."""
    stopped = np.zeros(1, np.bool_)
    with ThreadPoolExecutor(1) as pool:
        walking = pool.submit(walk, stopped)
        try:
            while not (stop is not None and stop()):
                try:
                    return walking.result(POLL)
                except TimeoutError:
                    pass
            raise StoppedError("interrupted while learning rules; nothing was saved")
        finally:
            stopped[0] = True


@compiled
def _slot(table: Counts64, key: np.int64) -> int:
    """Return the slot of a key in a hash table, or the free one for it."""
    # Open addressing with Fibonacci hashing: multiplication spreads neighbouring keys over the table.
    mask = np.uint64(len(table) - 1)
    slot = (np.uint64(key) * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(20)) & mask
    while table[slot] >= 0 and table[slot] != key:
        slot = (slot + np.uint64(1)) & mask
    return int(slot)


@compiled
def _covered(rules: Codes, radix: Counts64, table: Counts64) -> Flags:
    """Return which rules a wider rule of the same set covers, by looking up every omission of conditions."""
    # A rule is a number in a mixed radix, so leaving out conditions is a sum over a subset of its digits. A rule of n
    # conditions needs 2^n lookups, far fewer than a comparison with all other rules.
    for i in range(len(rules)):
        whole = np.int64(0)
        for j in range(rules.shape[1]):
            whole += rules[i, j] * radix[j]
        table[_slot(table, whole)] = whole
    covered = np.zeros(len(rules), np.bool_)
    parts = np.empty(rules.shape[1], np.int64)
    for i in range(len(rules)):
        used = 0
        for j in range(rules.shape[1]):
            if rules[i, j] > 0:
                parts[used] = rules[i, j] * radix[j]
                used += 1
        for chosen in range((1 << used) - 1):
            key = np.int64(0)
            for u in range(used):
                if chosen >> u & 1:
                    key += parts[u]
            if table[_slot(table, key)] == key:
                covered[i] = True
                break
    return covered


def minimal_rows(rules: Codes, terms: Counts64) -> Counts64:
    """Return the rows of rules that no other rule of the set covers."""
    radix = np.concatenate([[1], np.cumprod(terms[:-1] + 1)]).astype(np.int64)
    table = np.full(1 << int(np.ceil(np.log2(2 * len(rules) + 2))), -1, np.int64)
    return np.flatnonzero(~_covered(np.ascontiguousarray(rules), radix, table))
