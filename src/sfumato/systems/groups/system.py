"""The groups system: swaps that hide where a group stands out."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sfumato.data.frequency import FrequencyTable
from sfumato.data.stages import stage
from sfumato.decide import Choice
from sfumato.errors import InputError
from sfumato.front import Front
from sfumato.plans.swaps import SwapPlan
from sfumato.release.publish import Release
from sfumato.report.figures import number
from sfumato.report.release_pages import whole_sentences
from sfumato.study import Study
from sfumato.systems.groups.front import front_of, swaps_of, told_of
from sfumato.systems.groups.protect import protect
from sfumato.systems.groups.publish import publish_protection
from sfumato.systems.run import Run
from sfumato.systems.system import Figures, Publishing, Table, Verdict


@dataclass(frozen=True)
class Groups:
    """Plans are swaps: pairs of records that exchange their places."""

    name: str = "groups"
    plan: type[SwapPlan] = SwapPlan
    plans: str = "plans of swaps"
    not_applied: str = "swaps are pairs of records of the table that was searched: protect the other table by itself"
    verified_with: str = "--source run.toml"

    def unit(self, study: Study) -> str:  # noqa: ARG002
        return "steps"

    def search(self, study: Study, run: Run, table: FrequencyTable | None = None) -> Front:  # noqa: ARG002
        began = time.process_time()
        with stage("search"):
            found = protect(study, run)
        return front_of(found, time.process_time() - began)

    def verdict(self, front: Front) -> Verdict:
        told = told_of(front)
        rows = told["points"][told["chosen"]]["residual"]
        cases = sum(len(row["ranks_after"]) for row in rows)
        chance = sum(len(row["ranks_after"]) ** 2 for row in rows) / len(told["areas"])
        low = sum(row["low_after"] for row in rows)
        said = [f"left out: {name} (no rule passes its limits, so it cannot attack)" for name in told["silent"]]
        said.append(
            f"from below: {low} of {cases} times a sensitive area is a low outlier or among the last "
            f"(by chance: {chance:.0f})"
        )
        still = sum(not row["protected"] for row in rows)
        if told["holds"]:
            said.append(
                f"after point {told['chosen']} none of the {len(rows)} attacks that were tried finds a sensitive area, "
                "by either outlier test or by rank"
            )
        else:
            said.append(
                f"not hidden from every attack: after point {told['chosen']} {still} of {len(rows)} attacks still find "
                "a sensitive area"
            )
        said.append("the front tells which records are swapped: keep it to yourself")
        return Verdict(tuple(said), bool(told["holds"]))

    def publish(self, choice: Choice, folder: str | Path, how: Publishing) -> Release:
        if how.name is not None:
            raise InputError("the file of a protected group has no other name", expected="no name")
        return publish_protection(
            choice.front,
            folder,
            choice.point.id,
            reason=how.reason,
            accept=how.accept,
            state=how.state,
            progress=how.progress,
        )

    def measured(self, manifest: Mapping[str, Any]) -> Figures:
        figures = manifest["figures"]
        rows = [
            ("records released", number(manifest["released"])),
            ("pairs swapped", number(manifest["point"]["swaps"])),
            ("cost", number(figures["cost"])),
            ("columns exchanged", ", ".join(manifest["exchanged"])),
            ("columns left out", number(manifest["dictionary"]["columns_left_out"])),
            ("findings before → after", f"{figures['found_before']} → {figures['found_after']}"),
        ]
        title = f"Measured on the file, by {len(manifest['attacks'])} attacks"
        return Figures([Table(title, rows)], whole_sentences(manifest["whole"]))

    def page(self, front: Front, chosen: int | None, compare: tuple[int, int] | None) -> str:  # noqa: ARG002
        from sfumato.report.groups_pages import protection_page

        return protection_page(told_of(front, chosen))

    def columns(self, front: Front) -> Mapping[str, list[str]]:
        points = front.points
        return {
            "swaps": [number(swaps_of(point).swaps) for point in points],
            "no plan below": ["–" if point.bound is None else f"{point.bound:.1f}" for point in points],
            **{
                f"found by {way}": [str(point.details["found_after"][way]) for point in points]
                for way in ("hinges", "mad", "rank")
            },
        }


SYSTEMS = {"groups": Groups()}
