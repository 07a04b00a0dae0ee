"""Compiled loops for the releases of a node: the classes to suppress, and the sums over the classes left.

A release is a node with a threshold for each criterion that is an objective. Classes below a threshold are suppressed.
A criterion that is only a limit has this limit as its single threshold. `by_size` is for size as the only criterion and
`by_criteria` for all others. `measures.thresholds.releases` is the plain version.
"""

from __future__ import annotations

import numpy as np

from sfumato.base.arrays import Codes, Counts64, Flags, Floats
from sfumato.base.compiled import compiled
from sfumato.base.sorting import sort_by
from sfumato.measures.criteria import Secrets, Tally, class_values, quantised
from sfumato.methods.lattice.rule import (
    CONSTRAINT,
    FAILING,
    FEW,
    GONE,
    INDICES,
    OBJECTIVE,
    RECORDS,
    SUM_K,
    SUM_L,
    WRONG,
    Keys,
    Maps,
    Rows,
    Rule,
    Space,
    Walked,
)

NONE = 1 << 62  # the size of a class that does not exist


@compiled
def highest_size(rows: Rows, size: int, budget: int, small: Counts64) -> tuple[int, int]:
    """Return the highest size below which all classes can be suppressed within the budget, and their records."""
    gone = np.int64(0)
    # Fine nodes have thousands of classes and a small k. A loop that counts one size can be vectorised and ends at k.
    # In a histogram each increment would wait for the one before.
    for s in range(1, min(budget, 4) + 1):
        alike = 0
        for c in range(size):
            alike += rows[c] == s
        if gone + alike * s > budget:
            return s, int(gone)
        gone += alike * s
    gone = np.int64(0)
    k = np.int64(NONE)
    if budget > FEW * size:
        # There are more possible sizes than classes, so the range of sizes is bisected.
        goes, top = np.int64(0), np.int64(budget)  # all classes up to size `goes` can be suppressed
        while goes < top:
            middle = (goes + top + 1) // 2
            total = np.int64(0)
            for c in range(size):
                total += np.int64(rows[c]) * (rows[c] <= middle)
            if total <= budget:
                goes = middle
            else:
                top = middle - 1
        for c in range(size):
            n = np.int64(rows[c])
            if n <= goes:
                gone += n
            elif n < k:
                k = n
        return int(k), int(gone)
    for s in range(budget + 2):
        small[s] = 0
    for c in range(size):
        n = np.int64(rows[c])
        if n <= budget:
            small[n] += n
        elif n < k:
            k = n
    for s in range(1, budget + 1):
        if small[s] > 0:
            if gone + small[s] > budget:
                return s, int(gone)
            gone += small[s]
    return int(k), int(gone)


@compiled
def demanded_size(rows: Rows, size: int, least: int) -> tuple[int, int]:
    """Return the smallest class left if all below a size are suppressed, and the records of the suppressed ones."""
    gone, k = np.int64(0), np.int64(NONE)
    for c in range(size):
        n = np.int64(rows[c])
        if n < least:
            gone += n
        elif n < k:
            k = n
    return int(k), int(gone)


