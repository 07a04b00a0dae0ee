"""The outliers of a signal: the modified Thompson τ technique with robust estimates, and what they reveal.

The quartiles are the paper's hinges, not percentiles: the set of outliers depends on them (docs/readings.md, 4.1). A
signal reveals a sensitive area by one of two outlier tests, or by its rank. Adequacy states how well the outliers of an
attacker's signal match the true ones, by the paper's figures and the usual ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from functools import cache, lru_cache
from itertools import product
from math import comb
from statistics import median
from typing import Literal

import numpy as np
from scipy.special import gammainc, gammaincc, stdtrit

from sfumato.base.arrays import Counts64, Flags, Floats

Scale = Literal["hinges", "mad"]
SCALES: tuple[Scale, ...] = ("hinges", "mad")
NORMAL_IQR = 1.349
NORMAL_MAD = 1.4826


@dataclass(frozen=True)
class Outliers:
    """The outliers of a signal by index and side, and the scales that were used while peeling."""

    high: tuple[int, ...]
    low: tuple[int, ...]
    scale: str


@lru_cache(maxsize=4096)
def tau(m: int, significance: float) -> float:
    """Return how many scales a value of m may deviate from the median (equation 6).

    >>> round(tau(10, 0.01), 6), round(tau(61, 0.01), 6)
    (2.176068, 2.515381)
    """
    t = float(stdtrit(m - 2, 1 - significance / 2))
    return t * (m - 1) / (math.sqrt(m) * math.sqrt(m - 2 + t * t))


def hinges(ordered: Sequence[float]) -> tuple[float, float]:
    """Return the medians of the lower and the upper half of rising values. A single middle value is in both halves.

    >>> hinges([1.0, 2.0, 3.0, 4.0, 5.0])
    (2.0, 4.0)
    """
    half = (len(ordered) + 1) // 2
    return median(ordered[:half]), median(ordered[-half:])


def spread(ordered: Sequence[float], scale: Scale) -> tuple[float, str]:
    """Return the scale of rising values and its name. If a scale is 0, the next one is used."""
    if scale == "hinges":
        low, high = hinges(ordered)
        if high > low:
            return (high - low) / NORMAL_IQR, "hinges"
    middle = median(ordered)
    deviations = [abs(value - middle) for value in ordered]
    absolute = NORMAL_MAD * median(deviations)
    if absolute > 0:
        return absolute, "mad"
    mean = math.fsum(deviations) / len(deviations)
    return (mean, "mean deviation") if mean > 0 else (0.0, "none")


def find_outliers(signal: Floats, significance: float = 0.01, scale: Scale = "hinges") -> Outliers:
    """Remove the largest deviation, with all ties, while it exceeds τ scales, and recompute everything.

    The values that remain are always a run of the values in rising order.

    >>> find_outliers(np.array([1.0, 2, 3, 2, 1, 2, 3, 40])).high
    (7,)
    """
    values = np.asarray(signal, dtype=np.float64)
    order = np.argsort(values, kind="stable").tolist()
    ordered = values[order].tolist()
    first, last = 0, len(ordered)
    used: list[str] = []
    while last - first >= 3:
        left = ordered[first:last]
        middle = median(left)
        size, name = spread(left, scale)
        used.append(name)
        worst = max(left[-1] - middle, middle - left[0])
        if worst <= tau(len(left), significance) * size or worst == 0:
            break
        # Two sums of the same numbers may differ in the last digit, and ties must not depend on it.
        tied = worst * (1 - 1e-12)
        while last > first and ordered[last - 1] - middle >= tied:
            last -= 1
        while first < last and middle - ordered[first] >= tied:
            first += 1
    high, low = tuple(sorted(order[last:])), tuple(sorted(order[:first]))
    return Outliers(high, low, ", then ".join(dict.fromkeys(used)) or "none")


def by_scales(signal: Floats, significance: float) -> dict[str, Outliers]:
    """Return the outliers by either scale, since an attacker may use either test."""
    return {scale: find_outliers(signal, significance, scale) for scale in SCALES}


def beyond_counting_noise(signal: Floats, sizes: Floats, significance: float = 0.01) -> Flags:
    """Return which values exceed what their areas' sizes and chance explain (docs/readings.md, 4.15).

    Under the null hypothesis an area has its share of the total by size, and counts have a Poisson distribution. As in
    the τ technique the value that fits worst is removed, and everything is recomputed. The significance is divided
    among the areas (Bonferroni). Grades are at most 1, so a sum of grades varies less than the counts of this
    distribution.

    >>> beyond_counting_noise(np.array([4.0, 6, 5, 12, 40]), np.array([90.0, 110, 100, 200, 100])).tolist()
    [False, False, False, False, True]
    """
    beyond = np.zeros(len(signal), np.bool_)
    while not beyond.all() and signal[~beyond].sum() > 0:
        expected = sizes * signal[~beyond].sum() / sizes[~beyond].sum()
        # The probability of so large a count, at any real number: the regularised incomplete gamma function.
        chance = np.where(beyond | (signal <= 0), 1.0, gammainc(np.maximum(signal, 1e-300), expected))
        worst = int(np.argmin(chance))
        if chance[worst] >= significance / len(signal):
            break
        beyond[worst] = True
    return beyond


def below_counting_noise(signal: Floats, significance: float = 0.01, per_record: float = 1.0) -> Flags:
    """Return which values are smaller than chance explains for a sum with the signal's median.

    The number of records has a Poisson distribution, and each adds `per_record`, the mean grade weighted by the grades.
    A sum of many small grades varies less than a count of the same size.

    >>> below_counting_noise(np.array([20.0, 21, 19, 15, 6])).tolist()
    [False, False, False, False, True]
    >>> below_counting_noise(np.array([20.0, 21, 19, 15, 6]), per_record=0.1).tolist()
    [False, False, False, True, True]
    """
    middle = float(np.median(signal))
    if middle <= 0:
        return np.zeros(len(signal), np.bool_)
    few: Flags = gammaincc(np.maximum(signal, 0.0) / per_record + 1, middle / per_record) <= significance
    return few


def ranks(signal: Floats) -> list[int]:
    """Return the ranks: 1 for the largest value. Equal values share the best rank."""
    return [1 + int((signal > value).sum()) for value in signal]


def ratios(signal: Floats) -> list[float | None]:
    """Return each value over the median of the signal; None if the median is 0."""
    middle = float(np.median(signal))
    return [float(value / middle) if middle else None for value in signal]


def spearman(one: Floats, two: Floats) -> float | None:
    """Return the rank correlation of two signals; None if one of them is constant.

    >>> spearman(np.array([1.0, 2, 3]), np.array([1.0, 4, 9]))
    1.0
    """
    a, b = (_average_ranks(np.asarray(signal, dtype=np.float64)) for signal in (one, two))
    if a.std() == 0 or b.std() == 0:
        return None
    return float(np.clip(np.corrcoef(a, b)[0, 1], -1, 1).round(12))


def _average_ranks(signal: Floats) -> Floats:
    ordered = np.sort(signal)
    return np.asarray((np.searchsorted(ordered, signal) + np.searchsorted(ordered, signal, "right") + 1) / 2)


@dataclass(frozen=True)
class Adequacy:
    """The confusion of two outlier sets (docs/readings.md, 4.4). The paper calls `undisclosed` FP and `false` FN.

    >>> found = Adequacy(60, 38, 4, 785)
    >>> [round(x, 3) for x in (found.accuracy, found.printed_j, found.youden_j, found.bayes)]
    [0.953, 0.891, 0.607, 98.047]
    """

    disclosed: int
    undisclosed: int
    false: int
    quiet: int

    @classmethod
    def of(cls, true: Collection[int], shown: Collection[int], areas: int) -> Adequacy:
        """Compare two sets of outliers among a number of areas."""
        both, either = set(true) & set(shown), set(true) | set(shown)
        return cls(len(both), len(set(true) - both), len(set(shown) - both), areas - len(either))

    def __add__(self, other: Adequacy) -> Adequacy:
        return Adequacy(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))

    @property
    def accuracy(self) -> float:
        """The prediction accuracy PA (equation 19)."""
        areas = self.disclosed + self.undisclosed + self.false + self.quiet
        return (self.disclosed + self.quiet) / max(areas, 1)

    @property
    def printed_j(self) -> float | None:
        """Equation 20 as printed: precision + negative predictive value − 1. None if no area is found, or every one."""
        return _j(self.disclosed, self.false, self.quiet, self.undisclosed)

    @property
    def youden_j(self) -> float | None:
        """Youden's J: sensitivity + specificity − 1. None if no area is an outlier, or every one."""
        return _j(self.disclosed, self.undisclosed, self.quiet, self.false)

    @property
    def bayes(self) -> float:
        """MB (equation 22): the least evidence that the two sets depend on each other, in natural logarithms.

        The minimum over 0 ≤ t1 ≤ n1, 0 ≤ t2 ≤ n2 (docs/readings.md, 4.2) is found from the best points of a coarse
        grid, each followed downhill.
        """
        tops = (self.disclosed + self.undisclosed, self.false + self.quiet)
        logs = log_factorials(2 * sum(tops) + 2)
        at = cache(lambda t1, t2: log_evidence(self, t1, t2, logs))
        axes = [sorted({round(top * (i / 8) ** 2) for i in range(9)}) for top in tops]
        starts = sorted(product(axes[0], axes[1]), key=lambda point: (at(*point), point))[:4]
        return min(_downhill(at, start, tops) for start in starts)

    def as_dict(self) -> dict[str, float | None]:
        figures = {"PA": self.accuracy, "J_printed": self.printed_j, "J_youden": self.youden_j, "MB": self.bayes}
        return vars(self) | figures


