"""Search, questions to a front, and a preview of broken rules, for all systems.

The preview (`foresee`) states which rules of the policy the points of a front would break, judged by their classes.
Rules about the complete file (columns that are nearly unique, dependences, earlier releases) are checked at
publication.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from sfumato.auditing.units import unstated_notes
from sfumato.base.compiled import need_compiler
from sfumato.base.progress import Progress, ProgressBar
from sfumato.decide.ask import Answer
from sfumato.decide.ask import ask as asked
from sfumato.decide.floor import with_floor
from sfumato.decide.pick import Choice
from sfumato.errors import SfumatoWarning
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


def search(
    study: Study,
    progress: Progress | bool | None = None,
    *,
    table: FrequencyTable | None = None,
    checkpoint: str | Path | None = None,
    resume: bool = False,
    live: Live | None = None,
    **settings: object,
) -> Front:
    """Find the front of a study, by the system that it names.

    `settings` replace the study's own settings of the [search] section: `objectives=["k", "general_loss"]`,
    `max_suppression=0.02`, `system="cuts"`. The same study, data and seed give the same front on any number of threads.

    `progress=True` shows a bar. `progress(done, total)` receives the progress and stops the search by returning True;
    the points found so far are kept. `table` is the frequency table of the study if it was read before. The state of a
    search is written to `checkpoint` every few seconds. With `resume` the search continues from there and finds the
    same front as an uninterrupted search. `live` receives, as often as the progress is reported, a function that
    returns the best front so far.

    Args:
        study: the table, and what its columns are.
        progress: True for a bar, or a function of the steps done and the steps in all that returns True to stop.
        table: the study's frequency table, if it was read before.
        checkpoint: a folder in which the state of the search is kept.
        resume: whether to continue from the checkpoint.
        live: receives a function that returns the best front so far.
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
    """Return the front of a study; `run` states how the search is watched, and afterwards holds the table searched."""
    need_compiler("a search")
    run.require_state()
    if table is None:  # the source of a table in memory may no longer exist; publication repeats this check
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
    """Return the best release within limits: most privacy, or least loss with `min_k` or `min_l` and no loss limit.

    A question outside the limits of the search is answered from the recodings of the front. If a search for exactly
    this question takes only seconds, `answer.searched` is its result, and `answer.improved` states whether it is
    better. A question that the recodings cannot answer is answered by it.

    Args:
        front: the front that is asked.
        max_loss: the largest loss, as a share.
        max_suppression: the largest share of suppressed records; by default the limit of the search.
        min_k: the smallest k.
        min_l: the smallest distinct ℓ.
        prefer: "k" or "l", where both are objectives; by default they are balanced.
        table: the front's table, if it was read before.
        folder: the folder of the front, for the commands in the answer.
        search: whether a search may be run.
        floor: a front of local recodings of the same study, whose lower bound the answer is compared with.

    Returns:
        The answer, with the binding limits and the gain from relaxing each limit.

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
    """The points that were checked, by id, and which of them break which rule of the policy."""

    points: tuple[int, ...]
    broken: Mapping[str, tuple[int, ...]]

    def sentence(self) -> str:
        """Return what to expect of publishing; empty if no rule is broken.

        >>> Foreseen((0, 1, 2, 3), {"l": (0, 1, 2, 3), "t": (0, 1, 3)}).sentence()
        'policy: all 4 points break a rule; publish refuses them without an acceptance: l (all), t (0, 1, 3)'
        """
        if not self.broken:
            return ""
        some, every = len({point for points in self.broken.values() for point in points}), len(self.points)
        who = f"{some} of {every} points {'breaks' if some == 1 else 'break'}"
        who = "the point breaks" if every == 1 else f"all {every} points break" if some == every else who
        rules = ", ".join(f"{key} ({self._listed(points)})" for key, points in self.broken.items())
        return f"policy: {who} a rule; publish refuses {'it' if some == 1 else 'them'} without an acceptance: {rules}"

    def as_dict(self) -> dict[str, list[int]]:
        return {key: list(points) for key, points in self.broken.items()}

    def _listed(self, points: Sequence[int]) -> str:
        """Return the ids of points, with neighbouring ones as a range."""
        if len(points) == len(self.points):
            return "all"
        place = {point: number for number, point in enumerate(self.points)}
        # Within a run of neighbours, the place among all points minus that among the broken ones is the same.
        grouped = groupby(enumerate(points), key=lambda each: place[each[1]] - each[0])
        runs = [[point for _, point in run] for _, run in grouped]
        return ", ".join(f"{run[0]}–{run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs)


def foresee(front: Front, points: Sequence[int], table: FrequencyTable) -> Foreseen | None:
    """Return the rules that points of a front would break; None if points have no classes.

    `table` is that of the front's study.
    """
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
        return draft.foresee()  # a class holds whole tuples, so nothing depends on a draw
    # The assignment of a divided tuple's records to classes is drawn at publication: ℓ and t are those of one draw.
    classes = classes_before(study, table, point.plan, draft.plan)
    return class_findings(study, classes, RULED, draft.own_figures)
