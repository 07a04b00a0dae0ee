"""Check the release of a protected group again: files, figures and pages; with the source every row but for its place;
and with a run file of the user's own every attack on the released file.

Which pairs were exchanged is secret and stands in no release, so it cannot be checked here what they cost, nor how many
true members each area has after the exchange: both were worked out from the pairs when the release was made.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from sfumato.auditing.whole import whole_file
from sfumato.errors import InputError, counted
from sfumato.release import pack
from sfumato.release.manifest import Content, Manifest
from sfumato.release.policy import unique_findings
from sfumato.release.sources import reading, table_of
from sfumato.release.verification import Difference
from sfumato.release.verify import Again, Attack, Check, Verifier
from sfumato.sources.engines.engine import open_engine
from sfumato.study import Study, read
from sfumato.study.groups import GroupsSettings
from sfumato.systems.groups.attack.attack import Attack as Attacked
from sfumato.systems.groups.attack.residual import Role, residual_on
from sfumato.systems.groups.draft import attack_findings, dictionary_of, figures_of, pages_of, sealed_of
from sfumato.systems.groups.files.read import read_whole, settings_of
from sfumato.systems.groups.publish import auxiliary_files
from sfumato.systems.groups.roles import Roles
from sfumato.systems.groups.search import truths_of
from sfumato.systems.groups.swapped import changed_marginals, differing_parts, read_released
from sfumato.systems.unlike import first_unlike

NOT_ATTACKED = "what attacks find: name as the source the run file that says what they learn from"


def measure_again(check: Check) -> Again:
    """Measure the released file again, and see whether the manifest agrees with itself."""
    manifest, own, written = check.manifest, check.manifest["own"], check.written
    if settings_of(check.own).mapping() != _shared(settings_of(check.study)):
        raise InputError(f"{pack.RUN} maps its columns otherwise", expected="the mapping of the release")
    with open_engine(check.own.engine, check.own.engine_options) as engine:
        engine.attach(written, "written")
        whole = whole_file(engine, check.study, written)
    columns = len(manifest["columns"]) + manifest["dictionary"]["columns_left_out"]
    return Again(
        whole=whole,
        dictionary=dictionary_of(check.study, manifest["columns"], own["exchanged"], check.data, columns),
        findings=[*attack_findings(own["attacks"]), *unique_findings(check.study.policy, whole)],
        differences=_figures(manifest, settings_of(check.study)),
    )


def _figures(manifest: Manifest, settings: GroupsSettings) -> list[Difference]:
    """The manifest agrees with itself: figures, point, attacks, and what the protection says of them."""
    own, point = manifest["own"], manifest["point"]
    report = own["protection"]
    chosen = report["points"][report["chosen"]]
    cells = len(settings.protect.columns or settings.mapping().attributes)
    agree = {
        "figures": manifest["figures"] == figures_of(own["attacks"], point["cost"]),
        "point": chosen == {**point, "residual": own["attacks"]},
        "loss": manifest["loss"] == point["loss"]
        and math.isclose(point["loss"] * cells * manifest["records"], point["cost"], rel_tol=1e-9, abs_tol=1e-9),
        "findings": point["sealed"]["areas"] == manifest["figures"]["found_after"]
        and report["found_before"] == manifest["figures"]["found_before"]
        and point["found"] == sum(row["areas_after"] for row in own["attacks"] if row["role"] != "sealed"),
        "sealed attacks": point["sealed"] == sealed_of(own["attacks"]),
        "records": manifest["records"] == manifest["source"]["rows_read"] and manifest["suppressed"] == 0,
        "exchanged columns": set(own["exchanged"]) <= set(manifest["columns"]),
        "words": report["holds"] is (point["sealed"]["areas"] == 0) and report["method"] == own["algorithm"],
        "swaps": point["bound"] is None or point["bound"] <= point["cost"] * (1 + 1e-9),
    }
    return [
        Difference(pack.MANIFEST, f"its {name} do not agree with the rest of it")
        for name, same in agree.items()
        if not same
    ]


def _shared(settings: GroupsSettings) -> Any:
    """The mapping as a release has it: without what only concerns the source."""
    return settings.mapping().model_copy(update={"usually_withheld": (), "usually_swapped": ()})


def rows_again(check: Check, study: Study) -> list[Difference]:
    """Compare every column's counts with the source, and every row but for its place."""
    manifest, data, source, written = check.manifest, check.data, table_of(study), check.written
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
    if moved > 4 * manifest["point"]["swaps"]:  # a pair changes two rows, and each is missed in one file and new in one
        differences.append(Difference(data, "more rows have another place than the swaps can have moved"))
    return differences


def _named(study: Study, run: str, manifest: Manifest) -> Study:
    """The study of the release on the files that the user's own run file names, if that says the same of the attack."""
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
    named = reading(study, run).with_groups(settings.model_copy(update={"auxiliary": files}))
    if auxiliary_files(named) != manifest["own"]["auxiliary"]:
        raise InputError("an auxiliary file is not the one of the release", expected="files with the same SHA-256")
    return named


def _attack_settings(settings: GroupsSettings) -> Any:
    """All that decides what an attack finds, but for where the files are."""
    protect = settings.protect
    location = {"path", "table", "query", "password_file"}
    return (
        settings.mapping(),
        [one.model_dump(exclude=location) for one in settings.auxiliary],
        (settings.expert, settings.exclude, settings.attack),
        (protect.attackers, protect.sealed_attackers, protect.columns, protect.metric),
        (protect.known_seeds, protect.fresh_seeds, protect.sealed_seeds),
    )


def attack_again(check: Check, run: str) -> list[Difference]:
    """Attack the released file again, and compare what is found in it, and in the source, with the manifest."""
    own = check.manifest["own"]
    study = _named(check.study, run, check.manifest)
    if table_of(study).fingerprint != check.manifest["source"]["sha256"]:
        return []  # that it is another source is said already
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
        "what attacks find": first_unlike(own["attacks"], rows) is None,
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
    """What sealed attacks still find."""
    figures = manifest["figures"]
    return f"sealed attacks find {figures['found_after']} of {figures['found_before']}"


SWAPS = Verifier(
    pages=pages_of,
    measure=measure_again,
    rows=rows_again,
    says=says,
    attack=Attack(attack_again, NOT_ATTACKED),
    own_records="its swaps are pairs of its own records",
)