def _j(hit: int, missed: int, right: int, wrong: int) -> float | None:
    if hit + missed == 0 or right + wrong == 0:
        return None
    return hit / (hit + missed) + right / (right + wrong) - 1


def _downhill(at: Callable[[int, int], float], start: tuple[int, int], tops: tuple[int, int]) -> float:
    step = max(*tops, 1)
    while step >= 1:
        axes = [[x for x in (x - step, x, x + step) if 0 <= x <= top] for x, top in zip(start, tops, strict=True)]
        nearer = min(product(axes[0], axes[1]), key=lambda point: at(*point))
        if at(*nearer) < at(*start):
            start = nearer
        else:
            step //= 2
    return at(*start)


def log_factorials(largest: int) -> Floats:
    """Return log n! for n = 0 … largest."""
    return np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, largest + 1)))])


def log_evidence(z: Adequacy, t1: int, t2: int, logs: Floats) -> float:
    """Return log B(t1, t2) (equation 21)."""

    def choose(n: int | Counts64, k: int | Counts64) -> Floats:
        return logs[n] - logs[k] - logs[n - k]

    tp, fp, fn, tn = astuple(z)
    n1, n2 = tp + fp, fn + tn
    i, j = np.arange(t1 + 1), np.arange(t2 + 1)
    rows = 2 * choose(t1, i) - choose(n1 + t1, tp + i)
    columns = 2 * choose(t2, j) - choose(n2 + t2, fn + j)
    terms = rows[:, None] + columns[None, :] - choose(t1 + t2, i[:, None] + j[None, :])
    top = float(terms.max())
    total = top + math.log(float(np.exp(terms - top).sum()))
    first = math.log(n1 + n2 + 1) - math.log(n1 + t1 + 1) - math.log(n2 + t2 + 1)
    second = math.log(t1 + 1) + math.log(t2 + 1) - math.log(t1 + t2 + 1)
    return float(first + second + choose(n1 + n2, tp + fn) + total)


