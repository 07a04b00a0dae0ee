"""Check the release of a protected group again: files, figures and pages; with the source every row but for its place;
and with a run file of the user's own every attack on the released file.

Which pairs were exchanged is secret and stands in no release, so it cannot be checked here what they cost, nor how many
true members each area has after the exchange: both were worked out from the pairs when the release was made.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sfumato.data.engine import open_engine
from sfumato.data.group_settings import GroupsSettings
from sfumato.data.settings import EngineOptions
from sfumato.data.source import Source
from sfumato.errors import InputError, SfumatoError, UnreachableError
from sfumato.measures.whole import whole_file
from sfumato.release import pack
from sfumato.release.policy import unique_findings
from sfumato.release.sources import reading
from sfumato.release.swap_pack import attack_findings, dictionary_of, figures_of, pages_of, study_source
from sfumato.release.swapped import changed_marginals, differing_parts
from sfumato.release.verification import (
    BROKEN,
    Difference,
    Verification,
    file_differences,
    manifest_differences,
    page_differences,
    unaccepted,
)
from sfumato.release.verify import study_of
from sfumato.study import Study, read
from sfumato.systems.groups.files import read_target, settings_of
from sfumato.systems.groups.protect import attacks_on, truths_of
from sfumato.systems.groups.publish import auxiliary_files
from sfumato.systems.groups.residual import residual_on
from sfumato.systems.unlike import first_unlike

REQUIRED = (pack.RUN, *pack.DICTIONARY, pack.INTERNAL, pack.EXTERNAL)
NOT_ATTACKED = "what attacks find: name as the source the run file that says what they learn from"


def verify_swaps(
    folder: Path, manifest: Mapping[str, Any], source: str | None, engine: str, options: EngineOptions
) -> Verification:
    """Compare the folder of a protected group with what was published.

    With a table as `source` its rows are compared; with a run file the released file is attacked again as well.
    """
    found = manifest_differences(manifest) + file_differences(folder, manifest, REQUIRED)
    compared: tuple[str, ...] = ("files", "figures", "reports")
    attacked = source is not None and source.endswith(".toml")
    try:
        found += page_differences(folder, manifest, pages_of(manifest)) + _figures(manifest)
        own = _own(folder, manifest).with_engine(engine, options)
        study = study_of(manifest).with_engine(engine, options)
        found += _measured(manifest, study, own)
        if source is not None:
            compared += ("rows",)
            found += _rows(manifest, reading(study, source), own)
        if source is not None and attacked:
            compared += ("attacks",)
            found += _attacks(manifest, _named(study, source, manifest), own)
    except SfumatoError as error:
        found.append(Difference(str(manifest["data"]), f"it cannot be compared: {error.what}"))
    except (*BROKEN, OSError):
        found.append(Difference(pack.MANIFEST, "its figures cannot be compared"))
    return Verification(folder, tuple(found), compared, () if attacked else (NOT_ATTACKED,))


def _figures(manifest: Mapping[str, Any]) -> list[Difference]:
    """The manifest agrees with itself: figures, point, attacks, and what the protection says of them."""
    told, point = manifest["protection"], manifest["point"]
    chosen = told["points"][told["chosen"]]
    cells = len(settings_of(study_of(manifest)).protect.columns or settings_of(study_of(manifest)).mapping().attributes)
    agree = {
        "figures": manifest["figures"] == figures_of(manifest["attacks"], point["cost"]),
        "point": chosen == {**point, "residual": manifest["attacks"]},
        "loss": manifest["loss"] == point["loss"]
        and math.isclose(point["loss"] * cells * manifest["records"], point["cost"], rel_tol=1e-9, abs_tol=1e-9),
        "findings": point["found"] == manifest["figures"]["found_after"]
        and told["found_before"] == manifest["figures"]["found_before"],
        "records": manifest["records"] == manifest["released"] == manifest["source"]["rows_read"]
        and manifest["suppressed"] == 0,
        "exchanged columns": set(manifest["exchanged"]) <= set(manifest["columns"]),
        "words": told["holds"] is (point["found"] == 0) and told["method"] == manifest["algorithm"],
        "swaps": point["bound"] is None or point["bound"] <= point["cost"] * (1 + 1e-9),
    }
    return [
        Difference(pack.MANIFEST, f"its {name} do not agree with the rest of it")
        for name, same in agree.items()
        if not same
    ]


def _own(folder: Path, manifest: Mapping[str, Any]) -> Study:
    """The run file of the release, reading the data file of the manifest and nothing else."""
    study = read(folder / pack.RUN)
    data = (folder / manifest["data"]).resolve()
    public = (folder / pack.PUBLIC).resolve()
    if (study.folder / study.data.path).resolve() != data or data.parent != public:
        raise InputError(f"{pack.RUN} reads another file than {manifest['data']}", expected="the released file")
    if study.population is not None or settings_of(study).auxiliary:
        raise InputError(f"{pack.RUN} reads other tables", expected="the released file alone")
    if settings_of(study).mapping() != _shared(settings_of(study_of(manifest))):
        raise InputError(f"{pack.RUN} maps its columns otherwise", expected="the mapping of the release")
    return study


def _shared(settings: GroupsSettings) -> Any:
    """The mapping as a release has it: without what only concerns the source."""
    return settings.mapping().model_copy(update={"usually_withheld": (), "usually_swapped": ()})


def _measured(manifest: Mapping[str, Any], study: Study, own: Study) -> list[Difference]:
    """Measure the released file again: its columns, its rows, how unique they are; and what was accepted for it."""
    data, written = str(manifest["data"]), study_source(own)
    with open_engine(own.engine, own.engine_options) as engine:
        engine.attach(written, "written")
        whole = whole_file(engine, study, written)
    found = []
    if list(written.names) != manifest["columns"]:
        found.append(Difference(data, "it has other columns than were published"))
    if whole.everything.records != manifest["records"]:
        found.append(Difference(data, f"it has {whole.everything.records} rows, not {manifest['records']}"))
    if whole.as_dict() != manifest["whole"]:
        found.append(Difference(data, "its uniqueness over all columns is not that of the manifest"))
    left_out = manifest["dictionary"]["columns_left_out"]
    expected = dictionary_of(
        manifest["columns"], manifest["exchanged"], Path(data).name, len(manifest["columns"]) + left_out
    )
    if manifest["dictionary"] != expected:
        found.append(Difference(pack.DICTIONARY[0], "it does not describe the columns as they were exchanged"))
    if manifest["policy"] != study.policy.model_dump(mode="json", exclude={"accept"}):
        found.append(Difference(pack.MANIFEST, "its policy is not that of its run file"))
    broken = attack_findings(manifest["attacks"]) + unique_findings(study.policy, whole)
    return found + unaccepted(broken, manifest)


def _rows(manifest: Mapping[str, Any], study: Study, own: Study) -> list[Difference]:
    """Compare every column's counts with the source, and every row but for its place."""
    data, source, written = str(manifest["data"]), study_source(study), study_source(own)
    if source.fingerprint != manifest["source"]["sha256"]:
        return [_other_source(source)]
    stays = [name for name in manifest["columns"] if name not in manifest["exchanged"]]
    with open_engine(study.engine, study.engine_options) as engine:
        changed = changed_marginals(engine, source, written, manifest["columns"])
        torn = differing_parts(engine, source, written, stays)
        moved = differing_parts(engine, source, written, manifest["columns"])
    found = [Difference(data, f"the values of {name} do not occur as often as in the source") for name in changed]
    if torn:
        found.append(Difference(data, f"{torn} rows differ from the source in other columns than places"))
    if moved > 4 * manifest["point"]["swaps"]:  # a pair changes two rows, and each is missed in one file and new in one
        found.append(Difference(data, "more rows have another place than the swaps can have moved"))
    return found


