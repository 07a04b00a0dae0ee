"""Privacy and information loss of a channel, as functions of its matrix, the prior and the number of records.

J = M·diag(P) is the joint distribution of report and truth, r = J·1 that of the report. With S = Jᵀ diag(1/r) J the
best unbiased linear estimate of P from the counts of reports has, for square and rectangular channels alike,

    n·N·error + ΣP² = Σ_k P_k² (S⁻¹)_kk .

For n reports this is the variance of the inverted estimate (Theorem 6; docs/readings.md, 3.1).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.base.arrays import Floats
from sfumato.errors import InputError, UnreachableError

LEAST_MARGIN = 1e-4  # of δ above the largest share, as a part of the share's distance to 1
SINGULAR = 1e-10  # S has eigenvalues from 0 to 1; below this the reports do not distinguish all categories


def joint(matrix: Floats, prior: Floats) -> Floats:
    """Return J, the joint probability of each report and each truth."""
    return np.asarray(matrix * prior)


def privacy(matrix: Floats, prior: Floats) -> float:
    """Return one minus the probability that the best guess of a record's truth is correct (equation 8).

    >>> from sfumato.methods.channel.estimate import warner
    >>> round(privacy(warner(4, 0.7), np.full(4, 0.25)), 12)
    0.3
    """
    return 1.0 - float(joint(matrix, prior).max(axis=1).sum())


def worst_posterior(matrix: Floats, prior: Floats) -> float:
    """Return the highest posterior probability of a category given a report (equation 9).

    >>> from sfumato.methods.channel.estimate import warner
    >>> round(worst_posterior(warner(2, 0.75), np.array([0.5, 0.5])), 12)
    0.75
    """
    both = joint(matrix, prior)
    reported = both.sum(axis=1)
    return float((both.max(axis=1)[reported > 0] / reported[reported > 0]).max())


def epsilon(matrix: Floats) -> float:
    """Return ε of local differential privacy: the log of the largest ratio in a row of the matrix.

    It is infinite if a report excludes a truth.

    >>> from sfumato.methods.channel.estimate import grr
    >>> round(epsilon(grr(5, 1.5)), 12), epsilon(np.eye(2))
    (1.5, inf)
    """
    used = matrix[matrix.max(axis=1) > 0]
    if (used == 0).any():
        return math.inf
    return float(np.log(used.max(axis=1) / used.min(axis=1)).max())


def information(matrix: Floats, prior: Floats) -> Floats:
    """Return diag(P)^-½ S diag(P)^-½, with eigenvalues from 0 to 1. It is the identity if nothing is disguised."""
    both = joint(matrix, prior)
    reported = both.sum(axis=1)
    used = reported > 0
    scaled = both[used] / np.sqrt(reported[used])[:, None] / np.sqrt(prior)
    return np.asarray(scaled.T @ scaled)


def spread(matrix: Floats, prior: Floats) -> float:
    """Return Σ_k P_k² (S⁻¹)_kk: 1 if nothing is disguised, infinite if the shares cannot be estimated."""
    values, vectors = np.linalg.eigh(information(matrix, prior))
    if values[0] < SINGULAR:
        return math.inf
    return float(np.sum((vectors**2 / values) @ np.ones(len(prior)) * prior))


def error(matrix: Floats, prior: Floats, records: int) -> float:
    """Return the mean squared error of the estimated shares of the population from which the records were drawn.

    >>> round(error(np.eye(2), np.array([0.5, 0.5]), 100), 12)
    0.0025
    """
    return error_of(spread(matrix, prior), prior, records)


def error_of(spread: float, prior: Floats, records: int) -> float:
    """Return the error for a value of `spread`."""
    return (spread - float(prior @ prior)) / (len(prior) * records)


def error_to_file(matrix: Floats, prior: Floats, records: int) -> float:
    """Return the error of the shares of the file itself, which is smaller by the sampling error (1 − ΣP²)/(nN)."""
    return error(matrix, prior, records) - undisguised_error(prior, records)


def undisguised_error(prior: Floats, records: int) -> float:
    """Return the sampling error of the undisguised records: (1 − ΣP²)/(nN)."""
    return error_of(1.0, prior, records)


def loss(error: float, prior: Floats) -> float:
    """Return the share of information that the channel loses, from 0 (nothing) to 1 (everything).

    It is 1 − error of the undisguised sample / error of the channel. The argument `error` is for one record.
    """
    return 1.0 - undisguised_error(prior, 1) / error if error < math.inf else 1.0


def attainable(prior: Floats, delta: float) -> tuple[float, float]:
    """Return the range of privacy of channels whose posteriors are at most δ: [1 − δ, 1 − max P]."""
    limit = float(prior.max())
    if not limit - 1e-12 <= delta <= 1.0:
        raise InputError(
            f"delta is {delta:g}, but the commonest category has a share of {limit:.6g}",
            expected=f"delta from {math.ceil(limit * 1e6) / 1e6:.6g} to 1: without a report, the best guess is "
            "the commonest category",
            remedy=f"delta = {min(math.ceil(limit * 100 + 1e-9) / 100, 1):g} is about the least possible",
        )
    return 1.0 - max(delta, limit), 1.0 - limit


def caps_of(prior: Floats, delta: float, gain: float | None) -> Floats:
    """Return the highest permitted posterior of each category: δ, and at most `gain` times its share."""
    if gain is None:
        return np.full(len(prior), delta)
    return np.asarray(np.minimum(delta, gain * prior))


def gains(matrix: Floats, prior: Floats) -> Floats:
    """Return for each category the largest ratio of a posterior to its share.

    >>> from sfumato.methods.channel.estimate import warner
    >>> gains(warner(2, 0.75), np.array([0.9, 0.1])).round(3).tolist()
    [1.071, 2.5]
    """
    reported = matrix @ prior
    used = reported > 0
    return np.asarray((matrix[used] / reported[used, None]).max(axis=0))


def require_room(prior: Floats, delta: float) -> None:
    """Raise if δ is too close to the largest share. No report could then depend on that category: S is singular."""
    limit = float(prior.max())
    if delta - limit < LEAST_MARGIN * (1.0 - limit):
        raise UnreachableError(
            f"with delta at {delta:g} and the commonest category at {limit:.6g} its share cannot be estimated",
            expected="delta above the largest share: otherwise no report may carry information about the "
            "commonest category",
            remedy=f"delta = {min(math.ceil(limit * 100 + 1) / 100, 1):g}",
        )


def attribute_figures(matrix: Floats, prior: Floats, groups: Sequence[str]) -> tuple[float, float]:
    """Return privacy and worst posterior of one attribute of a joint channel, whose values by category are `groups`.

    A channel over the product of attributes may protect the product well and one attribute badly, so both are stated.
    """
    values = sorted(set(groups))
    member = np.array([[value == group for group in groups] for value in values], dtype=np.float64)
    both = joint(matrix, prior) @ member.T
    reported = both.sum(axis=1)
    used = reported > 0
    return 1.0 - float(both.max(axis=1).sum()), float((both.max(axis=1)[used] / reported[used]).max())


@dataclass(frozen=True)
class Figures:
    """All figures of a channel."""

    privacy: float
    worst_posterior: float
    gain: float
    epsilon: float
    error: float
    error_to_file: float
    loss: float


def figures(matrix: Floats, prior: Floats, records: int) -> Figures:
    """Return all figures of a channel."""
    result = error(matrix, prior, records)
    return Figures(
        privacy(matrix, prior),
        worst_posterior(matrix, prior),
        float(gains(matrix, prior).max()),
        epsilon(matrix),
        result,
        error_to_file(matrix, prior, records),
        loss(result * records, prior),
    )
