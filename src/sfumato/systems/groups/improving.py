"""Improve a plan by what everybody who can be thought of finds: the known attackers, and others like them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sfumato.plans.swaps import SwapPlan
from sfumato.runtime.arrays import Floats
from sfumato.systems.groups.attack.attack import Attack
from sfumato.systems.groups.attack.exposure import criteria_of
from sfumato.systems.groups.planner import Planner
from sfumato.systems.groups.signals import imagined
from sfumato.systems.groups.swapping.improve import Weights, edges_of, improve
from sfumato.systems.groups.swapping.transport import nearest_pairs

NEAREST = 6  # partners of each giver in each area, beside those of the plan


def improved(planner: Planner, plan: SwapPlan, known: Sequence[Attack]) -> SwapPlan | None:
    """A plan after which less is found, or nearly found, by known attackers and others like them, or as much at less
    cost; None if no step pays. No bound is known of what such a plan costs at least."""
    target, units = planner.target, planner.units
    signals = imagined(target, planner.truths, known)
    if not signals:
        return None
    weights = np.stack([units.sums(signal.weights) for signal in signals], axis=1)
    giver_area, taker_area = units.area_of[planner.givers], units.area_of[planner.takers]
    one, two = planner.pairs_of(plan)
    givers, takers = nearest_pairs(planner.priced, taker_area, NEAREST)
    edges = edges_of(
        planner.priced, giver_area, taker_area, np.concatenate([givers, one]), np.concatenate([takers, two])
    )
    used = np.full(len(planner.givers), -1, np.int64)
    for giver, taker in zip(one.tolist(), two.tolist(), strict=True):
        first, last = edges.start[giver], edges.start[giver + 1]
        used[giver] = first + np.searchsorted(edges.taker[first:last], taker)
    moved = units.area_of.copy()
    moved[planner.givers[one]], moved[planner.takers[two]] = taker_area[two], giver_area[one]
    held: Floats = np.stack([np.bincount(moved, column, len(target.areas)) for column in weights.T]).astype(np.float64)
    groups = [truth.group for truth in planner.truths]
    per_record = np.array([signal.per_record for signal in signals])
    made = improve(
        edges,
        Weights(
            weights[planner.givers],
            weights[planner.takers],
            np.array([groups.index(signal.group) for signal in signals]),
            per_record,
        ),
        held,
        used,
        criteria_of(
            [planner.sensitive[group] for group in groups],
            len(target.areas),
            known[0].significance,
            float((weights.sum(axis=0) / per_record).max()),
        ),
        planner.noise,
        planner.stop,
    )
    chosen = np.flatnonzero(made.used >= 0)
    if not len(chosen) or np.array_equal(made.used, used):
        return None
    return planner.between(planner.givers[chosen], planner.takers[edges.taker[made.used[chosen]]])
