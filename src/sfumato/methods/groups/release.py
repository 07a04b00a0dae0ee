"""The release of a protected group: a draft, its publication and its verification.

A saved protection is recomputed from its plans before it is published, so that no stated figure is believed. The
written file is attacked as well. Verification repeats this from the folder alone: files, figures and pages. With the
source it compares every row but for its place, and with the user's run file it repeats every attack on the file.

Which pairs were exchanged is secret and is in no file of a release. So verification can compute neither the cost of the
pairs nor how many true members each area has after the exchange. Publication computes both from the pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.auditing.uniqueness import whole_file
from sfumato.base.arrays import Counts64
from sfumato.base.compare import alike, same, shown, unlike
from sfumato.base.progress import Progress, stage
from sfumato.data.engine import Engine, open_engine
from sfumato.data.open import open_source
from sfumato.data.source import Source
from sfumato.errors import InputError, SfumatoError, counted
from sfumato.front import Front, Point
from sfumato.methods.groups.attack.attack import Attack as Attacked
from sfumato.methods.groups.attack.attack import Role, residual_on
from sfumato.methods.groups.files import read_whole, settings_of
from sfumato.methods.groups.front import front_of, report_of, swaps_of
from sfumato.methods.groups.microfile import Microfile
from sfumato.methods.groups.pages import protected_page, swapped_page
from sfumato.methods.groups.planner import influence_of
from sfumato.methods.groups.search import Protection, Roles, attacked_again, judged, truths_of
from sfumato.methods.groups.swapped import Swapped, changed_marginals, differing_parts, exchange, read_released
from sfumato.methods.run import Run
from sfumato.methods.system import Publishing
from sfumato.plans.swaps import SwapPlan
from sfumato.release.dictionary import guarded, guarded_share, plain_dictionary, treated_entries
from sfumato.release.draft import Attack, Difference, Draft, Entries, Facts, ReleasedFolder, Verifier
from sfumato.release.format import Entry, format_of, target_of
from sfumato.release.history.description import Description, describe_swaps
from sfumato.release.manifest import EXTERNAL, INTERNAL, MANIFEST, RUN, Content, data_name, write_run_file
from sfumato.release.policy import Finding, acceptances, unique_findings
from sfumato.release.readback import public_unit, reading, table_of
from sfumato.release.rows import differing_rows, refuse_torn, write_mixed
from sfumato.study import Study, read
from sfumato.study.groups import GroupsSettings

MAPPING = ("area", "attributes", "vital", "leave_out", "only")


@dataclass(eq=False, kw_only=True)
class SwapDraft(Draft):
    """A point of a protection as a draft, to be written, read back and attacked.

    Attackers are relearned, and their findings in the source and in the written file must agree with the protection.
    """

    system: str = "groups"
    front: Front
    point: Point
    target: Source
    progress: Progress | None = None

    swapped: Swapped = field(init=False)

    def foresee(self) -> Sequence[Finding]:
        """Return what attacks found when the point was searched."""
        try:
            return attack_findings(self.point.details.get("residual", ()))
        except (KeyError, TypeError):  # the front was changed after it was saved, which a later check reports
            return ()

    def describe(self, engine: Engine) -> Description:
        with stage("exchange places"):
            settings = settings_of(self.study)
            self.swapped = exchange(engine, self.source, self.study, settings, swaps_of(self.point), self.target)
        exchanged = sorted(self.swapped.exchanged)
        return describe_swaps(self.study, self.source, self.swapped.names, exchanged, swaps_of(self.point))

    def write(self, engine: Engine, folder: Path) -> Study:
        """Write the file, and the run file with the mapping, but without the conditions of the group."""
        written = write_mixed(engine, self.swapped, folder / self.data)
        mapping = settings_of(self.study).mapping().model_dump(mode="json", exclude_none=True, exclude_defaults=True)
        groups = {name: mapping[name] for name in MAPPING if name in mapping}
        sections = {"data": {"na": list(self.study.data.na)} | written.settings(), "groups": groups}
        return write_run_file(folder, self.study, self.target, self.swapped.names, self.data, sections)

    def compare(self, engine: Engine, own: Study) -> None:
        written = table_of(own)
        with stage("compare every row"):
            refuse_torn(differing_rows(engine, self.swapped, written))
            changed = changed_marginals(engine, self.source, written, self.swapped.names)
        if changed:
            raise SfumatoError(
                f"the counts of {counted(len(changed), 'column')} have changed", expected="only locations exchanged"
            )

    def stated(self, own: Study) -> dict[str, object]:
        """Return the recomputed protection, which may take long and so follows all quick checks."""
        front, swapped, number = self.front, self.swapped, self.point.id
        again = worked_out_again(front, Run(self.progress))
        refuse_unlike(front, again)
        report = report_of(front_of(again), number)
        # The bound and its proof are those of the search; everything else was recomputed.
        for saved, one in zip(report["points"], front.points, strict=True):
            saved |= {"bound": swaps_of(one).bound, "exact": swaps_of(one).exact}
        point = report["points"][number]
        written = read_whole(own, again.target.wide.names if again.target.wide is not None else ())
        attacks = [residual_on(attack, written, role).as_dict() for attack, role in again.attacks]
        if not alike(point["residual"], attacks):
            raise SfumatoError(
                "an attack on the written file gives a different result from the plan",
                expected="the same records in range in the same areas; nothing was released",
            )
        return {
            "rows_read": swapped.rows,
            "loss": point["loss"],
            "point": {name: value for name, value in point.items() if name != "residual"},
            "dictionary": {"columns_left_out": len(self.source.columns) - len(swapped.names)},
            "own": {
                "auxiliary": auxiliary_files(again.study),
                "algorithm": report["method"],
                "exact": point["exact"],
                "exchanged": sorted(swapped.exchanged),
                "attacks": attacks,
                "protection": report,
            },
        }


def figures_of(attacks: Sequence[Entry], cost: float) -> dict[str, object]:
    """Return the findings of the held-out attacks, before and after, and the cost of the swaps."""
    sealed = [row for row in attacks if row["role"] == "sealed"]
    return {
        "found_before": sum(row["areas_before"] for row in sealed),
        "found_after": sum(row["areas_after"] for row in sealed),
        "cost": cost,
    }


def sealed_of(attacks: Sequence[Entry]) -> dict[str, int]:
    """Return what the held-out attacks among some rows find."""
    sealed = [row for row in attacks if row["role"] == "sealed"]
    return {
        "attacks": len(sealed),
        "finding": sum(not row["protected"] for row in sealed),
        "areas": sum(row["areas_after"] for row in sealed),
        "low": sum(row["low_after"] for row in sealed),
    }


def attack_findings(attacks: Sequence[Entry]) -> list[Finding]:
    """Return the held-out attacks that still find a sensitive area, from above or from below."""
    sealed = sealed_of(attacks)
    if not sealed["finding"]:
        return []
    what = (
        f"{sealed['finding']} of {sealed['attacks']} held-out attacks on the written file still identify an area "
        "that must not be identified."
    )
    return [Finding("attacks", what, figures={"attacks": sealed["finding"]})]


def external_facts(manifest: Content) -> dict[str, object]:
    """Return the figures of the external report: no count below ten, and no fact of the group or its areas."""
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
    """Return the reports of a release from its manifest, for publication and for verification."""
    return {
        EXTERNAL: swapped_page(external_facts(manifest), manifest["dictionary"]),
        INTERNAL: protected_page(manifest),
    }


def dictionary_of(
    study: Study, names: Sequence[str], exchanged: Sequence[str] | frozenset[str], data: str, columns: int
) -> dict[str, object]:
    """Return the data dictionary with the exchanged columns. `columns` is the number of columns of the source."""
    moved = {
        "role": "place",
        "meaning": "location of the record",
        "done": "exchanged",
        "words": "Exchanged between some pairs of similar records; how often each value occurs is unchanged.",
    }
    return plain_dictionary(
        names, treated_entries(study, names) | dict.fromkeys(exchanged, moved), Path(data).name, columns - len(names)
    )


CLOSE = 1e-9
UNCHECKED = {"bound", "exact", "baselines"}  # proofs of the search, which only another search could repeat


def worked_out_again(front: Front, run: Run | None = None) -> Protection:
    """Return the protection with every attack relearned and every figure recomputed from the plans."""
    study = front.study
    target = read_released(study)
    truths = truths_of(study, target)
    roles = Roles(study, target, truths, run)
    known, fresh = roles.planning()
    sealed = roles.sealed()
    levels = [
        replace(
            judged(
                attacked_again(
                    target, float(point.details["level"]), (_priced(study, target, swaps_of(point)), 0.0), known, fresh
                ),
                target,
                sealed,
            ),
            method=str(point.details["method"]),
        )
        for point in front.points
    ]
    return Protection(
        study,
        target,
        truths,
        tuple(known),
        tuple(fresh),
        tuple(sealed),
        tuple(levels),
        int(front.details["chosen"]),
        len(settings_of(study).protect.columns or target.attributes),
        tuple(roles.silent),
    )


def _priced(study: Study, target: Microfile, plan: SwapPlan) -> SwapPlan:
    """Return a plan with the cost of its pairs."""
    cost = influence_of(study, target).of_pairs(_positions(target, plan.givers), _positions(target, plan.takers))
    if plan.bound is not None and plan.bound > cost * (1 + CLOSE):
        raise InputError(
            "the cost of a plan is below the lower bound stated for it",
            expected="a bound under the cost",
        )
    return replace(plan, cost=cost)


def _positions(target: Microfile, rows: Counts64) -> Counts64:
    """Return the positions of rows of the source among the records that have an area."""
    positions = np.searchsorted(target.rows, rows)
    inside = positions < len(target.rows)
    if not inside.all() or not np.array_equal(target.rows[positions], rows):
        raise InputError("the plan swaps rows that have no area", expected="the swaps of the file that was protected")
    return np.asarray(positions, dtype=np.int64)


def refuse_unlike(front: Front, again: Protection) -> None:
    """Raise unless a saved protection agrees with the recomputed one."""
    for name, said, true in unlike(_claims(front), _claims(front_of(again))):
        if UNCHECKED & {*name.split(".")}:
            continue
        raise InputError(
            f"the protection says {name} = {shown(said)}, but it is {shown(true)}: nothing was released",
            expected="an unchanged front, and the files that it was made from",
            remedy="search again",
        )


def _claims(front: Front) -> dict[str, object]:
    """Return all statements of a front about a protection: the facts of the areas, and every point."""
    points = [point.as_dict() for point in front.points]
    return {"details": dict(front.details), "rows": front.rows, "method": front.algorithm, "points": points}


def protection_draft(front: Front, point: Point, how: Publishing) -> SwapDraft:
    """Return the draft of a point of a protection.

    Findings that remain are refused, unless `how` accepts them with a reason: `{"attacks": "the areas are known"}`.
    """
    study = front.study.with_accepted(acceptances(how.accept))
    source = table_of(study)
    kind = format_of(source, how.name, how.format)
    return SwapDraft(
        study=study,
        source=source,
        fingerprint=front.fingerprint,
        data=data_name(source, how.name, kind),
        target=target_of(source, kind),
        verifier=SWAPS,
        front=front,
        point=point,
        progress=how.progress,
    )


def auxiliary_files(study: Study) -> list[dict[str, str]]:
    """Return the files that attackers learn from, by name and digest."""
    return [
        {"name": given.title, "sha256": open_source(given, study.folder).fingerprint}
        for given in settings_of(study).auxiliary
    ]


NOT_ATTACKED = "what attacks find: name as the source the run file that says what they learn from"


def facts_of(folder: ReleasedFolder) -> Facts:
    """Return the facts of a swapped file, and the contradictions of its manifest."""
    manifest, own, written = folder.manifest, folder.manifest["own"], folder.written
    settings = settings_of(folder.study)
    if settings_of(folder.own).mapping() != _shared(settings):
        raise InputError(f"{RUN} maps its columns otherwise", expected="the mapping of the release")
    with open_engine(folder.own.engine, folder.own.engine_options) as engine, stage("measure all columns together"):
        engine.attach(written, "written")
        whole = whole_file(engine, folder.study, written)
    point, names, sealed = manifest["point"], list(written.names), sealed_of(own["attacks"])
    left_out = manifest["dictionary"]["columns_left_out"]
    return Facts(
        records=whole.everything.records,
        whole=whole,
        dictionary=dictionary_of(folder.study, names, own["exchanged"], folder.data, len(names) + left_out),
        entries={
            "suppressed": 0,
            "loss": point["loss"],
            "figures": figures_of(own["attacks"], point["cost"]),
            "point.sealed": sealed,
            "own.algorithm": own["protection"]["method"],
            "own.protection.holds": sealed["areas"] == 0,
        },
        findings=[*attack_findings(own["attacks"]), *unique_findings(folder.study.policy, whole)],
        differences=[
            Difference(MANIFEST, f"its {name} do not agree with the rest of it")
            for name in _contradictions(manifest, settings, names, whole.everything.records)
        ],
    )


def _contradictions(manifest: Content, settings: GroupsSettings, names: Sequence[str], records: int) -> list[str]:
    """Return the entries of a manifest that contradict others: its point, its attacks, and its protection."""
    own, point = manifest["own"], manifest["point"]
    report, attacks = own["protection"], own["attacks"]
    cells = len(settings.protect.columns or settings.mapping().attributes)
    agree = {
        "point": alike(report["points"][report["chosen"]], {**point, "residual": attacks}),
        "loss": same(point["loss"] * cells * records, point["cost"], least=CLOSE),
        "findings": report["found_before"] == figures_of(attacks, point["cost"])["found_before"]
        and point["found"] == sum(row["areas_after"] for row in attacks if row["role"] != "sealed"),
        "records": records == manifest["source"]["rows_read"],
        "exchanged columns": set(own["exchanged"]) <= set(names),
        "swaps": point["bound"] is None or point["bound"] <= point["cost"] * (1 + CLOSE),
    }
    return [name for name, fine in agree.items() if not fine]


def _shared(settings: GroupsSettings) -> Any:
    """Return the mapping as a release has it, without the parts that concern the source only."""
    return settings.mapping().model_copy(update={"usually_withheld": (), "usually_swapped": ()})


def on_source(folder: ReleasedFolder, study: Study) -> tuple[Entries, list[Difference]]:
    """Compare every column's counts with the source, and every row but for its place."""
    manifest, data, source, written = folder.manifest, folder.data, table_of(study), folder.written
    stays = [name for name in manifest["columns"] if name not in manifest["own"]["exchanged"]]
    with open_engine(study.engine, study.engine_options) as engine:
        changed = changed_marginals(engine, source, written, manifest["columns"])
        torn = differing_parts(engine, source, written, stays)
        moved = differing_parts(engine, source, written, manifest["columns"])
    differences = [Difference(data, f"the values of {name} do not occur as often as in the source") for name in changed]
    if torn:
        differences.append(
            Difference(
                data, f"{counted(torn, 'row differs', 'rows differ')} from the source in other columns than places"
            )
        )
    # a pair changes two rows, and each is missing in one file and new in the other
    if moved > 4 * manifest["point"]["swaps"]:
        differences.append(Difference(data, "more rows have another place than the swaps can have moved"))
    return {}, differences


