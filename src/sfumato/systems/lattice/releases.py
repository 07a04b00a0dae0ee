"""Every release of one node in compiled loops: which classes go, and what is left.

A release is a node and a threshold for each criterion that is sought: the classes below go. A criterion that is
demanded has its limit as its only threshold. `measures.thresholds` says the same plainly.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sfumato.measures.criteria import Secrets, Tally, class_value, quantised
from sfumato.runtime.arrays import Codes, Counts64, Flags, Floats
from sfumato.runtime.compiled import compiled

Keys = npt.NDArray[np.uint32] | npt.NDArray[np.uint64]  # as narrow as the columns allow
Rows = npt.NDArray[np.int32] | npt.NDArray[np.int64]

# Columns of the figures of a release, and of a node before any suppression.
GONE, SUM_K, SUM_L, WRONG = range(4)
INDICES = 4
FAILING = GONE  # of a node: the records that no coarser node can save from suppression

MEASURED, DEMANDED, SOUGHT = range(3)
FEW = 8  # a budget of fewer records than this many times the classes is gone through size by size


class Rule(NamedTuple):
    """Which classes go. `kinds` are class criteria; `parameters`, `signs`, `modes` and `limits` say how each is read.

    At most `budget` records go. `every` asks for all thresholds of what is sought, else for the highest alone.
    `people` is the place of the population in a tally, or -1; sums of own values and labels are taken where `own` and
    `label` (the places of a column's values) say so. `sizes` says that class sizes alone decide and are all there is.
    """

    kinds: Counts64
    parameters: Floats
    signs: Floats
    modes: Counts64
    limits: Floats
    counts: Flags
    budget: int
    every: bool
    people: int
    own: int
    label: Counts64
    sizes: bool


class Space(NamedTuple):
    """Room for the releases of one node, and what a node's classes have; used again for each node."""

    figures: Counts64
    hidden: Counts64
    worst: Floats
    whole: Counts64
    best: Floats
    value: Floats
    level: Floats
    features: Counts64
    places: Codes
    gone: Flags
    scratch: Floats
    small: Counts64


@compiled
def highest_level(level: Floats, rows: Rows, places: Codes, number: int, budget: int, scratch: Codes) -> float:
    """The highest threshold that the budget allows: all classes below it go. Something is always left."""
    some = places[:number]
    other = scratch
    left = np.int64(budget)
    best = -np.inf
    # Fine nodes mostly have more records at the lowest level than the budget: one pass tells.
    lowest, records = np.inf, np.int64(0)
    for i in range(number):
        value = level[some[i]]
        if value < lowest:
            lowest, records = value, np.int64(rows[some[i]])
        elif value == lowest:
            records += np.int64(rows[some[i]])
    if records > left:
        return float(lowest)
    while len(some) > 0:
        pivot = level[some[len(some) // 2]]
        below, above, sum_below, sum_equal = 0, 0, np.int64(0), np.int64(0)
        for i in range(len(some)):
            value = level[some[i]]
            if value < pivot:
                sum_below += np.int64(rows[some[i]])
            elif value == pivot:
                sum_equal += np.int64(rows[some[i]])
        if sum_below > left:
            for i in range(len(some)):
                if level[some[i]] < pivot:
                    other[below] = some[i]
                    below += 1
            some = other[:below].copy()
        elif sum_below + sum_equal > left:
            return float(pivot)
        else:
            left -= sum_below + sum_equal
            best = max(best, pivot)
            for i in range(len(some)):
                if level[some[i]] > pivot:
                    other[above] = some[i]
                    above += 1
            some = other[:above].copy()
    return best


@compiled
def by_size(
    keys: Keys,
    rows: Rows,
    size: int,
    rule: Rule,
    shift: Counts64,
    mask: Counts64,
    covers: Counts64,
    cover_start: Counts64,
    space: Space,
) -> int:
    """The releases where size is the only criterion, the highest threshold first; says how many there are.

    If there are more than there is room for, only their number is right.
    """
    budget = rule.budget if rule.modes[0] == SOUGHT else 0  # a size that is only measured takes nothing out
    small, places = space.small, space.places
    squares = np.int64(0)
    for c in range(size):
        squares += np.int64(rows[c]) * np.int64(rows[c])
    gone = np.int64(0)
    k = np.int64(0)
    if rule.modes[0] != DEMANDED:
        # Fine nodes have thousands of classes and a small k: counting one size at a time is a loop the processor
        # can do in wide steps, and it ends at k. A histogram would wait for its own last write.
        for s in range(1, min(budget, 4) + 1):
            alike = 0
            for c in range(size):
                alike += rows[c] == s
            if gone + alike * s > budget:
                k = np.int64(s)
                break
            gone += alike * s
        if k == 0 and budget > FEW * size:
            # More sizes than classes: halve the range of sizes instead of listing them.
            goes, top = np.int64(0), np.int64(budget)  # all up to `goes` may go
            while goes < top:
                middle = (goes + top + 1) // 2
                total = np.int64(0)
                for c in range(size):
                    total += np.int64(rows[c]) * (rows[c] <= middle)
                if total <= budget:
                    goes = middle
                else:
                    top = middle - 1
            gone = np.int64(0)
            k = np.int64(1) << 62
            for c in range(size):
                n = np.int64(rows[c])
                if n <= goes:
                    gone += n
                elif n < k:
                    k = n
        elif k == 0:
            gone = np.int64(0)
            large = np.int64(1) << 62
            small[: budget + 2] = 0
            for c in range(size):
                n = np.int64(rows[c])
                if n <= budget:
                    small[n] += n
                elif n < large:
                    large = n
            k = large
            for s in range(1, budget + 1):
                if small[s] > 0:
                    if gone + small[s] > budget:
                        k = np.int64(s)
                        break
                    gone += small[s]
        least = k
    else:
        least = np.int64(np.ceil(rule.limits[0]))
        k = np.int64(1) << 62
        for c in range(size):
            n = np.int64(rows[c])
            if n < least:
                gone += n
            elif n < k:
                k = n
        if gone == 0:
            least = k
    space.best[0] = k
    space.whole[:] = 0
    space.whole[FAILING] = gone if rule.modes[0] == DEMANDED else 0
    space.whole[SUM_K] = squares
    figures, hidden, worst = space.figures, space.hidden, space.worst
    figures[0, GONE], figures[0, SUM_K], figures[0, SUM_L], figures[0, WRONG] = gone, squares, 0, 0
    worst[0, 0] = k if k < (np.int64(1) << 62) else 0
    hidden[0] = 0
    if gone == 0:
        return 1
    found = 0
    for c in range(size):
        if rows[c] < least:
            places[found] = c
            found += 1
            figures[0, SUM_K] -= np.int64(rows[c]) * np.int64(rows[c])
    if rule.every and rule.modes[0] == SOUGHT:
        order = np.argsort(rows[places[:found]])
        places[:found] = places[:found][order]
    for j in range(hidden.shape[1]):  # column by column, so that shift and mask stay in registers
        low, field, begin = np.uint64(shift[j]), np.uint64(mask[j]), np.uint64(cover_start[j])
        total = np.int64(0)
        for g in range(found):
            c = places[g]
            total += np.int64(rows[c]) * covers[begin + ((np.uint64(keys[c]) >> low) & field)]
        hidden[0, j] = total
    if not rule.every or rule.modes[0] != SOUGHT:
        return 1
    # Give the sizes back one after another, the largest first.
    number = 1
    g = found - 1
    while g >= 0:
        n = np.int64(rows[places[g]])
        if number < len(figures):
            figures[number] = figures[number - 1]
            hidden[number] = hidden[number - 1]
            worst[number, 0] = n
        while g >= 0 and np.int64(rows[places[g]]) == n:
            if number < len(figures):
                figures[number, GONE] -= n
                figures[number, SUM_K] += n * n
                key = np.uint64(keys[places[g]])
                for j in range(hidden.shape[1]):
                    group = (key >> np.uint64(shift[j])) & np.uint64(mask[j])
                    hidden[number, j] -= n * covers[np.uint64(cover_start[j]) + group]
            g -= 1
        number += 1
    return number


@compiled
def by_criteria(
    keys: Keys,
    rows: Rows,
    tally: Tally,
    size: int,
    rule: Rule,
    secrets: Secrets,
    shift: Counts64,
    mask: Counts64,
    covers: Counts64,
    cover_start: Counts64,
    space: Space,
) -> int:
    """The releases under any criteria; says how many. Beyond the room there is, only their number is right."""
    number_of = len(rule.kinds)
    value, level, gone, features = space.value, space.level, space.gone, space.features
    whole, best = space.whole, space.best
    figures, hidden = space.figures, space.hidden
    columns = hidden.shape[1]
    whole[:] = 0
    total = np.zeros(INDICES + columns, np.int64)  # of what the demanded criteria take out
    live = 0
    open_ = np.empty(size, np.int32)
    rest = 0
    least = np.full(number_of, np.inf)  # of classes that no sought criterion can take out
    for c in range(size):
        n = np.int64(rows[c])
        if n == 0:  # people of the population without a record here
            continue
        own = np.int64(0)
        if rule.own > 0:
            for v in range(secrets.start[0], secrets.start[1]):
                own += np.int64(tally[c, v]) * np.int64(tally[c, v])
        wrong = n if rule.label[1] > rule.label[0] else np.int64(0)
        for v in range(rule.label[0], rule.label[1]):
            wrong = min(wrong, n - np.int64(tally[c, v]))
        whole[SUM_K] += n * n
        whole[SUM_L] += own
        whole[WRONG] += wrong
        features[c, GONE], features[c, SUM_K], features[c, SUM_L], features[c, WRONG] = n, n * n, own, n - wrong
        fails, certain = False, False
        for q in range(number_of):
            value[q, c] = class_value(
                rule.kinds[q],
                rule.parameters[q],
                rule.signs[q],
                tally[c],
                float(n),
                rule.people,
                secrets,
                space.scratch,
            )
            level[q, c] = value[q, c] if rule.counts[q] else quantised(value[q, c])
            if level[q, c] < rule.limits[q]:
                fails = True
                certain = certain or rule.counts[q]
        if certain:
            whole[FAILING] += n
        space.places[live] = c
        live += 1
        if fails:
            total[GONE] += n
            total[SUM_K] += n * n
            total[SUM_L] += own
            total[WRONG] += n - wrong
            for j in range(columns):
                group = (np.uint64(keys[c]) >> np.uint64(shift[j])) & np.uint64(mask[j])
                total[INDICES + j] += n * covers[np.uint64(cover_start[j]) + group]
        else:
            open_[rest] = c
            rest += 1
    scratch = np.empty(live, np.int32)
    for q in range(number_of):
        best[q] = -np.inf
        if rule.counts[q]:
            best[q] = highest_level(level[q], rows, space.places, live, rule.budget, scratch)
    left = rule.budget - total[GONE]
    reach = np.full(number_of, -np.inf)  # the highest threshold of each sought criterion
    last, sought = -1, 0
    if left > 0:
        for q in range(number_of):
            if rule.modes[q] == SOUGHT and rest == live and rule.counts[q]:
                reach[q] = best[q]
            elif rule.modes[q] == SOUGHT:
                reach[q] = highest_level(level[q], rows, open_, rest, left, scratch)
    some = 0
    for i in range(rest):
        c = open_[i]
        risky = False
        for q in range(number_of):
            risky = risky or level[q, c] < reach[q]
        if risky:
            scratch[some] = c
            some += 1
            for j in range(columns):
                group = (np.uint64(keys[c]) >> np.uint64(shift[j])) & np.uint64(mask[j])
                features[c, INDICES + j] = np.int64(rows[c]) * covers[np.uint64(cover_start[j]) + group]
        else:
            for q in range(number_of):
                least[q] = min(least[q], value[q, c])
    risk = scratch[:some].copy()
    if not rule.every:
        # The highest threshold alone: all that is below it goes, all else stays.
        for i in range(some):
            for f in range(INDICES + columns):
                total[f] += features[risk[i], f]
        some = 0
    if some == 0:
        if len(figures) > 0:
            _write(0, total, least, whole, space, rest > 0)
        return 1
    # The criterion with the most thresholds is gone through last: its thresholds are one pass.
    most = -1
    levels = np.empty((number_of, some + 1))
    steps = np.ones(number_of, np.int64)
    for q in range(number_of):
        if rule.modes[q] != SOUGHT:
            levels[q, 0] = -np.inf
            continue
        sought += 1
        ordered = np.sort(level[q][risk])
        count = 0
        for i in range(some):
            if ordered[i] < reach[q] and (count == 0 or ordered[i] != levels[q, count - 1]):
                levels[q, count] = ordered[i]
                count += 1
        levels[q, count] = reach[q]
        steps[q] = count + 1
        if steps[q] > most:
            most, last = steps[q], q
    risk = risk[np.argsort(level[last][risk])]
    at = np.zeros(number_of, np.int64)
    state = np.empty(INDICES + columns, np.int64)
    lowest = np.empty(number_of)
    number = 0
    while True:
        state[:] = total
        for i in range(some):
            gone[i] = False
            for q in range(number_of):
                if q != last and level[q, risk[i]] < levels[q, at[q]]:
                    gone[i] = True
            if gone[i]:
                for f in range(INDICES + columns):
                    state[f] += features[risk[i], f]
        if state[GONE] <= rule.budget:
            # As far as the budget allows, level by level; then back, giving one level after another back.
            end = 0
            while end < some:
                upto, more = end, np.int64(0)
                here = level[last, risk[end]]
                if here >= reach[last]:
                    break
                while upto < some and level[last, risk[upto]] == here:
                    if not gone[upto]:
                        more += features[risk[upto], GONE]
                    upto += 1
                if state[GONE] + more > rule.budget:
                    break
                for i in range(end, upto):
                    if not gone[i]:
                        for f in range(INDICES + columns):
                            state[f] += features[risk[i], f]
                end = upto
            lowest[:] = least
            for i in range(end, some):
                if not gone[i]:
                    for q in range(number_of):
                        lowest[q] = min(lowest[q], value[q, risk[i]])
            while True:
                tight = True
                for q in range(number_of):
                    if q != last and rule.modes[q] == SOUGHT and quantised(lowest[q]) != levels[q, at[q]]:
                        tight = False
                if tight:
                    if number < len(figures):
                        _write(number, state, lowest, whole, space, True)
                    number += 1
                back = False
                while end > 0 and not back:
                    here = level[last, risk[end - 1]]
                    while end > 0 and level[last, risk[end - 1]] == here:
                        end -= 1
                        if not gone[end]:
                            back = True
                            for f in range(INDICES + columns):
                                state[f] -= features[risk[end], f]
                            for q in range(number_of):
                                lowest[q] = min(lowest[q], value[q, risk[end]])
                if not back:
                    break
        q = 0
        while q < number_of:
            if q != last and at[q] + 1 < steps[q]:
                at[q] += 1
                break
            if q != last:
                at[q] = 0
            q += 1
        if q == number_of:
            break
    return number


@compiled
def _write(number: int, gone: Counts64, lowest: Floats, whole: Counts64, space: Space, kept: bool) -> None:
    """One release: what goes, and what is left of each sum."""
    space.figures[number, GONE] = gone[GONE]
    space.figures[number, SUM_K] = whole[SUM_K] - gone[SUM_K]
    space.figures[number, SUM_L] = whole[SUM_L] - gone[SUM_L]
    space.figures[number, WRONG] = whole[WRONG] + gone[WRONG]  # a suppressed record counts as wrong
    for j in range(space.hidden.shape[1]):
        space.hidden[number, j] = gone[INDICES + j]
    for q in range(len(lowest)):
        space.worst[number, q] = lowest[q] if kept else 0.0
