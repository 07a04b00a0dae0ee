"""What a file whose labels differ from class to class is good for: its two-way tables, and labels per value."""

from __future__ import annotations

from typing import Any

import numpy as np

from sfumato.measures.loss import table_error
from sfumato.measures.two_way import MOST_VALUES, box_errors, mean_and_largest, worst_pair
from sfumato.release.boxes.assigned import Assigned
from sfumato.release.readback import FROM_SOURCE


def table_figures(plan: Assigned) -> dict[str, dict[str, Any]]:
    """The mean error of all two-way tables, with the largest and its columns; no figure for very wide columns."""
    inside = plan.owner >= 0
    rows = np.bincount(plan.owner[inside], weights=plan.count[inside], minlength=plan.classes).astype(np.int64)
    widths = [len(column.values) for column in plan.columns]
    if max(widths) > MOST_VALUES:
        return {}
    errors = box_errors(plan.codes, plan.counts, widths, plan.low, plan.high, rows)
    mean, largest = mean_and_largest(errors)
    figure: dict[str, Any] = {"value": mean, "largest": largest}
    pair = worst_pair(errors)
    if pair is not None:
        figure["largest_columns"] = [plan.columns[place].name for place in pair]
    figure |= {"measured_on": "source", "reason": FROM_SOURCE["originals"]}
    return {table_error.MEASURE.name: figure}


def labels_per_value(plan: Assigned) -> float:
    """How many different labels a value carries, on average over the values of all columns that are released."""
    inside = plan.owner >= 0
    carried = values = 0
    for j, codes in enumerate(plan.codes):
        own = codes[plan.of[inside]].astype(np.int64)
        low, high = (ends[plan.owner[inside], j] for ends in (plan.low, plan.high))
        carried += len(np.unique(np.stack([own, low, high], axis=1), axis=0))
        values += len(np.unique(own))
    return carried / max(values, 1)