@compiled
def by_size(
    keys: Keys,
    rows: Rows,
    tally: Tally,
    size: int,
    node: Codes,
    i: int,
    rule: Rule,
    maps: Maps,
    space: Space,
    walked: Walked,
) -> bool:
    """Write the releases of node i, the highest threshold first. Return False if the arrays are too small."""
    mode, mass = rule.modes[0], rule.mass
    figures, hidden, worst, places = walked.figures, walked.hidden, walked.worst, space.places
    shift, mask, covers = maps.shift, maps.mask, maps.covers
    columns = len(node)
    at = walked.start[i]
    if at >= len(figures):
        return False
    squares = np.int64(0)
    for c in range(size):
        squares += np.int64(rows[c]) * np.int64(rows[c])
    if mode == CONSTRAINT:
        least = int(np.ceil(rule.limits[0]))
        k, gone = demanded_size(rows, size, least)
    else:  # a size that is only measured suppresses no class
        k, gone = highest_size(rows, size, rule.budget if mode == OBJECTIVE else 0, space.small)
        least = k
    walked.best[i, 0] = k
    walked.whole[i, FAILING] = gone if mode == CONSTRAINT else 0
    walked.whole[i, SUM_K], walked.whole[i, SUM_L], walked.whole[i, WRONG] = squares, 0, 0
    figures[at, GONE], figures[at, SUM_K], figures[at, SUM_L], figures[at, WRONG] = gone, squares, 0, 0
    figures[at, RECORDS] = 0
    worst[at, 0] = k if k < NONE else 0
    for j in range(columns):
        hidden[at, j] = 0
    walked.start[i + 1] = at + 1
    if gone == 0:
        return True
    number = 0
    for c in range(size):
        if rows[c] < least:
            places[number] = c
            number += 1
            figures[at, SUM_K] -= np.int64(rows[c]) * np.int64(rows[c])
            figures[at, RECORDS] += np.int64(rows[c]) if mass < 0 else np.int64(tally[c, mass])
    for j in range(columns):  # column by column, so that shift and mask stay in registers
        low, field, begin = np.uint64(shift[j]), np.uint64(mask[j]), np.uint64(maps.cover_start[j, node[j]])
        total = np.int64(0)
        for g in range(number):
            c = places[g]
            records = np.int64(rows[c]) if mass < 0 else np.int64(tally[c, mass])
            total += records * covers[begin + ((np.uint64(keys[c]) >> low) & field)]
        hidden[at, j] = total
    if not rule.every or mode != OBJECTIVE:
        return True
    # Each further release keeps one more size, the largest suppressed one first.
    sort_by(rows, places, number, space.spare)
    g = number - 1
    while g >= 0:
        at += 1
        if at >= len(figures):
            return False
        n = np.int64(rows[places[g]])
        for f in range(figures.shape[1]):
            figures[at, f] = figures[at - 1, f]
        for j in range(columns):
            hidden[at, j] = hidden[at - 1, j]
        worst[at, 0] = n
        while g >= 0 and np.int64(rows[places[g]]) == n:
            figures[at, GONE] -= n
            figures[at, SUM_K] += n * n
            records = n if mass < 0 else np.int64(tally[places[g], mass])
            figures[at, RECORDS] -= records
            key = np.uint64(keys[places[g]])
            for j in range(columns):
                group = (key >> np.uint64(shift[j])) & np.uint64(mask[j])
                hidden[at, j] -= records * covers[np.uint64(maps.cover_start[j, node[j]]) + group]
            g -= 1
    walked.start[i + 1] = at + 1
    return True


PASSES = 3  # levels that are searched one by one before bisection


@compiled
def highest_level(level: Floats, rows: Rows, size: int, out: Flags, budget: int, places: Codes) -> float:
    """Return the highest threshold within the budget. The classes with the highest level are always kept.

    Classes that are `out` already and classes without records are skipped.
    """
    # Fine nodes mostly have more records at the lowest levels than the budget, so a few passes find the threshold.
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
    """Return how much each sum loses with some classes, in one row for each class or in one row for all."""
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
    """Return the sum, over the records of a class, of how often their sensitive value occurs in the class."""
    total = np.int64(0)
    for v in range(begin, end):
        total += np.int64(counts[v]) * np.int64(counts[v])
    return int(total)


@compiled
def commonest(counts: Tally, begin: int, end: int) -> int:
    """Return the number of records of a class with its most frequent label."""
    largest = np.int64(0)
    for v in range(begin, end):
        largest = max(largest, np.int64(counts[v]))
    return int(largest)


