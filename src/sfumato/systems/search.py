"""One search for all systems."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

from sfumato.auditing.holders import unstated_notes
from sfumato.errors import SfumatoWarning, StudyError
from sfumato.front import Front
from sfumato.notebook.progress import ProgressBar
from sfumato.runtime.compiled import need_compiler
from sfumato.runtime.stages import Progress
from sfumato.sources.roles import Role
from sfumato.study import Study
from sfumato.systems.registry import system_named
from sfumato.systems.run import Live, Run
from sfumato.tables.frequency import FrequencyTable

IN_UNITS = ("lattice", "cuts", "channel", "groups", "local", "cells")  # the systems that count units


def refuse_units(study: Study) -> None:
    """Raise where a system would count records although rows belong to units."""
    declared = [name for role in (Role.UNIT, Role.HOUSEHOLD) for name in study.named(role)]
    if declared and study.system not in IN_UNITS:
        raise StudyError(
            f"{declared[0]} is a unit or household column, and the {study.system} system counts records",
            expected=f"a system that counts units: {', '.join(IN_UNITS)}",
        )


def search(
    study: Study,
    progress: Progress | bool | None = None,
    *,
    table: FrequencyTable | None = None,
    checkpoint: str | Path | None = None,
    resume: bool = False,
    live: Live | None = None,
    **settings: Any,
) -> Front:
    """Find the front of a study, by the system that it names.

    `settings` are those of the [search] section, in place of the study's own: `objectives=["k", "general_loss"]`,
    `max_suppression=0.02`, `system="cuts"`. The same study, data and seed give the same front on any number of threads.

    `progress=True` shows a bar; `progress(done, total)` is told how far it is, and stops it by returning True; what was
    found is kept. `table` is the study's frequency table, where it was read before. The state of a search is written to
    `checkpoint` every few seconds, and with `resume` it goes on from there to the front that an unbroken run finds.
    `live` is handed, as often as progress is told, a function that gives the best so far.

    Args:
        study: the table, and what its columns are.
        progress: True for a bar, or a function of the steps done and the steps in all that returns True to stop.
        table: the study's frequency table, where it was read before.
        checkpoint: a folder in which the state of the search is kept.
        resume: whether to go on from the checkpoint.
        live: is handed a function that gives the best so far.
        **settings: settings of `[search]` by name, in place of the study's own.

    Returns:
        The front.
    """
    if settings:
        study = study.with_search(**settings)
    shown = (ProgressBar() if progress else None) if isinstance(progress, bool) else progress
    front = run_search(study, Run(shown, live, None if checkpoint is None else Path(checkpoint), resume), table)
    if isinstance(shown, ProgressBar):
        shown.finish()
    return front


def run_search(study: Study, run: Run, table: FrequencyTable | None = None) -> Front:
    """The front of a study; `run` says how the search is watched, and holds afterwards the table that was searched."""
    need_compiler("a search")
    run.require_state()
    refuse_units(study)
    if table is None:  # a table at hand was read before, and its source may no longer exist; publication asks again
        for text in unstated_notes(study):
            warnings.warn(text, SfumatoWarning, stacklevel=2)
    return system_named(study.system).search(study, run, table)
