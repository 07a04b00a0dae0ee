"""One point in detail: figures before and after, columns, class sizes, example rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from sfumato.front import Front, Point
from sfumato.measures.classes import ClassTable, classify
from sfumato.measures.measure import Measure
from sfumato.measures.planned import suppress_by_plan
from sfumato.measures.registry import attackers, headlines
from sfumato.measures.standard import TABLE_ERROR
from sfumato.plans.boxes import BoxPlan
from sfumato.release.boxes.assigned import Assigned
from sfumato.release.boxes.foreseen import foreseen_classes
from sfumato.release.boxes.readback import labels_of, words_for
from sfumato.release.boxes.use import table_figures
from sfumato.report.audit_page import BINS
from sfumato.runtime.arrays import Counts64
from sfumato.tables.frequency import FrequencyTable

SAMPLE = 40


def recoded_point(table: FrequencyTable, chosen: Point) -> dict[str, Any]:
    """A point that recodes whole columns."""
    raw, after = classify(table), classes_after(table, chosen)
    return {
        "words": chosen.recoding_plan.words(table),
        **_measured(raw, after),
        TABLE_ERROR.name: _figures(TABLE_ERROR, raw, after),
        "columns": [_column(table, after, column) for column in range(len(table.domains))],
        "sample": _sample(table, after),
    }


def box_point(saved: Front, table: FrequencyTable, plan: BoxPlan) -> dict[str, Any]:
    """A point whose classes have labels of their own, as the file would be measured."""
    made, after = foreseen_classes(saved.study, table, plan, np.random.default_rng(0))
    raw = classify(table)
    occurring = labels_of(made.columns, after)
    words = [f"{column.name}: {words_for(column, occurring[column.name])}" for column in made.columns]
    tables = table_figures(made).get(TABLE_ERROR.name, {"value": None})
    error = {"title": TABLE_ERROR.title, "sentence": TABLE_ERROR.sentence, "before": None, "after": tables["value"]}
    counts = {
        domain.name: dict(zip(domain.labels, domain.counts.tolist(), strict=True)) for domain in after.table.domains
    }
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


def _measured(raw: ClassTable, after: ClassTable) -> dict[str, Any]:
    return {
        "sizes": {
            "bins": _bin_names(),
            "before": _sizes(raw),
            "after": _sizes(after),
            "counted": _counted(after.table),
        },
        "figures": {one.name: _figures(one, raw, after) for one in headlines() if not one.attacker},
        "attackers": {one.name: _figures(one, raw, after) for one in attackers()},
    }


def classes_after(table: FrequencyTable, chosen: Point) -> ClassTable:
    plan = chosen.recoding_plan
    return suppress_by_plan(classify(table, plan.recoding(table)), plan)


def _counted(table: FrequencyTable) -> str:
    """What the size of a class counts."""
    return "records" if table.units is None else "persons"


def _sizes(classes: ClassTable) -> list[int]:
    size, rows = classes.size[classes.kept], classes.rows[classes.kept]
    return [int(rows[(size >= low) & (size <= (high or size.max(initial=1)))].sum()) for low, high in BINS]


def _bin_names() -> list[str]:
    return [str(low) if low == high else f"{low}+" if high is None else f"{low}–{high}" for low, high in BINS]


def _figures(chosen: Measure, raw: ClassTable, after: ClassTable) -> dict[str, Any]:
    figures: dict[str, Any] = {"title": chosen.title, "sentence": chosen.sentence, "direction": chosen.direction}
    if reason := chosen.available(after):
        return figures | {"before": None, "after": None, "reason": reason}
    return figures | {"before": chosen.value(raw), "after": chosen.value(after)}


def _column(table: FrequencyTable, after: ClassTable, position: int) -> dict[str, Any]:
    """A column before and after: how many records have each label."""
    domain, recoding = table.domains[position], after.recoding[position]
    codes = table.codes[position]
    released = np.where(after.kept[after.index], table.counts, 0)
    before = np.bincount(codes, weights=table.counts, minlength=len(domain.labels)).astype(np.int64)
    now = np.bincount(recoding.groups[codes], weights=released, minlength=len(recoding.labels)).astype(np.int64)
    return _before_after(domain.name, domain.labels, before, recoding.labels, now)


def _before_after(
    name: str, labels: tuple[str, ...], before: Counts64, others: tuple[str, ...], after: Counts64
) -> dict[str, Any]:
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
    """Some tuples, drawn with a fixed seed."""
    some = np.random.default_rng(0).choice(len(table.counts), size=min(SAMPLE, len(table.counts)), replace=False)
    return [int(each) for each in some]


def _values(table: FrequencyTable, tuple_: int) -> list[str]:
    pairs = zip(table.domains, table.codes, strict=True)
    return [domain.labels[int(codes[tuple_])] or "missing" for domain, codes in pairs]


def _box_sample(table: FrequencyTable, made: Assigned, plan: BoxPlan) -> dict[str, Any]:
    """Rows as their class shows them; of a tuple in several classes, the one that has most of its records."""
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
    columns, sensitive = list(table.columns), list(table.sensitive)
    return {"columns": columns, "sensitive": sensitive, "rows": rows, "counted": "records"}


def _sample(table: FrequencyTable, after: ClassTable) -> dict[str, Any]:
    """Rows of the recoded table, drawn with a fixed seed. Sensitive columns are masked: this is about the others."""
    rows = []
    for tuple_ in _drawn(table):
        gone = bool(after.suppressed[after.index[tuple_]])
        cells = [
            "*" if gone else part.labels[int(part.groups[int(codes[tuple_])])] or "missing"
            for part, codes in zip(after.recoding, table.codes, strict=True)
        ]
        size = int(after.size[after.index[tuple_]])
        rows.append({"before": _values(table, tuple_), "cells": cells, "class": size, "suppressed": gone})
    columns, sensitive = list(table.columns), list(table.sensitive)
    return {"columns": columns, "sensitive": sensitive, "rows": rows, "counted": _counted(table)}
