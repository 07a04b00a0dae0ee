"""Check a release again: its files, its figures, its pages, and with the source at hand every row.

A folder is data, never instructions: which engine runs, and which files outside the folder are read, is said by whoever
calls `verify`. What the folder's own run file says of paths, engines and addresses is not followed.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sfumato.data.engine import open_engine
from sfumato.data.settings import EngineOptions
from sfumato.errors import InputError, SfumatoError, StudyError
from sfumato.measures.whole import whole_file
from sfumato.release import pack
from sfumato.release.columns import ColumnRecode, column_recodes
from sfumato.release.contents import pages_of
from sfumato.release.dictionary import data_dictionary, labels_in
from sfumato.release.facts import released_loss
from sfumato.release.readback import figure_value, figures_of, loss_of, released_classes, same
from sfumato.release.recode import Below, recode
from sfumato.release.rows import differing_rows
from sfumato.release.sources import given_source
from sfumato.release.verification import (
    BROKEN,
    Difference,
    Verification,
    file_differences,
    manifest_differences,
    page_differences,
    unfinished_release,
)
from sfumato.study import Study, read

REQUIRED = (pack.RUN, *pack.DICTIONARY, pack.INTERNAL, pack.EXTERNAL)


def verify(
    folder: str | Path,
    source: str | Path | None = None,
    *,
    engine: str = "duckdb",
    engine_options: EngineOptions | None = None,
) -> Verification:
    """Compare a release folder with what was published, and with its source if that is given.

    `source` is the table, or a run file of one's own that says how to read it (needed for a query of a database).
    """
    folder = Path(folder)
    incomplete = unfinished_release(folder)
    if incomplete is not None:
        return incomplete
    check = _Check(folder, engine, engine_options or EngineOptions())
    differences = tuple(check.run(None if source is None else str(source)))
    return Verification(folder, differences, check.compared)


@dataclass
class _Check:
    """One verification: the folder, and the engine that the caller chose."""

    folder: Path
    engine: str
    options: EngineOptions
    compared: tuple[str, ...] = ("files", "figures", "reports")

    def run(self, source: str | None) -> list[Difference]:
        try:
            manifest = pack.read_manifest(self.folder)
            found = manifest_differences(manifest) + file_differences(self.folder, manifest, REQUIRED)
            found += page_differences(self.folder, manifest, pages_of(manifest))
        except SfumatoError as error:
            return [Difference(pack.MANIFEST, error.what)]
        except BROKEN:
            return [Difference(pack.MANIFEST, "it lacks entries, or has some of another kind")]
        try:
            found += self._measured(manifest)
        except SfumatoError as error:
            found.append(Difference(str(manifest["data"]), f"it cannot be measured: {error.what}"))
        except (*BROKEN, OSError):
            found.append(Difference(pack.MANIFEST, "its figures cannot be compared"))
        if source is not None:
            self.compared += ("rows",)
            found += self._source(manifest, source, whole=not found)
        return found

    def _measured(self, manifest: Mapping[str, Any]) -> list[Difference]:
        """Measure the data file of the manifest again, and compare every figure and the dictionary."""
        data, study = str(manifest["data"]), self._own(manifest)
        columns = columns_of(self.folder, manifest)
        classes = released_classes(study, columns, int(manifest["suppressed"]))
        figures = figures_of(study, classes, None)
        pairs = {name: (entry, figures.get(name)) for name, entry in manifest["figures"].items()}
        found = [
            Difference(data, f"its {name} is not the {figure_value(entry):.10g} of the manifest")
            for name, (entry, again) in pairs.items()
            if entry["measured_on"] == "file" and (again is None or not same(figure_value(entry), figure_value(again)))
        ]
        if not same(manifest["loss"], loss_of(classes)):
            found.append(Difference(data, f"its loss is not the {manifest['loss']:.10g} of the manifest"))
        if manifest["released_loss"] != released_loss(classes, columns, manifest["hierarchies"]):
            found.append(Difference(pack.EXTERNAL, "its loss is not that of the file"))
        if classes.records != manifest["records"]:
            found.append(Difference(data, f"it stands for {classes.records} records, not {manifest['records']}"))
        if manifest["released"] != manifest["records"] - manifest["suppressed"]:
            found.append(Difference(pack.MANIFEST, "its counts of records do not add up"))
        written = study.source()
        with open_engine(self.engine, self.options) as engine:
            engine.attach(written, "written")
            if whole_file(engine, study, written).as_dict() != manifest["whole"]:
                found.append(Difference(data, "its uniqueness over all columns is not that of the manifest"))
        expected = data_dictionary(
            study_of(manifest),
            written.names,
            {column.name: column for column in columns},
            Path(data).name,
            manifest["dictionary"]["columns_left_out"],
            labels_in(classes),
        )
        if manifest["dictionary"] != expected:
            found.append(Difference(pack.DICTIONARY[0], "it does not describe the columns as they were recoded"))
        return found + _point(manifest) + _plan(manifest, columns)

    def _own(self, manifest: Mapping[str, Any]) -> Study:
        """The run file of the release, reading the data file of the manifest and nothing else."""
        study = read(self.folder / pack.RUN)
        data = (self.folder / manifest["data"]).resolve()
        if (study.folder / study.data.path).resolve() != data or not data.is_relative_to(self.folder.resolve()):
            raise InputError(f"{pack.RUN} reads another file than {manifest['data']}", expected="the released file")
        inside = (self.folder / pack.FOLDER).resolve()
        for name, column in study.columns.items():
            path = getattr(column.hierarchy, "path", None)
            if path is None and column.hierarchy is not None:
                raise InputError(f"{pack.RUN} builds a hierarchy of {name}", expected="the saved hierarchies")
            if path is not None and not (study.folder / path).resolve().is_relative_to(inside):
                raise InputError(
                    f"{pack.RUN} reads a hierarchy outside {pack.FOLDER}", expected="the saved hierarchies"
                )
        if study.population is not None or study.groups is not None:
            raise InputError(f"{pack.RUN} reads other tables", expected="the released file alone")
        return study.with_engine(self.engine, self.options)

    def _source(self, manifest: Mapping[str, Any], path: str, whole: bool) -> list[Difference]:
        """Recode the source again: the same rows, in any order."""
        data = str(manifest["data"])
        study = study_of(manifest).with_engine(self.engine, self.options)
        source = given_source(study, path)
        try:
            if source.fingerprint != manifest["source"]["sha256"]:
                return [Difference(source.title, "it is not the source of this release: its SHA-256 is another")]
            if not whole:  # what differs already is told; against a changed file a count of rows adds nothing
                return []
            below = Below(manifest["point"]["suppress_below"], manifest["point"].get("diversity_below", 0))
            written = self._own(manifest).source()
            with open_engine(self.engine, self.options) as engine:
                recoded = recode(engine, source, study, columns_of(self.folder, manifest), below)
                torn = differing_rows(engine, recoded, written)
        except SfumatoError as error:
            return [Difference(data, f"the source cannot be recoded again: {error.what}")]
        except (*BROKEN, OSError):
            return [Difference(pack.MANIFEST, "what it says of the source cannot be used")]
        return [Difference(data, f"{torn} rows differ from the source recoded again")] if torn else []


def study_of(manifest: Mapping[str, Any]) -> Study:
    """The study that was published, from the run file in the manifest; its engine is the default one."""
    try:
        settings = tomllib.loads(manifest["run_file"])
    except tomllib.TOMLDecodeError:
        raise StudyError("the run file in the manifest is not TOML", expected="the run file of the search") from None
    return Study(**{name: value for name, value in settings.items() if name not in ("engine", "engine_options")})


def columns_of(folder: Path, manifest: Mapping[str, Any]) -> tuple[ColumnRecode, ...]:
    """What the published plan made of each quasi-identifier."""
    trees = pack.load_hierarchies(folder, manifest["hierarchies"])
    return column_recodes(study_of(manifest), manifest["levels"], trees)


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
