"""What a channel protects and what it costs: pure functions of its matrix, the prior and the number of records.

J = M·diag(P) is the joint distribution of report and truth, r = J·1 that of the report. With S = Jᵀ diag(1/r) J the
best unbiased linear estimate of P from the counts of reports has, for square and rectangular channels alike,

    n·N·error + ΣP² = Σ_k P_k² (S⁻¹)_kk .

For n reports this is the variance of the inverted estimate (Theorem 6; docs/readings.md, 3.1).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.base.arrays import Floats
from sfumato.errors import InputError, UnreachableError

ROOM = 1e-4  # of what is left above the largest share
SINGULAR = 1e-10  # S is scaled to eigenvalues from 0 to 1; below this the reports do not tell all categories apart


def joint(matrix: Floats, prior: Floats) -> Floats:
    """J: the probability of each report together with each truth."""
    return np.asarray(matrix * prior)


def privacy(matrix: Floats, prior: Floats) -> float:
    """One minus the accuracy of the best guesser of a record's truth (equation 8).

    >>> from sfumato.methods.channel.estimate import warner
    >>> round(privacy(warner(4, 0.7), np.full(4, 0.25)), 12)
    0.3
    """
    return 1.0 - float(joint(matrix, prior).max(axis=1).sum())


def worst_posterior(matrix: Floats, prior: Floats) -> float:
    """The highest posterior probability of any category given any report (equation 9).

    >>> from sfumato.methods.channel.estimate import warner
    >>> round(worst_posterior(warner(2, 0.75), np.array([0.5, 0.5])), 12)
    0.75
    """
    both = joint(matrix, prior)
    reported = both.sum(axis=1)
    return float((both.max(axis=1)[reported > 0] / reported[reported > 0]).max())


def epsilon(matrix: Floats) -> float:
    """ε of local differential privacy: the log of the largest ratio in a row; infinite where a report excludes a truth.

    >>> from sfumato.methods.channel.estimate import grr
    >>> round(epsilon(grr(5, 1.5)), 12), epsilon(np.eye(2))
    (1.5, inf)
    """
    used = matrix[matrix.max(axis=1) > 0]
    if (used == 0).any():
        return math.inf
    return float(np.log(used.max(axis=1) / used.min(axis=1)).max())


def information(matrix: Floats, prior: Floats) -> Floats:
    """S scaled to diag(P)^-½ S diag(P)^-½: eigenvalues from 0 to 1, the identity when nothing is disguised."""
    both = joint(matrix, prior)
    reported = both.sum(axis=1)
    used = reported > 0
    scaled = both[used] / np.sqrt(reported[used])[:, None] / np.sqrt(prior)
    return np.asarray(scaled.T @ scaled)


def spread(matrix: Floats, prior: Floats) -> float:
    """Σ_k P_k² (S⁻¹)_kk: 1 when nothing is disguised, infinite when the truth cannot be recovered."""
    values, vectors = np.linalg.eigh(information(matrix, prior))
    if values[0] < SINGULAR:
        return math.inf
    return float(np.sum((vectors**2 / values) @ np.ones(len(prior)) * prior))


def error(matrix: Floats, prior: Floats, records: int) -> float:
    """Mean squared error of the estimated shares against the population the records were drawn from.

    >>> round(error(np.eye(2), np.array([0.5, 0.5]), 100), 12)
    0.0025
    """
    return error_of(spread(matrix, prior), prior, records)


def error_of(spread: float, prior: Floats, records: int) -> float:
    """The error that belongs to a spread."""
    return (spread - float(prior @ prior)) / (len(prior) * records)


def error_to_file(matrix: Floats, prior: Floats, records: int) -> float:
    """The same against the shares of the file itself: smaller by (1 − ΣP²)/(nN), which sampling alone costs."""
    return error(matrix, prior, records) - undisguised_error(prior, records)


def undisguised_error(prior: Floats, records: int) -> float:
    """The error of the records themselves as a sample: (1 − ΣP²)/(nN)."""
    return error_of(1.0, prior, records)


def loss(error: float, prior: Floats) -> float:
    """The share of the records' information that the disguise costs, from 0 (the truth) to 1 (nothing is left).

    `error` is for one record: 1 − error of the undisguised sample / error of the channel.
    """
    return 1.0 - undisguised_error(prior, 1) / error if error < math.inf else 1.0


def attainable(prior: Floats, delta: float) -> tuple[float, float]:
    """The least and the most privacy that channels with posteriors of at most δ can have: [1 − δ, 1 − max P]."""
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
    """What the posterior of each category may be: δ, and `gain` times its share."""
    if gain is None:
        return np.full(len(prior), delta)
    return np.asarray(np.minimum(delta, gain * prior))


def gains(matrix: Floats, prior: Floats) -> Floats:
    """How many times more likely the most telling report makes each category than its share does.

    >>> from sfumato.methods.channel.estimate import warner
    >>> gains(warner(2, 0.75), np.array([0.9, 0.1])).round(3).tolist()
    [1.071, 2.5]
    """
    reported = matrix @ prior
    used = reported > 0
    return np.asarray((matrix[used] / reported[used, None]).max(axis=0))


def require_room(prior: Floats, delta: float) -> None:
    """Raise where δ leaves no room: then no report may say anything of the commonest category, and S is singular."""
    limit = float(prior.max())
    if delta - limit < ROOM * (1.0 - limit):
        raise UnreachableError(
            f"with delta at {delta:g} and the commonest category at {limit:.6g} its share cannot be estimated",
            expected="delta above the largest share: otherwise no report may carry information about the "
            "commonest category",
            remedy=f"delta = {min(math.ceil(limit * 100 + 1) / 100, 1):g}",
        )


def attribute_figures(matrix: Floats, prior: Floats, groups: Sequence[Any]) -> tuple[float, float]:
    """Privacy and worst posterior of one attribute of a joint channel; `groups` has its value for each category.

    A channel over the product of attributes may hide the pair well and one of them badly, so both are stated.
    """
    values = sorted(set(groups))
    member = np.array([[value == group for group in groups] for value in values], dtype=np.float64)
    both = joint(matrix, prior) @ member.T
    reported = both.sum(axis=1)
    used = reported > 0
    return 1.0 - float(both.max(axis=1).sum()), float((both.max(axis=1)[used] / reported[used]).max())


@dataclass(frozen=True)
class Figures:
    """Everything that is said about a channel."""

    privacy: float
    worst_posterior: float
    gain: float
    epsilon: float
    error: float
    error_to_file: float
    loss: float


def figures(matrix: Floats, prior: Floats, records: int) -> Figures:
    """All figures of a matrix."""
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
