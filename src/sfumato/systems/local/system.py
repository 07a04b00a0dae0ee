"""The local system: classes of at least k records, each with labels of its own."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

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
from sfumato.release.policy import acceptances
from sfumato.release.sources import require_source, table_of
from sfumato.release.verify import Verifier
from sfumato.runtime.figures import number, number_or_infinity, percent
from sfumato.runtime.stages import recording, stage
from sfumato.study import Study
from sfumato.systems.applying import Applying
from sfumato.systems.goals import check_measures
from sfumato.systems.local.apply import apply_boxes
from sfumato.systems.local.draw import drawn_point, promised
from sfumato.systems.local.pages import pages_of
from sfumato.systems.local.search import KS, search_local
from sfumato.systems.run import Run
from sfumato.systems.system import Publishing, Verdict
from sfumato.tables.frequency import FrequencyTable

CLASSES = box_verifier(pages_of)


@dataclass(frozen=True)
class Local:
    """Plans are boxes: a label for each class and column, and which records are in which class."""

    name: str = "local"
    plan: type[BoxPlan] = BoxPlan
    plans: str = "local recodings"
    verifier: Verifier = CLASSES
    apply: Callable[[Applying], Draft] | None = apply_boxes

    def unit(self, study: Study) -> str:  # noqa: ARG002
        return "values of k"

    def search(self, study: Study, run: Run, table: FrequencyTable | None = None) -> Front:
        check_measures(study)
        settings = study.local
        if settings.draw and set(study.search.constraints) - {K.name}:
            raise StudyError(
                "draw under [local] beside constraints on classes, which a drawn recoding may not meet",
                expected="draw, or constraints other than k",
                remedy="leave draw out",
            )
        with recording() as recorder:
            table = study.table() if table is None else table
            with stage("search"):
                front = search_local(
                    study,
                    table,
                    run,
                    ks=settings.k or KS,
                    effort=settings.effort,
                    passes=settings.passes,
                    boxes=settings.method == "boxes",
                )
        front = promised(front, study) if settings.draw else front
        return replace(front, tuples=table.tuples, stages=tuple(done.as_dict() for done in recorder.done))

    def verdict(self, front: Front) -> Verdict:  # noqa: ARG002
        return Verdict(("the front shows which tuples are in which class: keep it confidential",))

    def draft(self, choice: Choice, how: Publishing) -> Draft:
        front = choice.front
        accepted = replace(front, study=front.study.with_accepted(acceptances(how.accept)))
        seed, point = front.study.local.test_seed, choice.point
        if front.study.local.draw:
            require_source(table_of(front.study), front.fingerprint)
            point = drawn_point(front, point, np.random.default_rng(secrets.randbits(128) if seed is None else seed))
        salt = None if seed is None else f"test {seed}"
        return BoxDraft.of(accepted, point, pages_of, how.name, how.format, salt)

    def figures(self, manifest: Manifest) -> Mapping[str, list[list[str]]]:
        values = {name: manifest["figures"][name]["value"] for name in manifest["point"]["values"]}
        rows = [
            ["classes", number(manifest["own"]["classes"])],
            ["suppressed", f"{number(manifest['suppressed'])} of {number(manifest['records'])}"],
            ["loss", percent(manifest["loss"])],
            *([name, number_or_infinity(value)] for name, value in values.items()),
        ]
        return {"Measured on the file": rows}

    def page(
        self,
        front: Front,
        chosen: int | None,
        compare: tuple[int, int] | None,  # noqa: ARG002
        table: FrequencyTable | None = None,  # noqa: ARG002
    ) -> str:
        from sfumato.report.front_page import front_page

        bound = "no recoding with these labels below"
        return front_page(front, self.columns(front), chosen, title="Local recodings", bound=bound)

    def columns(self, front: Front) -> Mapping[str, list[str]]:
        points = front.points
        floors = [point.details.get("floor") for point in points]
        return {
            "suppressed": [number(point.suppressed) for point in points],
            "floor": ["–" if floor is None else percent(float(floor)) for floor in floors],
            "loss / floor": [f"{p.details['ratio']:.3f}" if "ratio" in p.details else "–" for p in points],
            "classes": [number(len(p.plan.labels)) if isinstance(p.plan, BoxPlan) else "–" for p in points],
        }


SYSTEMS = {"local": Local()}