WAYS = (*SCALES, "rank")


@dataclass(frozen=True)
class Sensitive:
    """The areas that must not be found, those that an expert excluded, and the outliers of the true signal."""

    areas: tuple[int, ...]
    excluded: tuple[int, ...]
    outliers: Mapping[str, Outliers]


def sensitive_areas(
    quantity: Floats, significance: float, expert: Collection[int] = (), exclude: Collection[int] = ()
) -> Sensitive:
    """Return the high outliers of the true signal without the excluded ones, or the expert's areas.

    True outliers that an expert's list leaves out do not matter: they count neither as true nor as false findings.

    >>> sensitive_areas(np.array([1.0, 2, 3, 2, 1, 2, 3, 40]), 0.01).areas
    (7,)
    """
    ways = by_scales(quantity, significance)
    high = set(ways["hinges"].high)
    areas = set(expert) or high - set(exclude)
    excluded = set(exclude) | (high - areas if expert else set())
    return Sensitive(tuple(sorted(areas)), tuple(sorted(excluded - areas)), ways)


@dataclass(frozen=True)
class Findings:
    """The findings of an attacker with a signal. `by_way` maps each test to the sensitive areas it reveals.

    The areas in `low` have strikingly small values.
    """

    signal: Floats
    outliers: Mapping[str, Outliers]
    by_way: Mapping[str, tuple[int, ...]]
    adequacy: Mapping[str, Adequacy]
    low: tuple[int, ...]

    @property
    def high(self) -> tuple[int, ...]:
        """The sensitive areas that any test reveals by a high value."""
        return tuple(sorted({area for areas in self.by_way.values() for area in areas}))

    @property
    def anyhow(self) -> tuple[int, ...]:
        """The sensitive areas that are found from above or from below."""
        return tuple(sorted({*self.high, *self.low}))


