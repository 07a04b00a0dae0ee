"""The result of a verification, and what of it is the same for every release: manifest, files, pages, policy."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import escape

from sfumato.errors import InputError, SfumatoError, counted, shortened
from sfumato.release import pack
from sfumato.release.active import strange_in, strange_xml
from sfumato.release.closed import parts_of
from sfumato.release.manifest import Manifest
from sfumato.release.policy import Finding
from sfumato.report.release_pages import block_of
from sfumato.runtime.atomic import unfinished
from sfumato.runtime.json_files import parse_json, read_limited
from sfumato.version import __version__

# What happens where a manifest holds something of another kind than it should, in our code or in a page.
PAGE_BYTES = 1 << 20  # by which a page that another version drew may be longer, beside four times the length
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


@dataclass(frozen=True)
class Difference:
    """A file of a release, and how it is not as it was published."""

    file: str
    what: str

    def __str__(self) -> str:
        return f"{self.file}: {self.what}"


class VerificationError(SfumatoError):
    """A release is not as it was published, or not all of it could be compared."""

    exit_code = 4


@dataclass(frozen=True)
class Verification:
    """The result of a check: true if everything that was compared agrees. `compared` says what that was.

    `not_compared` says what could not be, and what would have to be named for it. `pages` are those that another
    version drew, so that their words were not compared: with them a release is not verified, unless `other_version`
    says that this is known.
    `counts` are the records that were released, suppressed and left out by the missing rule, as the manifest states.

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

    def __bool__(self) -> bool:
        return not self.differences and (self.other_version or not self.pages)

    def raise_if_failed(self) -> None:
        """Raise an error that names every difference, and every page that was not compared, if there is one."""
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

    def as_dict(self) -> dict[str, Any]:
        return {
            "verified": bool(self),
            "compared": list(self.compared),
            "not_compared": list(self.not_compared),
            "pages_not_compared": list(self.pages),
            "counts": dict(self.counts),
            "differences": [{"file": d.file, "what": d.what} for d in self.differences],
        }


def unfinished_release(folder: Path) -> Verification | None:
    """What is to be said of a release that was never finished; InputError if a folder is no release at all."""
    if not folder.is_dir():
        raise InputError(f"there is no folder {folder}", expected="a release folder")
    if unfinished(folder):
        what = "the release was never finished: this is the folder it was built in"
        return Verification(folder, (Difference(pack.MANIFEST, what),))
    if not (folder / pack.MANIFEST).exists() and not (folder / pack.PRIVATE).is_dir():
        raise InputError(f"{folder} is not a release: it has no {pack.MANIFEST}", expected="a release folder")
    return None


def manifest_differences(manifest: Manifest) -> list[Difference]:
    """The content has its own checksum."""
    if manifest["checksum"] != pack.checksum(manifest):
        return [Difference(pack.MANIFEST, "its content does not match its checksum: it was changed")]
    return []


def rows_read_differences(manifest: Manifest, read: int) -> list[Difference]:
    """Compare the rows of the source with those that the manifest says were read: the records left out follow."""
    stated = manifest["source"]["rows_read"]
    return [] if stated == read else [Difference(pack.MANIFEST, f"it states {stated} rows read, the source has {read}")]


def file_differences(folder: Path, manifest: Manifest, known: Collection[str]) -> list[Difference]:
    """Every file is there, none is missing, none has changed, and there are no others.

    `known` are the files that such a release has. What the folder holds beside them is no part of it, whether or not
    the manifest lists it.
    """
    expected, data = manifest["files"], manifest["data"]
    there = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*")}
    parts = parts_of(data, expected)
    needed = (set(known) - {data}) | parts if parts else set(known)
    folders = {parent.as_posix() for name in needed for parent in Path(name).parents} | {pack.FOLDER}
    differences = [Difference(name, "the manifest does not list it") for name in sorted(needed - set(expected))]
    for name in sorted({*there, *expected} - needed - {pack.MANIFEST}):
        if name in expected or not (there[name].is_dir() and name in folders):
            differences.append(Difference(name, "it is not part of the release"))
    for name in sorted(needed & set(expected)):
        path = there.get(name)
        if path is None or not path.is_file() or path.is_symlink():
            differences.append(Difference(name, "it is missing"))
        elif pack.digest(path) != expected[name]:
            differences.append(Difference(name, "its bytes have changed"))
    return differences


def unaccepted(findings: Sequence[Finding], manifest: Manifest) -> list[Difference]:
    """What a release breaks of its policy, where the manifest does not say why that was accepted."""
    given = [(entry["rule"], entry["what"]) for entry in manifest["accepted"] if entry["reason"]]
    return [
        Difference(pack.MANIFEST, f"it does not give the reason for accepting this: {finding.what}")
        for finding in findings
        if (finding.rule, finding.what) not in given
    ]


@dataclass(frozen=True)
class Pages:
    """How the pages of a folder differ from those that are drawn again; `unread` are those of another version."""

    differences: tuple[Difference, ...]
    unread: tuple[str, ...] = ()


def compare_pages(folder: Path, manifest: Manifest, drawn: Mapping[str, str]) -> Pages:
    """Compare the pages with what the manifest says, word by word if this version drew them.

    Another version may draw them otherwise. Then their figures for machines are compared, what they say of each column,
    and that nothing in them can run or load; their words are not.
    """
    exactly = manifest["versions"].get("sfumato") == __version__
    differences, unread = [], []
    for name, text in drawn.items():
        path = folder / name
        if not path.is_file():
            continue
        what, known = _page(path, text, manifest, exactly)
        if what:
            differences.append(Difference(name, what))
        elif not known:
            unread.append(name)
    return Pages(tuple(differences), tuple(unread))


def _page(path: Path, text: str, manifest: Manifest, exactly: bool) -> tuple[str, bool]:
    """How a page differs, and whether its words were compared; a page that came from elsewhere may be of any size."""
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
    if path.name == Path(pack.DICTIONARY[1]).name:
        lacking = [column["name"] for column in manifest["dictionary"]["columns"] if not _says(said, column["words"])]
        return f"it does not say what was done to {shortened(lacking)}" if lacking else "", False
    return "", False


def _says(page: str, words: str) -> bool:
    """Whether a page has a sentence, however it breaks lines."""
    return " ".join(str(escape(words)).split()) in " ".join(page.replace("\u00a0", " ").split())