def _other_source(source: Source) -> Difference:
    return Difference(source.title, "it is not the source of this release: its SHA-256 is another")


def _named(study: Study, run: str, manifest: Mapping[str, Any]) -> Study:
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
    if auxiliary_files(named) != manifest["auxiliary"]:
        raise InputError("an auxiliary file is not the one of the release", expected="files with the same SHA-256")
    return named


def _attack_settings(settings: GroupsSettings) -> Any:
    """All that decides what an attack finds, but for where the files are."""
    protect = settings.protect
    place = {"path", "table", "query", "password_file"}
    return (
        settings.mapping(),
        [one.model_dump(exclude=place) for one in settings.auxiliary],
        (settings.expert, settings.exclude, settings.attack),
        (protect.attackers, protect.known_seeds, protect.fresh_seeds, protect.columns, protect.metric),
    )


def _attacks(manifest: Mapping[str, Any], study: Study, own: Study) -> list[Difference]:
    """Attack the released file again, and compare what is found in it, and in the source, with the manifest."""
    if study_source(study).fingerprint != manifest["source"]["sha256"]:
        return []  # that it is another source is said already
    target, written = read_target(study), read_target(own)
    truths = truths_of(study, target)
    try:
        known, fresh, silent = attacks_on(study, target, truths)
    except UnreachableError as error:
        return [Difference(str(manifest["data"]), f"it cannot be attacked again: {error.what}")]
    rows = [residual_on(one, written, known=True).as_dict() for one in known]
    rows += [residual_on(one, written, known=False).as_dict() for one in fresh]
    told = manifest["protection"]
    areas = [
        {"area": area, "records": int(size), "q": {truth.group: int(truth.quantity[i]) for truth in truths}}
        for i, (area, size) in enumerate(zip(target.areas, target.sizes(), strict=True))
    ]
    said = [{name: area[name] for name in ("area", "records", "q")} for area in told["areas"]]
    sensitive = sorted({area for truth in truths for area in truth.sensitive.areas})
    agree = {
        "what attacks find": first_unlike(manifest["attacks"], rows) is None,
        "the attackers that were left out": told["silent"] == silent,
        "the areas that must not be found": told["sensitive"] == [target.areas[i] for i in sensitive],
        "the true members": said == areas,
    }
    return [
        Difference(str(manifest["data"]), f"attacked again, {name} is not what the manifest says")
        for name, same in agree.items()
        if not same
    ]
