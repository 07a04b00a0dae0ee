"""The result of a verification, and what of it is the same for every release: manifest, files, pages, policy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2

from sfumato.errors import InputError, SfumatoError
from sfumato.release import pack
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


@dataclass(frozen=True)
class Verification:
    """The result of a check: true if everything that was compared agrees. `compared` says what that was.

    `not_compared` says what could not be, and what would have to be named for it.

    >>> bool(Verification(Path("release"), ())), bool(Verification(Path("release"), (Difference("a", "is missing"),)))
    (True, False)
    """

    folder: Path
    differences: tuple[Difference, ...]
    compared: tuple[str, ...] = ("files", "figures", "reports")
    not_compared: tuple[str, ...] = ()

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
            "not_compared": list(self.not_compared),
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


def file_differences(folder: Path, manifest: Manifest, required: Iterable[str]) -> list[Difference]:
    """Every file is there, none is missing, none has changed; `required` are those that such a release always has."""
    expected = manifest["files"]
    there = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*")}
    folders = {parent.as_posix() for name in expected for parent in Path(name).parents} | {pack.FOLDER}
    needed = set(required)
    if not any(name.startswith(f"{manifest['data']}/") for name in expected):  # a file, unless it is a folder of parts
        needed.add(manifest["data"])
    needed |= {entry["file"] for entry in manifest["hierarchies"].values() if entry["file"]}
    differences = [Difference(name, "the manifest does not list it") for name in sorted(needed - set(expected))]
    for name in sorted(set(there) - set(expected) - {pack.MANIFEST}):
        if not (there[name].is_dir() and name in folders):
            differences.append(Difference(name, "it is not part of the release"))
    for name, digest in sorted(expected.items()):
        path = there.get(name)
        if path is None or not path.is_file() or path.is_symlink():
            differences.append(Difference(name, "it is missing"))
        elif pack.digest(path) != digest:
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


def page_differences(folder: Path, manifest: Manifest, drawn: Mapping[str, str]) -> list[Difference]:
    """The pages say what the manifest says. Another version may draw them otherwise: then their figures count."""
    exactly = manifest["versions"].get("sfumato") == __version__
    differences = []
    for name, text in drawn.items():
        path = folder / name
        if not path.is_file():
            continue
        if not _agrees(path, text, exactly):
            differences.append(Difference(name, "it does not agree with the manifest"))
    return differences


def _agrees(path: Path, text: str, exactly: bool) -> bool:
    """Whether a page says what it should; a page that came from elsewhere may be of any size."""
    drawn = text.encode("utf-8")
    try:
        there = read_limited(path, 4 * len(drawn) + PAGE_BYTES)
        if there == drawn or exactly:
            return there == drawn
        if path.suffix == ".json":
            return bool(parse_json(there, path.name) == parse_json(drawn, path.name))
        return bool(block_of(there.decode("utf-8", errors="replace")) == block_of(text))
    except InputError:
        return False
