"""A floor under a front: what no recoding with the same labels loses less than, from a front of local recodings.

The floor of the local system holds for every recoding whose labels it knows: nodes of the trees where a column keeps to
its tree, runs of neighbouring values elsewhere; whatever is suppressed. It rises with k, so at a k between two that
were searched the one below holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sfumato.data.settings import Role
from sfumato.errors import InputError
from sfumato.front import Front
from sfumato.measures.registry import K
from sfumato.study.methods import METHODS

BELOW = "no recoding with these labels below"
Levels = Sequence[tuple[float, float]]  # k, and the share that is lost at least


def floor_levels(front: Front) -> list[tuple[float, float]]:
    """The floor that a front of local recodings proves at each k, or that was put under another front before."""
    if METHODS[front.system].lower_bound:
        result = [(p.values[K.name], float(p.details["floor"])) for p in front.points if "floor" in p.details]
        return sorted(result)
    return [(float(k), float(share)) for k, share in front.details.get("floor", ())]


def local_points(front: Front) -> list[tuple[float, float]]:
    """k and loss of the local recodings whose floor was put under a front; none for a front of its own."""
    return [(float(k), float(loss)) for k, loss in front.details.get("local", ())]


def floor_at(levels: Levels, k: float) -> float | None:
    """What is lost at least where every class has k records; None below all that were searched.

    >>> floor_at([(2, 0.01), (5, 0.03)], 4), floor_at([(2, 0.01)], 1)
    (0.01, None)
    """
    return max((share for level, share in levels if level <= k), default=None)


def ratios(front: Front, levels: Levels) -> tuple[float, float] | None:
    """The least and the largest ratio of a point's loss to the floor at its k, without the records left out."""
    if K.name not in [objective.name for objective in front.objectives]:
        return None
    floors = [(point.loss, floor_at(levels, point.values[K.name])) for point in front.points]
    stated = [front.ratio(loss, floor) for loss, floor in floors if floor]
    result = [ratio for ratio in stated if ratio is not None]
    return (min(result), max(result)) if result else None


def with_floor(front: Front, local: Front) -> Front:
    """A front with the floor of local recodings of the same study under it; refused where the floor does not hold."""
    reason = why_not(front, local)
    if reason:
        raise InputError(
            f"the floor of the local recodings does not hold for this front: {reason}",
            expected="two fronts of one table, with the same columns, trees, orders and weights",
        )
    levels = [list(level) for level in floor_levels(local)]
    points = [[point.values[K.name], point.loss] for point in local.points]
    return replace(front, details={**front.details, "floor": levels, "local": points})


def with_floor_of(front: Front, other: Front) -> Front:
    """A front of the same study with the floor that was put under another one."""
    kept = {name: other.details[name] for name in ("floor", "local") if name in other.details}
    return replace(front, details={**front.details, **kept}) if kept else front


def why_not(front: Front, local: Front) -> str:
    """Why a floor does not hold for a front; empty if it does."""
    if not METHODS[local.system].lower_bound or not floor_levels(local):
        return "the other front has no floor"
    if not METHODS[front.system].bounded:
        return "its plans have other labels"
    if front.fingerprint != local.fingerprint:
        return "it is of another table"
    one, two = front.study, local.study
    if one.columns != two.columns or one.data.missing != two.data.missing or one.search.weights != two.search.weights:
        return "its study declares other columns or weights"
    if METHODS[front.system].levels:
        for name in one.named(Role.QUASI_IDENTIFIER):
            column = one.columns[name]
            if column.hierarchy is not None and (not column.along_tree or column.order is not None):
                return f"{name} need not keep to its tree, so a level of it may be no label of the floor"
    return ""
