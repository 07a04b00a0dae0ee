"""How well the outliers of an attacker's signal match the true ones: the paper's figures and the usual ones."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.runtime.arrays import Floats


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
        mine, theirs = self._counts(), other._counts()
        return Adequacy(*(a + b for a, b in zip(mine, theirs, strict=True)))

    def _counts(self) -> tuple[int, int, int, int]:
        return self.disclosed, self.undisclosed, self.false, self.quiet

    @property
    def accuracy(self) -> float:
        """Equation 19, the prediction accuracy PA."""
        return (self.disclosed + self.quiet) / max(sum(self._counts()), 1)

    @property
    def printed_j(self) -> float | None:
        """Equation 20 as printed: precision + negative predictive value − 1. None without found or quiet areas."""
        return _j(self.disclosed, self.false, self.quiet, self.undisclosed)

    @property
    def youden_j(self) -> float | None:
        """Youden's J proper: sensitivity + specificity − 1. None if there are no outliers, or nothing else."""
        return _j(self.disclosed, self.undisclosed, self.quiet, self.false)

    @property
    def bayes(self) -> float:
        """Equation 22, MB: the least evidence that the two sets depend on each other, in natural logarithms."""
        return _least(self)

    def as_dict(self) -> dict[str, Any]:
        return {
            "disclosed": self.disclosed,
            "undisclosed": self.undisclosed,
            "false": self.false,
            "quiet": self.quiet,
            "PA": self.accuracy,
            "J_printed": self.printed_j,
            "J_youden": self.youden_j,
            "MB": self.bayes,
        }


def _j(hit: int, missed: int, right: int, wrong: int) -> float | None:
    if hit + missed == 0 or right + wrong == 0:
        return None
    return hit / (hit + missed) + right / (right + wrong) - 1


def _least(z: Adequacy) -> float:
    """Minimise over 0 ≤ t1 ≤ n1, 0 ≤ t2 ≤ n2 (docs/readings.md, 4.2): a coarse grid, then downhill from its best."""
    tops = (z.disclosed + z.undisclosed, z.false + z.quiet)
    logs = log_factorials(2 * sum(tops) + 2)
    known: dict[tuple[int, int], float] = {}

    def at(t1: int, t2: int) -> float:
        if (t1, t2) not in known:
            known[t1, t2] = log_evidence(z, t1, t2, logs)
        return known[t1, t2]

    axes = [sorted({round(top * (i / 8) ** 2) for i in range(9)}) for top in tops]
    starts = sorted((at(t1, t2), t1, t2) for t1 in axes[0] for t2 in axes[1])[:4]
    return min(_downhill(at, (t1, t2), tops) for _, t1, t2 in starts)


def _downhill(at: Any, start: tuple[int, int], tops: tuple[int, int]) -> float:
    step = max(*tops, 1)
    best: float = at(*start)
    while step >= 1:
        around = [(start[0] + a * step, start[1] + b * step) for a in (-1, 0, 1) for b in (-1, 0, 1)]
        inside = [p for p in around if 0 <= p[0] <= tops[0] and 0 <= p[1] <= tops[1]]
        nearer = min(inside, key=lambda p: at(*p))
        if at(*nearer) < best:
            start, best = nearer, at(*nearer)
        else:
            step //= 2
    return best


def log_factorials(largest: int) -> Floats:
    """log n! for n = 0 … most."""
    return np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, largest + 1)))])


def log_evidence(z: Adequacy, t1: int, t2: int, logs: Floats) -> float:
    """log B(t1, t2), equation 21."""

    def choose(n: Any, k: Any) -> Any:
        return logs[n] - logs[k] - logs[n - k]

    tp, fp, fn, tn = z._counts()
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