@compiled
def sum_all(rows: Rows, tally: Tally, size: int, rule: Rule, secrets: Secrets, whole: Counts64) -> int:
    """Compute the sums of a node before suppression, and return how many classes have records."""
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
    """Compute each criterion of each class and its level on the grid of thresholds. No class is `out` yet."""
    for c in range(size):
        space.out[c] = False
    for q in range(len(rule.kinds)):
        value, level = space.value[q], space.level[q]
        class_values(rule.kinds[q], rule.parameters[q], tally, rows, size, rule.people, secrets, space.scratch, value)
        # Counts are whole numbers. Other criteria have rounding errors, which must not separate equal levels.
        for c in range(size):
            level[c] = value[c] if rule.counts[q] else quantised(value[c])


@compiled
def find_failing(rows: Rows, size: int, rule: Rule, space: Space, whole: Counts64) -> int:
    """Mark and list the classes that violate a limit, and return how many there are.

    A class that violates the limit of a count also violates it in every finer node.
    """
    # Counts first, because only they give the number of records that are suppressed at every finer node too.
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
    """List the classes that a threshold may suppress and the least level of all others. Return how many there are."""
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


@compiled
def list_steps(rule: Rule, reach: Floats, some: int, space: Space, steps: Counts64) -> int:
    """List the thresholds of each objective, and sort the risky classes by the objective with most thresholds."""
    last, limit = 0, 0
    for q in range(len(reach)):
        space.steps[q, 0], steps[q] = -np.inf, 1
        if rule.modes[q] != OBJECTIVE:
            continue
        level = space.level[q]
        sort_by(level, space.places, some, space.spare)
        count = 0
        for g in range(some):
            here = level[space.places[g]]
            if here < reach[q] and (count == 0 or here != space.steps[q, count - 1]):
                space.steps[q, count] = here
                count += 1
        space.steps[q, count] = reach[q]
        steps[q] = count + 1
        if steps[q] > limit:
            limit, last = steps[q], q
    sort_by(space.level[last], space.places, some, space.spare)
    for q in range(len(reach)):
        for g in range(some):
            space.risk_level[q, g] = space.level[q, space.places[g]]
            space.risk_value[q, g] = space.value[q, space.places[g]]
    return last


@compiled
def write(at: int, i: int, gone: Counts64, lowest: Floats, kept: bool, walked: Walked) -> None:
    """Write one release: the suppressed records, and each sum over the classes left."""
    figures, whole = walked.figures[at], walked.whole[i]
    figures[GONE] = gone[GONE]
    figures[SUM_K] = whole[SUM_K] - gone[SUM_K]
    figures[SUM_L] = whole[SUM_L] - gone[SUM_L]
    figures[RECORDS] = gone[RECORDS]
    figures[WRONG] = whole[WRONG] + gone[WRONG]  # a suppressed record counts as wrong
    for j in range(walked.hidden.shape[1]):
        walked.hidden[at, j] = gone[INDICES + j]
    for q in range(len(lowest)):
        walked.worst[at, q] = lowest[q] if kept else 0.0


