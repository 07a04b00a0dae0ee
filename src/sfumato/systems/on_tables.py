"""What systems that search a frequency table share: the timed search, the acceptances, the figures of a release."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sfumato.front import Front
from sfumato.runtime.figures import number, number_or_infinity, percent
from sfumato.runtime.stages import recording, stage
from sfumato.study import Study
from sfumato.systems.goals import check_measures
from sfumato.systems.run import Run, Searcher
from sfumato.systems.system import Publishing
from sfumato.tables.frequency import FrequencyTable

if TYPE_CHECKING:
    from sfumato.release.manifest import Manifest


def search_table(find: Searcher, study: Study, run: Run, table: FrequencyTable | None) -> Front:
    """The front that a searcher finds, with the stages of the work; the table is read unless it is given."""
    check_measures(study)
    with recording() as recorder:
        table = study.table() if table is None else table
        run.table = table if run.table is None else run.table  # a search within this one is of another table
        with stage("search"):
            front = find(study, table, run)
    front = front.with_left_out(table.left_out)
    return replace(front, tuples=table.tuples, stages=tuple(done.as_dict() for done in recorder.done))


def accepted(front: Front, how: Publishing) -> Front:
    """A front whose study has what a publisher accepts."""
    from sfumato.release.policy import acceptances  # only a release needs it

    return replace(front, study=front.study.with_accepted(acceptances(how.accept)))


def measured_rows(manifest: Manifest) -> list[list[str]]:
    """Suppressed records, loss and objectives as measured on a released file."""
    values = {name: manifest["figures"][name]["value"] for name in manifest["point"]["values"]}
    return [
        ["suppressed", f"{number(manifest['suppressed'])} of {number(manifest['records'])}"],
        ["loss", percent(manifest["loss"])],
        *([name, number_or_infinity(value)] for name, value in values.items()),
    ]
