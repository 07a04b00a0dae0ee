"""A release before it is made: everything that publishing measures and compares, and nothing that is kept."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sfumato.release import pack
from sfumato.release.draft import Draft, Measured
from sfumato.release.policy import Finding, unit_findings
from sfumato.release.publish import build
from sfumato.release.sources import require_source
from sfumato.sources.engines.engine import open_engine
from sfumato.sources.preview import drawn_rows
from sfumato.study import read

ROWS = 10


@dataclass(frozen=True)
class Rehearsal:
    """What a release would be: its figures, what it would break of the policy, warnings, and some of its rows."""

    measured: Measured
    findings: Sequence[Finding]
    warnings: Sequence[str]
    columns: Sequence[str]
    rows: Sequence[Sequence[str | None]]
    dictionary: dict[str, Any]
    data: str


def rehearse_draft(draft: Draft, *, state: str | Path | None = None) -> Rehearsal:
    """Make a release in a folder that is deleted again; the ledger is read, and nothing is entered in it."""
    require_source(draft.source, draft.fingerprint)
    with tempfile.TemporaryDirectory(prefix="sfumato-") as name:
        folder = Path(name) / "release"
        folder.mkdir(mode=0o700)
        measured, comparison, dictionary = build(draft, folder, state)
        written = read(folder / pack.RUN)
        with open_engine(draft.study.engine, draft.study.engine_options) as engine:
            source = written.source(undecided=True)  # disguised columns have no role of their own in the file
            rows = drawn_rows(engine, source, ROWS)
    units = unit_findings(draft.study, draft.source)
    findings = [*units, *(comparison.findings if comparison is not None else ()), *measured.findings]
    warnings = [*measured.warnings, *(comparison.warnings if comparison is not None else ())]
    return Rehearsal(measured, findings, warnings, source.names, rows, dictionary, draft.data)
