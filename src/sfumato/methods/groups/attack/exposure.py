"""The exposure of sensitive areas by a signal: found, or found with slightly more or less of it. Compiled.

The plain twin is `outliers.findings`, and tests compare both. A search for swaps evaluates this millions of times, so
it is compiled and works without allocation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import pdtrik

from sfumato.base.arrays import Codes, Counts64, Flags, Floats
from sfumato.base.compiled import compiled
from sfumato.base.sorting import sort_by
from sfumato.methods.groups.attack.outliers import NORMAL_IQR, NORMAL_MAD, chance_of, tau

FOUND = 4.0  # the exposure of an area that is found
# margins by which an area may show more or less: shares of its signal, or 1, 2, 3 records
MARGINS = np.array([0.2, 0.4, 0.6])
# the exposure of an area that would be found with the margin, or would still be found
NEARLY = np.array([2.0, 1.0, 1.0])
STEP = 0.05  # steps of the root of a median at which the fewest records that chance explains are kept


class Criteria(NamedTuple):
    """The criteria by which areas are found, as arrays for compiled loops, by group where they depend on the group.

    The rows of `sensitive` list the areas of each group, with -1 after the last. The limits of the outlier tests are
    `tau`, by number of areas. The probability that a of n areas are sensitive areas of group g is in `chance[g, a, n]`.
    The largest number of records that is strikingly few against a median is in `few`, by the root of the median in
    steps.
    """

    sensitive: Counts64
    tau: Floats
    chance: Floats
    few: Floats
    significance: float


class Spare(NamedTuple):
    """The work arrays of a loop, allocated once."""

    signal: Floats
    ordered: Floats
    off: Floats
    places: Codes
    more: Codes
    high: Flags
    low: Flags
    ever: Flags


def criteria_of(sensitive: Sequence[Sequence[int]], areas: int, significance: float, most: float) -> Criteria:
    """Return the criteria for groups with these sensitive areas and signals of at most `most` records per area."""
    widest = max(len(some) for some in sensitive)
    listed = np.full((len(sensitive), widest), -1, np.int64)
    chance = np.ones((len(sensitive), widest + 1, areas + 1))
    for g, some in enumerate(sensitive):
        listed[g, : len(some)] = some
        for mine in range(1, len(some) + 1):
            for last in range(mine, areas + 1):
                chance[g, mine, last] = chance_of(mine, areas, len(some), last)
    taus = np.array([tau(count, significance) if count > 2 else np.inf for count in range(areas + 1)])
    middles = (np.arange(int(np.sqrt(max(most, 1.0)) / STEP) + 3) * STEP) ** 2
    few = np.full(len(middles), -1.0)
    possible = np.exp(-middles) <= significance  # not even 0 is strikingly few against a smaller median
    few[possible] = pdtrik(significance, middles[possible])
    return Criteria(listed, taus, chance, few, significance)


def spare_of(areas: int, sensitive: int) -> Spare:
    places, flags = np.zeros(areas, np.int32), np.zeros(sensitive, np.bool_)
    one = np.zeros(areas)
    return Spare(one, one.copy(), one.copy(), places, places.copy(), flags, flags.copy(), flags.copy())


@compiled
def _median(ordered: Floats, first: int, last: int) -> float:
    # Of a sorted run, so that peeling needs no copy and no new order.
    half = first + (last - first) // 2
    if (last - first) % 2:
        return float(ordered[half])
    return float((ordered[half - 1] + ordered[half]) / 2)


@compiled
def _spread(ordered: Floats, first: int, last: int, by_mad: bool, spare: Spare) -> float:
    """Return `outliers.spread` of a run of rising values."""
    count = last - first
    if not by_mad:
        half = (count + 1) // 2
        low, high = _median(ordered, first, first + half), _median(ordered, last - half, last)
        if high > low:
            return (high - low) / NORMAL_IQR
    middle = _median(ordered, first, last)
    # Deviations in rising order, from the middle outwards on both sides.
    above = first
    while above < last and ordered[above] < middle:
        above += 1
    below = above - 1
    total = 0.0
    for i in range(count):
        if below < first or (above < last and ordered[above] - middle <= middle - ordered[below]):
            spare.off[i] = ordered[above] - middle
            above += 1
        else:
            spare.off[i] = middle - ordered[below]
            below -= 1
        total += spare.off[i]
    absolute = NORMAL_MAD * _median(spare.off, 0, count)
    if absolute > 0:
        return absolute
    return total / count


@compiled
def _peeled(ordered: Floats, tau: Floats, by_mad: bool, spare: Spare) -> tuple[int, int]:
    """Return the run that `outliers.find_outliers` leaves of rising values."""
    first, last = 0, len(ordered)
    while last - first >= 3:
        middle = _median(ordered, first, last)
        worst = max(ordered[last - 1] - middle, middle - ordered[first])
        if worst <= tau[last - first] * _spread(ordered, first, last, by_mad, spare) or worst == 0:
            break
        # Ties leave together, as in `outliers.find_outliers`: rounding must not decide which one is peeled first.
        tied = worst * (1 - 1e-12)
        while last > first and ordered[last - 1] - middle >= tied:
            last -= 1
        while first < last and middle - ordered[first] >= tied:
            first += 1
    return first, last


@compiled
def look(signal: Floats, group: int, per_record: float, criteria: Criteria, spare: Spare) -> None:
    """Flag in `spare` which sensitive areas a signal reveals from above (`high`) and from below (`low`)."""
    areas, ordered = len(signal), spare.ordered
    for i in range(areas):
        spare.places[i] = i
    sort_by(signal, spare.places, areas, spare.more)
    for i in range(areas):
        ordered[i] = signal[spare.places[i]]
    mine = criteria.sensitive[group]
    count = 0
    while count < len(mine) and mine[count] >= 0:
        spare.high[count] = False
        spare.low[count] = False
        count += 1
    # Both scales, because an attacker may use either test: an area is hidden only from both.
    middle = _median(ordered, 0, areas)
    for way in range(2):
        first, last = _peeled(ordered, criteria.tau, way == 1, spare)
        for i in range(count):
            value = signal[mine[i]]
            if last < areas and value >= ordered[last] and value >= middle:
                spare.high[i] = True
            if first > 0 and value <= ordered[first - 1]:
                spare.low[i] = True
    # The quantile of the Poisson distribution is interpolated: computing it here would take most of the time.
    records = np.sqrt(max(middle, 0.0) / per_record) / STEP
    at = min(int(records), len(criteria.few) - 2)
    few = -1.0
    if criteria.few[at] >= 0:
        few = criteria.few[at] + (records - at) * (criteria.few[at + 1] - criteria.few[at])
    # By rank: an attacker who knows the number of sensitive areas takes that many from either end, ties included.
    lowest = ordered[count - 1]
    last_ones, last_mine = np.searchsorted(ordered, lowest, "right"), 0
    for i in range(count):
        value = signal[mine[i]]
        if value > 0 and value >= middle and np.searchsorted(ordered, value, "right") > areas - count:
            spare.high[i] = True
        if value > few * per_record:
            spare.low[i] = False
        if value <= lowest:
            last_mine += 1
    if last_mine and criteria.chance[group, last_mine, last_ones] <= criteria.significance:
        for i in range(count):
            if signal[mine[i]] <= lowest:
                spare.low[i] = True


@compiled
def exposure(signal: Floats, group: int, per_record: float, criteria: Criteria, spare: Spare) -> float:
    """Return how exposed the sensitive areas of a group are.

    An area counts more if it is found than if it is nearly found, and most if it would still be found with a signal
    closer to the others. So a step that only leads towards safety already pays.
    """
    mine = criteria.sensitive[group]
    look(signal, group, per_record, criteria, spare)
    total = 0.0
    for i in range(len(mine)):
        if mine[i] >= 0:
            spare.ever[i] = spare.high[i] or spare.low[i]
            if spare.ever[i]:
                total += FOUND
    other = spare.signal
    for i in range(len(signal)):
        other[i] = signal[i]
    for margin in range(len(MARGINS)):
        for side in (1, -1):
            for i in range(len(mine)):
                if mine[i] >= 0:
                    value = signal[mine[i]]
                    step = max(MARGINS[margin] * value, (margin + 1) * per_record)
                    other[mine[i]] = max(value + side * step, 0.0)
            look(other, group, per_record, criteria, spare)
            for i in range(len(mine)):
                if mine[i] < 0:
                    continue
                if spare.high[i] if side > 0 else spare.low[i]:
                    spare.ever[i] = True
                if spare.low[i] if side > 0 else spare.high[i]:
                    total += NEARLY[margin]
        for i in range(len(mine)):
            if mine[i] >= 0 and spare.ever[i]:
                total += NEARLY[margin]
    return total
