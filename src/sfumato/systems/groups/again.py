"""A saved protection worked out again from its plans: nothing that it says is believed without that."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from sfumato.errors import InputError
from sfumato.front import Front
from sfumato.plans.swaps import SwapPlan
from sfumato.runtime.arrays import Counts64
from sfumato.study import Study
from sfumato.systems.groups.attack.residual import Residual, residual_on
from sfumato.systems.groups.files.microfile import Microfile
from sfumato.systems.groups.files.read import settings_of
from sfumato.systems.groups.front import front_of, swaps_of
from sfumato.systems.groups.planner import influence_of
from sfumato.systems.groups.roles import Roles
from sfumato.systems.groups.search import Protection, attacked_again, judged, truths_of
from sfumato.systems.groups.swapped import read_released
from sfumato.systems.run import Run
from sfumato.systems.unlike import first_unlike, shown

CLOSE = 1e-9
UNCHECKED = ("bound", "exact")  # proofs of the search, which would have to be searched for again


def worked_out_again(front: Front, run: Run | None = None) -> Protection:
    """The protection with every attack learned again and every figure computed anew from the plans."""
    study = front.study
    target = read_released(study)
    truths = truths_of(study, target)
    roles = Roles(study, target, truths, run)
    known, fresh = roles.planning()
    sealed = roles.sealed()
    levels = [
        replace(
            judged(
                attacked_again(
                    target, float(point.details["level"]), (_priced(study, target, swaps_of(point)), 0.0), known, fresh
                ),
                target,
                sealed,
            ),
            method=str(point.details["method"]),
        )
        for point in front.points
    ]
    return Protection(
        study,
        target,
        truths,
        tuple(known),
        tuple(fresh),
        tuple(sealed),
        tuple(levels),
        int(front.details["chosen"]),
        len(settings_of(study).protect.columns or target.attributes),
        tuple(roles.silent),
    )


def _priced(study: Study, target: Microfile, plan: SwapPlan) -> SwapPlan:
    """A plan with the cost that its pairs have."""
    cost = influence_of(study, target).of_pairs(_positions(target, plan.givers), _positions(target, plan.takers))
    if plan.bound is not None and plan.bound > cost * (1 + CLOSE):
        raise InputError(
            "the cost of a plan is below the lower bound stated for it",
            expected="a bound under the cost",
        )
    return replace(plan, cost=cost)


def _positions(target: Microfile, rows: Counts64) -> Counts64:
    """Where rows of the source stand among the records that have an area."""
    positions = np.searchsorted(target.rows, rows)
    inside = positions < len(target.rows)
    if not inside.all() or not np.array_equal(target.rows[positions], rows):
        raise InputError("the plan swaps rows that have no area", expected="the swaps of the file that was protected")
    return np.asarray(positions, dtype=np.int64)


def refuse_unlike(front: Front, again: Protection) -> None:
    """Raise unless a saved protection says what was worked out again."""
    where = first_unlike(_claims(front), _claims(front_of(again)), (*UNCHECKED, "baselines"))
    if where is not None:
        name, said, true = where
        raise InputError(
            f"the protection says {name} = {shown(said)}, but it is {shown(true)}: nothing was released",
            expected="an unchanged front, and the files that it was made from",
            remedy="search again",
        )


def _claims(front: Front) -> dict[str, Any]:
    """All that a front says of a protection: what is known of the areas, and every point."""
    points = [point.as_dict() for point in front.points]
    return {"details": dict(front.details), "rows": front.rows, "method": front.algorithm, "points": points}


def attacked(protection: Protection, written: Microfile) -> tuple[Residual, ...]:
    """Every attack on a file that was written."""
    return tuple(residual_on(attack, written, role) for attack, role in protection.attacks)
