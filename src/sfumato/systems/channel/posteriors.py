"""What a report can let one believe: the posteriors from which every optimal channel is mixed.

Where the best guess does not change, accuracy is linear in the posterior while the information S = Σ w q qᵀ grows when
a posterior is split. So the best posteriors are corners: uniform on a set of categories, or as high as δ allows on as
many categories as fit, the rest on one more (docs/readings.md, 3.9).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from sfumato.runtime.arrays import Floats

SLACK = 1e-12


def corners(categories: int, delta: float) -> Floats:
    """All corners as columns.

    >>> corners(3, 0.6).T.round(2).tolist()[:4]
    [[0.5, 0.5, 0.0], [0.5, 0.0, 0.5], [0.0, 0.5, 0.5], [0.33, 0.33, 0.33]]
    >>> corners(10, 0.8).shape
    (10, 1103)
    """
    least = int(np.ceil(1.0 / delta - SLACK))
    sets = (np.arange(1, 2**categories)[:, None] >> np.arange(categories)) & 1
    sizes = sets.sum(axis=1)
    order = np.argsort(sizes, kind="stable")
    kept = order[sizes[order] >= least]
    parts = [(sets[kept] / sizes[kept][:, None]).T]
    full = int(np.floor(1.0 / delta + SLACK))
    rest = 1.0 - full * delta
    if rest > SLACK:
        tops = np.array(list(itertools.combinations(range(categories), full)))
        tall = np.zeros((len(tops) * categories, categories))
        tall[np.arange(len(tall)), np.tile(np.arange(categories), len(tops))] = rest
        np.put_along_axis(tall, np.repeat(tops, categories, axis=0), delta, axis=1)
        parts.append(tall[np.abs(tall.sum(axis=1) - 1.0) < 1e-9].T)
    return np.concatenate(parts, axis=1)


def capped_corners(prior: Floats, delta: float, epsilon: float) -> Floats:
    """Posteriors of reports whose likelihoods differ by at most e^ε, as columns: a candidate set, not all corners.

    A report is e^ε times as likely under the categories of a set as under the others. Where that lifts a posterior
    above δ, the likelihoods are raised to a power below one until it does not.
    """
    n = len(prior)
    sets = ((np.arange(1, 2**n - 1)[:, None] >> np.arange(n)) & 1).astype(np.float64)
    low, high = np.zeros(len(sets)), np.ones(len(sets))
    for _ in range(50):
        power = np.where(_tallest(sets, prior, epsilon * high) <= delta, high, 0.5 * (low + high))
        fits = _tallest(sets, prior, epsilon * power) <= delta
        low, high = np.where(fits, power, low), np.where(fits, high, power)
    power = np.where(_tallest(sets, prior, epsilon * high) <= delta, high, low)
    scaled = prior * np.exp(sets * (epsilon * power)[:, None])
    return np.concatenate([(scaled / scaled.sum(axis=1, keepdims=True)).T, prior[:, None]], axis=1)


def _tallest(sets: Floats, prior: Floats, epsilon: Floats) -> Floats:
    tilted = prior * np.exp(sets * epsilon[:, None])
    return np.asarray(tilted.max(axis=1) / tilted.sum(axis=1))


def output_name(posterior: Floats, categories: Sequence[str]) -> str:
    """A name for the report that lets one believe this: "a | b" for either, "a > b" for a, or less likely b.

    >>> output_name(np.array([0.5, 0.5, 0.0]), ["a", "b", "c"]), output_name(np.array([0.2, 0.0, 0.8]), ["a", "b", "c"])
    ('a | b', 'c > a')
    """
    values = sorted({round(float(value), 9) for value in posterior if value > 0}, reverse=True)
    groups = [[name for name, q in zip(categories, posterior, strict=True) if round(float(q), 9) == v] for v in values]
    return " > ".join(" | ".join(group) for group in groups)
