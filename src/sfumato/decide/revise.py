"""A point with another suppression: the same recoding, other thresholds, measured again."""

from __future__ import annotations

from dataclasses import replace

from sfumato.errors import InputError, UnreachableError
from sfumato.front import Front, Point
from sfumato.measures.classes import classify
from sfumato.measures.planned import suppress_by_plan
from sfumato.measures.registry import measure
from sfumato.measures.standard import GENERAL_LOSS
from sfumato.tables.frequency import FrequencyTable


def with_suppression(
    front: Front, number: int, suppress_below: int, diversity_below: int = 0, table: FrequencyTable | None = None
) -> Front:
    """The front with one of its points suppressed otherwise: classes below two thresholds go, and it is measured again.

    Such a point is publishable like any other; it was not sought, so the front no longer counts as exact.
    """
    point = front.point(number)
    before = point.recoding_plan
    for name, value in (("suppress_below", suppress_below), ("diversity_below", diversity_below)):
        if value < 0:
            raise InputError(f"{name} is {value}", expected="a whole number from 0")
    if (suppress_below, diversity_below) == (before.suppress_below, before.diversity_below):
        return front
    table = front.study.table() if table is None else table
    if diversity_below > 1 and not table.sensitive:
        raise InputError("no column is sensitive", expected="a sensitive column for diversity_below")
    plan = replace(before, suppress_below=suppress_below, diversity_below=diversity_below)
    weights = front.study.weights_for(table)
    whole = classify(table, plan.recoding(table), weights)
    classes = suppress_by_plan(whole, plan, front.study.measures)
    if not classes.kept.any():
        raise UnreachableError(
            f"no class of point {number} has at least {suppress_below} records and {diversity_below} sensitive values",
            expected="thresholds that leave something to release",
            remedy=f"suppress_below of at most {int(whole.size.max())}",
        )
    values: dict[str, float] = {}
    for objective in front.objectives:
        result = measure(objective.name).with_settings(front.study.measures)
        values[objective.name] = objective.value(result, classes)
    loss = GENERAL_LOSS.value(classes) / (sum(weights) * table.records)
    units = None if table.units is None else classes.suppressed_units
    changed = Point(
        number, values, float(front.loss_of_source(loss)), classes.suppressed_rows, plan, suppressed_units=units
    )
    points = (*front.points[:number], changed, *front.points[number + 1 :])
    return replace(front, points=points, exact=False, classes=None)