def _named(study: Study, run: str, manifest: Content) -> Study:
    """Return the release's study with the files of the user's run file, if both describe the same attacks."""
    own = read(run)
    settings, given = settings_of(study), settings_of(own)
    if _attack_settings(settings) != _attack_settings(given):
        raise InputError(
            f"[groups] in {Path(run).name} is not that of the release", expected="the run file of the release"
        )
    files = tuple(
        one.model_copy(
            update={"path": str((own.folder / other.path).absolute())}
            | {name: getattr(other, name) for name in ("table", "query", "password_file")}
        )
        for one, other in zip(settings.auxiliary, given.auxiliary, strict=True)
    )
    named = reading(study, run).replace(groups=settings.model_copy(update={"auxiliary": files}))
    if auxiliary_files(named) != manifest["own"]["auxiliary"]:
        raise InputError("an auxiliary file is not the one of the release", expected="files with the same SHA-256")
    return named


def _attack_settings(settings: GroupsSettings) -> Any:
    """Return all settings that decide what an attack finds, without the paths of the files."""
    protect = settings.protect
    location = {"path", "table", "query", "password_file"}
    return (
        settings.mapping(),
        [one.model_dump(exclude=location) for one in settings.auxiliary],
        (settings.expert, settings.exclude, settings.attack),
        (protect.attackers, protect.sealed_attackers, protect.columns, protect.metric),
        (protect.known_seeds, protect.fresh_seeds, protect.sealed_seeds),
    )