def findings(
    signal: Floats,
    sensitive: Sensitive,
    significance: float,
    sizes: Floats | None = None,
    per_record: float = 1.0,
) -> Findings:
    """Return what a signal reveals.

    With the `sizes` of the areas, high outliers within counting noise are ignored. The noise of low values needs
    `per_record`, which one record adds to the signal. By rank an area is found among the first k, where k is the number
    of sensitive areas. The outlier tests peel, so the remaining values may have outliers on their high side that most
    areas exceed. These are not high values, and are not found.

    >>> true = sensitive_areas(np.array([1.0, 2, 3, 2, 1, 2, 3, 40]), 0.01)
    >>> dict(findings(np.array([5.0, 5, 6, 5, 5, 5, 6, 30]), true, 0.01).by_way)
    {'hinges': (7,), 'mad': (7,), 'rank': (7,)}
    """
    outliers = by_scales(signal, significance)
    order = np.array(ranks(signal))
    top = np.flatnonzero((order <= len(sensitive.areas)) & (signal > 0)).tolist()
    counts = np.ones(len(signal), np.bool_) if sizes is None else beyond_counting_noise(signal, sizes, significance)
    high = {way: {i for i in o.high if counts[i]} for way, o in outliers.items()}
    shown = {way: areas - set(sensitive.excluded) for way, areas in high.items()} | {
        "rank": set(top) - set(sensitive.excluded)
    }
    above = set(np.flatnonzero(signal >= np.median(signal)).tolist())
    return Findings(
        signal=signal,
        outliers=outliers,
        by_way={way: tuple(sorted(shown[way] & set(sensitive.areas) & above)) for way in WAYS},
        adequacy={way: Adequacy.of(sensitive.areas, shown[way], len(signal)) for way in WAYS},
        low=strikingly_low(signal, outliers.values(), sensitive.areas, significance, per_record),
    )


def strikingly_low(
    signal: Floats,
    outliers: Iterable[Outliers],
    sensitive: Sequence[int],
    significance: float,
    per_record: float = 1.0,
) -> tuple[int, ...]:
    """Return the sensitive areas that an attacker finds who looks for areas with strikingly small values.

    They are low outliers by either scale that are also smaller than chance explains (`below_counting_noise`). They are
    also found if chance does not explain how many of them are among the last by rank. Of m areas k are sensitive, and
    the last k are compared, or more if some are equal. The probability that at least so many of them are sensitive must
    be at most the significance.

    >>> signal = np.array([1.0, 2, 3, 40, 44, 51, 39, 60, 48, 55])
    >>> none = [find_outliers(np.zeros(10))]
    >>> strikingly_low(signal, none, [0, 1, 2], 0.01), strikingly_low(signal, none, [0, 1, 5], 0.01)
    ((0, 1, 2), ())
    """
    few = below_counting_noise(signal, significance, per_record)
    low = {area for one in outliers for area in one.low if few[area]} & set(sensitive)
    last = {area for area, rank in enumerate(ranks(-signal)) if rank <= len(sensitive)}
    mine = last & set(sensitive)
    if mine and chance_of(len(mine), len(signal), len(sensitive), len(last)) <= significance:
        low |= mine
    return tuple(sorted(low))


def chance_of(least: int, total: int, marked: int, drawn: int) -> float:
    """Return the probability of at least as many marked ones in a sample without replacement.

    >>> round(chance_of(3, 10, 3, 3), 5), chance_of(1, 4, 1, 4)
    (0.00833, 1.0)
    """
    ways = sum(comb(marked, x) * comb(total - marked, drawn - x) for x in range(least, min(marked, drawn) + 1))
    return ways / comb(total, drawn)


def compared(quantity: Floats, shown_areas: Findings) -> dict[str, object]:
    """Return the adequacy of a signal for print: by the paper's test, the other scale, rank, and Spearman's ρ."""
    return {
        **shown_areas.adequacy["hinges"].as_dict(),
        "mad": shown_areas.adequacy["mad"].as_dict(),
        "rank": shown_areas.adequacy["rank"].as_dict(),
        "spearman": spearman(quantity, shown_areas.signal),
    }
