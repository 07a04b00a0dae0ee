"""Targeted record swapping, the usual way to protect places in census tables: a baseline for plans that know a group.

A record is at risk if fewer than so many records of its area share its attributes. Units with records at risk, those at
the greatest risk first, change places with a unit of another area that has the same size, and is the most similar of
some that are drawn. Nothing here knows of a group, an attacker or a sensitive area.
"""

from __future__ import annotations

import numpy as np

from sfumato.runtime.arrays import Counts64, Floats
from sfumato.systems.groups.files.microfile import Microfile
from sfumato.systems.groups.swapping.influence import Influence
from sfumato.systems.groups.swapping.units import Units

DRAWN = 60  # partners that are looked at for each unit
VALUES = 12  # an attribute with more values is put into so many groups


def risks(microfile: Microfile, least: int) -> Floats:
    """One over the number of records of the same area with the same attributes; 0 where they are enough."""
    key = microfile.area_of.astype(np.int64)
    for position, values in enumerate(microfile.values):
        codes, count = microfile.codes[position].astype(np.int64), len(values)
        if count > VALUES:
            of_value = np.bincount(codes, minlength=count)
            middle = np.cumsum(of_value) - of_value / 2
            codes, count = np.minimum((middle * VALUES / len(codes)).astype(np.int64), VALUES - 1)[codes], VALUES
        _, key = np.unique(key * count + codes, return_inverse=True)
        key = key.reshape(-1).astype(np.int64)
    alike = np.bincount(key)[key]
    return np.where(alike < least, 1.0 / alike, 0.0)


def targeted_pairs(
    microfile: Microfile, units: Units, influence: Influence, rate: float, least: int, rng: np.random.Generator
) -> tuple[Counts64, Counts64]:
    """Units that change places so that about a rate of all units move, each at most once."""
    at_risk = np.zeros(units.count)
    np.maximum.at(at_risk, units.unit_of, risks(microfile, least))
    order = rng.permutation(units.count)
    order = order[np.argsort(-at_risk[order], kind="stable")]
    wanted = max(int(rate * units.count / 2), 1)
    free = np.ones(units.count, np.bool_)
    by_size = {size: np.flatnonzero(units.size == size) for size in np.unique(units.size).tolist()}
    one: list[int] = []
    two: list[int] = []
    for unit in order.tolist():
        if len(one) == wanted:
            break
        if not free[unit]:
            continue
        alike = by_size[int(units.size[unit])]
        some = rng.choice(alike, min(DRAWN, len(alike)), replace=False)
        some = some[free[some] & (units.area_of[some] != units.area_of[unit])]
        if not len(some):
            continue
        cost = units.between(influence, np.array([unit]), some)[0]
        partner = int(some[np.argmin(cost)])
        free[[unit, partner]] = False
        one.append(unit)
        two.append(partner)
    return np.array(one, np.int64), np.array(two, np.int64)
