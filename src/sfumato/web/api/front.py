"""Explore a front: its points, one point in detail, the publisher's questions, two points side by side.

One point in detail: figures before and after, columns, class sizes, example rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from sfumato.base.arrays import Counts64
from sfumato.base.json_types import Json
from sfumato.data.settings import Role
from sfumato.decide.ask import Answer
from sfumato.decide.ask import ask as asked
from sfumato.decide.floor import floor_at, floor_levels, why_not
from sfumato.decide.offers import Offer, with_suppression
from sfumato.decide.pick import knee_of, knee_scale, presets
from sfumato.decide.sentences import NothingWithinError
from sfumato.errors import SfumatoError
from sfumato.front import Front, Point, compare_fronts
from sfumato.measures.classes import ClassTable, classify
from sfumato.measures.measure import Measure
from sfumato.measures.registry import DISTINCT_L, T_CLOSENESS, TABLE_ERROR, K, attackers, headlines
from sfumato.measures.registry import measure as measure_named
from sfumato.measures.suppression import suppress_by_plan
from sfumato.methods.registry import load_front, system_named
from sfumato.plans.boxes import BoxPlan
from sfumato.release.classes import table_figures
from sfumato.release.classes_rows import Assigned
from sfumato.release.dictionary import labels_in
from sfumato.release.foreseen import foreseen, foreseen_classes
from sfumato.report.audit_page import records_by_size
from sfumato.tables.frequency import FrequencyTable
from sfumato.web.api.shelf import WHOLES, changes_since, front_of
from sfumato.web.workspace import Places, read_json

SAMPLE = 40


def recoded_point(table: FrequencyTable, chosen: Point) -> Json:
    """Return a point that recodes whole columns."""
    raw, after = classify(table), classes_after(table, chosen)
    return {
        "words": chosen.recoding_plan.words(table),
        **_measured(raw, after),
        TABLE_ERROR.name: _figures(TABLE_ERROR, raw, after),
        "columns": [_column(table, after, column) for column in range(len(table.domains))],
        "sample": _sample(table, after),
    }


def box_point(saved: Front, table: FrequencyTable, plan: BoxPlan) -> Json:
    """Return a point whose classes have labels of their own, as the file would be measured."""
    made, after = foreseen_classes(saved.study, table, plan, np.random.default_rng(0))
    raw = classify(table)
    occurring = labels_in(after)
    words = [f"{column.name}: {column.words(occurring[column.name])}" for column in made.columns]
    tables = table_figures(made).get(TABLE_ERROR.name, {"value": None})
    error = {
        "title": TABLE_ERROR.about.title,
        "sentence": TABLE_ERROR.about.sentence,
        "before": None,
        "after": tables["value"],
    }
    counts = {one.name: dict(zip(one.labels, one.counts.tolist(), strict=True)) for one in after.table.domains}
    columns = []
    for domain, codes in zip(table.domains, table.codes, strict=True):
        before = np.bincount(codes, weights=table.counts, minlength=len(domain.labels)).astype(np.int64)
        now = np.array([counts[domain.name][label] for label in occurring[domain.name]])
        columns.append(_before_after(domain.name, domain.labels, before, tuple(occurring[domain.name]), now))
    return {
        "words": words,
        **_measured(raw, after),
        TABLE_ERROR.name: error,
        "columns": columns,
        "sample": _box_sample(table, made, plan),
        "divided": len(made.split),
    }


def _measured(raw: ClassTable, after: ClassTable) -> Json:
    before, now = records_by_size(raw), records_by_size(after)
    sizes = {"bins": list(before), "before": list(before.values()), "after": list(now.values())}
    return {
        "sizes": sizes | {"counted": _counted(after.table)},
        "figures": {one.name: _figures(one, raw, after) for one in headlines() if not one.about.attacker},
        "attackers": {one.name: _figures(one, raw, after) for one in attackers()},
    }


def classes_after(table: FrequencyTable, chosen: Point) -> ClassTable:
    plan = chosen.recoding_plan
    return suppress_by_plan(classify(table, plan.recoding(table)), plan)


def _counted(table: FrequencyTable) -> str:
    """Return what the size of a class counts."""
    return "records" if table.units is None else "persons"


def _figures(chosen: Measure, raw: ClassTable, after: ClassTable) -> Json:
    figures: Json = {"title": chosen.about.title, "sentence": chosen.about.sentence, "direction": chosen.direction}
    if reason := chosen.available(after):
        return figures | {"before": None, "after": None, "reason": reason}
    return figures | {"before": chosen.value(raw), "after": chosen.value(after)}


def _column(table: FrequencyTable, after: ClassTable, position: int) -> Json:
    """Return a column before and after: how many records have each label."""
    domain, recoding = table.domains[position], after.recoding[position]
    codes = table.codes[position]
    released = np.where(after.kept[after.index], table.counts, 0)
    before = np.bincount(codes, weights=table.counts, minlength=len(domain.labels)).astype(np.int64)
    now = np.bincount(recoding.groups[codes], weights=released, minlength=len(recoding.labels)).astype(np.int64)
    return _before_after(domain.name, domain.labels, before, recoding.labels, now)


def _before_after(
    name: str, labels: tuple[str, ...], before: Counts64, others: tuple[str, ...], after: Counts64
) -> Json:
    return {
        "name": name,
        "before": _most(labels, before),
        "after": _most(others, after),
        "labels": [int(np.count_nonzero(before)), int(np.count_nonzero(after))],
    }


def _most(labels: tuple[str, ...], counts: Any, limit: int = 60) -> list[list[Any]]:
    there = [(label or "missing", int(count)) for label, count in zip(labels, counts.tolist(), strict=True) if count]
    if len(there) > limit:
        there = sorted(there, key=lambda pair: -pair[1])[:limit]
    return [list(pair) for pair in there]


def _drawn(table: FrequencyTable) -> list[int]:
    """Draw some tuples with a fixed seed."""
    some = np.random.default_rng(0).choice(len(table.counts), size=min(SAMPLE, len(table.counts)), replace=False)
    return [int(each) for each in some]


def _values(table: FrequencyTable, tuple_: int) -> list[str]:
    pairs = zip(table.domains, table.codes, strict=True)
    return [domain.labels[int(codes[tuple_])] or "missing" for domain, codes in pairs]


def _box_sample(table: FrequencyTable, made: Assigned, plan: BoxPlan) -> Json:
    """Return rows as their class shows them; of a tuple in several classes, the one that has most of its records."""
    best: dict[int, tuple[int, int]] = {}
    size = np.zeros(len(plan.labels) + 1, dtype=np.int64)
    for tuple_, owner, count in plan.members:
        size[owner] += count
        best[tuple_] = max(best.get(tuple_, (0, 0)), (count, owner))
    rows = []
    for tuple_ in _drawn(table):
        owner = best[tuple_][1]
        before = _values(table, tuple_)
        cells = ["*"] * len(before)
        if owner >= 0:
            runs = zip(made.low[owner].tolist(), made.high[owner].tolist(), strict=True)
            cells = [c.labels[run] or "missing" for c, run in zip(made.columns, runs, strict=True)]
        rows.append({"before": before, "cells": cells, "class": int(size[owner]), "suppressed": owner < 0})
    return _rows(table, rows, "records")


def _sample(table: FrequencyTable, after: ClassTable) -> Json:
    """Draw rows of the recoded table with a fixed seed. Sensitive columns are masked: this is about the others."""
    rows = []
    for tuple_ in _drawn(table):
        gone = bool(after.suppressed[after.index[tuple_]])
        cells = [
            "*" if gone else part.labels[int(part.groups[int(codes[tuple_])])] or "missing"
            for part, codes in zip(after.recoding, table.codes, strict=True)
        ]
        size = int(after.size[after.index[tuple_]])
        rows.append({"before": _values(table, tuple_), "cells": cells, "class": size, "suppressed": gone})
    return _rows(table, rows, _counted(table))


def _rows(table: FrequencyTable, rows: list[Json], counted: str) -> Json:
    return {"columns": list(table.columns), "sensitive": list(table.sensitive), "rows": rows, "counted": counted}


CURVE = 400


def front(places: Places, study: str, job: str) -> Json:
    """Return a front with its knee, the scale of that, and the points that common limits lead to."""
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
    """Return the limits that a front can be asked with; none where its points have no k."""
    if not front.tells_k:
        return []
    secret = front.study.named(Role.SENSITIVE) and (front.recodes or DISTINCT_L.name in front.points[0].values)
    return ["max_loss", "max_suppression", "min_k", *(["min_l"] if secret else [])]


def _floor(places: Places, study: str, front: Front) -> list[tuple[float, float]]:
    """Return the proven lower bound of the loss at each k: of the front itself, or of a local one of its study."""
    proven_at = [p for p in front.points if K.name in p.values and "floor" in p.details]
    if any("after" in each.details for each in front.points):  # bounds of a table that was recoded before
        proven_at = []
    levels = sorted((p.values[K.name], p.details["floor"]) for p in proven_at) or floor_levels(front)
    if levels:
        return levels
    proven: dict[float, float] = {}  # of several local searches, the highest at each k
    for path in (places.study(study) / "jobs").glob("*/job.json"):
        about = read_json(path)
        name = (about.get("settings") or {}).get("system")
        if name is None or not system_named(name).abilities.proves_floor:
            continue
        if (path.parent / "front" / "front.json").is_file():
            local, _ = front_of(places, study, path.parent.name)
            for k, share in () if why_not(front, local) else floor_levels(local):
                proven[k] = max(proven.get(k, 0.0), share)
    return sorted(proven.items())


def _ratio(front: Front, levels: Sequence[tuple[float, float]], point: Point) -> float | None:
    """Return the loss of a point over the floor at its k, or over its own bound where the objective is not k."""
    floor = floor_at(levels, point.values[K.name]) if K.name in point.values else None
    return front.ratio(point.loss, floor) if floor else point.details.get("ratio")


def point(
    places: Places, study: str, job: str, number: int, size: int | None = None, diversity: int | None = None
) -> Json:
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
        drawn = system_named(saved.system).abilities.draws and saved.study.local.draw > 0
        described = {"words": words, "own": words, "drawn": drawn}
        if isinstance(chosen.plan, BoxPlan):
            described |= box_point(saved, table, chosen.plan)
    return chosen.as_dict() | described | {"ratio": _ratio(saved, _floor(places, study, saved), chosen)}


def whole(
    places: Places, study: str, job: str, number: int, size: int | None = None, diversity: int | None = None
) -> Json:
    """Measure uniqueness over all columns that a point releases, those in no figure included."""
    saved, table = front_of(places, study, job)
    chosen = saved.point(number)
    if size is not None or diversity is not None:
        chosen = with_suppression(saved, number, size or 0, diversity or 0, table).point(number)
    key = (study, job, saved.fingerprint, number, size, diversity)
    return WHOLES.of(key, lambda: foreseen(saved, chosen, table).as_dict())


def compare(places: Places, study: str, job: str, one: int, two: int, measure: str | None = None) -> Json:
    """Compare two points record by record: a property of every record under both, and which groups it improves."""
    saved, table = front_of(places, study, job)
    chosen = K if measure is None else measure_named(measure)
    values = [chosen.property(classes_after(table, saved.point(number))).records() for number in (one, two)]
    places_ = np.linspace(0, len(values[0]) - 1, min(CURVE, len(values[0]))).astype(np.int64)
    sign = 1.0 if chosen.direction == "max" else -1.0
    gain = sign * (values[1] - values[0])
    return {
        "measure": chosen.name,
        "title": chosen.about.title,
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


def fronts(places: Places, study: str, one: str, two: str) -> Json:
    """Compare two searches: hypervolume, and how many points of each the other dominates."""
    both = [load_front(places.job(study, job) / "front") for job in (one, two)]
    return compare_fronts(*both).as_dict()


def ask(places: Places, study: str, job: str, limits: dict[str, float]) -> Json:
    """Answer the publisher's question: the best release within limits."""
    saved, table = front_of(places, study, job)
    given: Json = dict(limits)
    try:
        answer = asked(saved, table=table, **given)
    except NothingWithinError as error:  # an answer like any other: nothing is wrong with the question
        return {"answer": None, "nothing": {"what": error.what, "nearest": error.nearest}}
    steps = {
        kind: [[_step(answer, a), _step(answer, b)] for a, b in pairs]
        for kind, pairs in (("flat", answer.curve.flat()), ("steep", answer.curve.steep()))
    }
    return answer.as_dict() | {"stretches": steps}


def _step(answer: Answer, offer: Offer) -> Json:
    """Return a step of a curve, and the question that it is the answer to."""
    limits = {"max_suppression": answer.limits.max_suppression, "max_loss": math.ceil(offer.loss * 1e4) / 1e4}
    return {"says": answer.step(offer), "limits": limits}


def _who(table: FrequencyTable, gain: Any) -> list[Json]:
    """Return the groups whose records gain and lose most on average, over values of at least 1 % of the records."""
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
