"""Publish a protected file: everything that the protection says is worked out again, and the written file attacked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from sfumato.data.policy import Acceptance
from sfumato.data.source import open_source
from sfumato.errors import SfumatoError
from sfumato.release import pack
from sfumato.release.policy import acceptances
from sfumato.release.publish import Release, publish_draft
from sfumato.release.sources import table_of
from sfumato.study import Study
from sfumato.systems.groups.again import attacked, first_unlike, refuse_unlike, worked_out_again
from sfumato.systems.groups.attackers import Progress
from sfumato.systems.groups.draft import Protected, SwapDraft
from sfumato.systems.groups.files import read_target, settings_of
from sfumato.systems.groups.saved import Saved, as_dict, load


def publish_protection(
    out: str | Path,
    folder: str | Path,
    point: int | None = None,
    *,
    reason: str = "",
    accept: Mapping[str, str] | Sequence[Acceptance] = (),
    state: str | Path | None = None,
    run: str | Path | None = None,
    progress: Progress | None = None,
) -> Release:
    """Write a point of a saved protection as a release; the one that was chosen unless given.

    Attackers learn again, and what they find in the source and in the written file must be what the protection says.
    What they still find is refused, unless `accept` gives a reason: `{"attacks": "the areas are known anyway"}`.
    `run` is a run file of one's own, needed where the protection was made elsewhere or was changed.
    """
    saved = load(out, run)
    number = saved.point(point)
    study = saved.study.with_accepted(acceptances(accept))
    source = table_of(study)
    draft = SwapDraft(
        study=study,
        source=source,
        fingerprint=str(saved.told["fingerprint"]),
        data=pack.data_name(source),
        plan=saved.plans[number],
        work_out=lambda: _worked_out(saved, number, progress),
    )
    return publish_draft(draft, folder, reason=reason, state=state)


def _worked_out(saved: Saved, number: int, progress: Progress | None) -> Protected:
    """A protection as it is, with one of its points chosen, and how the file that is written is to be attacked."""
    again = worked_out_again(saved, progress)
    refuse_unlike(saved, again)
    again = replace(again, chosen=number)
    told = as_dict(again)
    # Bound and proof stay as the search had them; everything else is what was worked out again.
    for found, said in zip(told["points"], saved.told["points"], strict=True):
        found |= {name: said[name] for name in ("bound", "exact")}

    def attack(study: Study) -> list[dict[str, Any]]:
        rows = [row.as_dict() for row in attacked(again, read_target(study))]
        if first_unlike(told["points"][number]["residual"], rows) is not None:
            raise SfumatoError(
                "the written file does not show an attacker what the plan says",
                expected="the same records in range in the same areas; nothing was released",
            )
        return rows

    return Protected(told, auxiliary_files(again.study), attack)


def auxiliary_files(study: Study) -> list[dict[str, str]]:
    """The files that attackers learn from, by name and digest."""
    return [
        {"name": given.title, "sha256": open_source(given, study.folder).fingerprint}
        for given in settings_of(study).auxiliary
    ]
