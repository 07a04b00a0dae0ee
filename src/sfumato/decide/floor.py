"""The lower bound of the loss of a front, from a front of local recodings.

The bound of the local method holds for every recoding whose labels it knows, whatever is suppressed. These labels are
nodes of the tree where a column keeps to its tree, and runs of neighbouring values elsewhere. The bound rises with k,
so between two values of k that were searched the bound of the smaller one holds.
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
Levels = Sequence[tuple[float, float]]  # k, and the lower bound of the loss


def floor_levels(front: Front) -> list[tuple[float, float]]:
    """Return the lower bound at each k: that of local recodings, or the one that was added to another front."""
    if METHODS[front.system].lower_bound:
        result = [(p.values[K.name], float(p.details["floor"])) for p in front.points if "floor" in p.details]
        return sorted(result)
    return [(float(k), float(share)) for k, share in front.details.get("floor", ())]


def local_points(front: Front) -> list[tuple[float, float]]:
    """Return k and loss of the local recodings whose lower bound was added to a front."""
    return [(float(k), float(loss)) for k, loss in front.details.get("local", ())]


def floor_at(levels: Levels, k: float) -> float | None:
    """Return the lower bound of the loss if every class has k records; None below every k that was searched.

    >>> floor_at([(2, 0.01), (5, 0.03)], 4), floor_at([(2, 0.01)], 1)
    (0.01, None)
    """
    return max((share for level, share in levels if level <= k), default=None)


def ratios(front: Front, levels: Levels) -> tuple[float, float] | None:
    """Return the least and the largest ratio of a point's loss to the lower bound at its k.

    Records that the missing rule left out are not counted.
    """
    if K.name not in [objective.name for objective in front.objectives]:
        return None
    floors = [(point.loss, floor_at(levels, point.values[K.name])) for point in front.points]
    stated = [front.ratio(loss, floor) for loss, floor in floors if floor]
    result = [ratio for ratio in stated if ratio is not None]
    return (min(result), max(result)) if result else None


def with_floor(front: Front, local: Front) -> Front:
    """Return a front with the lower bound of local recodings of the same study; raise if it does not hold."""
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
    """Return a front of the same study with the lower bound that was added to another one."""
    kept = {name: other.details[name] for name in ("floor", "local") if name in other.details}
    return replace(front, details={**front.details, **kept}) if kept else front


def why_not(front: Front, local: Front) -> str:
    """Return why a lower bound does not hold for a front; empty if it does."""
    if not METHODS[local.system].lower_bound or not floor_levels(local):
        return "the other front has no floor"
    if not METHODS[front.system].bounded:
        return "its plans have other labels"
    if front.fingerprint != local.fingerprint:
        return "it is of another table"
    one, two = front.study, local.study
    if one.columns != two.columns or one.data.missing != two.data.missing or one.search.weights != two.search.weights:
        return "its study declares other columns or weights"
    # Labels of a level are nodes of the tree. The bound has them as labels only if the column keeps to its tree.
    if METHODS[front.system].levels:
        for name in one.named(Role.QUASI_IDENTIFIER):
            column = one.columns[name]
            if column.hierarchy is not None and (not column.along_tree or column.order is not None):
                return f"{name} need not keep to its tree, so a level of it may be no label of the floor"
    return ""
