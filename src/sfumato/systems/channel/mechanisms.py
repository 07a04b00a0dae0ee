"""Known mechanisms of local differential privacy: what their estimates cost at one ε, beside the optimum.

Every error is that of the usual unbiased estimate against the population the records were drawn from. Where a
mechanism is a matrix, its best linear estimate is taken. Unary encodings and local hashing report more than can be
listed, so theirs is the published variance: for a share f it is (f·p(1−p) + (1−f)·q(1−q))/(N·(p−q)²), p and q being
the probabilities that a report supports the truth and any other category, plus what sampling costs.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import scipy.linalg

from sfumato.measures.channel import error, undisguised_error
from sfumato.runtime.arrays import Floats
from sfumato.systems.channel.response import grr

SUBSETS = 20_000  # more are not listed; the size is then left out of the comparison


def subset_selection(categories: int, size: int, epsilon: float) -> Floats:
    """Report a set of `size` categories, e^ε times as likely if it holds the truth.

    >>> subset_selection(2, 1, math.log(3)).round(9).tolist()
    [[0.75, 0.25], [0.25, 0.75]]
    """
    members = np.zeros((math.comb(categories, size), categories))
    for row, chosen in enumerate(itertools.combinations(range(categories), size)):
        members[row, list(chosen)] = 1.0
    likely = np.exp(epsilon * members)
    return np.asarray(likely / likely.sum(axis=0))


def hadamard_response(categories: int, epsilon: float) -> Floats:
    """Report one of K numbers, e^ε times as likely if the truth's row of a Hadamard matrix has a one there."""
    size = 2 ** math.ceil(math.log2(categories + 1))
    signs = scipy.linalg.hadamard(size)[1 : categories + 1].T
    likely = np.where(signs > 0, math.exp(epsilon), 1.0)
    return np.asarray(likely / likely.sum(axis=0))


def best_subset(prior: Floats, records: int, epsilon: float) -> tuple[float, int]:
    """The least error of subset selection over all sizes, and the size."""
    n = len(prior)
    sizes = [size for size in range(1, n) if math.comb(n, size) <= SUBSETS]
    return min((error(subset_selection(n, size, epsilon), prior, records), size) for size in sizes)


def supported(prior: Floats, records: int, truth: float, other: float) -> float:
    """The error of a mechanism whose report supports the truth with one probability and any other with another."""
    variance = prior * truth * (1.0 - truth) + (1.0 - prior) * other * (1.0 - other)
    return float(variance.mean() / (records * (truth - other) ** 2)) + undisguised_error(prior, records)


def errors_beside(prior: Floats, records: int, epsilon: float) -> dict[str, float]:
    """The error of each known mechanism at an ε.

    >>> sorted(errors_beside(np.full(3, 1 / 3), 1000, 1.0))
    ['GRR', 'Hadamard response', 'OLH', 'OUE', 'SUE', 'subset selection']
    """
    e, half = math.exp(epsilon), math.exp(epsilon / 2.0)
    buckets = max(round(e + 1.0), 2)
    return {
        "GRR": error(grr(len(prior), epsilon), prior, records),
        "subset selection": best_subset(prior, records, epsilon)[0],
        "Hadamard response": error(hadamard_response(len(prior), epsilon), prior, records),
        "SUE": supported(prior, records, half / (half + 1.0), 1.0 / (half + 1.0)),
        "OUE": supported(prior, records, 0.5, 1.0 / (e + 1.0)),
        "OLH": supported(prior, records, e / (e + buckets - 1.0), 1.0 / buckets),
    }
