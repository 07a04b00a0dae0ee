"""The releases of one node under any criteria, in compiled loops: which classes go, and what is left.

A release is a node and a threshold for each criterion that is sought: the classes below go. A criterion that is
demanded has its limit as its only threshold. `measures.thresholds` says the same plainly.
"""

from __future__ import annotations

import numpy as np

from sfumato.measures.criteria import Secrets, Tally
from sfumato.runtime.arrays import Codes, Counts64, Floats
from sfumato.runtime.compiled import compiled
from sfumato.runtime.sorting import sort_by
from sfumato.systems.lattice.at_risk import find_failing, find_levels, find_risky, highest_level, sum_all, take
from sfumato.systems.lattice.rule import (
    GONE,
    INDICES,
    RECORDS,
    SOUGHT,
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


@compiled
def list_steps(rule: Rule, reach: Floats, some: int, space: Space, steps: Counts64) -> int:
    """List the thresholds of each criterion that is sought, and sort the risky classes by the one that has the most."""
    last, limit = 0, 0
    for q in range(len(reach)):
        space.steps[q, 0], steps[q] = -np.inf, 1
        if rule.modes[q] != SOUGHT:
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
    """One release: what goes, and what is left of each sum."""
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
    """Write the releases of every choice of thresholds; says up to where, or -1 if there is no room for them.

    The thresholds of the `last` criterion are one pass: as far as the budget allows, level by level, then back.
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
                tight = True  # a threshold that no class stands at is the same release as a lower one
                for q in range(criteria):
                    if q != last and rule.modes[q] == SOUGHT and lowest_level[q] != space.steps[q, at[q]]:
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
    """The releases of node i, the highest threshold first; False if there is no room for them."""
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
        if rule.modes[q] == SOUGHT and left > 0:
            reach[q] = walked.best[i, q]
            if failing > 0 or not rule.counts[q]:
                reach[q] = highest_level(space.level[q], rows, size, space.out, left, places)
    some = find_risky(size, reach, space, least, least_level)
    if some > 0 and not rule.every:
        # The highest threshold alone: all that is below it goes, all else stays.
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
