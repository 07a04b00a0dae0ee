"""The verification of a release: its files, figures, pages and policy, and with the source every row.

The content of a folder is data and never an instruction. The caller of `verify` decides which engine runs and which
files outside the folder are read. Paths, engines and addresses in the folder's own run file are not followed.

This module has what every release has in common. Each method adds a `Verifier`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import escape

from sfumato.base.compare import ABSENT
from sfumato.base.files import unfinished
from sfumato.base.formats import parse_json, read_limited
from sfumato.base.trust import signed
from sfumato.data.settings import EngineOptions
from sfumato.errors import InputError, SfumatoError, StudyError, counted, shortened
from sfumato.release.certificate import certificate_of, check_public, public_digests
from sfumato.release.checker import CERTIFICATE as PUBLIC_CERTIFICATE
from sfumato.release.contents import (
    files_of,
    larger_than_rows,
    other_hierarchies,
    parts_of,
    plain_data,
    strange_in,
    strange_xml,
)
from sfumato.release.dictionary import codebook_of
from sfumato.release.draft import Difference, Entries, ReleasedFolder, Verifier, unlike_entries
from sfumato.release.format import Entry
from sfumato.release.manifest import (
    CERTIFICATE,
    DICTIONARY,
    EXTERNAL,
    FOLDER,
    MANIFEST,
    PRIVATE,
    PUBLIC,
    RUN,
    Content,
    Manifest,
    checksum,
    digest,
    read_manifest,
)
from sfumato.release.policy import Finding
from sfumato.release.publish import data_files, dictionary_pages
from sfumato.release.readback import reading, table_of
from sfumato.report.release_pages import block_of, templates_digest
from sfumato.study import Study, read
from sfumato.version import __version__

SEAL = re.compile(r"(?:[0-9a-f]{64})?")
PAGE_BYTES = 1 << 20  # by which a page of another version may be longer than four times our own
# The errors of our code or of a template if an entry of a manifest is missing or has another type.
BROKEN = (
    KeyError,
    TypeError,
    ValueError,
    AttributeError,
    IndexError,
    ArithmeticError,
    StopIteration,
    RecursionError,
    jinja2.TemplateError,
)


class VerificationError(SfumatoError):
    """An error for a release that differs from the published one, or could not be compared completely."""

    exit_code = 4


@dataclass(frozen=True)
class Verification:
    """The result of a verification: true if everything that was compared agrees.

    The list `compared` names what was compared, and `not_compared` the rest, with what the user must name to compare
    it. Pages that another version made are in `pages`, because their words were not compared. With such pages a release
    is not verified, unless `other_version` accepts this.

    The `counts` are the records released, suppressed and left out by the missing rule, as the manifest states. The
    digest of the public certificate is `certificate`, to be compared with the one that the publisher states. If
    `public` is true, the folder is the public part, of which only the certificate could be compared.

    >>> bool(Verification(Path("release"), ())), bool(Verification(Path("release"), (Difference("a", "is missing"),)))
    (True, False)
    >>> bool(Verification(Path("release"), (), pages=("public/external.html",)))
    False
    """

    folder: Path
    differences: tuple[Difference, ...]
    compared: tuple[str, ...] = ("files", "figures", "reports")
    not_compared: tuple[str, ...] = ()
    pages: tuple[str, ...] = ()
    other_version: bool = False
    counts: Mapping[str, int] = field(default_factory=dict)
    certificate: str = ""
    public: bool = False

    def __bool__(self) -> bool:
        return not self.differences and (self.other_version or not self.pages)

    def raise_if_failed(self) -> None:
        """Raise an error that names every difference and every page that was not compared, if there are any."""
        if self.differences:
            raise VerificationError(
                f"{self.folder} is not as it was published:\n" + "\n".join(f"  {d}" for d in self.differences),
                expected="files, figures and reports as they were published",
            )
        if not self:
            raise VerificationError(
                f"another version drew {counted(len(self.pages), 'page')} of {self.folder}, which were not compared: "
                + ", ".join(self.pages),
                expected="pages that this version can draw again",
                remedy="read them, and verify with other_version = True",
            )

    def as_dict(self) -> dict[str, object]:
        return {
            "verified": bool(self),
            "compared": list(self.compared),
            "not_compared": list(self.not_compared),
            "pages_not_compared": list(self.pages),
            "counts": dict(self.counts),
            "certificate": self.certificate,
            "differences": [{"file": d.file, "what": d.what} for d in self.differences],
        }


def verify_public(folder: Path, source: object, engine: str, options: EngineOptions) -> Verification:
    """Compare the public part of a release with its certificate, for a recipient who has nothing else."""
    if source is not None:
        raise InputError(
            f"{folder} is the public part of a release, whose rows cannot be compared with a source",
            expected="the whole release folder of the publisher",
            remedy="leave the source out to compare the public files with their certificate",
        )
    outcome = check_public(folder, engine, options)
    return Verification(
        folder,
        tuple(Difference(file, what) for file, what in outcome.differences),
        tuple(outcome.compared),
        tuple(outcome.not_compared),
        counts={} if outcome.records is None else {"released": outcome.records},
        certificate=outcome.digest,
        public=True,
    )


def unfinished_release(folder: Path) -> Verification | None:
    """Return the result for a release that was never finished. Raise InputError if a folder is no release."""
    if not folder.is_dir():
        raise InputError(f"there is no folder {folder}", expected="a release folder")
    if unfinished(folder):
        what = "the release was never finished: this is the folder it was built in"
        return Verification(folder, (Difference(MANIFEST, what),))
    if not (folder / MANIFEST).exists() and not (folder / PRIVATE).is_dir():
        raise InputError(f"{folder} is not a release: it has no {MANIFEST}", expected="a release folder")
    return None


def manifest_differences(manifest: Manifest) -> list[Difference]:
    """Compare the content of the manifest with its own checksum."""
    differences = []
    if manifest["checksum"] != checksum(manifest):
        differences.append(Difference(MANIFEST, "its content does not match its checksum: it was changed"))
    if not SEAL.fullmatch(manifest.get("seal", "")):  # no digest covers the seal, so its form is checked
        differences.append(Difference(MANIFEST, "its seal is not one"))
    return differences


def repeated_entries(manifest: Manifest) -> Entries:
    """Return the entries that a manifest states a second time: digests of hierarchies, the search, and its point."""
    own = manifest["own"]
    hierarchies = {
        column: entry | {"sha256": None if entry["file"] is None else manifest["files"].get(entry["file"])}
        for column, entry in manifest["hierarchies"].items()
    }
    if "front" not in own:
        return {"hierarchies": hierarchies}
    entries: dict[str, object] = {"hierarchies": hierarchies, "system": own["front"]["system"]}
    entries |= {f"own.{name}": own["front"][name] for name in ("algorithm", "exact", "objectives")}
    return entries | point_entries(manifest["point"], own["front"]["points"])


def repeated_differences(manifest: Manifest) -> list[Difference]:
    """Compare the entries that a manifest has twice, among them some figures."""
    found = [name for name, *_ in unlike_entries(manifest, repeated_entries(manifest))]
    differences = [f"its {name} is not that of its front or its files" for name in found]
    if "comparison" in manifest["own"]:
        comparison = manifest["own"]["comparison"]
        after = [row["after"] for row in comparison["measures"]]
        if not all(entry in manifest["figures"].values() for entry in after):
            differences.append("its comparison with the source has other figures of the file")
        before, small = (comparison[name] for name in ("small_before", "small_after"))
        if [entry["size"] for entry in before] != [entry["size"] for entry in small]:
            differences.append("its small classes before and after have other sizes")
    return [Difference(MANIFEST, what) for what in differences]


def point_entries(point: Entry, front: Sequence[Entry]) -> dict[str, object]:
    """Return the released point as its front states it.

    If the released plan was drawn at random, this is only what the draw keeps: the lower bound, the details of the
    search, and the loss that the front states as the most that a draw may cause.
    """
    same = next((one for one in front if one["id"] == point["id"]), {})
    details = {name: same.get("details", {}).get(name, ABSENT) for name in point.get("details", {})}
    names = [name for name in point if name != "details"]
    if "promised" in details:
        details["promised"] = same.get("loss")
        details.pop("undrawn", None)
        names = [name for name in ("bound", "suppressed") if name in point]
    entries = {f"point.{name}": same.get(name, ABSENT) for name in names}
    return entries | {f"point.details.{name}": entry for name, entry in details.items()}


def file_differences(folder: Path, manifest: Manifest, known: Collection[str]) -> list[Difference]:
    """Compare the files of a folder with the manifest: none is missing, changed or added.

    `known` are the files that such a release has. Other files are no part of it, even if the manifest lists them.
    """
    expected, data = manifest["files"], manifest["data"]
    there = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*")}
    parts = parts_of(data, expected)
    needed = (set(known) - {data}) | parts if parts else set(known)
    folders = {parent.as_posix() for name in needed for parent in Path(name).parents} | {FOLDER}
    differences = [Difference(name, "the manifest does not list it") for name in sorted(needed - set(expected))]
    for name in sorted({*there, *expected} - needed - {MANIFEST}):
        if name in expected or not (there[name].is_dir() and name in folders):
            differences.append(Difference(name, "it is not part of the release"))
    for name in sorted(needed & set(expected)):
        path = there.get(name)
        if path is None or not path.is_file() or path.is_symlink():
            differences.append(Difference(name, "it is missing"))
        elif digest(path) != expected[name]:
            differences.append(Difference(name, "its bytes have changed"))
    return differences


def unaccepted(findings: Sequence[Finding], manifest: Manifest) -> list[Difference]:
    """Return the violations of the policy for which the manifest states no reason."""
    given = [(entry["rule"], entry["what"]) for entry in manifest["accepted"] if entry["reason"]]
    return [
        Difference(MANIFEST, f"it does not give the reason for accepting this: {finding.what}")
        for finding in findings
        if (finding.rule, finding.what) not in given
    ]


def compare_pages(
    folder: Path, manifest: Manifest, drawn: Mapping[str, str]
) -> tuple[list[Difference], tuple[str, ...]]:
    """Compare the pages with the manifest, word by word if the same templates made them.

    The second result are the pages of another version, whose words were not compared.

    A page that other templates made has other words. If this user published the release on this computer, the seal of
    the manifest proves that the page is the published one. Without a seal, three things are compared: the figures for
    programs, the sentence on each column, and that the page can run or load nothing. The words are not compared. A page
    of our own templates must be equal in every byte. So an edited page is either a difference or not compared, for any
    templates that the manifest states.
    """
    exactly, published = _same_templates(manifest), signed(manifest["checksum"], manifest.get("seal"))
    differences, unread = [], []
    for name, text in drawn.items():
        path = folder / name
        if not path.is_file():
            continue
        if not exactly and published and manifest["files"].get(name) == digest(path):
            continue
        what, known = _page(path, text, manifest, exactly)
        if what:
            differences.append(Difference(name, what))
        elif not known:
            unread.append(name)
    return differences, tuple(unread)


def _same_templates(manifest: Manifest) -> bool:
    """Return whether this program makes the same pages from a manifest as the one that wrote it."""
    same = manifest.get("templates") == templates_digest()
    return same and manifest["versions"].get("sfumato") == __version__


def _page(path: Path, text: str, manifest: Manifest, exactly: bool) -> tuple[str, bool]:
    """Return how a page differs, and whether its words were compared.

    A page from another source may be of any size, so the size that is read is limited.
    """
    differs = "it does not agree with the manifest"
    drawn = text.encode("utf-8")
    try:
        there = read_limited(path, 4 * len(drawn) + PAGE_BYTES)
        if there == drawn or exactly:
            return "" if there == drawn else differs, True
        if path.suffix == ".json":
            return "" if parse_json(there, path.name) == parse_json(drawn, path.name) else differs, True
        said = there.decode("utf-8")
    except (InputError, UnicodeDecodeError):
        return differs, True
    if path.suffix != ".html":
        return "it can do more than be read" if strange_xml(said, text) else "", False
    strange = strange_in(said, text)
    if strange:
        return f"it holds {strange}", False
    if block_of(said) != block_of(text):
        return differs, False
    if path.name == Path(DICTIONARY[1]).name:
        lacking = [column["name"] for column in manifest["dictionary"]["columns"] if not _says(said, column["words"])]
        return f"it does not say what was done to {shortened(lacking)}" if lacking else "", False
    return "", False


def _says(page: str, words: str) -> bool:
    """Return whether a page has a sentence, with any line breaks."""
    return " ".join(str(escape(words)).split()) in " ".join(page.replace("\u00a0", " ").split())


def verify_release(
    verifier_of: Callable[[Content], Verifier],
    folder: str | Path,
    source: Any,
    engine: str,
    options: EngineOptions,
    other_version: bool = False,
) -> Verification:
    """Compare a release folder with the published one, by the verifier of the method in its manifest.

    With `other_version` a release counts as verified although another version made its pages.
    """
    folder = Path(folder)
    if (folder / PUBLIC_CERTIFICATE).is_file() and not (folder / PRIVATE).exists():
        return verify_public(folder, source, engine, options)
    incomplete = unfinished_release(folder)
    if incomplete is not None:
        return incomplete
    differences: list[Difference] = []
    compared, not_compared = ["files", "figures"], list[str]()
    unread: tuple[str, ...] = ()
    try:
        manifest = read_manifest(folder)
        verifier = verifier_of(manifest)
        differences += manifest_differences(manifest)
        study = study_of(manifest).replace(engine=engine, engine_options=options)
        if not plain_data(manifest["data"]):
            raise InputError("it names a data file that a release cannot have", expected=f"a file in {PUBLIC}")
        known = files_of(manifest, study, verifier.files(manifest["data"]))
        differences += file_differences(folder, manifest, known)
        if other_hierarchies(manifest, study):
            differences.append(Difference(MANIFEST, "it names hierarchies of columns that have none"))
    except SfumatoError as error:
        return Verification(folder, (*differences, Difference(MANIFEST, error.what)))
    except BROKEN:
        return Verification(
            folder, (*differences, Difference(MANIFEST, "it lacks entries, or has some of another kind"))
        )
    with _noted(differences, MANIFEST, "it cannot be compared with itself"):
        differences += repeated_differences(manifest)
    given = None if source is None else reading(study, source)
    table = None if given is None else table_of(given)
    drawn: dict[str, str] = {}
    with _noted(differences, MANIFEST, "its pages cannot be drawn"):
        listed = manifest["files"]
        files = {name: listed[f"{PUBLIC}/{name}"] for name in data_files(listed, manifest["data"])}
        drawn = {**dictionary_pages(manifest, files), **verifier.pages(folder, manifest)}
        changed, unread = compare_pages(folder, manifest, drawn)
        differences += changed
        compared += [] if unread else ["reports"]
        not_compared += [f"the words of {name}, which version {_version(manifest)} drew" for name in unread]
    data = str(manifest["data"])
    opened = None
    with _noted(differences, data, "it cannot be measured"):
        opened = ReleasedFolder(
            folder,
            manifest,
            study,
            own_study(folder, manifest).replace(engine=engine, engine_options=options),
            codebook_of(manifest["dictionary"]),
        )
        facts = verifier.of(opened)
        differences += verifier.differences(manifest, facts.entries)
        differences += [*facts.differences, *unaccepted(facts.findings, manifest)]
        more, otherwise = larger_than_rows(opened.written, folder / data, manifest["versions"])
        differences += [Difference(data, more)] if more else []
        not_compared += [otherwise] if otherwise else []
    if opened is not None and EXTERNAL in drawn and not differences:  # it follows from all that was compared above
        with _noted(differences, CERTIFICATE, "it cannot be drawn again"):
            digests = public_digests(manifest["files"])
            certificate = certificate_of(manifest, study, opened.own, block_of(drawn[EXTERNAL]), digests)
            differences += compare_pages(folder, manifest, {CERTIFICATE: certificate})[0]
    with _noted(differences, MANIFEST, "its figures cannot be read"):
        figures = [
            entry for entry in manifest["figures"].values() if isinstance(entry, Mapping)
        ]  # groups: plain counts
        if given is None and any(entry.get("measured_on") == "source" for entry in figures):
            not_compared.append("figures that are measured on the source: name the source to compare them")
    if given is not None and table is not None:
        compared.append("rows")
        if table.fingerprint != manifest["source"]["sha256"]:
            differences.append(Difference(table.title, "it is not the source of this release: its SHA-256 differs"))
        elif opened is not None:
            with _noted(differences, data, "it cannot be compared with the source"):
                entries, torn = verifier.on_source(opened, given)
                differences += [*torn, *verifier.differences(manifest, entries, source=True)]
    if verifier.attack is not None and isinstance(source, str) and source.endswith(".toml"):
        compared.append("attacks")
        if opened is not None:
            with _noted(differences, data, "it cannot be attacked again"):
                differences += verifier.attack.compare(opened, source)
    elif verifier.attack is not None:
        not_compared.append(verifier.attack.otherwise)
    counts = {name: manifest.get(name) for name in ("released", "suppressed", "left_out")}
    return Verification(
        folder,
        tuple(differences),
        tuple(compared),
        tuple(not_compared),
        unread,
        other_version,
        {name: count for name, count in counts.items() if isinstance(count, int)},
        manifest["files"].get(CERTIFICATE, ""),
    )


def _version(manifest: Manifest) -> str:
    """Return the version that made a release, as its manifest states."""
    return str(manifest["versions"].get("sfumato", "unknown"))[:20]


@contextmanager
def _noted(differences: list[Difference], file: str, what: str) -> Iterator[None]:
    """Record a difference if a comparison fails, for any reason."""
    try:
        yield
    except SfumatoError as error:
        differences.append(Difference(file, f"{what}: {error.what}"))
    except (*BROKEN, OSError) as error:
        what = f"{what}: an entry of the manifest is missing or of another kind ({type(error).__name__})"
        differences.append(Difference(MANIFEST, what))


def study_of(manifest: Content) -> Study:
    """Return the published study from the run file in the manifest, with the default engine."""
    try:
        settings = tomllib.loads(manifest["run_file"])
    except tomllib.TOMLDecodeError:
        raise StudyError("the run file in the manifest is not TOML", expected="the run file of the search") from None
    return Study(**{name: value for name, value in settings.items() if name not in ("engine", "engine_options")})


def own_study(folder: Path, manifest: Manifest) -> Study:
    """Return the run file of a release.

    It must read the data file of the manifest, and no other files except the hierarchies of the folder.
    """
    study = read(folder / RUN)
    data = (folder / manifest["data"]).resolve()
    if (study.folder / study.data.path).resolve() != data or data.parent != (folder / PUBLIC).resolve():
        raise InputError(f"{RUN} reads another file than {manifest['data']}", expected="the released file")
    inside = (folder / FOLDER).resolve()
    for name, column in study.columns.items():
        path = getattr(column.hierarchy, "path", None)
        if path is None and column.hierarchy is not None:
            raise InputError(f"{RUN} builds a hierarchy of {name}", expected="the saved hierarchies")
        if path is not None and not (study.folder / path).resolve().is_relative_to(inside):
            raise InputError(f"{RUN} reads a hierarchy outside {FOLDER}", expected="the saved hierarchies")
    if study.population is not None or (study.groups is not None and study.groups.auxiliary):
        raise InputError(f"{RUN} reads other tables", expected="the released file alone")
    return study
