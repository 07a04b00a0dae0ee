"""Check a release again: its files, its figures, its pages, its policy, and with the source at hand every row.

A folder is data, never instructions: which engine runs, and which files outside the folder are read, is said by whoever
calls `verify`. What the folder's own run file says of paths, engines and addresses is not followed.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sfumato.auditing.holders import counted_as
from sfumato.auditing.whole import WholeFile
from sfumato.errors import InputError, SfumatoError, StudyError
from sfumato.release import pack
from sfumato.release.bulk import larger_than_rows
from sfumato.release.closed import files_of, other_hierarchies, plain_data
from sfumato.release.described import codebook_of, described
from sfumato.release.manifest import Content, Manifest
from sfumato.release.policy import Finding
from sfumato.release.publish import data_files, dictionary_pages
from sfumato.release.sources import reading, table_of
from sfumato.release.verification import (
    BROKEN,
    Difference,
    Verification,
    compare_pages,
    file_differences,
    manifest_differences,
    unaccepted,
    unfinished_release,
)
from sfumato.sources.engines.engine import open_engine
from sfumato.sources.settings import EngineOptions
from sfumato.sources.source import Source
from sfumato.study import Study, read


@dataclass(frozen=True)
class Check:
    """A release that is verified: the study that was published, and `own`, the run file that reads its file."""

    folder: Path
    manifest: Manifest
    study: Study
    own: Study

    @property
    def data(self) -> str:
        return self.manifest["data"]

    @property
    def written(self) -> Source:
        """The released file."""
        return table_of(self.own)


@dataclass(frozen=True)
class Again:
    """What a released file shows when it is measured again, and where only its system sees a difference."""

    whole: WholeFile
    dictionary: Mapping[str, Any]
    findings: Sequence[Finding]
    differences: Sequence[Difference]


@dataclass(frozen=True)
class Attack:
    """How a release is attacked again, if the user names a run file; `otherwise` says what was not compared if not."""

    compare: Callable[[Check, str], list[Difference]]
    otherwise: str


@dataclass(frozen=True)
class Verifier:
    """What a system supplies so that its releases can be verified, shown and applied.

    `pages` draws the reports again, `measure` measures the file again, `rows` compares it with the study's source, and
    `says` is what a release guarantees, in a clause. `files` are those it has beyond the ones of every release, by the
    name of its data file.
    `own_records` is why its plan is of no use for another table, and empty if it can be applied to one.
    """

    pages: Callable[[Path, Content], Mapping[str, str]]
    measure: Callable[[Check], Again]
    rows: Callable[[Check, Study], list[Difference]]
    says: Callable[[Content], str]
    files: Callable[[str], tuple[str, ...]] = lambda _: ()
    attack: Attack | None = None
    own_records: str = ""


def verify_release(
    verifiers: Mapping[str, Verifier],
    folder: str | Path,
    source: Any,
    engine: str,
    options: EngineOptions,
    other_version: bool = False,
) -> Verification:
    """Compare a release folder with what was published, by the verifier of the system that its manifest names.

    With `other_version` a release counts as verified although another version drew its pages.
    """
    folder = Path(folder)
    incomplete = unfinished_release(folder)
    if incomplete is not None:
        return incomplete
    differences: list[Difference] = []
    compared, not_compared = ["files", "figures"], list[str]()
    unread: tuple[str, ...] = ()
    try:
        manifest = pack.read_manifest(folder)
        verifier = verifier_of(verifiers, manifest)
        differences += manifest_differences(manifest)
        study = study_of(manifest).with_engine(engine, options)
        if not plain_data(manifest["data"]):
            raise InputError("it names a data file that a release cannot have", expected=f"a file in {pack.PUBLIC}")
        known = files_of(manifest, study, verifier.files(manifest["data"]))
        differences += file_differences(folder, manifest, known)
        if other_hierarchies(manifest, study):
            differences.append(Difference(pack.MANIFEST, "it names hierarchies of columns that have none"))
    except SfumatoError as error:
        return Verification(folder, (*differences, Difference(pack.MANIFEST, error.what)))
    except BROKEN:
        return Verification(
            folder, (*differences, Difference(pack.MANIFEST, "it lacks entries, or has some of another kind"))
        )
    given = None if source is None else reading(study, source)
    table = None if given is None else table_of(given)
    with _noted(differences, pack.MANIFEST, "its pages cannot be drawn"):
        listed = manifest["files"]
        files = {name: listed[f"{pack.PUBLIC}/{name}"] for name in data_files(listed, manifest["data"])}
        drawn = {**dictionary_pages(manifest, files), **verifier.pages(folder, manifest)}
        pages = compare_pages(folder, manifest, drawn)
        differences += pages.differences
        unread = pages.unread
        compared += [] if unread else ["reports"]
        not_compared += [f"the words of {name}, which version {_version(manifest)} drew" for name in unread]
    data = str(manifest["data"])
    check = None
    with _noted(differences, data, "it cannot be measured"):
        check = Check(folder, manifest, study, own_study(folder, manifest).with_engine(engine, options))
        differences += _measured(check, verifier.measure(check))
        more, otherwise = larger_than_rows(check.written, folder / data, manifest["versions"])
        differences += [Difference(data, more)] if more else []
        not_compared += [otherwise] if otherwise else []
    with _noted(differences, pack.MANIFEST, "its figures cannot be read"):
        figures = [
            entry for entry in manifest["figures"].values() if isinstance(entry, Mapping)
        ]  # groups: plain counts
        if given is None and any(entry.get("measured_on") == "source" for entry in figures):
            not_compared.append("figures that are measured on the source: name the source to compare them")
    if given is not None and table is not None:
        compared.append("rows")
        if table.fingerprint != manifest["source"]["sha256"]:
            differences.append(Difference(table.title, "it is not the source of this release: its SHA-256 differs"))
        elif check is not None:
            with _noted(differences, data, "it cannot be compared with the source"):
                differences += verifier.rows(check, given)
    if verifier.attack is not None and isinstance(source, str) and source.endswith(".toml"):
        compared.append("attacks")
        if check is not None:
            with _noted(differences, data, "it cannot be attacked again"):
                differences += verifier.attack.compare(check, source)
    elif verifier.attack is not None:
        not_compared.append(verifier.attack.otherwise)
    counts = {
        name: count
        for name, count in (
            ("released", manifest["released"]),
            ("suppressed", manifest["suppressed"]),
            ("left_out", manifest.get("left_out")),
        )
        if isinstance(count, int)
    }
    return Verification(folder, tuple(differences), tuple(compared), tuple(not_compared), unread, other_version, counts)


def _version(manifest: Manifest) -> str:
    """The version that made a release, as its manifest says."""
    return str(manifest["versions"].get("sfumato", "unknown"))[:20]


@contextmanager
def _noted(differences: list[Difference], file: str, what: str) -> Iterator[None]:
    """What cannot be compared is a difference, whatever the reason."""
    try:
        yield
    except SfumatoError as error:
        differences.append(Difference(file, f"{what}: {error.what}"))
    except (*BROKEN, OSError) as error:
        what = f"{what}: an entry of the manifest is missing or of another kind ({type(error).__name__})"
        differences.append(Difference(pack.MANIFEST, what))


def _measured(check: Check, again: Again) -> list[Difference]:
    """Compare what was measured again with what every manifest says."""
    manifest, data = check.manifest, check.data
    released = again.whole.everything.records
    with open_engine(check.own.engine, check.own.engine_options) as engine:
        book = codebook_of(manifest["dictionary"])
        dictionary = described(engine, check.written, again.dictionary, book, check.study)
    agree = {
        (data, "it has different columns from those published"): list(check.written.names) == manifest["columns"],
        (data, f"it has {released} rows, not {manifest['released']}"): released == manifest["released"],
        (data, "its uniqueness over all columns is not that of the manifest"): manifest["whole"]
        == again.whole.as_dict(),
        (pack.MANIFEST, "its record counts are inconsistent"): manifest["released"]
        == manifest["records"] - manifest["suppressed"],
        (pack.MANIFEST, "its count of records left out does not follow from the rows that were read"): manifest[
            "left_out"
        ]
        == manifest["source"]["rows_read"] - manifest["records"] + check.study.data.removed + check.study.data.left_out,
        (pack.DICTIONARY[0], "it does not describe the columns as they were released"): manifest["dictionary"]
        == dictionary,
        (pack.MANIFEST, "what it says was counted is not what its run file declares"): manifest["unit"]
        == counted_as(check.study),
        (pack.MANIFEST, "its policy is not that of its run file"): manifest["policy"]
        == check.study.policy.model_dump(mode="json", exclude={"accept"}),
    }
    differences = [Difference(file, what) for (file, what), same in agree.items() if not same]
    return [*differences, *again.differences, *unaccepted(again.findings, manifest)]


def verifier_of(verifiers: Mapping[str, Verifier], manifest: Content) -> Verifier:
    """The verifier of the system that made a release."""
    verifier = verifiers.get(str(manifest["system"]))
    if verifier is None:
        raise InputError("the manifest does not name a known system", expected=" or ".join(verifiers))
    return verifier


def study_of(manifest: Content) -> Study:
    """The study that was published, from the run file in the manifest; its engine is the default one."""
    try:
        settings = tomllib.loads(manifest["run_file"])
    except tomllib.TOMLDecodeError:
        raise StudyError("the run file in the manifest is not TOML", expected="the run file of the search") from None
    return Study(**{name: value for name, value in settings.items() if name not in ("engine", "engine_options")})


def own_study(folder: Path, manifest: Manifest) -> Study:
    """The run file of a release, reading the data file of the manifest and nothing else outside its hierarchies."""
    study = read(folder / pack.RUN)
    data = (folder / manifest["data"]).resolve()
    if (study.folder / study.data.path).resolve() != data or data.parent != (folder / pack.PUBLIC).resolve():
        raise InputError(f"{pack.RUN} reads another file than {manifest['data']}", expected="the released file")
    inside = (folder / pack.FOLDER).resolve()
    for name, column in study.columns.items():
        path = getattr(column.hierarchy, "path", None)
        if path is None and column.hierarchy is not None:
            raise InputError(f"{pack.RUN} builds a hierarchy of {name}", expected="the saved hierarchies")
        if path is not None and not (study.folder / path).resolve().is_relative_to(inside):
            raise InputError(f"{pack.RUN} reads a hierarchy outside {pack.FOLDER}", expected="the saved hierarchies")
    if study.population is not None or (study.groups is not None and study.groups.auxiliary):
        raise InputError(f"{pack.RUN} reads other tables", expected="the released file alone")
    return study
