"""Which rules of the policy the points of a front would break: what their classes decide, before anything is published.

Rules about the whole file (columns that are nearly unique, dependences, earlier releases) are checked at publication.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sfumato.decide import Choice
from sfumato.front import Front, Point
from sfumato.measures.classes import classify
from sfumato.measures.planned import suppress_by_plan
from sfumato.plans.boxes import BoxPlan
from sfumato.release.boxes.draft import BoxDraft
from sfumato.release.boxes.foreseen import classes_before
from sfumato.release.policy import Finding
from sfumato.release.readback import RULED
from sfumato.release.recoding_draft import class_findings
from sfumato.systems.registry import system_named
from sfumato.systems.system import Publishing
from sfumato.tables.frequency import FrequencyTable


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
