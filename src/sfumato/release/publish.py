"""Publication: write a file by a plan, read it back, measure it, and keep it only if all checks succeed.

The checks compare the file with the plan, with the figures of the search, with the policy, and with earlier releases. A
rehearsal does the same in a folder that is deleted.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from sfumato.auditing.units import counted_as
from sfumato.base.files import new_folder, refuse_existing_folder
from sfumato.base.notebook import card, parts_picture, short
from sfumato.base.progress import Stage, recording, stage
from sfumato.data.engine import open_engine
from sfumato.data.profile import drawn_rows
from sfumato.front import Front, versions
from sfumato.release.certificate import certificate_of, public_digests
from sfumato.release.columns import Naming
from sfumato.release.dictionary import described
from sfumato.release.draft import Draft, Measured
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
    Inherited,
    acceptances,
    accepted_findings,
    covering,
    refuse_unaccepted,
    refuse_unstated_units,
    unit_findings,
)
from sfumato.release.readback import require_source, table_of
from sfumato.release.recoding import RecodingDraft
from sfumato.report.release_pages import block_of, dictionary_page, templates_digest
from sfumato.study import read
from sfumato.study.sections import Acceptance
from sfumato.tables.frequency import FrequencyTable


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

    def as_dict(self) -> dict[str, Any]:
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


def publish(
    front: Front,
    number: int,
    folder: str | Path,
    *,
    reason: str = "",
    accept: Mapping[str, str] | Sequence[Acceptance] = (),
    name: str | None = None,
    format: str | None = None,  # noqa: A002
    state: str | Path | None = None,
    table: FrequencyTable | None = None,
    names: Mapping[str, Naming] | None = None,
    warnings: Sequence[str] = (),
    inherited: Sequence[Inherited] = (),
) -> Release:
    """Write point `number` of a front as a new release folder, completely or not at all.

    A written file that violates the study's policy is refused, unless `accept` gives a reason for the rule:
    `{"uniques": "the file stays in the safe room"}`.

    The released file has the name `name`, by default `data`. Its `format` is csv, parquet, sav, dta or xlsx, by default
    that of the source. The folder of the ledger is `state`, by default that of the user. If the hierarchies of the
    source are not those of the study, `table` is its frequency table. If an earlier release named the groups, `names`
    holds their names and `inherited` its acceptances. Further warnings are in `warnings`.
    """
    refuse_existing_folder(Path(folder).absolute())
    point = front.point(number)
    front = replace(front, study=front.study.with_accepted(acceptances(accept)))
    draft = RecodingDraft.of(
        front, point, name, format, given=table, earlier=names or {}, noted=warnings, inherited=inherited
    )
    return publish_draft(draft, folder, reason=reason, state=state)


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
            measured, comparison, dictionary = build(draft, inside, state)
            findings = [*(comparison.findings if comparison is not None else ()), *measured.findings]
            refuse_unaccepted(findings, accept, draft.inherited)
            with stage("write the reports"):
                manifest = _describe(draft, inside, measured, comparison, dictionary, findings, reason)
            require_source(table_of(draft.study), draft.fingerprint)
            again = partial(compared_again, draft, state)
            late = stack.enter_context(entered(comparison, folder, again))  # ends after the folder has its name
    return Release(folder, folder / draft.data, manifest, (*manifest["warnings"], *late), tuple(recorder.done))


def build(draft: Draft, folder: Path, state: str | Path | None) -> tuple[Measured, Comparison | None, dict[str, Any]]:
    """Return the measurements of a written file, its comparison with the ledger, and its data dictionary.

    The release is compared with earlier releases before the file is written, and measured after. The data dictionary
    has the labels that occur in the file.
    """
    study = draft.study
    make_parts(folder)
    draft.prepare(folder)
    with open_engine(study.engine, study.engine_options) as engine:
        description = draft.describe(engine)
        comparison = None
        if description is not None:
            with stage("compare with earlier releases"):
                comparison = check(engine, study, draft.source, description, state=state)
        with stage("write the file"):
            own = draft.write(engine, folder)
        draft.compare(engine, own)
    with stage("measure the file"):
        measured = draft.measure(own)
    with stage("describe the columns"), open_engine(study.engine, study.engine_options) as engine:
        book = draft.source.codebook
        return measured, comparison, described(engine, table_of(own), measured.dictionary, book, study)


def compared_again(draft: Draft, state: str | Path | None) -> Comparison | None:
    """Compare a release with the present ledger."""
    with open_engine(draft.study.engine, draft.study.engine_options) as engine:
        description = draft.describe(engine)
        return None if description is None else check(engine, draft.study, draft.source, description, state=state)


def _describe(
    draft: Draft,
    folder: Path,
    measured: Measured,
    comparison: Comparison | None,
    dictionary: Mapping[str, Any],
    findings: Sequence[Finding],
    reason: str,
) -> Manifest:
    """Write the dictionary and the reports, and the manifest as the last file, because a folder needs it to verify."""
    source, accept = draft.source, covering(findings, draft.study.policy.accept, draft.inherited)
    study = draft.study.replace(policy={"accept": accept})
    content: Content = {
        "format": FORMAT,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "system": draft.system,
        "source": {"name": source.title, "sha256": draft.fingerprint, "rows_read": measured.rows_read},
        "data": draft.data,
        "versions": versions(study.engine),
        "templates": templates_digest(),
        "run_file": study.as_toml(),
        "unit": counted_as(study),
        "reason": reason,
        "point": dict(measured.point),
        "columns": list(measured.columns),
        "records": measured.records,
        "suppressed": measured.suppressed,
        "left_out": measured.left_out,
        "released": measured.records - measured.suppressed,
        "loss": measured.loss,
        "figures": dict(measured.figures),
        "whole": measured.whole.as_dict(),
        "policy": study.policy.model_dump(mode="json", exclude={"accept"}),
        "accepted": accepted_findings(findings, study.policy.accept),
        "warnings": [*measured.warnings, *(comparison.warnings if comparison is not None else ())],
        "dictionary": dict(dictionary),
        "hierarchies": dict(measured.hierarchies),
        "own": dict(measured.own),
    }
    files = {name: digest(folder / PUBLIC / name) for name in data_files(files_in(folder), draft.data)}
    pages = {**dictionary_pages(content, files), **draft.pages(folder, content)}
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
    """The expected release: its figures, its violations of the policy, warnings, and some of its rows."""

    measured: Measured
    findings: Sequence[Finding]
    warnings: Sequence[str]
    columns: Sequence[str]
    rows: Sequence[Sequence[str | None]]
    dictionary: dict[str, Any]
    data: str


def rehearse_draft(draft: Draft, *, state: str | Path | None = None) -> Rehearsal:
    """Make a release in a folder that is deleted. The ledger is read and not changed."""
    require_source(draft.source, draft.fingerprint)
    with tempfile.TemporaryDirectory(prefix="sfumato-") as name:
        folder = Path(name) / "release"
        folder.mkdir(mode=0o700)
        measured, comparison, dictionary = build(draft, folder, state)
        written = read(folder / RUN)
        with open_engine(draft.study.engine, draft.study.engine_options) as engine:
            source = written.source(undecided=True)  # disguised columns have no role of their own in the file
            rows = drawn_rows(engine, source, ROWS)
    units = unit_findings(draft.study, draft.source)
    findings = [*units, *(comparison.findings if comparison is not None else ()), *measured.findings]
    warnings = [*measured.warnings, *(comparison.warnings if comparison is not None else ())]
    return Rehearsal(measured, findings, warnings, source.names, rows, dictionary, draft.data)
