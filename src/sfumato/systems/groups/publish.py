"""Publish a protected file: everything that the protection says is worked out again, and the written file attacked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sfumato.errors import SfumatoError
from sfumato.front import Front
from sfumato.release import pack
from sfumato.release.formats import format_of, target_of
from sfumato.release.policy import acceptances
from sfumato.release.publish import Release, publish_draft
from sfumato.release.sources import table_of
from sfumato.runtime.stages import Progress
from sfumato.sources.opening import open_source
from sfumato.study import Study
from sfumato.study.policy import Acceptance
from sfumato.systems.groups.again import attacked, refuse_unlike, worked_out_again
from sfumato.systems.groups.draft import Protected, SwapDraft
from sfumato.systems.groups.files.read import read_whole, settings_of
from sfumato.systems.groups.front import front_of, report_of, swaps_of
from sfumato.systems.run import Run
from sfumato.systems.unlike import first_unlike


def publish_protection(
    front: Front,
    folder: str | Path,
    point: int | None = None,
    *,
    reason: str = "",
    accept: Mapping[str, str] | Sequence[Acceptance] = (),
    state: str | Path | None = None,
    progress: Progress | None = None,
) -> Release:
    """Write a point of a protection as a release; the one that was chosen unless given."""
    draft = protection_draft(front, point, accept=accept, progress=progress)
    return publish_draft(draft, folder, reason=reason, state=state)


def protection_draft(
    front: Front,
    point: int | None = None,
    *,
    accept: Mapping[str, str] | Sequence[Acceptance] = (),
    name: str | None = None,
    kind: str | None = None,
    progress: Progress | None = None,
) -> SwapDraft:
    """The release of a protected file, to be written, read back and attacked.

    Attackers learn again, and what they find in the source and in the written file must be what the protection says.
    What they still find is refused, unless `accept` gives a reason: `{"attacks": "the areas are known anyway"}`.
    """
    chosen = front.point(int(front.details["chosen"]) if point is None else point)
    study = front.study.with_accepted(acceptances(accept))
    source = table_of(study)
    kind = format_of(source, name, kind)
    return SwapDraft(
        study=study,
        source=source,
        fingerprint=front.fingerprint,
        data=pack.data_name(source, name, kind),
        target=target_of(source, kind),
        plan=swaps_of(chosen),
        searched=chosen.details.get("residual", ()),
        work_out=lambda: _worked_out(front, chosen.id, Run(progress)),
    )


def _worked_out(front: Front, number: int, run: Run) -> Protected:
    """A protection as it is, with one of its points chosen, and how the file that is written is to be attacked."""
    again = worked_out_again(front, run)
    refuse_unlike(front, again)
    report = report_of(front_of(again), number)
    # Bound and proof stay as the search had them; everything else is what was worked out again.
    for saved, point in zip(report["points"], front.points, strict=True):
        saved |= {"bound": swaps_of(point).bound, "exact": swaps_of(point).exact}

    def attack(study: Study) -> list[dict[str, Any]]:
        columns = again.target.wide.names if again.target.wide is not None else ()
        rows = [row.as_dict() for row in attacked(again, read_whole(study, columns))]
        if first_unlike(report["points"][number]["residual"], rows) is not None:
            raise SfumatoError(
                "an attack on the written file gives a different result from the plan",
                expected="the same records in range in the same areas; nothing was released",
            )
        return rows

    return Protected(report, auxiliary_files(again.study), attack)


def auxiliary_files(study: Study) -> list[dict[str, str]]:
    """The files that attackers learn from, by name and digest."""
    return [
        {"name": given.title, "sha256": open_source(given, study.folder).fingerprint}
        for given in settings_of(study).auxiliary
    ]
