"""The release of a protected group while it is made: the folder of any release. The swaps are in none of its files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sfumato.auditing.whole import WholeFile, whole_file
from sfumato.errors import SfumatoError, counted
from sfumato.plans.swaps import SwapPlan
from sfumato.release import pack
from sfumato.release.dictionary import plain_dictionary, treated_entries
from sfumato.release.draft import Draft, Measured
from sfumato.release.facts import guarded, guarded_share, public_unit
from sfumato.release.history.shown import Description, describe_swaps
from sfumato.release.manifest import Content
from sfumato.release.policy import Finding, unique_findings
from sfumato.release.rows import differing_rows, refuse_torn, write_mixed
from sfumato.release.sources import table_of
from sfumato.runtime.stages import stage
from sfumato.sources.engines.engine import Engine
from sfumato.sources.source import Source
from sfumato.study import Study
from sfumato.systems.groups.files.read import settings_of
from sfumato.systems.groups.pages import protected_page, swapped_page
from sfumato.systems.groups.swapped import Swapped, changed_marginals, exchange

MAPPING = ("area", "attributes", "vital", "leave_out", "only")


@dataclass(frozen=True)
class Protected:
    """A protection that was worked out again.

    `report` is what it says of all points with the chosen one named, and `auxiliary` the files that its attackers learn
    from, by name and digest. `attack` attacks the file that a study reads: a row for each attack, or an error if they
    are not what `report` says.
    """

    report: Mapping[str, Any]
    auxiliary: Sequence[Mapping[str, str]]
    attack: Callable[[Study], list[dict[str, Any]]]

    @property
    def point(self) -> Mapping[str, Any]:
        chosen: Mapping[str, Any] = self.report["points"][self.report["chosen"]]
        return chosen


@dataclass(eq=False, kw_only=True)
class SwapDraft(Draft):
    """A plan of swaps. `work_out` may take long, so it is asked only when all that is quickly seen has been checked.
    `searched` is what the attacks found in the search."""

    system: str = "groups"
    plan: SwapPlan
    target: Source
    work_out: Callable[[], Protected]
    searched: Sequence[Mapping[str, Any]] = ()

    swapped: Swapped = field(init=False)
    whole: WholeFile = field(init=False)

    def foresee(self) -> Sequence[Finding]:
        """What attacks found when the point was searched."""
        try:
            return attack_findings(self.searched)
        except (KeyError, TypeError):  # the front says it otherwise than it was saved, which is found out below
            return ()

    def describe(self, engine: Engine) -> Description:
        with stage("exchange places"):
            settings = settings_of(self.study)
            self.swapped = exchange(engine, self.source, self.study, settings, self.plan, self.target)
        exchanged = sorted(self.swapped.exchanged)
        return describe_swaps(self.study, self.source, self.swapped.names, exchanged, self.plan)

    def write(self, engine: Engine, folder: Path) -> Study:
        """The file, and the run file with the mapping, but without those who are in the group."""
        written = write_mixed(engine, self.swapped, folder / self.data)
        mapping = settings_of(self.study).mapping().model_dump(mode="json", exclude_none=True, exclude_defaults=True)
        groups = {name: mapping[name] for name in MAPPING if name in mapping}
        sections = {"data": {"na": list(self.study.data.na)} | written.settings(), "groups": groups}
        return pack.write_run_file(folder, self.study, self.target, self.swapped.names, self.data, sections)

    def compare(self, engine: Engine, own: Study) -> None:
        written = table_of(own)
        with stage("compare every row"):
            refuse_torn(differing_rows(engine, self.swapped, written))
            changed = changed_marginals(engine, self.source, written, self.swapped.names)
        if changed:
            raise SfumatoError(
                f"the counts of {counted(len(changed), 'column')} have changed", expected="only locations exchanged"
            )
        with stage("measure all columns together"):
            self.whole = whole_file(engine, self.study, written)

    def measure(self, own: Study) -> Measured:
        swapped, protected = self.swapped, self.work_out()
        point, attacks = protected.point, protected.attack(own)
        return Measured(
            columns=swapped.names,
            rows_read=swapped.rows,
            records=swapped.rows,
            suppressed=0,
            loss=point["loss"],
            figures=figures_of(attacks, point["cost"]),
            whole=self.whole,
            point={name: value for name, value in point.items() if name != "residual"},
            dictionary=dictionary_of(self.study, swapped.names, swapped.exchanged, self.data, len(self.source.columns)),
            own={
                "auxiliary": [dict(file) for file in protected.auxiliary],
                "algorithm": protected.report["method"],
                "exact": point["exact"],
                "exchanged": sorted(swapped.exchanged),
                "attacks": attacks,
                "protection": dict(protected.report),
            },
            findings=[*attack_findings(attacks), *unique_findings(self.study.policy, self.whole)],
        )

    def pages(self, folder: Path, manifest: Content) -> Mapping[str, str]:
        return pages_of(folder, manifest)


def figures_of(attacks: Sequence[Mapping[str, Any]], cost: float) -> dict[str, Any]:
    """How many findings there are over the sealed attacks, before and after, and what the swaps cost."""
    sealed = [row for row in attacks if row["role"] == "sealed"]
    return {
        "found_before": sum(row["areas_before"] for row in sealed),
        "found_after": sum(row["areas_after"] for row in sealed),
        "cost": cost,
    }


def sealed_of(attacks: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """What the sealed attacks among some rows find."""
    sealed = [row for row in attacks if row["role"] == "sealed"]
    return {
        "attacks": len(sealed),
        "finding": sum(not row["protected"] for row in sealed),
        "areas": sum(row["areas_after"] for row in sealed),
        "low": sum(row["low_after"] for row in sealed),
    }


def attack_findings(attacks: Sequence[Mapping[str, Any]]) -> list[Finding]:
    """Sealed attacks that still find an area that must not be found, from above or from below."""
    sealed = sealed_of(attacks)
    if not sealed["finding"]:
        return []
    what = (
        f"{sealed['finding']} of {sealed['attacks']} sealed attacks on the written file still identify an area "
        "that must not be identified."
    )
    return [Finding("attacks", what, figures={"attacks": sealed["finding"]})]


def external_facts(manifest: Content) -> dict[str, Any]:
    """The figures of the external report: no count under ten, nothing of the group or its areas."""
    everything, released = manifest["whole"]["all_columns"], manifest["released"]
    return {
        **public_unit(manifest),
        "released": guarded(released),
        "exchanged_share": guarded_share(2 * manifest["point"]["swaps"], released),
        "loss_share": round(manifest["loss"], 3),
        "unique_share": guarded_share(everything["unique"], everything["records"]),
        "columns": everything["columns"],
    }


def pages_of(_: Path, manifest: Content) -> dict[str, str]:
    """The reports of a release as its manifest has them: drawn at publication, and again when it is verified."""
    return {
        pack.EXTERNAL: swapped_page(external_facts(manifest), manifest["dictionary"]),
        pack.INTERNAL: protected_page(manifest),
    }


def dictionary_of(
    study: Study, names: Sequence[str], exchanged: Sequence[str] | frozenset[str], data: str, columns: int
) -> dict[str, Any]:
    """The data dictionary: which columns were exchanged; `columns` is how many the source has."""
    moved = {
        "role": "place",
        "meaning": "location of the record",
        "done": "exchanged",
        "words": "Exchanged between some pairs of similar records; how often each value occurs is unchanged.",
    }
    return plain_dictionary(
        names, treated_entries(study, names) | dict.fromkeys(exchanged, moved), Path(data).name, columns - len(names)
    )
