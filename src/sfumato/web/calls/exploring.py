"""Explore a front: its points, one point in detail, the publisher's questions, two points side by side."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from sfumato.decide.ask import Answer
from sfumato.decide.ask import ask as asked
from sfumato.decide.floor import floor_at, floor_levels, why_not
from sfumato.decide.notes import NothingWithinError
from sfumato.decide.offers import Offer
from sfumato.decide.pick import knee_of, knee_scale
from sfumato.decide.presets import presets
from sfumato.decide.revise import with_suppression
from sfumato.errors import SfumatoError
from sfumato.front import Front, Point, compare_fronts
from sfumato.measures.registry import measure
from sfumato.measures.standard import DISTINCT_L, T_CLOSENESS, K
from sfumato.plans.boxes import BoxPlan
from sfumato.release.foreseen import foreseen
from sfumato.sources.roles import Role
from sfumato.systems.registry import load_front, system_named
from sfumato.tables.frequency import FrequencyTable
from sfumato.web.calls.one_point import box_point, classes_after, recoded_point
from sfumato.web.calls.outdated import changes_since
from sfumato.web.calls.shelf import front_of, whole_of
from sfumato.web.places import Places, read_json

CURVE = 400


def front(places: Places, study: str, job: str) -> dict[str, Any]:
    """A front with its knee, the scale of that, and the points that common limits lead to."""
    saved, _ = front_of(places, study, job)
    described = saved.as_dict() | {"how": saved.how, "others": [dict(other) for other in saved.others]}
    about = read_json(places.job(study, job) / "job.json")
    described |= {
        "stopped": about.get("status") == "stopped",
        "max_suppression": saved.study.search.max_suppression,
        "policy": saved.study.policy.model_dump(mode="json", exclude={"accept"}),
        "ruled": {K.name: K.name, "l": DISTINCT_L.name, "t": T_CLOSENESS.name},  # the measures of the policy's rules
        "changes": changes_since(places, study, saved.study),
        "limits": _limits(saved),
        "compared": saved.recodes,
    }
    levels = _floor(places, study, saved)
    described |= {
        "floor": levels,
        "ratios": {each.id: ratio for each in saved.points if (ratio := _ratio(saved, levels, each))},
    }
    try:
        knee: int | None = saved.points[knee_of(saved)].id
    except SfumatoError:
        knee = None
    common = [preset.as_dict() for preset in presets(saved)]
    return described | {"knee": knee, "knee_scale": knee_scale(saved), "presets": common}


def _limits(front: Front) -> list[str]:
    """The limits that a front can be asked with; none where its points have no k."""
    if not front.tells_k:
        return []
    secret = front.study.named(Role.SENSITIVE) and (front.recodes or DISTINCT_L.name in front.points[0].values)
    return ["max_loss", "max_suppression", "min_k", *(["min_l"] if secret else [])]


def _floor(places: Places, study: str, front: Front) -> list[tuple[float, float]]:
    """What is lost at least at each k, where that is proven: by the front itself, or by a local one of its study."""
    if front.system == "cells" and not any("after" in each.details for each in front.points):
        proven_at = [p for p in front.points if K.name in p.values and "floor" in p.details]
        levels = sorted((p.values[K.name], p.details["floor"]) for p in proven_at)
    else:
        levels = floor_levels(front)
    if levels:
        return levels
    proven: dict[float, float] = {}  # of several local searches, the highest at each k
    for path in (places.study(study) / "jobs").glob("*/job.json"):
        about = read_json(path)
        if about.get("settings", {}).get("system") == "local" and (path.parent / "front" / "front.json").is_file():
            local, _ = front_of(places, study, path.parent.name)
            for k, share in () if why_not(front, local) else floor_levels(local):
                proven[k] = max(proven.get(k, 0.0), share)
    return sorted(proven.items())


def _ratio(front: Front, levels: Sequence[tuple[float, float]], point: Point) -> float | None:
    """How many times the floor at its k a point loses, or its own bound where it is searched for by another figure."""
    floor = floor_at(levels, point.values[K.name]) if K.name in point.values else None
    return front.ratio(point.loss, floor) if floor else point.details.get("ratio")


def point(
    places: Places, study: str, job: str, number: int, size: int | None = None, diversity: int | None = None
) -> dict[str, Any]:
    """One point: its recoding in words, class sizes, columns before and after, a sample of rows, attackers' risks.

    With `size` or `diversity` it is under another suppression than the searched one, as an answer may be.
    """
    saved, table = front_of(places, study, job)
    chosen = saved.point(number)
    if saved.recodes:
        if size is not None or diversity is not None:
            chosen = with_suppression(saved, number, size or 0, diversity or 0, table).point(number)
        described = recoded_point(table, chosen)
    else:
        position = [each.id for each in saved.points].index(number)
        said = system_named(saved.system).columns(saved)
        words = [f"{name}: {texts[position]}" for name, texts in said.items() if name != "suppressed"]
        described = {"words": words, "own": words, "drawn": saved.system == "local" and saved.study.local.draw > 0}
        if isinstance(chosen.plan, BoxPlan):
            described |= box_point(saved, table, chosen.plan)
    return chosen.as_dict() | described | {"ratio": _ratio(saved, _floor(places, study, saved), chosen)}


def whole(
    places: Places, study: str, job: str, number: int, size: int | None = None, diversity: int | None = None
) -> dict[str, Any]:
    """How unique records would be over all columns that a point releases, those in no figure included."""
    saved, table = front_of(places, study, job)
    chosen = saved.point(number)
    if size is not None or diversity is not None:
        chosen = with_suppression(saved, number, size or 0, diversity or 0, table).point(number)
    key = (study, job, saved.fingerprint, number, size, diversity)
    return whole_of(key, lambda: foreseen(saved, chosen, table).as_dict())


def compare(places: Places, study: str, job: str, one: int, two: int, name: str | None = None) -> dict[str, Any]:
    """Who pays: a property of every record under two points, sorted and overlaid, and who is better off where."""
    saved, table = front_of(places, study, job)
    chosen = K if name is None else measure(name)
    values = [chosen.property(classes_after(table, saved.point(number))).records() for number in (one, two)]
    places_ = np.linspace(0, len(values[0]) - 1, min(CURVE, len(values[0]))).astype(np.int64)
    sign = 1.0 if chosen.direction == "max" else -1.0
    gain = sign * (values[1] - values[0])
    return {
        "measure": chosen.name,
        "title": chosen.title,
        "direction": chosen.direction,
        "points": [one, two],
        "records": len(values[0]),
        "share": (places_ / max(len(values[0]) - 1, 1)).tolist(),
        "curves": [np.sort(value)[places_].tolist() for value in values],
        "better": int(np.count_nonzero(gain > 1e-12)),
        "worse": int(np.count_nonzero(gain < -1e-12)),
        "same": int(np.count_nonzero(np.abs(gain) <= 1e-12)),
        "who": _who(table, gain),
    }


def fronts(places: Places, study: str, one: str, two: str) -> dict[str, Any]:
    """Two searches side by side: hypervolume, who dominates whom."""
    both = [load_front(places.job(study, job) / "front") for job in (one, two)]
    return compare_fronts(*both).as_dict()


def ask(places: Places, study: str, job: str, limits: dict[str, float]) -> dict[str, Any]:
    """The publisher's question: the best release within limits."""
    saved, table = front_of(places, study, job)
    given: dict[str, Any] = dict(limits)
    try:
        answer = asked(saved, table=table, **given)
    except NothingWithinError as error:  # an answer like any other: nothing is wrong with the question
        return {"answer": None, "nothing": {"what": error.what, "nearest": error.nearest}}
    steps = {
        kind: [[_step(answer, a), _step(answer, b)] for a, b in pairs]
        for kind, pairs in (("flat", answer.curve.flat()), ("steep", answer.curve.steep()))
    }
    return answer.as_dict() | {"stretches": steps}


def _step(answer: Answer, offer: Offer) -> dict[str, Any]:
    """A step of a curve, and the question that it is the answer to."""
    limits = {"max_suppression": answer.limits.max_suppression, "max_loss": math.ceil(offer.loss * 1e4) / 1e4}
    return {"says": answer.step(offer), "limits": limits}


def _who(table: FrequencyTable, gain: Any) -> list[dict[str, Any]]:
    """The groups of people whose records gain and lose most on the average, over values of at least a hundredth."""
    each = np.repeat(np.arange(len(table.counts)), table.counts)
    if len(each) != len(gain):
        return []
    values = []
    for domain, codes in zip(table.domains, table.codes, strict=True):
        code = codes[each]
        number = np.bincount(code, minlength=len(domain.labels))
        mean = np.bincount(code, weights=gain, minlength=len(domain.labels)) / np.maximum(number, 1)
        for leaf in np.flatnonzero(number >= max(len(gain) // 100, 1)).tolist():
            about = {"column": domain.name, "value": domain.labels[leaf] or "missing"}
            values.append(about | {"records": int(number[leaf]), "gain": float(mean[leaf])})
    values.sort(key=lambda entry: float(entry["gain"]))
    return values if len(values) <= 10 else [*values[:5], *values[-5:]]
