"""What a release tells about itself: the dictionary, the two reports, and the manifest that seals them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sfumato.front import Front, Point, versions
from sfumato.measures.classes import ClassTable
from sfumato.release import facts, pack
from sfumato.release.columns import ColumnRecode
from sfumato.release.dictionary import data_dictionary, labels_in
from sfumato.release.readback import figure_value
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
    reason: str
    warnings: tuple[str, ...]

    def write(self) -> dict[str, Any]:
        """Write the dictionary and the reports, then the manifest: the last file, without which nothing verifies."""
        columns = {column.name: column for column in self.columns}
        occurring = labels_in(self.after)
        dictionary = data_dictionary(self.front.study, self.recoded, columns, self.data, occurring)
        lost = facts.released_loss(self.after, self.columns, self.hierarchies)
        outside = facts.external_facts(self.recoded, figure_value(self.figures["k"]), lost)
        inside = facts.internal_facts(self.front, self.point, self.recoded, self.figures, self.loss)
        pages = {
            pack.DICTIONARY[0]: json.dumps(dictionary, indent=1, ensure_ascii=False) + "\n",
            pack.DICTIONARY[1]: dictionary_page(dictionary),
            pack.EXTERNAL: external_page(outside, dictionary),
            pack.INTERNAL: internal_page(inside, self._about()),
        }
        for name, text in pages.items():
            (self.folder / name).write_text(text, encoding="utf-8")
        return pack.write_manifest(self.folder, self._manifest({pack.INTERNAL: inside, pack.EXTERNAL: outside}))

    def _about(self) -> dict[str, Any]:
        """What the internal report shows beside its figures."""
        return {
            "file": self.data,
            "front": self.front.as_dict(),
            "point": self.point.as_dict(),
            "reason": self.reason,
            "warnings": list(self.warnings),
            "measures": facts.before_after(self.front.study, self.before, self.figures),
            "columns": facts.per_column(self.before, self.after, self.columns),
            "small_before": facts.small_classes(self.before),
            "small_after": facts.small_classes(self.after),
            "run": self.front.study.as_toml(),
            "about": {
                "source": self.recoded.source.title,
                "SHA-256 of the source": self.front.fingerprint,
                "rows read": f"{self.recoded.rows_read:,}",
                "suppressed rows": "starred and marked" if self.recoded.starred else "removed",
                "classes smaller than this are suppressed": str(self.point.plan.suppress_below),
                **self._diversity(),
                **versions(self.front.study.engine),
            },
        }

    def _diversity(self) -> dict[str, str]:
        least = self.point.plan.diversity_below
        return {"classes with fewer sensitive values than this are suppressed": str(least)} if least > 1 else {}

    def _manifest(self, reports: Mapping[str, Any]) -> dict[str, Any]:
        front, recoded = self.front, self.recoded
        written = sorted(p.relative_to(self.folder).as_posix() for p in self.folder.rglob("*") if p.is_file())
        return {
            "format": pack.FORMAT,
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            "source": {"name": recoded.source.title, "sha256": front.fingerprint, "rows_read": recoded.rows_read},
            "data": self.data,
            "files": {name: pack.digest(self.folder / name) for name in written},
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
            "starred": recoded.starred,
            "records": recoded.records,
            "suppressed": recoded.suppressed,
            "released": recoded.rows,
            "loss": self.loss,
            "figures": dict(self.figures),
            "reports": dict(reports),
        }
