"""One search for all systems.

The publisher's questions, with the search at hand that answers what a front cannot.

Which rules of the policy the points of a front would break: what their classes decide, before anything is published.

Rules about the whole file (columns that are nearly unique, dependences, earlier releases) are checked at publication.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sfumato.auditing.units import unstated_notes
from sfumato.base.compiled import need_compiler
from sfumato.base.progress import Progress, ProgressBar
from sfumato.data.settings import Role
from sfumato.decide import Choice
from sfumato.decide.ask import Answer
from sfumato.decide.ask import ask as asked
from sfumato.decide.floor import with_floor
from sfumato.errors import SfumatoWarning, StudyError
from sfumato.front import Front, Point
from sfumato.measures.classes import classify
from sfumato.measures.suppression import suppress_by_plan
from sfumato.methods.registry import system_named
from sfumato.methods.run import Live, Run
from sfumato.methods.system import Publishing
from sfumato.plans.boxes import BoxPlan
from sfumato.release.classes import BoxDraft
from sfumato.release.foreseen import classes_before
from sfumato.release.policy import Finding
from sfumato.release.readback import RULED
from sfumato.release.recoding import class_findings
from sfumato.study import Study
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


_search = search  # `ask` has a parameter of that name


def ask(
    front: Front,
    *,
    max_loss: float | None = None,
    max_suppression: float | None = None,
    min_k: float | None = None,
    min_l: float | None = None,
    prefer: str | None = None,
    table: FrequencyTable | None = None,
    folder: Path | None = None,
    search: bool = True,
    floor: Front | None = None,
) -> Answer:
    """The best release within limits: most privacy, or with `min_k` or `min_l` and no loss limit the least loss.

    A question outside of the limits that the front was searched with is answered from its recodings. Where a search
    for exactly that question takes seconds, `answer.searched` is what it finds (`answer.improved` says if it is
    better), and a question that the recodings cannot answer is answered by it.

    Args:
        front: the front that is asked.
        max_loss: the largest loss, as a share.
        max_suppression: the largest share of suppressed records; the searched one unless given.
        min_k: the smallest k.
        min_l: the smallest distinct ℓ.
        prefer: "k" or "l", where both were sought; they are balanced otherwise.
        table: the front's table, where it is at hand: it is not read again then.
        folder: the folder of the front, for the commands that are offered.
        search: whether a search may be run.
        floor: a front of local recodings of the same study, whose floor the answer is compared with.

    Returns:
        The answer, with what binds it and what relaxing a limit would give.

    >>> import sfumato as sf
    >>> front = sf.search(sf.read(sf.sample("adult")))
    >>> answer = sf.ask(front, max_loss=0.30, max_suppression=0.05)
    >>> answer.offer.k, answer.searched.offer.k, answer.improved
    (9, 13, True)
    """
    return asked(
        front if floor is None else with_floor(front, floor),
        max_loss=max_loss,
        max_suppression=max_suppression,
        min_k=min_k,
        min_l=min_l,
        prefer=prefer,
        table=table,
        folder=folder,
        search=_search if search else None,
    )


@dataclass(frozen=True)
class Foreseen:
    """What was looked at, by the ids of points, and which of them break which rule of the policy."""

    points: tuple[int, ...]
    broken: Mapping[str, tuple[int, ...]]

    @property
    def breaking(self) -> int:
        """How many points break some rule."""
        return len({point for points in self.broken.values() for point in points})

    def sentence(self) -> str:
        """What to expect of publishing; empty where no rule is broken.

        >>> Foreseen((0, 1, 2, 3), {"l": (0, 1, 2, 3), "t": (0, 1, 3)}).sentence()
        'policy: all 4 points break a rule; publish refuses them without an acceptance: l (all), t (0, 1, 3)'
        """
        if not self.broken:
            return ""
        some, every = self.breaking, len(self.points)
        who = (
            f"all {every} points break"
            if some == every
            else f"{some} of {every} points {'breaks' if some == 1 else 'break'}"
        )
        who = "the point breaks" if every == 1 else who
        rules = ", ".join(f"{key} ({self._listed(points)})" for key, points in self.broken.items())
        return f"policy: {who} a rule; publish refuses {'it' if some == 1 else 'them'} without an acceptance: {rules}"

    def as_dict(self) -> dict[str, list[int]]:
        return {key: list(points) for key, points in self.broken.items()}

    def _listed(self, points: Sequence[int]) -> str:
        """Ids of points, neighbours among those looked at as a range."""
        if len(points) == len(self.points):
            return "all"
        place = {point: number for number, point in enumerate(self.points)}
        runs: list[list[int]] = []
        for point in points:
            if runs and place[point] == place[runs[-1][-1]] + 1:
                runs[-1].append(point)
            else:
                runs.append([point])
        return ", ".join(f"{run[0]}–{run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs)


def foresee(front: Front, points: Sequence[int], table: FrequencyTable) -> Foreseen | None:
    """What points of a front would break; None where points have no classes. `table` is that of the front's study."""
    if not front.recodes and not all(isinstance(point.plan, BoxPlan) for point in front.points):
        return None
    broken: dict[str, list[int]] = {}
    for number in points:
        for key in dict.fromkeys(finding.key for finding in _findings(front, front.point(number), table)):
            broken.setdefault(key, []).append(number)
    return Foreseen(tuple(points), {key: tuple(own) for key, own in broken.items()})


def _findings(front: Front, point: Point, table: FrequencyTable) -> Sequence[Finding]:
    study = front.study
    if not isinstance(point.plan, BoxPlan):
        plan = point.recoding_plan
        return class_findings(study, suppress_by_plan(classify(table, plan.recoding(table)), plan, study.measures))
    draft = system_named(front.system).draft(Choice(front, point, ""), Publishing())
    if not isinstance(draft, BoxDraft):
        return draft.foresee()
    draft.given = table
    if table.counts_units:
        return draft.foresee()  # whole tuples are in one class, so all is known, in persons and households
    # Which records of a divided tuple are in which class is drawn at publication: ℓ and t are those of one draw.
    classes = classes_before(study, table, point.plan, draft.plan)
    return class_findings(study, classes, RULED, draft.own_figures)
