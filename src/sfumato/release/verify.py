"""Check a release again: its files, its figures, and with the source at hand every row."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sfumato.data.address import located
from sfumato.data.engine import open_engine
from sfumato.errors import InputError, SfumatoError
from sfumato.release import pack
from sfumato.release.columns import ColumnRecode, column_recodes
from sfumato.release.facts import guarded, guarded_share, released_loss
from sfumato.release.readback import (
    figure_value,
    figures_of,
    loss_of,
    released_classes,
    same,
)
from sfumato.release.recode import Below, recode
from sfumato.release.rows import differing_rows
from sfumato.release.swap_pack import study_source
from sfumato.release.swapped import changed_marginals, differing_parts
from sfumato.report.release_pages import block_of
from sfumato.study import Study, read


@dataclass(frozen=True)
class Difference:
    """A file of a release, and how it is not as it was published."""

    file: str
    what: str

    def __str__(self) -> str:
        return f"{self.file}: {self.what}"


def verify(folder: str | Path, source: str | Path | None = None) -> list[Difference]:
    """Every way in which a folder differs from what was published; none if it is whole and unchanged."""
    folder = Path(folder)
    if not folder.is_dir():
        raise InputError(f"there is no folder {folder}", expected="a folder that sfumato publish wrote")
    if folder.absolute().parent.name.startswith(f".{folder.absolute().name}-"):
        return [Difference(pack.MANIFEST, "the release was never finished: this is the folder it was built in")]
    try:
        manifest = pack.read_manifest(folder)
        found = _manifest_itself(manifest) + _files(folder, manifest)
        if manifest["system"] == "groups":
            return found + _swapped(folder, manifest, None if source is None else Path(source), whole=not found)
        found += _reports(folder, manifest)
    except SfumatoError as error:
        return [Difference(pack.MANIFEST, error.what)]
    except (KeyError, TypeError, ValueError, AttributeError):
        return [Difference(pack.MANIFEST, "it lacks entries, or has some of another kind")]
    try:
        found += _measured(folder, manifest)
    except SfumatoError as error:
        found.append(Difference(str(manifest["data"]), f"it cannot be measured: {error.what}"))
    except (KeyError, TypeError, ValueError, AttributeError, OSError):
        found.append(Difference(pack.MANIFEST, "its figures cannot be compared"))
    if source is not None:
        found += _source(folder, manifest, str(source), whole=not found)
    return found


def _swapped(folder: Path, manifest: Mapping[str, Any], path: Path | None, whole: bool) -> list[Difference]:
    """A release with places exchanged. Which were is secret, so with the source at hand every column's counts are
    compared, and every row but for its place."""
    found = [
        Difference(name, "its figures are not those of the manifest")
        for name in (pack.INTERNAL, pack.EXTERNAL)
        if (folder / name).is_file()
        and block_of((folder / name).read_text(encoding="utf-8", errors="replace")) != manifest["reports"][name]
    ]
    if path is None or not whole:
        return found
    data = str(manifest["data"])
    try:
        study = study_of(manifest)
        source = study_source(study.with_data(path=str(path.absolute())))
        if source.fingerprint != manifest["source"]["sha256"]:
            return [*found, Difference(path.name, "it is not the source of this release: its SHA-256 is another")]
        written = study_source(read(folder / pack.RUN))
        stays = [name for name in manifest["columns"] if name not in manifest["exchanged"]]
        with open_engine(study.engine, study.engine_options) as engine:
            changed = changed_marginals(engine, source, written, manifest["columns"])
            torn = differing_parts(engine, source, written, stays)
    except SfumatoError as error:
        return [*found, Difference(data, f"it cannot be compared with the source: {error.what}")]
    found += [Difference(data, f"the values of {name} do not occur as often as in the source") for name in changed]
    return found + (
        [Difference(data, f"{torn} rows differ from the source in other columns than places")] if torn else []
    )


def study_of(manifest: Mapping[str, Any]) -> Study:
    """The study that was published, from the run file in the manifest."""
    return Study(**tomllib.loads(manifest["run_file"]))


def columns_of(folder: Path, manifest: Mapping[str, Any]) -> tuple[ColumnRecode, ...]:
    """What the published plan made of each quasi-identifier."""
    trees = pack.load_hierarchies(folder, manifest["hierarchies"])
    return column_recodes(study_of(manifest), manifest["levels"], trees)


def _manifest_itself(manifest: Mapping[str, Any]) -> list[Difference]:
    if manifest["checksum"] != pack.checksum(manifest):
        return [Difference(pack.MANIFEST, "its content does not have its own checksum: it was changed")]
    return []


def _files(folder: Path, manifest: Mapping[str, Any]) -> list[Difference]:
    expected: dict[str, str] = manifest["files"]
    there = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*")}
    folders = {parent.as_posix() for name in expected for parent in Path(name).parents} | {pack.FOLDER}
    needed = {pack.RUN, *pack.DICTIONARY, pack.INTERNAL, pack.EXTERNAL}
    if not any(name.startswith(f"{manifest['data']}/") for name in expected):  # a file, unless it is a folder of parts
        needed.add(manifest["data"])
    needed |= {entry["file"] for entry in manifest["hierarchies"].values() if entry["file"]}
    found = [Difference(name, "the manifest does not list it") for name in sorted(needed - set(expected))]
    for name in sorted(set(there) - set(expected) - {pack.MANIFEST}):
        if not (there[name].is_dir() and name in folders):
            found.append(Difference(name, "it is not part of the release"))
    for name, digest in sorted(expected.items()):
        path = there.get(name)
        if path is None or not path.is_file() or path.is_symlink():
            found.append(Difference(name, "it is missing"))
        elif pack.digest(path) != digest:
            found.append(Difference(name, "its bytes have changed"))
    return found


def _reports(folder: Path, manifest: Mapping[str, Any]) -> list[Difference]:
    """The figures in the reports are the manifest's, and those of the manifest agree with each other."""
    found = []
    for name in (pack.INTERNAL, pack.EXTERNAL):
        path = folder / name
        if path.is_file() and block_of(path.read_text(encoding="utf-8", errors="replace")) != manifest["reports"][name]:
            found.append(Difference(name, "its figures are not those of the manifest"))
    inside, outside = manifest["reports"][pack.INTERNAL], manifest["reports"][pack.EXTERNAL]
    told = {name: manifest[name] for name in ("records", "suppressed", "released", "loss", "figures")}
    if {name: inside[name] for name in told} != told:
        found.append(Difference(pack.INTERNAL, "its figures are not those of the manifest"))
    read_rows = manifest["source"]["rows_read"]
    public = {
        "released": guarded(manifest["released"]),
        "k": int(manifest["figures"]["k"]["value"]),
        "suppressed_share": guarded_share(manifest["suppressed"], manifest["records"]),
        "dropped_share": guarded_share(read_rows - manifest["records"], read_rows),
    }
    if {name: outside[name] for name in public} != public:
        found.append(Difference(pack.EXTERNAL, "its figures are not those of the manifest"))
    return found


