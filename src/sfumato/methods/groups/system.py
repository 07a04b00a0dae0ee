"""The groups method: swaps that hide where a group stands out."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from sfumato.base.progress import stage
from sfumato.base.text import number
from sfumato.decide.pick import Choice
from sfumato.errors import shortened
from sfumato.front import Front
from sfumato.methods.groups.attack.attackers import ALL
from sfumato.methods.groups.front import Report, front_of, report_of, swaps_of
from sfumato.methods.groups.pages import protection_page
from sfumato.methods.groups.release import SWAPS, protection_draft
from sfumato.methods.groups.search import protect
from sfumato.methods.run import Run
from sfumato.methods.system import Abilities, Applying, Publishing, Verdict
from sfumato.plans.swaps import SwapPlan
from sfumato.release.draft import Draft, Verifier
from sfumato.release.manifest import Manifest
from sfumato.study import Study
from sfumato.tables.frequency import FrequencyTable

TELLING = 5  # columns that a verdict names


def verdict_of(report: Report) -> str:
    """Return the verdict of the held-out attacks on the chosen point.

    If they find an area, it also names the point after which they find least.
    """
    chosen = report["points"][report["chosen"]]
    sealed = chosen["sealed"]
    on = f"on all {report['rows']:,} rows and the {report['columns']:,} released columns that stay"
    if report["holds"]:
        return (
            f"after point {chosen['id']} none of the {sealed['attacks']} held-out attacks, {on}, identifies a "
            "sensitive area, by either outlier test or by rank, from above or from below"
        )
    nearest = min(report["points"], key=lambda point: (point["sealed"]["areas"], point["cost"]))
    return (
        f"not hidden: after point {chosen['id']} {sealed['finding']} of {sealed['attacks']} held-out attacks, {on}, "
        f"still identify a sensitive area ({sealed['areas']} of {report['found_before']} findings left, "
        f"{sealed['low']} from below), {_finders(chosen)}; the nearest is point {nearest['id']} with "
        f"{nearest['sealed']['areas']}. {_remedy(report, chosen)}"
    )


def _finding(point: Report) -> list[Report]:
    return [row for row in point["residual"] if row["role"] == "sealed" and row["areas_after"]]


def _finders(point: Report) -> str:
    """Return who finds an area, and whether from below only."""
    named = [
        f"{row['attacker']} from {row['auxiliary']}{' (from below)' if row['low_after'] == row['areas_after'] else ''}"
        for row in _finding(point)
    ]
    return f"by {shortened(list(dict.fromkeys(named)))}"


def _remedy(report: Report, point: Report) -> str:
    """Return what may help against the attackers that find an area. Only some of them use columns to withhold."""
    if any(ALL in row["attacker"] for row in _finding(point)):
        columns = dict.fromkeys(one["column"] for some in report["telling"].values() for one in some[:TELLING])
        listed = ", ".join(f'"{name}"' for name in columns)
        return f"It may help to withhold columns that reveal the group: withhold = [{listed}] under [groups]"
    return (
        "These attacks learn from the declared attributes alone, so withholding other columns does not help; another "
        "search draws other partners, but a search repeated until the held-out attacks find nothing is fitted to them"
    )


@dataclass(frozen=True)
class Groups:
    """The method with plans of swaps: pairs of records that exchange their places."""

    name: str = "groups"
    plan: type[SwapPlan] = SwapPlan
    plans: str = "plans of swaps"
    verifier: Verifier = SWAPS
    abilities: ClassVar[Abilities] = Abilities()
    apply: Callable[[Applying], Draft] | None = None

    def unit(self, study: Study) -> str:  # noqa: ARG002
        return "steps"

    def search(self, study: Study, run: Run, table: FrequencyTable | None = None) -> Front:  # noqa: ARG002
        began = time.process_time()
        with stage("search"):
            protection = protect(study, run)
        return front_of(protection, time.process_time() - began)

    def verdict(self, front: Front) -> Verdict:
        report = report_of(front)
        said = [
            f"left out: {name} (no rule meets its thresholds, so this attack was not possible)"
            for name in report["silent"]
        ]
        for group, columns in report["telling"].items():
            named = [f"{one['column']} {one['alone']:.2f}" for one in columns[:TELLING]]
            if named:
                said.append(f"columns that tell {group} best, by average precision alone: {', '.join(named)}")
        for one in report["baselines"]:
            said.append(
                f"for comparison, {one['method']}: cost {one['cost']:g}, {one['found']} of {report['planned_before']} "
                "findings of known and fresh attacks left"
            )
        said.append(verdict_of(report))
        said.append("the front shows which records are swapped: keep it confidential")
        return Verdict(tuple(said), bool(report["holds"]))

    def draft(self, choice: Choice, how: Publishing) -> Draft:
        return protection_draft(choice.front, choice.point, how)

    def figures(self, manifest: Manifest) -> Mapping[str, list[list[str]]]:
        own, figures = manifest["own"], manifest["figures"]
        rows = [
            ["pairs swapped", number(manifest["point"]["swaps"])],
            ["cost", number(figures["cost"])],
            ["columns exchanged", ", ".join(own["exchanged"])],
            ["columns left out", number(manifest["dictionary"]["columns_left_out"])],
            [
                "areas identified before → after, over the held-out attacks",
                f"{figures['found_before']} → {figures['found_after']}",
            ],
        ]
        sealed = sum(row["role"] == "sealed" for row in own["attacks"])
        return {f"Measured on the file, by {sealed} held-out attacks": rows}

    def page(
        self,
        front: Front,
        chosen: int | None,
        compare: tuple[int, int] | None,  # noqa: ARG002
        table: FrequencyTable | None = None,  # noqa: ARG002
    ) -> str:
        return protection_page(report_of(front, chosen))

    def columns(self, front: Front) -> Mapping[str, list[str]]:
        points = front.points
        return {
            "swaps": [number(swaps_of(point).swaps) for point in points],
            "lower bound of cost": ["–" if point.bound is None else f"{point.bound:.1f}" for point in points],
            **{
                f"sealed, by {way}": [str(point.details["found_after"][way]) for point in points]
                for way in ("hinges", "mad", "rank")
            },
            "sealed, from below": [str(point.details["sealed"]["low"]) for point in points],
            "records moved": [f"{point.details['shift']['rate']:.1%}" for point in points],
            "mean bias": [f"{point.details['shift']['bias']:.4f}" for point in points],
        }


SYSTEMS = {"groups": Groups()}
