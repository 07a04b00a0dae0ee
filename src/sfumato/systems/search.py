"""One search for all systems."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from sfumato.data.stages import recording, stage
from sfumato.errors import InputError
from sfumato.front import Front
from sfumato.study import Study
from sfumato.systems.cuts import search_cuts
from sfumato.systems.goals import check_measures
from sfumato.systems.lattice import Live, Progress, search_lattice


def search(
    study: Study,
    progress: Progress | None = None,
    *,
    checkpoint: str | Path | None = None,
    resume: bool = False,
    live: Live | None = None,
) -> Front:
    """Find the front of a study. The same study, data and seed give the same front on any number of threads.

    `progress(done, total)` is told how far it is, and stops it by returning True; what was found is kept.
    Its state is written to `checkpoint` every few seconds, and with `resume` it goes on from there to the front that
    an unbroken run finds. `live` is handed, as often as progress is told, a function that gives the best so
    far.
    """
    if checkpoint is not None and resume and not Path(checkpoint).exists():
        raise InputError(
            f"there is no unfinished search at {checkpoint}",
            expected="the state of a search that was broken off",
            remedy="leave --resume out to start anew",
        )
    if resume and checkpoint is None:
        raise InputError("nothing to resume", expected="a search with a checkpoint", remedy="leave --resume out")
    check_measures(study)
    with recording() as recorder:
        table = study.table()
        find = search_cuts if study.search.system == "cuts" else search_lattice
        state = None if checkpoint is None else Path(checkpoint)
        with stage("search"):
            front = find(study, table, progress=progress, live=live, checkpoint=state, resume=resume)
    return replace(front, tuples=table.tuples, stages=tuple(done.as_dict() for done in recorder.done))