def attack_again(check: ReleasedFolder, run: str) -> list[Difference]:
    """Repeat the attacks on the released file, and compare the findings in it and in the source with the manifest."""
    own = check.manifest["own"]
    study = _named(check.study, run, check.manifest)
    if table_of(study).fingerprint != check.manifest["source"]["sha256"]:
        return []  # another check reports that it is another source
    stay = [name for name in check.manifest["columns"] if name not in own["exchanged"]]
    target, written = read_released(study, stay), read_whole(check.own, stay)
    truths = truths_of(study, target)
    roles = Roles(study, target, truths)
    known, fresh = roles.planning()
    sealed = roles.sealed()
    by_role: list[tuple[Role, list[Attacked]]] = [("known", known), ("fresh", fresh), ("sealed", sealed)]
    rows = [residual_on(one, written, role).as_dict() for role, attacks in by_role for one in attacks]
    report = own["protection"]
    areas = [
        {"area": area, "records": int(size), "q": {truth.group: int(truth.quantity[i]) for truth in truths}}
        for i, (area, size) in enumerate(zip(target.areas, target.sizes(), strict=True))
    ]
    stated = [{name: area[name] for name in ("area", "records", "q")} for area in report["areas"]]
    sensitive = sorted({area for truth in truths for area in truth.sensitive.areas})
    agree = {
        "what attacks find": alike(own["attacks"], rows),
        "the attackers that were left out": report["silent"] == list(roles.silent),
        "the areas that must not be identified": report["sensitive"] == [target.areas[i] for i in sensitive],
        "the true members": stated == areas,
    }
    return [
        Difference(check.data, f"{name} in the repeated attack differs from the manifest")
        for name, same in agree.items()
        if not same
    ]


def says(manifest: Content) -> str:
    """Return what the held-out attacks still find, in words."""
    figures = manifest["figures"]
    return f"held-out attacks find {figures['found_after']} of {figures['found_before']}"


SWAPS = Verifier(
    pages=pages_of,
    facts=facts_of,
    on_source=on_source,
    says=says,
    attack=Attack(attack_again, NOT_ATTACKED),
    own_records="its swaps are pairs of its own records",
)
