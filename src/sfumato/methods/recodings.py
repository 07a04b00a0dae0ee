"""The two systems that recode: levels of hierarchies, and cuts of ordered values. They differ only in their search."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sfumato.decide.map import map_page
from sfumato.front import Front
from sfumato.methods.run import Run, Searcher
from sfumato.methods.shared import measured_rows, search_table, with_acceptances
from sfumato.methods.system import Abilities, Publishing, Verdict
from sfumato.plans.recodings import CutPlan, LevelPlan, RecodingPlan
from sfumato.study import Study
from sfumato.tables.frequency import FrequencyTable

if TYPE_CHECKING:
    from sfumato.decide.pick import Choice
    from sfumato.methods.system import Applying
    from sfumato.release.draft import Draft, Verifier
    from sfumato.release.manifest import Manifest


# The other system, and what only a release needs, are imported on first use: a search does not wait for them.


def _search_lattice(study: Study, table: FrequencyTable, run: Run) -> Front:
    from sfumato.methods.lattice.search import search_lattice

    return search_lattice(study, table, run)


def _search_cuts(study: Study, table: FrequencyTable, run: Run) -> Front:
    from sfumato.methods.cuts.search import search_cuts

    return search_cuts(study, table, run, _search_lattice)


@dataclass(frozen=True)
class Recodings:
    """A system whose plans recode the table."""

    name: str
    plan: type[RecodingPlan]
    steps: str
    heading: str
    find: Searcher
    abilities: Abilities
    plans: str = "non-dominated generalizations"
    apply: Callable[[Applying], Draft] | None = None

    @property
    def verifier(self) -> Verifier:
        from sfumato.release.recoding import RECODINGS

        return RECODINGS

    def unit(self, study: Study) -> str:  # noqa: ARG002
        return self.steps

    def search(self, study: Study, run: Run, table: FrequencyTable | None = None) -> Front:
        return search_table(self.find, study, run, table)

    def verdict(self, front: Front) -> Verdict:  # noqa: ARG002
        return Verdict()

    def draft(self, choice: Choice, how: Publishing) -> Draft:
        from sfumato.release.recoding import RECODINGS, RecodingDraft

        return RecodingDraft.of(with_acceptances(choice.front, how), choice.point, RECODINGS, how.name, how.format)

    def figures(self, manifest: Manifest) -> Mapping[str, list[list[str]]]:
        return {"Measured on the file": measured_rows(manifest)}

    def page(
        self,
        front: Front,
        chosen: int | None,
        compare: tuple[int, int] | None,
        table: FrequencyTable | None = None,
    ) -> str:
        return map_page(front, front.study.table() if table is None else table, chosen, compare)

    def columns(self, front: Front) -> Mapping[str, list[str]]:
        plans = [point.recoding_plan for point in front.points]
        names = ", ".join(plans[0].choices) if plans else ""
        chosen = [" ".join(str(c if isinstance(c, int) else len(c)) for c in plan.choices.values()) for plan in plans]
        gone = [f"{point.suppressed:,}" for point in front.points]
        return {"suppressed": gone, f"{self.heading} of {names}": chosen}


LEVELS = Abilities(resumable=True, space="nodes", bounded=True)
CUTS = Abilities(resumable=True, space="recodings")
SYSTEMS = {
    "lattice": Recodings("lattice", LevelPlan, "nodes", "levels", _search_lattice, LEVELS),
    "cuts": Recodings("cuts", CutPlan, "generations", "groups", _search_cuts, CUTS),
}
