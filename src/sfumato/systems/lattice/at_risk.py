"""What the classes of a node have of each criterion, and which of them may go, in compiled loops."""

from __future__ import annotations

import numpy as np

from sfumato.measures.criteria import Secrets, Tally, class_values, quantised
from sfumato.runtime.arrays import Codes, Counts64, Flags, Floats
from sfumato.runtime.compiled import compiled
from sfumato.systems.lattice.rule import (
    FAILING,
    GONE,
    INDICES,
    RECORDS,
    SUM_K,
    SUM_L,
    WRONG,
    Keys,
    Maps,
    Rows,
    Rule,
    Space,
)

PASSES = 3  # levels that are looked for one by one before they are halved


@compiled
def highest_level(level: Floats, rows: Rows, size: int, out: Flags, budget: int, places: Codes) -> float:
    """The highest threshold that the budget allows: all classes below it go. Something is always left.

    Classes that are `out` already are passed over, and those without records.
    """
    # Fine nodes mostly have more records at the lowest levels than the budget: a few passes tell.
    left, best, above = np.int64(budget), -np.inf, -np.inf
    for again in range(PASSES):
        lowest, records = np.inf, np.int64(0)
        for c in range(size):
            here = level[c]
            if here <= lowest and here < np.inf and (here > above or again == 0) and not out[c]:
                if here < lowest:
                    lowest, records = here, np.int64(0)
                records += np.int64(rows[c])
        if records > left:
            return float(lowest)
        if lowest == np.inf:
            return best
        best, above = lowest, lowest
        left -= records
    number = 0
    for c in range(size):
        if above < level[c] < np.inf and not out[c]:
            places[number] = c
            number += 1
    while number > 0:
        pivot = level[places[number // 2]]
        below, equal = np.int64(0), np.int64(0)
        for i in range(number):
            here = level[places[i]]
            if here < pivot:
                below += np.int64(rows[places[i]])
            elif here == pivot:
                equal += np.int64(rows[places[i]])
        if below <= left < below + equal:
            return float(pivot)
        fits = below + equal <= left
        if fits:
            left -= below + equal
            best = max(best, pivot)
        kept = 0
        for i in range(number):
            here = level[places[i]]
            if (here > pivot) if fits else (here < pivot):
                places[kept] = places[i]
                kept += 1
        number = kept
    return best


@compiled
def take(
    places: Codes,
    number: int,
    keys: Keys,
    rows: Rows,
    tally: Tally,
    node: Codes,
    rule: Rule,
    secrets: Secrets,
    maps: Maps,
    features: Counts64,
) -> None:
    """What each sum loses with some classes: a row of features for each, or for all together if there is one row."""
    columns, last = len(node), len(features) - 1
    for g in range(len(features)):
        for f in range(INDICES + columns):
            features[g, f] = 0
    for g in range(number):
        c = places[g]
        n, at = np.int64(rows[c]), min(g, last)
        features[at, GONE] += n
        features[at, SUM_K] += n * n
        features[at, RECORDS] += n if rule.mass < 0 else np.int64(tally[c, rule.mass])
        if rule.own > 0:
            features[at, SUM_L] += own_squares(tally[c], secrets.start[0], secrets.start[1])
        features[at, WRONG] += commonest(tally[c], rule.label[0], rule.label[1])
    for j in range(columns):  # column by column, so that shift and mask stay in registers
        low, field = np.uint64(maps.shift[j]), np.uint64(maps.mask[j])
        covers = maps.covers[maps.cover_start[j, node[j]] :]
        for g in range(number):
            c = places[g]
            records = np.int64(rows[c]) if rule.mass < 0 else np.int64(tally[c, rule.mass])
            features[min(g, last), INDICES + j] += records * covers[(np.uint64(keys[c]) >> low) & field]


@compiled
def own_squares(counts: Tally, begin: int, end: int) -> int:
    """How often the records of a class have their own sensitive value in it, added up."""
    total = np.int64(0)
    for v in range(begin, end):
        total += np.int64(counts[v]) * np.int64(counts[v])
    return int(total)


@compiled
def commonest(counts: Tally, begin: int, end: int) -> int:
    """The records of a class that have its commonest label."""
    largest = np.int64(0)
    for v in range(begin, end):
        largest = max(largest, np.int64(counts[v]))
    return int(largest)


@compiled
def sum_all(rows: Rows, tally: Tally, size: int, rule: Rule, secrets: Secrets, whole: Counts64) -> int:
    """The sums of a node before suppression; says how many classes have records."""
    squares, own, wrong, live = np.int64(0), np.int64(0), np.int64(0), 0
    for c in range(size):
        n = np.int64(rows[c])
        squares += n * n
        live += int(n > 0)
    if rule.own > 0:
        for c in range(size):
            own += own_squares(tally[c], secrets.start[0], secrets.start[1])
    if rule.label[1] > rule.label[0]:
        for c in range(size):
            wrong += np.int64(rows[c]) - commonest(tally[c], rule.label[0], rule.label[1])
    whole[FAILING], whole[SUM_K], whole[SUM_L], whole[WRONG] = 0, squares, own, wrong
    return live


@compiled
def find_levels(rows: Rows, tally: Tally, size: int, rule: Rule, secrets: Secrets, space: Space) -> None:
    """What each class has of each criterion, and its level on the grid of thresholds; none is out yet."""
    for c in range(size):
        space.out[c] = False
    for q in range(len(rule.kinds)):
        value, level = space.value[q], space.level[q]
        class_values(rule.kinds[q], rule.parameters[q], tally, rows, size, rule.people, secrets, space.scratch, value)
        for c in range(size):
            level[c] = value[c] if rule.counts[q] else quantised(value[c])


@compiled
def find_failing(rows: Rows, size: int, rule: Rule, space: Space, whole: Counts64) -> int:
    """Mark the classes that fall short of what is demanded, and list them; says how many there are.

    Those that fall short of a count do so at every finer node too.
    """
    out = space.out
    for certain in (True, False):
        for q in range(len(rule.kinds)):
            if rule.limits[q] > -np.inf and rule.counts[q] == certain:
                level = space.level[q]
                for c in range(size):
                    out[c] = out[c] or level[c] < rule.limits[q]
        if certain:
            for c in range(size):
                whole[FAILING] += np.int64(rows[c]) * out[c]
    number = 0
    for c in range(size):
        if out[c]:
            space.places[number] = c
            number += 1
    return number


@compiled
def find_risky(size: int, reach: Floats, space: Space, least: Floats, least_level: Floats) -> int:
    """List the classes that some threshold may take out, and the least that all others have; says how many."""
    risky, out = space.risky, space.out
    some = 0
    for c in range(size):
        risky[c] = False
    for q in range(len(reach)):
        if reach[q] > -np.inf:
            level = space.level[q]
            for c in range(size):
                risky[c] = risky[c] or level[c] < reach[q]
    for c in range(size):
        if risky[c] and not out[c]:
            space.places[some] = c
            some += 1
    for q in range(len(reach)):
        value, level = space.value[q], space.level[q]
        lowest, lowest_level = np.inf, np.inf
        for c in range(size):
            if value[c] < lowest and not risky[c] and not out[c]:
                lowest, lowest_level = value[c], level[c]
        least[q], least_level[q] = lowest, lowest_level
    return some
