"""Recover a distribution from counts of reports: inversion, weighted least squares, EM; and how sure that is.

A linear estimate is B·counts/N with B M = 1, so it is unbiased whatever the truth is. For n reports B is the inverse;
for more, B weights the reports by a reference distribution, and is the best such estimate where that is the truth.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from sfumato.errors import InputError
from sfumato.measures.channel import SINGULAR, information
from sfumato.runtime.arrays import Floats

STILL = 1e-10
ITERATIONS = 20_000


@dataclass(frozen=True, eq=False)
class Recovered:
    """Shares as estimated (`raw`, maybe negative) and projected to the simplex, with standard errors and intervals.

    `error` is against the population the records were drawn from, `error_to_file` against the shares of the file.
    """

    method: str
    raw: Floats
    shares: Floats
    error: Floats
    error_to_file: Floats
    low: Floats
    high: Floats


def inversion_matrix(matrix: Floats) -> Floats:
    """B for a square matrix: its inverse.

    >>> inversion_matrix(np.array([[0.75, 0.25], [0.25, 0.75]])).tolist()
    [[1.5, -0.5], [-0.5, 1.5]]
    """
    if matrix.shape[0] != matrix.shape[1]:
        raise InputError(
            f"a matrix of {matrix.shape[0]} reports and {matrix.shape[1]} categories has no inverse",
            expected="as many reports as categories",
            remedy='method = "wls" or method = "em"',
        )
    _require_regular(matrix, np.full(matrix.shape[1], 1.0 / matrix.shape[1]))
    return np.asarray(np.linalg.inv(matrix))


def weighted_matrix(matrix: Floats, reference: Floats) -> Floats:
    """B for any matrix: (MᵀWM)⁻¹MᵀW with the weights 1/(M·reference)."""
    used = matrix @ reference > 0
    _require_regular(matrix, reference)
    weighted = matrix[used] / (matrix[used] @ reference)[:, None]
    backwards = np.zeros(matrix.T.shape)
    backwards[:, used] = np.linalg.solve(weighted.T @ matrix[used], weighted.T)
    return backwards


def _require_regular(matrix: Floats, reference: Floats) -> None:
    if np.linalg.eigvalsh(information(matrix, reference))[0] < SINGULAR:
        raise InputError(
            "the matrix is singular: different truths give the same reports, so they cannot be told apart",
            expected="a matrix that tells all categories apart",
            remedy="another channel; no method can recover what this one hides",
        )


def linear(method: str, inverse: Floats, matrix: Floats, counts: Floats, level: float = 0.95) -> Recovered:
    """The estimate B·counts/N of a linear method, B being the `inverse` of a channel's matrix."""
    records = max(float(counts.sum()), 1.0)
    reports = counts / records
    raw = inverse @ reports
    second = inverse**2 @ reports
    degrees = max(records - 1.0, 1.0)
    error = np.sqrt(np.maximum(second - raw**2, 0.0) / degrees)
    # Given the file, only the disguise is random: Var = (B diag(p*) Bᵀ − diag(f))/N.
    to_file = np.sqrt(np.maximum(second - np.clip(raw, 0.0, 1.0), 0.0) / degrees)
    low, high = intervals(inverse, matrix, counts, raw, level)
    return Recovered(method, raw, projected(raw), error, to_file, low, high)


def intervals(inverse: Floats, matrix: Floats, counts: Floats, raw: Floats, level: float) -> tuple[Floats, Floats]:
    """Score intervals: all shares f whose own variance allows the estimate, so that a count of zero is no certainty.

    If category k has the share f and the others keep their proportions, the reports are f·M_k + (1 − f)·m, and the
    variance of B_k·reports is (a + b·f − f²)/N with a = B_k²·m and b = B_k²·(M_k − m). Without a disguise this is
    Wilson's interval. An estimate outside 0 and 1 is taken as 0 or 1 for the far end.
    """
    records = max(float(counts.sum()), 1.0)
    spread = NormalDist().inv_cdf(0.5 + level / 2) ** 2 / records
    others = np.tile(projected(raw), (len(raw), 1))
    np.fill_diagonal(others, 0.0)
    total = others.sum(axis=1, keepdims=True)
    even = (1.0 - np.eye(len(raw))) / (len(raw) - 1)
    mixed = matrix @ np.where(total > 0, others / np.where(total > 0, total, 1.0), even).T
    square = inverse**2
    least = np.einsum("ky,yk->k", square, mixed)
    slope = np.einsum("ky,yk->k", square, matrix) - least

    def end(estimate: Floats, sign: float) -> Floats:
        middle = 2.0 * estimate + spread * slope
        under = middle**2 - 4.0 * (1.0 + spread) * (estimate**2 - spread * least)
        return np.asarray((middle + sign * np.sqrt(np.maximum(under, 0.0))) / (2.0 * (1.0 + spread)))

    low, high = end(np.minimum(raw, 1.0), -1.0), end(np.maximum(raw, 0.0), 1.0)
    return np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)


def linear_error(inverse: Floats | None, matrix: Floats, shares: Floats, records: int) -> float:
    """The mean squared error of a linear estimate of shares, against the population; infinite if there is none.

    >>> linear_error(np.eye(2), np.eye(2), np.array([0.5, 0.5]), 100)
    0.0025
    """
    if inverse is None:
        return math.inf
    variance = inverse**2 @ (matrix @ shares) - shares**2
    return float(variance.sum() / (len(shares) * records))


def em(matrix: Floats, counts: Floats, level: float = 0.95) -> Recovered:
    """The most likely distribution, by EM: P'ⱼ = Σᵢ p*ᵢ·M[i,j]Pⱼ/Σ_l M[i,l]P_l (equation 3; docs/readings.md, 3.2)."""
    records = max(float(counts.sum()), 1.0)
    reports = counts / records
    seen = reports > 0
    rows, shares = matrix[seen], np.full(matrix.shape[1], 1.0 / matrix.shape[1])
    for _ in range(ITERATIONS):
        fresh = shares * (rows.T @ (reports[seen] / (rows @ shares)))
        moved = float(np.abs(fresh - shares).max())
        shares = fresh
        if moved < STILL:
            break
    inside = np.maximum(shares, 1e-9)
    inside = inside / inside.sum()
    expected = matrix @ inside
    used = expected > 0
    curvature = (matrix[used] / expected[used, None]).T @ matrix[used]
    variance = np.diag(np.linalg.pinv(curvature, rcond=1e-12, hermitian=True))
    error = np.sqrt(np.maximum(variance - shares**2, 0.0) / records)
    to_file = np.sqrt(np.maximum(variance - shares, 0.0) / records)
    try:
        inverse = weighted_matrix(matrix, inside)
    except InputError:  # truths that no report tells apart: nothing is known of their shares
        return Recovered("em", shares, shares, error, to_file, np.zeros_like(shares), np.ones_like(shares))
    low, high = intervals(inverse, matrix, counts, shares, level)
    return Recovered("em", shares, shares, error, to_file, low, high)


def projected(raw: Floats) -> Floats:
    """The nearest distribution.

    >>> projected(np.array([0.7, 0.5, -0.2])).round(3).tolist()
    [0.6, 0.4, 0.0]
    """
    falling = np.sort(raw)[::-1]
    excess = (np.cumsum(falling) - 1.0) / np.arange(1, len(raw) + 1)
    shift = excess[np.flatnonzero(falling > excess)[-1]]
    return np.asarray(np.maximum(raw - shift, 0.0))