@compiled
def every_threshold(i: int, some: int, last: int, rule: Rule, space: Space, walked: Walked) -> int:
    """Write the releases of every choice of thresholds. Return the end, or -1 if the arrays are too small.

    All thresholds of the `last` criterion take one pass: upwards as far as the budget allows, and then back.
    """
    reach, least, least_level = space.bounds[0], space.bounds[1], space.bounds[2]
    lowest, lowest_level = space.bounds[3], space.bounds[4]
    steps, at, total, state = space.numbers[0], space.numbers[1], space.sums[0], space.sums[1]
    features, gone, level = space.features, space.gone, space.risk_level[last]
    criteria, wide = len(reach), len(total)
    row = walked.start[i]
    for q in range(criteria):
        at[q] = 0
    while True:
        for f in range(wide):
            state[f] = total[f]
        for g in range(some):
            gone[g] = False
            for q in range(criteria):
                if q != last and space.risk_level[q, g] < space.steps[q, at[q]]:
                    gone[g] = True
            if gone[g]:
                for f in range(wide):
                    state[f] += features[g, f]
        if state[GONE] <= rule.budget:
            end = 0
            while end < some and level[end] < reach[last]:
                upto, more = end, np.int64(0)
                while upto < some and level[upto] == level[end]:
                    if not gone[upto]:
                        more += features[upto, GONE]
                    upto += 1
                if state[GONE] + more > rule.budget:
                    break
                for g in range(end, upto):
                    if not gone[g]:
                        for f in range(wide):
                            state[f] += features[g, f]
                end = upto
            for q in range(criteria):
                lowest[q], lowest_level[q] = least[q], least_level[q]
                for g in range(end, some):
                    if not gone[g] and space.risk_value[q, g] < lowest[q]:
                        lowest[q], lowest_level[q] = space.risk_value[q, g], space.risk_level[q, g]
            while True:
                tight = True  # a threshold that is no class's level gives the release of a lower one
                for q in range(criteria):
                    if q != last and rule.modes[q] == OBJECTIVE and lowest_level[q] != space.steps[q, at[q]]:
                        tight = False
                if tight:
                    if row >= len(walked.figures):
                        return -1
                    write(row, i, state, lowest, some > 0, walked)
                    row += 1
                back = False
                while end > 0 and not back:
                    here = level[end - 1]
                    while end > 0 and level[end - 1] == here:
                        end -= 1
                        if not gone[end]:
                            back = True
                            for f in range(wide):
                                state[f] -= features[end, f]
                            for q in range(criteria):
                                if space.risk_value[q, end] < lowest[q]:
                                    lowest[q], lowest_level[q] = space.risk_value[q, end], space.risk_level[q, end]
                if not back:
                    break
        q = 0
        while q < criteria:
            if q != last:
                at[q] += 1
                if at[q] < steps[q]:
                    break
                at[q] = 0
            q += 1
        if q == criteria:
            return int(row)


@compiled
def by_criteria(
    keys: Keys,
    rows: Rows,
    tally: Tally,
    size: int,
    node: Codes,
    i: int,
    rule: Rule,
    secrets: Secrets,
    maps: Maps,
    space: Space,
    walked: Walked,
) -> bool:
    """Write the releases of node i, the highest threshold first. Return False if the arrays are too small."""
    reach, least, least_level = space.bounds[0], space.bounds[1], space.bounds[2]
    total, whole = space.sums[0], walked.whole[i]
    places = space.places
    find_levels(rows, tally, size, rule, secrets, space)
    live = sum_all(rows, tally, size, rule, secrets, whole)
    for q in range(len(reach)):
        best = -np.inf
        if rule.counts[q]:
            best = highest_level(space.level[q], rows, size, space.out, rule.budget, places)
        walked.best[i, q] = best
    failing = find_failing(rows, size, rule, space, whole)
    take(places, failing, keys, rows, tally, node, rule, secrets, maps, space.sums[:1])
    left = rule.budget - total[GONE]
    for q in range(len(reach)):
        reach[q] = -np.inf
        if rule.modes[q] == OBJECTIVE and left > 0:
            reach[q] = walked.best[i, q]
            if failing > 0 or not rule.counts[q]:
                reach[q] = highest_level(space.level[q], rows, size, space.out, left, places)
    some = find_risky(size, reach, space, least, least_level)
    if some > 0 and not rule.every:
        # Only the highest threshold: all classes below it are suppressed.
        take(places, some, keys, rows, tally, node, rule, secrets, maps, space.features[:1])
        for f in range(len(total)):
            total[f] += space.features[0, f]
        some = 0
    row = walked.start[i]
    if some > 0:
        last = list_steps(rule, reach, some, space, space.numbers[0])
        take(places, some, keys, rows, tally, node, rule, secrets, maps, space.features[:some])
        row = every_threshold(i, some, last, rule, space, walked)
    elif row < len(walked.figures):
        write(row, i, total, least, live > failing, walked)
        row += 1
    else:
        row = -1
    if row >= 0:
        walked.start[i + 1] = row
    return bool(row >= 0)
