"""The groups system: swaps that hide where a group stands out."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sfumato.decide import Choice
from sfumato.front import Front
from sfumato.plans.swaps import SwapPlan
from sfumato.release.draft import Draft
from sfumato.release.manifest import Manifest
from sfumato.release.verify import Verifier
from sfumato.runtime.figures import number
from sfumato.runtime.stages import stage
from sfumato.study import Study
from sfumato.systems.applying import Applying
from sfumato.systems.groups.front import front_of, swaps_of, told_of
from sfumato.systems.groups.publish import protection_draft
from sfumato.systems.groups.search import protect
from sfumato.systems.groups.verify import SWAPS
from sfumato.systems.run import Run
from sfumato.systems.system import Publishing, Verdict
from sfumato.tables.frequency import FrequencyTable


@dataclass(frozen=True)
class Groups:
    """Plans are swaps: pairs of records that exchange their places."""

    name: str = "groups"
    plan: type[SwapPlan] = SwapPlan
    plans: str = "plans of swaps"
    verifier: Verifier = SWAPS
    apply: Callable[[Applying], Draft] | None = None

    def unit(self, study: Study) -> str:  # noqa: ARG002
        return "steps"

    def search(self, study: Study, run: Run, table: FrequencyTable | None = None) -> Front:  # noqa: ARG002
        began = time.process_time()
        with stage("search"):
            protection = protect(study, run)
        return front_of(protection, time.process_time() - began)

    def verdict(self, front: Front) -> Verdict:
        report = told_of(front)
        rows = report["points"][report["chosen"]]["residual"]
        cases = sum(len(row["ranks_after"]) for row in rows)
        chance = sum(len(row["ranks_after"]) ** 2 for row in rows) / len(report["areas"])
        low = sum(row["low_after"] for row in rows)
        said = [
            f"left out: {name} (no rule meets its thresholds, so this attack was not possible)"
            for name in report["silent"]
        ]
        said.append(
            f"over-correction check: in {low} of {cases} cases a sensitive area is a low outlier or has one of "
            "the lowest ranks "
            f"(expected by chance: {chance:.0f})"
        )
        still = sum(not row["protected"] for row in rows)
        if report["holds"]:
            said.append(
                f"after point {report['chosen']} none of the {len(rows)} attacks identifies a sensitive area, "
                "by either outlier test or by rank"
            )
        else:
            said.append(
                f"not hidden from every attack: after point {report['chosen']} {still} of {len(rows)} attacks "
                "still identify "
                "a sensitive area"
            )
        said.append("the front shows which records are swapped: keep it confidential")
        return Verdict(tuple(said), bool(report["holds"]))

    def draft(self, choice: Choice, how: Publishing) -> Draft:
        point = choice.point.id
        return protection_draft(
            choice.front, point, accept=how.accept, name=how.name, kind=how.format, progress=how.progress
        )

    def figures(self, manifest: Manifest) -> Mapping[str, list[list[str]]]:
        own, figures = manifest["own"], manifest["figures"]
        rows = [
            ["pairs swapped", number(manifest["point"]["swaps"])],
            ["cost", number(figures["cost"])],
            ["columns exchanged", ", ".join(own["exchanged"])],
            ["columns left out", number(manifest["dictionary"]["columns_left_out"])],
            [
                "areas identified before → after, over all attacks",
                f"{figures['found_before']} → {figures['found_after']}",
            ],
        ]
        return {f"Measured on the file, by {len(own['attacks'])} attacks": rows}

    def page(
        self,
        front: Front,
        chosen: int | None,
        compare: tuple[int, int] | None,  # noqa: ARG002
        table: FrequencyTable | None = None,  # noqa: ARG002
    ) -> str:
        from sfumato.systems.groups.pages import protection_page

        return protection_page(told_of(front, chosen))

    def columns(self, front: Front) -> Mapping[str, list[str]]:
        points = front.points
        return {
            "swaps": [number(swaps_of(point).swaps) for point in points],
            "lower bound of cost": ["–" if point.bound is None else f"{point.bound:.1f}" for point in points],
            **{
                f"identified by {way}": [str(point.details["found_after"][way]) for point in points]
                for way in ("hinges", "mad", "rank")
            },
        }


SYSTEMS = {"groups": Groups()}
