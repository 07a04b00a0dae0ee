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
from sfumato.release.boxes.verifier import box_verifier
from sfumato.release.draft import Draft
from sfumato.release.manifest import Manifest
from sfumato.release.verify import Verifier
from sfumato.runtime.arrays import Counts64
from sfumato.runtime.figures import number
from sfumato.study import Study
from sfumato.systems.applying import Applying
from sfumato.systems.boxes import BoxSystem, ratio, salt_of
from sfumato.systems.cells.pages import pages_of
from sfumato.systems.cells.patterns import Blanks, agreement
from sfumato.systems.cells.points import AGREEING
from sfumato.systems.cells.search import search_cells
from sfumato.systems.on_tables import accepted
from sfumato.systems.run import Run
from sfumato.systems.system import Publishing
from sfumato.tables.frequency import FrequencyTable

PAIRS = 10**10  # of classes and tuples to set side by side where labels are groups
REASON = "counts agreement with source records, so it is measured with the source"


def beside(plan: Assigned) -> Mapping[str, dict[str, Any]]:
    """The (k, k) reading of a file, record by record, from the classes that it was compared with."""
    inside = plan.owner >= 0
    width = plan.high - plan.low
    blank = (width == [len(column.values) for column in plan.columns]) & (width > 1)
    if np.all(blank | (width == 1)):  # single values and blanks: counted mask by mask
        mask = blank @ (1 << np.arange(len(plan.columns)))
        blanks = Blanks(plan.codes.T.copy(), plan.counts, plan.of[inside], mask[plan.owner[inside]], plan.count[inside])
        source, released = blanks.agreeing()
        return _figure(source, released)
    if plan.classes * len(plan.counts) > PAIRS:
        return {}
    rows = np.bincount(plan.owner[inside], weights=plan.count[inside], minlength=plan.classes).astype(np.int64)
    source, released = agreement(plan.codes, plan.counts, plan.low, plan.high, rows)
    return _figure(source, released)


def _figure(source: Counts64, released: Counts64) -> dict[str, dict[str, Any]]:
    value = float(min(source.min(), released.min()))
    return {AGREEING: {"value": value, "measured_on": "source", "reason": REASON}}


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
            "k strict / (k, k) / blanks match": [
                f"{r[K.name]} / {r['agreeing']} / {'–' if r['matching'] is None else r['matching']}" for r in readings
            ],
            "method": [str(point.details["method"]) for point in points],
        }


SYSTEMS = {"cells": Cells()}
