"""Publish a protected file: the release pack, and one more look at the written file through an attacker's eyes."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from sfumato.data.arrays import Floats
from sfumato.data.microfile import Microfile
from sfumato.errors import SfumatoError
from sfumato.release.publish import Release
from sfumato.release.swap_pack import publish_swaps
from sfumato.study import Study
from sfumato.systems.groups.files import read_target
from sfumato.systems.groups.saved import load


def publish_protection(
    out: str | Path,
    folder: str | Path,
    point: int | None = None,
    *,
    reason: str = "",
    state: str | Path | None = None,
) -> Release:
    """Write a point of a saved protection as a release; the one that was chosen unless given."""
    saved = load(out)
    number = saved.point(point)
    plan = saved.plans[number]
    told = dict(saved.told) | {"chosen": number}
    before = read_target(saved.study)
    planned = before.with_areas(plan.moved(before.area_of, before.rows))

    def check(study: Study) -> None:
        if not np.array_equal(_seen(read_target(study)), _seen(planned)):
            raise SfumatoError(
                "the written file does not show an attacker what the plan says",
                expected="the same records in range in the same areas; nothing was released",
            )

    return publish_swaps(saved.study, plan, told, folder, check=check, reason=reason, state=state)


def _seen(file: Microfile) -> Floats:
    """What an attacker sees of a file: the attributes and the area of each record, in no order."""
    rows = np.column_stack([file.table(), np.array(file.areas, dtype="U64")[file.area_of].astype("U64")])
    return rows[np.lexsort(rows.T)]
