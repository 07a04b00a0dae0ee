"""Publication: write a file by a plan, read it back, measure it, and keep it only if all checks succeed.

The checks compare the file with the plan, with the figures of the search, with the policy, and with earlier releases. A
rehearsal does the same in a folder that is deleted.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, cast

from sfumato.base.compare import ABSENT, shown, unlike
from sfumato.base.files import new_folder, refuse_existing_folder
from sfumato.base.notebook import card, parts_picture, short
from sfumato.base.progress import Stage, recording, stage
from sfumato.data.engine import open_engine
from sfumato.data.profile import drawn_rows
from sfumato.errors import SfumatoError
from sfumato.front import versions
from sfumato.release.certificate import certificate_of, public_digests
from sfumato.release.draft import Draft, Entries, Facts, ReleasedFolder, entry_at
from sfumato.release.history.check import Comparison, check, entered
from sfumato.release.manifest import (
    CERTIFICATE,
    DICTIONARY,
    EXTERNAL,
    FORMAT,
    PUBLIC,
    RUN,
    Content,
    Manifest,
    digest,
    files_in,
    make_parts,
    write_manifest,
)
from sfumato.release.metadata import metadata_pages
from sfumato.release.policy import (
    Finding,
    accepted_findings,
    covering,
    refuse_unaccepted,
    refuse_unstated_units,
    unit_findings,
)
from sfumato.release.readback import require_source, table_of
from sfumato.report.release_pages import block_of, dictionary_page, templates_digest
from sfumato.study import read


@dataclass(frozen=True, repr=False)
class Release:
    """A published folder with its file, its reports and its manifest, and warnings for the publisher.

    The files that may be published are in `public`. All others remain with the publisher.
    """

    folder: Path
    data: Path
    manifest: Manifest
    warnings: tuple[str, ...] = ()
    stages: tuple[Stage, ...] = ()

    def __repr__(self) -> str:
        about = self.manifest
        return (
            f"<Release {self.folder.name}: {about['released']:,} of {about['source']['rows_read']:,} records, "
            f"loss {100 * about['loss']:.1f} %>"
        )

    def _repr_html_(self) -> str:
        about = self.manifest
        figures = {name: about["figures"].get(name, {}).get("value") for name in about["point"].get("values", {})}
        rows = [["may leave", str(self.public)], ["file", self.data.name]]
        rows += [[f"{name}, measured on the file", short(value)] for name, value in figures.items()]
        rows += [["loss", f"{100 * about['loss']:.1f} %"]]
        parts = [("released", float(about["released"])), ("suppressed", float(about["suppressed"]))]
        parts += [("left out", float(about["left_out"]))] if about["left_out"] else []
        return card(repr(self)[1:-1], ["release", ""], rows, parts_picture(parts), self.warnings)

    @property
    def public(self) -> Path:
        return self.folder / PUBLIC

    def as_dict(self) -> dict[str, object]:
        """Return the release as `sfumato publish --json` prints it.

        Returns:
            A dictionary.
        """
        names = (
            "point",
            "records",
            "suppressed",
            "left_out",
            "released",
            "loss",
            "figures",
            "whole",
            "accepted",
            "files",
        )
        entries: Mapping[str, object] = self.manifest
        return {
            "folder": str(self.folder),
            "public": str(self.public),
            "data": str(self.data),
            **{name: entries[name] for name in names},
            "warnings": list(self.warnings),
            "stages": [stage.as_dict() for stage in self.stages],
        }


def publish_draft(draft: Draft, folder: str | Path, *, reason: str = "", state: str | Path | None = None) -> Release:
    """Write a release of any method as a new folder, completely or not at all, and enter it in the ledger.

    The folder is removed if the table is not that of the plan or changes meanwhile, if the file does not read back as
    intended, if a figure differs, or if a violation of the policy was not accepted.
    """
    folder = Path(folder).absolute()
    refuse_existing_folder(folder)
    require_source(draft.source, draft.fingerprint)
    accept = draft.study.policy.accept
    with recording() as recorder:
        refuse_unstated_units(draft.study, draft.source)
        refuse_unaccepted(draft.foresee(), accept, draft.inherited, written=False)
        with ExitStack() as stack, new_folder(folder, private=False) as inside:
            built = build(draft, inside, state)
            refuse_unaccepted(built.findings, accept, draft.inherited)
            with stage("write the reports"):
                manifest = _describe(draft, inside, built, reason)
            require_source(table_of(draft.study), draft.fingerprint)
            again = partial(compared_again, draft, state)
            late = stack.enter_context(entered(built.comparison, folder, again))  # ends after the folder has its name
    return Release(folder, folder / draft.data, manifest, (*manifest["warnings"], *late), tuple(recorder.done))


@dataclass(frozen=True)
class Built:
    """A written folder: the entries of its manifest, what violates the policy, and its comparison with the ledger."""

    content: Content
    findings: Sequence[Finding]
    comparison: Comparison | None


def build(draft: Draft, folder: Path, state: str | Path | None) -> Built:
    """Return a written folder with its facts, which must agree with the figures of the search.

    The release is compared with earlier releases before the file is written, and measured after. The data dictionary
    has the labels that occur in the file.
    """
    study, source = draft.study, draft.source
    make_parts(folder)
    draft.prepare(folder)
    with open_engine(study.engine, study.engine_options) as engine:
        description = draft.describe(engine)
        comparison = None
        if description is not None:
            with stage("compare with earlier releases"):
                comparison = check(engine, study, source, description, state=state)
        with stage("write the file"):
            own = draft.write(engine, folder)
        draft.compare(engine, own)
    stated = draft.stated(own)
    about: dict[str, Any] = {
        "format": FORMAT,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "system": draft.system,
        "source": {"name": source.title, "sha256": draft.fingerprint, "rows_read": stated.pop("rows_read")},
        "data": draft.data,
        "versions": versions(study.engine),
        "templates": templates_digest(),
        "hierarchies": {},
    }
    content = cast("Content", about | stated)
    facts = draft.verifier.of(ReleasedFolder(folder, content, study, own, source.codebook))
    refuse_other_facts(content, facts)
    enter(content, facts.entries)
    if facts.classes is not None:
        enter(content, draft.compared(content, facts.classes))
    content.setdefault("warnings", [])
    content["warnings"] += () if comparison is None else comparison.warnings
    findings = () if comparison is None else comparison.findings
    return Built(content, [*findings, *draft.findings, *facts.findings], comparison)


def refuse_other_facts(content: Content, facts: Facts) -> None:
    """Raise unless the facts of a written folder are those that the plan and the search state."""
    for path, entry in facts.entries.items():
        for name, expected, _ in unlike(entry_at(content, path), entry, path):
            if expected is not ABSENT:
                name = name.removeprefix("figures.").removesuffix(".value")
                raise SfumatoError(
                    f"{name} of the written file is not {shown(expected)} as in the search",
                    expected="the same figures on the file as in the search; nothing was released",
                    remedy="search again with this version",
                )
    if facts.differences:
        raise SfumatoError(str(facts.differences[0]), expected="a folder that agrees with itself; nothing was released")


def enter(content: Content, entries: Entries) -> None:
    """Set entries of a manifest by their paths. Entries of the point stay as the search has written them."""
    for path, entry in entries.items():
        *outer, last = path.split(".")
        if outer[:1] != ["point"]:
            inner: Any = content
            for name in outer:
                inner = inner[name]
            inner[last] = entry


def compared_again(draft: Draft, state: str | Path | None) -> Comparison | None:
    """Compare a release with the present ledger."""
    with open_engine(draft.study.engine, draft.study.engine_options) as engine:
        description = draft.describe(engine)
        return None if description is None else check(engine, draft.study, draft.source, description, state=state)


def _describe(draft: Draft, folder: Path, built: Built, reason: str) -> Manifest:
    """Write the dictionary and the reports, and the manifest as the last file, because a folder needs it to verify."""
    accept = covering(built.findings, draft.study.policy.accept, draft.inherited)
    study = draft.study.replace(policy={"accept": accept})
    entries: Mapping[str, object] = {
        **built.content,
        "run_file": study.as_toml(),
        "reason": reason,
        "accepted": accepted_findings(built.findings, study.policy.accept),
    }
    content = cast("Content", {name: entries[name] for name in Content.__annotations__})
    files = {name: digest(folder / PUBLIC / name) for name in data_files(files_in(folder), draft.data)}
    pages = {**dictionary_pages(content, files), **draft.verifier.pages(folder, content)}
    for name, text in pages.items():
        (folder / name).write_text(text, encoding="utf-8")
    listed = public_digests({name: digest(folder / name) for name in files_in(folder)})
    certificate = certificate_of(content, study, read(folder / RUN), block_of(pages[EXTERNAL]), listed)
    (folder / CERTIFICATE).write_text(certificate, encoding="utf-8")
    return write_manifest(folder, content, sealed=True)


def data_files(files: Iterable[str], data: str) -> list[str]:
    """Return the data files of a release by their names in the public part: one file, or its parts."""
    return [name.removeprefix(f"{PUBLIC}/") for name in files if name == data or name.startswith(f"{data}/")]


def dictionary_pages(manifest: Content, files: Mapping[str, str]) -> dict[str, str]:
    """Return the data dictionary of a release for programs, readers, catalogues and archives.

    `files` are the data files with their digests.
    """
    dictionary = manifest["dictionary"]
    return {
        DICTIONARY[0]: json.dumps(dictionary, indent=1, ensure_ascii=False) + "\n",
        DICTIONARY[1]: dictionary_page(dictionary),
        **metadata_pages(dictionary, files),
    }


ROWS = 10


@dataclass(frozen=True)
class Rehearsal:
    """The expected release: the entries of its manifest, its violations of the policy, and some of its rows."""

    manifest: Content
    findings: Sequence[Finding]
    columns: Sequence[str]
    rows: Sequence[Sequence[str | None]]


def rehearse_draft(draft: Draft, *, state: str | Path | None = None) -> Rehearsal:
    """Make a release in a folder that is deleted. The ledger is read and not changed."""
    require_source(draft.source, draft.fingerprint)
    with tempfile.TemporaryDirectory(prefix="sfumato-") as name:
        folder = Path(name) / "release"
        folder.mkdir(mode=0o700)
        built = build(draft, folder, state)
        written = read(folder / RUN)
        with open_engine(draft.study.engine, draft.study.engine_options) as engine:
            source = written.source(undecided=True)  # disguised columns have no role of their own in the file
            rows = drawn_rows(engine, source, ROWS)
    findings = [*unit_findings(draft.study, draft.source), *built.findings]
    return Rehearsal(built.content, findings, source.names, rows)
