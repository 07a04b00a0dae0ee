"""What a release says of itself: the manifest, and the dictionary and reports that are drawn from it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sfumato.front import Front, Point, versions
from sfumato.measures.classes import ClassTable
from sfumato.measures.whole import WholeFile
from sfumato.release import facts, pack
from sfumato.release.columns import ColumnRecode
from sfumato.release.dictionary import data_dictionary, labels_in
from sfumato.release.policy import Finding, accepted_findings
from sfumato.release.recode import Recoded
from sfumato.report.release_pages import dictionary_page, external_page, internal_page


@dataclass(frozen=True)
class Contents:
    """A release that was written and measured, and has yet to be described."""

    folder: Path
    front: Front
    point: Point
    data: str
    recoded: Recoded
    columns: tuple[ColumnRecode, ...]
    levels: Mapping[str, int]
    hierarchies: Mapping[str, Any]
    before: ClassTable
    after: ClassTable
    figures: Mapping[str, Any]
    loss: float
    whole: WholeFile
    findings: Sequence[Finding]
    reason: str
    warnings: tuple[str, ...]

    def write(self) -> dict[str, Any]:
        """Write the dictionary and the reports, then the manifest: the last file, without which nothing verifies."""
        manifest = self._manifest()
        for name, text in pages_of(manifest).items():
            (self.folder / name).write_text(text, encoding="utf-8")
        return pack.write_manifest(self.folder, manifest)

    def _manifest(self) -> dict[str, Any]:
        front, recoded = self.front, self.recoded
        return {
            "format": pack.FORMAT,
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            "source": {"name": recoded.source.title, "sha256": front.fingerprint, "rows_read": recoded.rows_read},
            "data": self.data,
            "hierarchies": dict(self.hierarchies),
            "versions": versions(front.study.engine),
            "run_file": front.study.as_toml(),
            "system": front.system,
            "algorithm": front.algorithm,
            "exact": front.exact,
            "objectives": [objective.as_dict() for objective in front.objectives],
            "point": self.point.as_dict(),
            "levels": dict(self.levels),
            "reason": self.reason,
            "records": recoded.records,
            "suppressed": recoded.suppressed,
            "released": recoded.rows,
            "loss": self.loss,
            "released_loss": facts.released_loss(self.after, self.columns, self.hierarchies),
            "figures": dict(self.figures),
            "whole": self.whole.as_dict(),
            "policy": front.study.policy.model_dump(mode="json", exclude={"accept"}),
            "accepted": accepted_findings(self.findings, front.study.policy.accept),
            "warnings": list(self.warnings),
            "dictionary": data_dictionary(
                front.study,
                [column.name for column in recoded.columns],
                {column.name: column for column in self.columns},
                Path(self.data).name,
                len(recoded.source.columns) - len(recoded.columns),
                labels_in(self.after),
            ),
            "front": front.as_dict(),
            "comparison": {
                "measures": facts.before_after(front.study, self.before, self.figures),
                "columns": facts.per_column(self.before, self.after, self.columns),
                "small_before": facts.small_classes(self.before),
                "small_after": facts.small_classes(self.after),
            },
        }


def pages_of(manifest: Mapping[str, Any]) -> dict[str, str]:
    """The pages of a release as its manifest has them: drawn at publication, and again when it is verified."""
    dictionary = manifest["dictionary"]
    return {
        pack.DICTIONARY[0]: json.dumps(dictionary, indent=1, ensure_ascii=False) + "\n",
        pack.DICTIONARY[1]: dictionary_page(dictionary),
        pack.EXTERNAL: external_page(facts.external_facts(manifest), dictionary),
        pack.INTERNAL: internal_page(facts.internal_facts(manifest), manifest),
    }
