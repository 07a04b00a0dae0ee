"""Which values of a signal stand out: the modified Thompson τ technique with robust estimates.

The quartiles are the paper's hinges, not percentiles: the set of outliers depends on it (docs/readings.md, 4.1).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

from sfumato.runtime.arrays import Flags, Floats

Scale = Literal["hinges", "mad"]
NORMAL_IQR = 1.349
NORMAL_MAD = 1.4826


@dataclass(frozen=True)
class Outliers:
    """The outliers of a signal by index, split by side; the scales that were used while peeling."""

    high: tuple[int, ...]
    low: tuple[int, ...]
    scale: str

    @property
    def all(self) -> tuple[int, ...]:
        return tuple(sorted((*self.high, *self.low)))


@lru_cache(maxsize=4096)
def tau(m: int, significance: float) -> float:
    """Equation 6: how many scales a value of m may lie off the median.

    >>> round(tau(10, 0.01), 6), round(tau(61, 0.01), 6)
    (2.176068, 2.515381)
    """
    t = _student(m - 2, significance)
    return t * (m - 1) / (math.sqrt(m) * math.sqrt(m - 2 + t * t))


def _student(degrees: int, significance: float) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(degrees, 1 - significance / 2))


def hinges(ordered: Sequence[float]) -> tuple[float, float]:
    """The medians of the lower and of the upper half of rising values; the middle value is in both when there is one.

    >>> hinges([1.0, 2.0, 3.0, 4.0, 5.0])
    (2.0, 4.0)
    """
    half = (len(ordered) + 1) // 2
    return _median(ordered[:half]), _median(ordered[-half:])


def _median(ordered: Sequence[float]) -> float:
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def spread(ordered: Sequence[float], scale: Scale) -> tuple[float, str]:
    """The scale of rising values and its name; if it is 0, the next that is not."""
    if scale == "hinges":
        low, high = hinges(ordered)
        if high > low:
            return (high - low) / NORMAL_IQR, "hinges"
    middle = _median(ordered)
    deviations = [abs(value - middle) for value in ordered]
    absolute = NORMAL_MAD * _median(sorted(deviations))
    if absolute > 0:
        return absolute, "mad"
    mean = math.fsum(deviations) / len(deviations)
    return (mean, "mean deviation") if mean > 0 else (0.0, "none")


def find_outliers(signal: Floats, significance: float = 0.01, scale: Scale = "hinges") -> Outliers:
    """Peel the largest deviation (all that tie) while it is beyond τ scales; then everything is computed again.

    What is left is always a run of the values in rising order.

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
        middle = _median(left)
        size, name = spread(left, scale)
        used.append(name)
        worst = max(left[-1] - middle, middle - left[0])
        if worst <= tau(len(left), significance) * size or worst == 0:
            break
        # Two ways to the same sum may differ in the last digit, and a tie must not depend on it.
        tied = worst * (1 - 1e-12)
        while last > first and ordered[last - 1] - middle >= tied:
            last -= 1
        while first < last and middle - ordered[first] >= tied:
            first += 1
    high, low = tuple(sorted(order[last:])), tuple(sorted(order[:first]))
    return Outliers(high, low, ", then ".join(dict.fromkeys(used)) or "none")


def beyond_counting_noise(signal: Floats, sizes: Floats, significance: float = 0.01) -> Flags:
    """Which values are more than their areas' sizes and chance explain (docs/readings.md, 4.15).

    If nobody gathered anywhere, an area would show its share of the whole by size, and counts vary as Poisson's law
    says. As in the τ technique the value that fits worst is taken out, and everything is computed again; the
    significance is shared among the areas (Bonferroni). Grades are at most 1, so a sum of grades varies less than the
    counts that the law is about.

    >>> beyond_counting_noise(np.array([4.0, 6, 5, 12, 40]), np.array([90.0, 110, 100, 200, 100])).tolist()
    [False, False, False, False, True]
    """
    from scipy.special import gammainc

    beyond = np.zeros(len(signal), np.bool_)
    while not beyond.all() and signal[~beyond].sum() > 0:
        expected = sizes * signal[~beyond].sum() / sizes[~beyond].sum()
        # The chance of so large a count, at any real number: the regularised incomplete gamma function.
        chance = np.where(beyond | (signal <= 0), 1.0, gammainc(np.maximum(signal, 1e-300), expected))
        worst = int(np.argmin(chance))
        if chance[worst] >= significance / len(signal):
            break
        beyond[worst] = True
    return beyond


def below_counting_noise(signal: Floats, significance: float = 0.01, per_record: float = 1.0) -> Flags:
    """Which values are less than a sum with the signal's median would be by chance.

    Records come as Poisson's law says and each adds `per_record`, the mean grade weighted by the grades themselves: a
    sum of many small grades varies less than a count of the same size.

    >>> below_counting_noise(np.array([20.0, 21, 19, 15, 6])).tolist()
    [False, False, False, False, True]
    >>> below_counting_noise(np.array([20.0, 21, 19, 15, 6]), per_record=0.1).tolist()
    [False, False, False, True, True]
    """
    from scipy.special import gammaincc

    middle = float(np.median(signal))
    if middle <= 0:
        return np.zeros(len(signal), np.bool_)
    few: Flags = gammaincc(np.maximum(signal, 0.0) / per_record + 1, middle / per_record) <= significance
    return few


def ranks(signal: Floats) -> list[int]:
    """1 for the largest value; equal values share the best rank.

    >>> ranks(np.array([5.0, 9.0, 5.0, 1.0]))
    [2, 1, 2, 4]
    """
    return [1 + int((signal > value).sum()) for value in signal]


def ratios(signal: Floats) -> list[float | None]:
    """Each value over the median of the signal; none where the median is 0."""
    middle = float(np.median(signal))
    return [float(value / middle) if middle else None for value in signal]


def spearman(one: Floats, two: Floats) -> float | None:
    """The rank correlation of two signals; none where one of them is flat.

    >>> spearman(np.array([1.0, 2, 3]), np.array([1.0, 4, 9]))
    1.0
    """
    a, b = (_average_ranks(np.asarray(signal, dtype=np.float64)) for signal in (one, two))
    if a.std() == 0 or b.std() == 0:
        return None
    return float(np.clip(np.corrcoef(a, b)[0, 1], -1, 1).round(12))


def _average_ranks(signal: Floats) -> Floats:
    _, value_of, counts = np.unique(signal, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    averaged: Floats = (last - (counts - 1) / 2)[value_of]
    return averaged
