"""The local system: classes of at least k records, each with labels of its own."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from sfumato.decide import Choice
from sfumato.errors import StudyError
from sfumato.front import Front
from sfumato.measures.standard import K
from sfumato.plans.boxes import BoxPlan
from sfumato.release.boxes.draft import BoxDraft
from sfumato.release.boxes.verifier import box_verifier
from sfumato.release.draft import Draft
from sfumato.release.manifest import Manifest
from sfumato.release.sources import require_source, table_of
from sfumato.release.verify import Verifier
from sfumato.runtime.figures import number, percent
from sfumato.study import Study
from sfumato.systems.applying import Applying
from sfumato.systems.boxes import BoxSystem, ratio, salt_of
from sfumato.systems.local.apply import apply_boxes
from sfumato.systems.local.draw import drawn_point, promised
from sfumato.systems.local.pages import pages_of
from sfumato.systems.local.search import KS, search_local
from sfumato.systems.on_tables import accepted
from sfumato.systems.run import Run
from sfumato.systems.system import Publishing
from sfumato.tables.frequency import FrequencyTable

CLASSES = box_verifier(pages_of)


@dataclass(frozen=True)
class Local(BoxSystem):
    """Plans are boxes: a label for each class and column, and which records are in which class."""

    name: str = "local"
    plans: str = "local recodings"
    verifier: Verifier = CLASSES
    apply: Callable[[Applying], Draft] | None = apply_boxes
    title = "Local recodings"
    bound = "no recoding with these labels below"
    shown = "which tuples are in which class"

    def front_of(self, study: Study, table: FrequencyTable, run: Run) -> Front:
        settings = study.local
        if settings.draw and (table.units is not None or table.households is not None):
            raise StudyError(
                "draw under [local] where rows belong to persons or households: it moves single rows between classes",
                expected="draw where rows are persons, or no draw",
                remedy="leave draw out",
            )
        if settings.draw and set(study.search.constraints) - {K.name}:
            raise StudyError(
                "draw under [local] beside constraints on classes, which a drawn recoding may not meet",
                expected="draw, or constraints other than k",
                remedy="leave draw out",
            )
        front = search_local(
            study,
            table,
            run,
            ks=settings.k or KS,
            effort=settings.effort,
            passes=settings.passes,
            boxes=settings.method == "boxes",
        )
        return promised(front, study) if settings.draw else front

    def draft(self, choice: Choice, how: Publishing) -> Draft:
        front = choice.front
        seed, point = front.study.local.test_seed, choice.point
        if front.study.local.draw:
            require_source(table_of(front.study), front.fingerprint)
            point = drawn_point(front, point, np.random.default_rng(secrets.randbits(128) if seed is None else seed))
        return BoxDraft.of(accepted(front, how), point, pages_of, how.name, how.format, salt_of(seed))

    def counted(self, manifest: Manifest) -> list[str]:
        return ["classes", number(manifest["own"]["classes"])]

    def columns(self, front: Front) -> Mapping[str, list[str]]:
        points = front.points
        floors = [point.details.get("floor") for point in points]
        return {
            "suppressed": [number(point.suppressed) for point in points],
            "floor": ["–" if floor is None else percent(float(floor)) for floor in floors],
            "loss / floor": [ratio(point) for point in points],
            "classes": [number(len(p.plan.labels)) if isinstance(p.plan, BoxPlan) else "–" for p in points],
        }


SYSTEMS = {"local": Local()}
