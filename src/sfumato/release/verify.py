"""Check a release again: its files, its figures, its pages, and with the source at hand every row.

A folder is data, never instructions: which engine runs, and which files outside the folder are read, is said by whoever
calls `verify`. What the folder's own run file says of paths, engines and addresses is not followed.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sfumato.data.atomic import unfinished
from sfumato.data.engine import open_engine
from sfumato.data.settings import EngineOptions
from sfumato.data.source import Source
from sfumato.errors import InputError, SfumatoError, StudyError
from sfumato.measures.whole import whole_file
from sfumato.release import pack
from sfumato.release.columns import ColumnRecode, column_recodes
from sfumato.release.contents import pages_of
from sfumato.release.dictionary import data_dictionary
from sfumato.release.readback import figure_value, figures_of, loss_of, released_classes, same
from sfumato.release.recode import Below, recode
from sfumato.release.rows import differing_rows
from sfumato.release.sources import given_source
from sfumato.release.swap_pack import study_source
from sfumato.release.swapped import changed_marginals, differing_parts
from sfumato.report.release_pages import block_of
from sfumato.study import Study, read
from sfumato.version import __version__

BROKEN = (KeyError, TypeError, ValueError, AttributeError, IndexError)


@dataclass(frozen=True)
class Difference:
    """A file of a release, and how it is not as it was published."""

    file: str
    what: str

    def __str__(self) -> str:
        return f"{self.file}: {self.what}"


@dataclass(frozen=True)
class Verification:
    """The result of a check: true if everything that was compared agrees. `compared` says what that was.

    >>> bool(Verification(Path("release"), ())), bool(Verification(Path("release"), (Difference("a", "is missing"),)))
    (True, False)
    """

    folder: Path
    differences: tuple[Difference, ...]
    compared: tuple[str, ...] = ("files", "figures", "reports")

    def __bool__(self) -> bool:
        return not self.differences

    def raise_if_failed(self) -> None:
        """Raise an error that names every difference, if there is one."""
        if self.differences:
            raise SfumatoError(
                f"{self.folder} is not as it was published:\n" + "\n".join(f"  {d}" for d in self.differences),
                expected="files, figures and reports as they were published",
            )

    def as_dict(self) -> dict[str, Any]:
        return {
            "verified": bool(self),
            "compared": list(self.compared),
            "differences": [{"file": d.file, "what": d.what} for d in self.differences],
        }


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
    if not folder.is_dir():
        raise InputError(f"there is no folder {folder}", expected="a release folder")
    if unfinished(folder):
        incomplete = Difference(pack.MANIFEST, "the release was never finished: this is the folder it was built in")
        return Verification(folder, (incomplete,))
    if not (folder / pack.MANIFEST).exists() and not (folder / pack.PRIVATE).is_dir():
        raise InputError(f"{folder} is not a release: it has no {pack.MANIFEST}", expected="a release folder")
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
            found = _manifest_itself(manifest) + _files(self.folder, manifest)
            if manifest["system"] == "groups":
                return found + self._swapped(manifest, source, whole=not found)
            found += _pages(self.folder, manifest, pages_of(manifest))
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

    def _swapped(self, manifest: Mapping[str, Any], path: str | None, whole: bool) -> list[Difference]:
        """A release with places exchanged. Which were is secret, so with the source at hand every column's counts are
        compared, and every row but for its place."""
        found = [
            Difference(name, "its figures are not those of the manifest")
            for name in (pack.INTERNAL, pack.EXTERNAL)
            if (self.folder / name).is_file()
            and block_of((self.folder / name).read_text(encoding="utf-8", errors="replace"))
            != manifest["reports"][name]
        ]
        if path is None or not whole:
            return found
        self.compared += ("rows",)
        data = str(manifest["data"])
        try:
            study = study_of(manifest).with_engine(self.engine, self.options)
            source = study_source(study.with_data(path=str(Path(path).absolute())))
            if source.fingerprint != manifest["source"]["sha256"]:
                return [
                    *found,
                    Difference(source.title, "it is not the source of this release: its SHA-256 is another"),
                ]
            written = self._released(manifest)
            stays = [name for name in manifest["columns"] if name not in manifest["exchanged"]]
            with open_engine(self.engine, self.options) as engine:
                changed = changed_marginals(engine, source, written, manifest["columns"])
                torn = differing_parts(engine, source, written, stays)
        except SfumatoError as error:
            return [*found, Difference(data, f"it cannot be compared with the source: {error.what}")]
        found += [Difference(data, f"the values of {name} do not occur as often as in the source") for name in changed]
        return found + (
            [Difference(data, f"{torn} rows differ from the source in other columns than places")] if torn else []
        )

    def _released(self, manifest: Mapping[str, Any]) -> Source:
        return study_source(
            read(self.folder / pack.RUN).with_data(path=str((self.folder / manifest["data"]).resolve()))
        )


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


def _pages(folder: Path, manifest: Mapping[str, Any], drawn: Mapping[str, str]) -> list[Difference]:
    """The pages say what the manifest says. Another version may draw them otherwise: then their figures count."""
    exactly = manifest["versions"].get("sfumato") == __version__
    found = []
    for name, text in drawn.items():
        path = folder / name
        if not path.is_file():
            continue
        there = path.read_text(encoding="utf-8", errors="replace")
        if name.endswith(".json"):
            agrees = there == text or (not exactly and json.loads(there) == json.loads(text))
        else:
            agrees = there == text if exactly else block_of(there) == block_of(text)
        if not agrees:
            found.append(Difference(name, "it does not say what the manifest says"))
    return found


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
