"""The two systems that recode: levels of hierarchies, and cuts of ordered values. They share all but their search."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sfumato.data.frequency import FrequencyTable
from sfumato.data.stages import recording, stage
from sfumato.decide import Choice
from sfumato.front import Front
from sfumato.plans.cuts import CutPlan
from sfumato.plans.levels import LevelPlan
from sfumato.plans.plan import RecodingPlan
from sfumato.release.publish import Release, publish
from sfumato.report.figures import number, number_or_infinity, percent
from sfumato.report.release_pages import whole_sentences
from sfumato.study import Study
from sfumato.systems.cuts import search_cuts
from sfumato.systems.goals import check_measures
from sfumato.systems.lattice import search_lattice
from sfumato.systems.run import Run, Searcher
from sfumato.systems.system import Figures, Publishing, Table, Verdict


def _search_cuts(study: Study, table: FrequencyTable, run: Run) -> Front:
    return search_cuts(study, table, run, search_lattice)


@dataclass(frozen=True)
class Recodings:
    """A system whose plans recode the table."""

    name: str
    plan: type[RecodingPlan]
    steps: str
    heading: str
    find: Searcher
    plans: str = "non-dominated generalizations"
    not_applied: str = ""
    verified_with: str = ""

    def unit(self, study: Study) -> str:  # noqa: ARG002
        return self.steps

    def search(self, study: Study, run: Run, table: FrequencyTable | None = None) -> Front:
        check_measures(study)
        with recording() as recorder:
            table = study.table() if table is None else table
            with stage("search"):
                front = self.find(study, table, run)
        return replace(front, tuples=table.tuples, stages=tuple(done.as_dict() for done in recorder.done))

    def verdict(self, front: Front) -> Verdict:  # noqa: ARG002
        return Verdict()

    def publish(self, choice: Choice, folder: str | Path, how: Publishing) -> Release:
        return publish(
            choice.front,
            choice.point.id,
            folder,
            reason=how.reason,
            accept=how.accept,
            name=how.name,
            state=how.state,
        )

    def measured(self, manifest: Mapping[str, Any]) -> Figures:
        figures, dropped = manifest["figures"], manifest["source"]["rows_read"] - manifest["records"]
        rows = [
            ("records released", number(manifest["released"])),
            *([("left out because of missing values", number(dropped))] if dropped else []),
            ("suppressed", f"{number(manifest['suppressed'])} of {number(manifest['records'])}"),
            ("loss", percent(manifest["loss"])),
            *((name, number_or_infinity(figures[name]["value"])) for name in manifest["point"]["values"]),
        ]
        return Figures([Table("Measured on the file", rows)], whole_sentences(manifest["whole"]))

    def page(self, front: Front, chosen: int | None, compare: tuple[int, int] | None) -> str:
        from sfumato.report.map import map_page

        return map_page(front, front.study.table(), chosen, compare)

    def columns(self, front: Front) -> Mapping[str, list[str]]:
        plans = [point.recoding_plan for point in front.points]
        names = ", ".join(plans[0].choices) if plans else ""
        chosen = [" ".join(str(c if isinstance(c, int) else len(c)) for c in plan.choices.values()) for plan in plans]
        gone = [f"{point.suppressed:,}" for point in front.points]
        return {"suppressed": gone, f"{self.heading} of {names}": chosen}


SYSTEMS = {
    "lattice": Recodings("lattice", LevelPlan, "nodes", "levels", search_lattice),
    "cuts": Recodings("cuts", CutPlan, "generations", "groups", _search_cuts),
}
