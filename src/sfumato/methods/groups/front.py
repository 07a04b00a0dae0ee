"""The front of a protection: plans of swaps between cost and remaining findings, in the form of any front."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sfumato.errors import InputError
from sfumato.front import Front, Objective, Point
from sfumato.methods.groups.attack.outliers import WAYS, by_scales
from sfumato.methods.groups.files import settings_of
from sfumato.methods.groups.improve import shift_of
from sfumato.methods.groups.revealing import ranked
from sfumato.methods.groups.search import Level, Protection
from sfumato.methods.groups.signals import Signal, signals_of
from sfumato.plans.swaps import SwapPlan

Report = Mapping[str, Any]  # a protection or an attack in the form of its JSON
OBJECTIVES = (
    Objective(
        "findings", "min", title="sensitive areas identified by known and fresh attacks", privacy=True, scale="linear"
    ),
    Objective("cost", "min", title="cost: cells changed by swaps", privacy=False),
)
# The entries of a point in reports, besides its figures.
POINT = ("level", "method", "found_known", "found_after", "low", "near", "sealed", "shift", "residual")
REPORTED = ("file", "rows", "columns", "groups", "sensitive", "silent", "found_before", "planned_before")
LISTED = 10  # columns that reveal the group


def front_of(protection: Protection, seconds: float = 0.0) -> Front:
    """Return a protection as a front with rising cost. Its details describe the areas before any swap."""
    target, study = protection.target, protection.study
    order = sorted(protection.levels, key=lambda level: (level.plan.cost, level.level))
    groups = [truth.group for truth in protection.truths]
    signals = signals_of(target, protection.truths, protection.known)
    chosen = next(i for i, level in enumerate(order) if level is protection.choice)
    method = settings_of(study).protect.method
    return Front(
        study=study,
        objectives=OBJECTIVES,
        points=tuple(_point(protection, signals, groups, level, number) for number, level in enumerate(order)),
        algorithm=method,
        exact=False,
        evaluations=len(protection.levels),
        space=0,
        seconds=round(seconds, 3),
        fingerprint=study.opened().fingerprint,
        rows=target.dropped.rows_read,
        system="groups",
        details=_about(protection, signals, groups) | {"chosen": chosen},
        found_how=f"best found, {method} swaps",
    )


def _about(protection: Protection, signals: list[Signal], groups: list[str]) -> dict[str, Any]:
    """Return the facts of the areas before any swap, and what else was tried."""
    target, choice = protection.target, protection.choice
    sensitive = sorted({area for truth in protection.truths for area in truth.sensitive.areas})
    return {
        "file": target.name,
        "rows": target.records,
        "columns": len(target.wide.names) if target.wide else 0,
        "groups": groups,
        "sensitive": [target.areas[area] for area in sensitive],
        "silent": list(protection.silent),
        "found_before": sum(r.areas_before for r in choice.sealed),
        "planned_before": sum(r.areas_before for r in choice.residual),
        "telling": {group: [vars(one) for one in ranked(target, group, LISTED)] for group in groups},
        "baselines": [
            {"method": one.method, "swaps": one.plan.swaps, "cost": one.plan.cost, "found": one.findings}
            for one in protection.baselines
        ],
        "areas": [
            {"area": area, "records": int(size), "q": {g: int(target.quantity(g)[i]) for g in groups}}
            for i, (area, size) in enumerate(zip(target.areas, target.sizes(), strict=True))
        ],
        "signals": [
            {"name": s.name, "before": s.per_area(target.area_of, len(target.areas)).round(6).tolist()} for s in signals
        ],
    }


def _point(protection: Protection, signals: list[Signal], groups: list[str], level: Level, number: int) -> Point:
    plan, moved = level.plan, protection.moved(level)
    cells = protection.columns * protection.target.dropped.rows_read
    significance = settings_of(protection.study).attack.significance
    after = []
    for signal in signals:
        sums = signal.per_area(moved.area_of, len(protection.target.areas))
        out = {i for outliers in by_scales(sums, significance).values() for i in outliers.high}
        named = [protection.target.areas[i] for i in sorted(out)]
        after.append({"after": sums.round(6).tolist(), "outliers_after": named})
    residual, sealed = level.residual, level.sealed
    details = {
        "level": level.level,
        "method": level.method,
        "low": sum(r.low_after for r in residual),
        "near": level.near,
        "found_known": sum(r.areas_after for r in residual if r.role == "known"),
        "found_after": {way: sum(r.found_after[way] for r in sealed) for way in WAYS},
        "sealed": {
            "attacks": len(sealed),
            "finding": sum(bool(r.areas_after) for r in sealed),
            "areas": level.sealed_findings,
            "low": sum(r.low_after for r in sealed),
        },
        "shift": vars(shift_of(protection.target, moved.area_of)),
        "residual": [row.as_dict() for row in (*residual, *sealed)],
        "q_after": {group: moved.quantity(group).astype(int).tolist() for group in groups},
        "signals": after,
    }
    values = {"findings": level.findings, "cost": plan.cost}
    return Point(number, values, plan.cost / cells, 0, plan, plan.bound, details)


def swaps_of(point: Point) -> SwapPlan:
    """Return the swaps of a point."""
    if isinstance(point.plan, SwapPlan):
        return point.plan
    raise InputError("the point has no swaps", expected="a front of the groups system")


def report_of(front: Front, chosen: int | None = None) -> dict[str, Any]:
    """Return all of a protection but the swaps, with one of its points chosen: for pages and reports."""
    about = front.details
    point = front.point(about["chosen"] if chosen is None else chosen)
    after = point.details
    return {
        **{name: about[name] for name in REPORTED},
        "telling": dict(about["telling"]),
        "baselines": list(about["baselines"]),
        "method": front.algorithm,
        "chosen": point.id,
        "holds": after["sealed"]["areas"] == 0,
        "points": [_entry(one) for one in front.points],
        "areas": [
            area | {"q_after": {group: after["q_after"][group][i] for group in about["groups"]}}
            for i, area in enumerate(about["areas"])
        ],
        "signals": [dict(signal) | after["signals"][i] for i, signal in enumerate(about["signals"])],
    }


def _entry(point: Point) -> dict[str, object]:
    plan = swaps_of(point)
    return {
        **plan.entries(),
        "id": point.id,
        "cost": plan.cost,
        "bound": plan.bound,
        "loss": point.loss,
        "found": int(point.values["findings"]),
        **{name: point.details[name] for name in POINT},
    }