def _measured(folder: Path, manifest: Mapping[str, Any]) -> list[Difference]:
    """Measure the data file again, and compare it with the manifest."""
    data, study = str(manifest["data"]), read(folder / pack.RUN)
    suppressed = int(manifest["suppressed"])
    columns = columns_of(folder, manifest)
    classes = released_classes(study, columns, suppressed, starred=manifest["starred"])
    figures = figures_of(study, classes, None)
    pairs = {name: (entry, figures.get(name)) for name, entry in manifest["figures"].items()}
    found = [
        Difference(data, f"its {name} is not the {figure_value(entry):.10g} of the manifest")
        for name, (entry, again) in pairs.items()
        if entry["measured_on"] == "file" and (again is None or not same(figure_value(entry), figure_value(again)))
    ]
    if not same(manifest["loss"], loss_of(classes)):
        found.append(Difference(data, f"its loss is not the {manifest['loss']:.10g} of the manifest"))
    if manifest["reports"][pack.EXTERNAL]["loss_share"] != released_loss(classes, columns, manifest["hierarchies"]):
        found.append(Difference(pack.EXTERNAL, "its loss is not that of the file"))
    if classes.records != manifest["records"]:
        found.append(Difference(data, f"it stands for {classes.records} records, not {manifest['records']}"))
    return found + _point(manifest) + _plan(manifest, columns)


def _point(manifest: Mapping[str, Any]) -> list[Difference]:
    """The manifest's point says what its figures say."""
    point, figures = manifest["point"], manifest["figures"]
    taken = {found["name"] for found in manifest["objectives"] if "taken" in found}
    said = {name: value for name, value in point["values"].items() if name not in taken}
    values = {name: (value, figure_value(figures[name])) for name, value in said.items()}
    values |= {"loss": (point["loss"], manifest["loss"]), "suppressed": (point["suppressed"], manifest["suppressed"])}
    return [
        Difference(pack.MANIFEST, f"its point and its figures differ in {name}")
        for name, (said, measured) in values.items()
        if not same(said, measured)
    ]


def _plan(manifest: Mapping[str, Any], columns: Sequence[ColumnRecode]) -> list[Difference]:
    """The plan of the manifest's point is the one that its hierarchies and levels say."""
    told = manifest["point"]["plan"]
    if manifest["system"] == "cuts":
        found = {column.name: dict(zip(column.tree.leaves, column.groups, strict=True)) for column in columns}
        agrees = {
            name: sorted(group.get(start, -1) for start in told.get(name, ())) == sorted(set(group.values()))
            for name, group in found.items()
        }
    else:
        agrees = {name: told.get(name) == level for name, level in manifest["levels"].items()}
    return [
        Difference(pack.MANIFEST, f"its point and its hierarchies differ in {name}")
        for name, same_plan in agrees.items()
        if not same_plan
    ]


def _source(folder: Path, manifest: Mapping[str, Any], path: str, whole: bool) -> list[Difference]:
    """Recode the source again: the same rows, in any order."""
    data = str(manifest["data"])
    try:
        study = study_of(manifest)
        source = study.with_data(path=located(path, Path())).source()
        if source.fingerprint != manifest["source"]["sha256"]:
            return [Difference(source.title, "it is not the source of this release: its SHA-256 is another")]
        if not whole:  # what differs already is told; against a changed file a count of rows adds nothing
            return []
        below = Below(manifest["point"]["suppress_below"], manifest["point"].get("diversity_below", 0))
        with open_engine(study.engine, study.engine_options) as engine:
            columns = columns_of(folder, manifest)
            recoded = recode(engine, source, study, columns, below, starred=manifest["starred"])
            written = read(folder / pack.RUN).source()
            torn = differing_rows(engine, recoded, written)
    except SfumatoError as error:
        return [Difference(data, f"the source cannot be recoded again: {error.what}")]
    except (KeyError, TypeError, ValueError, AttributeError, OSError):
        return [Difference(pack.MANIFEST, "what it says of the source cannot be used")]
    if torn:
        return [Difference(data, f"{torn} rows differ from the source recoded again")]
    return []
