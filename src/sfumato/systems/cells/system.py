"""The cells system: single cells are blanked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.decide import Choice
from sfumato.front import Front
from sfumato.measures.standard import K
from sfumato.release.boxes.assigned import Assigned
from sfumato.release.boxes.draft import BoxDraft
from sfumato.release.boxes.persons import may_count_persons
from sfumato.release.boxes.verifier import box_verifier
from sfumato.release.draft import Draft
from sfumato.release.manifest import Manifest
from sfumato.release.policy import MATCHING_K
from sfumato.release.verify import Verifier
from sfumato.runtime.figures import number
from sfumato.study import Study
from sfumato.systems.applying import Applying
from sfumato.systems.boxes import BoxSystem, ratio, salt_of
from sfumato.systems.cells.matching import counted_by_matching
from sfumato.systems.cells.pages import pages_of
from sfumato.systems.cells.patterns import Blanks
from sfumato.systems.cells.points import AGREEING
from sfumato.systems.cells.search import search_cells
from sfumato.systems.on_tables import accepted
from sfumato.systems.run import Run
from sfumato.systems.system import Publishing
from sfumato.tables.frequency import FrequencyTable

REASON = "counts agreement with source records, so it is measured with the source"


def beside(study: Study, plan: Assigned) -> Mapping[str, dict[str, Any]]:
    """The (k, k) reading of a file, pair by pair, and in that reading by matching: from the classes of its records."""
    blanks = None if may_count_persons(study) else blanks_of(plan)
    if blanks is None:
        return {}
    source, released = blanks.agreeing()
    figures: dict[str, int | None] = {AGREEING: int(min(source.min(), released.min()))}
    if study.cells.reading == AGREEING:
        figures |= counted_by_matching(blanks)
    return {name: {"value": value, "measured_on": "source", "reason": REASON} for name, value in figures.items()}


def blanks_of(plan: Assigned) -> Blanks | None:
    """The blanks of a file; None if groups of a column overlap, so that they are not values of a recoding."""
    inside = plan.owner >= 0
    width = plan.high - plan.low
    blank = (width == [len(column.values) for column in plan.columns]) & (width > 1)
    codes = np.empty((len(plan.counts), len(plan.columns)), dtype=np.int32)
    for j, column in enumerate(plan.columns):
        groups = np.arange(len(column.values))  # a value in no group is one of its own
        last = 0
        for low, high in sorted({(int(plan.low[i, j]), int(plan.high[i, j])) for i in np.flatnonzero(~blank[:, j])}):
            if low < last:
                return None
            groups[low:high], last = low, high
        codes[:, j] = groups[plan.codes[j]]
    mask = (blank @ (1 << np.arange(len(plan.columns))))[plan.owner[inside]]
    tuples, of = np.unique(codes, axis=0, return_inverse=True)
    counts = np.bincount(of.reshape(-1), weights=plan.counts).astype(np.int64)
    return Blanks(tuples, counts, of.reshape(-1)[plan.of[inside]], mask, plan.count[inside]).merged()


BLANKS = box_verifier(pages_of, beside, own_records="its blanks are single cells of its own records")


@dataclass(frozen=True)
class Cells(BoxSystem):
    """Plans are boxes whose labels are single values or blanks."""

    name: str = "cells"
    plans: str = "suppressions of cells"
    verifier: Verifier = BLANKS
    apply: Callable[[Applying], Draft] | None = None
    title = "Suppressed cells"
    bound = "no suppression of cells within the limits below"
    shown = "which cells are blanked"

    def front_of(self, study: Study, table: FrequencyTable, run: Run) -> Front:
        return search_cells(study, table, run)

    def draft(self, choice: Choice, how: Publishing) -> Draft:
        front, salt = accepted(choice.front, how), salt_of(choice.front.study.cells.test_seed)
        return BoxDraft.of(front, choice.point, pages_of, how.name, how.format, salt, beside=beside)

    def counted(self, manifest: Manifest) -> list[str]:
        return ["cells blanked", number(manifest["point"]["details"]["cells"])]

    def columns(self, front: Front) -> Mapping[str, list[str]]:
        points = front.points
        readings = [point.details["readings"] for point in points]
        return {
            "cells": [number(point.details["cells"]) for point in points],
            "suppressed": [number(point.suppressed) for point in points],
            "cost / bound": [ratio(point) for point in points],
            "k strict / by matching / pair by pair / blanks match": [
                " / ".join(map(number, _in_order(r))) for r in readings
            ],
            "method": [str(point.details["method"]) for point in points],
        }


def _in_order(readings: Mapping[str, int | None]) -> list[int | None]:
    return [readings.get(name) for name in (K.name, MATCHING_K, AGREEING, "matching")]


SYSTEMS = {"cells": Cells()}
