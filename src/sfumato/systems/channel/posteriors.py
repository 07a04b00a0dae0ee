"""What a report can let one believe: the posteriors from which every optimal channel is mixed.

Where the best guess does not change, accuracy is linear in the posterior while the information S = Σ w q qᵀ grows when
a posterior is split. So the best posteriors are corners: uniform on a set of categories, or as high as δ allows on as
many categories as fit, the rest on one more (docs/readings.md, 3.9). A cap on the gain of a category lowers its δ.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sfumato.runtime.arrays import Flags, Floats

SLACK = 1e-12


def corners(caps: Floats) -> Floats:
    """All corners as columns, where the posterior of each category has a cap of its own.

    Within the posteriors whose best guess is x, a corner has each other category at zero, at its cap or level with x.
    Either nothing else holds x, and the level follows from the sum; or x is at its cap, and one more category takes
    what is left.

    >>> corners(np.full(3, 0.6)).T.round(2).tolist()[:4]
    [[0.5, 0.5, 0.0], [0.5, 0.0, 0.5], [0.0, 0.5, 0.5], [0.33, 0.33, 0.33]]
    >>> corners(np.full(10, 0.8)).shape
    (10, 1103)
    """
    sets = _sets(len(caps))[1:]
    sets = sets[np.argsort(sets.sum(axis=1), kind="stable")]
    rows = [_levelled(sets, caps)]
    for height in np.unique(caps):
        rows.append(_topped(sets, np.minimum(caps, height), np.abs(caps - height) < SLACK))
    every = np.concatenate(rows)
    first = np.unique(every.round(9), axis=0, return_index=True)[1]
    return np.asarray(every[np.sort(first)].T)


def _sets(categories: int) -> Flags:
    return np.asarray(((np.arange(2**categories)[:, None] >> np.arange(categories)) & 1) > 0)


def _levelled(sets: Flags, caps: Floats) -> Floats:
    """For each set whose caps reach 1: its categories at one level, those with lower caps at their caps."""
    sets = sets[sets @ caps >= 1.0 - SLACK]
    level = np.full(len(sets), np.nan)
    at_caps, free = np.zeros(len(sets)), sets.sum(axis=1).astype(np.float64)
    for position in np.argsort(caps, kind="stable"):
        member = sets[:, position] & np.isnan(level)
        height = (1.0 - at_caps[member]) / free[member]
        fits = height <= caps[position] + SLACK
        level[np.flatnonzero(member)[fits]] = height[fits]
        at_caps += np.where(member, caps[position], 0.0)
        free -= member
    return np.asarray(np.where(sets, np.minimum(level[:, None], caps), 0.0))


def _topped(sets: Flags, values: Floats, tops: Flags) -> Floats:
    """Sets at their values, one of the tops among them, and the rest on one more category."""
    sums = sets @ values
    fits = (sets & tops).any(axis=1) & (sums < 1.0 - SLACK) & (sums + values.max() >= 1.0 - SLACK)
    sets, rest = sets[fits], 1.0 - sums[fits]
    row, last = np.nonzero(~sets & (values > rest[:, None] + SLACK))
    tall = np.where(sets[row], values, 0.0)
    tall[np.arange(len(row)), last] = rest[row]
    return np.asarray(tall)


def rays(prior: Floats, epsilon: float) -> Floats:
    """The posteriors of all reports that are e^ε times as likely under some categories as under the others.

    Every report that ε allows is a mixture of these, and splitting it adds to S, so no others are needed where nothing
    but ε is asked for (docs/readings.md, 3.12).

    >>> rays(np.array([0.5, 0.5]), np.log(3)).round(2).tolist()
    [[0.75, 0.25], [0.25, 0.75]]
    """
    tilted = prior * np.exp(epsilon * _sets(len(prior))[1:-1])
    return np.asarray((tilted / tilted.sum(axis=1, keepdims=True)).T)


def capped_rays(prior: Floats, caps: Floats, epsilon: float) -> Floats:
    """Posteriors under ε and caps, as columns: a candidate set, not all corners.

    Where a ray exceeds a cap, its likelihoods are raised to a power below one until it does not.
    """
    sets = _sets(len(prior))[1:-1].astype(np.float64)
    low, high = np.zeros(len(sets)), np.ones(len(sets))
    for _ in range(50):
        power = np.where(_excess(sets, prior, caps, epsilon * high) <= 0.0, high, 0.5 * (low + high))
        fits = _excess(sets, prior, caps, epsilon * power) <= 0.0
        low, high = np.where(fits, power, low), np.where(fits, high, power)
    power = np.where(_excess(sets, prior, caps, epsilon * high) <= 0.0, high, low)
    tilted = prior * np.exp(sets * (epsilon * power)[:, None])
    return np.concatenate([(tilted / tilted.sum(axis=1, keepdims=True)).T, prior[:, None]], axis=1)


def _excess(sets: Floats, prior: Floats, caps: Floats, epsilon: Floats) -> Floats:
    tilted = prior * np.exp(sets * epsilon[:, None])
    return np.asarray((tilted / tilted.sum(axis=1, keepdims=True) - caps).max(axis=1))


def output_name(posterior: Floats, categories: Sequence[str]) -> str:
    """A name for the report that lets one believe this: "a | b" for either, "a > b" for a, or less likely b.

    >>> output_name(np.array([0.5, 0.5, 0.0]), ["a", "b", "c"]), output_name(np.array([0.2, 0.0, 0.8]), ["a", "b", "c"])
    ('a | b', 'c > a')
    """
    values = sorted({round(float(value), 9) for value in posterior if value > 0}, reverse=True)
    groups = [[name for name, q in zip(categories, posterior, strict=True) if round(float(q), 9) == v] for v in values]
    return " > ".join(" | ".join(group) for group in groups)


def set_name(likelihoods: Floats, categories: Sequence[str]) -> str:
    """A name for a report that is likelier under some categories: "a | b", with those that are fewer as "not c".

    >>> set_name(np.array([0.6, 0.2, 0.6]), ["a", "b", "c"]), set_name(np.array([0.6, 0.2, 0.2]), ["a", "b", "c"])
    ('not b', 'a')
    """
    likelier = likelihoods > np.sqrt(likelihoods.min() * likelihoods.max())
    members = [name for name, held in zip(categories, likelier, strict=True) if held]
    others = [name for name, held in zip(categories, likelier, strict=True) if not held]
    return " | ".join(members) if len(members) <= len(others) else "not " + " | ".join(others)
