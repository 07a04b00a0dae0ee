"""Shared parts of systems that search a frequency table: the timed search, acceptances, the figures of a release.

`BoxSystem` is the base of the systems whose plans are boxes: local recoding and cell suppression.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar

import numpy as np

from sfumato.base.progress import recording, stage
from sfumato.base.text import number, number_or_infinity, percent
from sfumato.errors import UnreachableError, counted
from sfumato.front import Front, Objective, Point
from sfumato.measures.registry import GENERAL_LOSS, K
from sfumato.measures.units import class_table
from sfumato.methods.run import Parts, Run, Searcher
from sfumato.methods.system import Abilities, Publishing, Verdict, check_measures
from sfumato.plans.boxes import BoxPlan
from sfumato.release.manifest import Manifest
from sfumato.release.policy import acceptances
from sfumato.report.page import front_page
from sfumato.study import Study
from sfumato.tables.domain import loss_of_entered
from sfumato.tables.frequency import FrequencyTable


def search_table(find: Searcher, study: Study, run: Run, table: FrequencyTable | None) -> Front:
    """Return the front that a searcher finds, with the stages of the work; the table is read unless it is given."""
    check_measures(study)
    with recording() as recorder:
        table = study.table() if table is None else table
        run.table = table if run.table is None else run.table  # a search within this one is of another table
        with stage("search"):
            front = find(study, table, run)
    front = front.with_left_out(table.left_out)
    return replace(front, tuples=table.tuples, stages=tuple(done.as_dict() for done in recorder.done))


def with_acceptances(front: Front, how: Publishing) -> Front:
    """Return a front whose study includes the acceptances of the publisher."""
    return replace(front, study=front.study.with_accepted(acceptances(how.accept)))


def measured_rows(manifest: Manifest) -> list[list[str]]:
    """Return suppressed records, loss and objectives as measured on a released file."""
    values = {name: manifest["figures"][name]["value"] for name in manifest["point"]["values"]}
    return [
        ["suppressed", f"{number(manifest['suppressed'])} of {number(manifest['records'])}"],
        ["loss", percent(manifest["loss"])],
        *([name, number_or_infinity(value)] for name, value in values.items()),
    ]


@dataclass(frozen=True)
class BoxSystem(ABC):
    """A system that finds a recoding for each value of k. Its front contains single records and is confidential."""

    plan: type[BoxPlan] = BoxPlan
    abilities: ClassVar[Abilities] = Abilities(resumable=True)
    title: ClassVar[str]
    bound: ClassVar[str]  # the label of the lower bound on the page
    shown: ClassVar[str]  # the content of a front that is confidential

    @abstractmethod
    def front_of(self, study: Study, table: FrequencyTable, run: Run) -> Front:
        """Return the front of a study."""

    @abstractmethod
    def columns(self, front: Front) -> Mapping[str, list[str]]:
        """Return the columns that a table of the points of a front shows."""

    @abstractmethod
    def counted(self, manifest: Manifest) -> list[str]:
        """Return the name and the number of what a release consists of, such as its classes."""

    def unit(self, study: Study) -> str:  # noqa: ARG002
        return "values of k"

    def search(self, study: Study, run: Run, table: FrequencyTable | None = None) -> Front:
        return search_table(self.front_of, study, run, table)

    def verdict(self, front: Front) -> Verdict:  # noqa: ARG002
        return Verdict((f"the front shows {self.shown}: keep it confidential",))

    def figures(self, manifest: Manifest) -> Mapping[str, list[list[str]]]:
        return {"Measured on the file": [self.counted(manifest), *measured_rows(manifest)]}

    def page(
        self,
        front: Front,
        chosen: int | None,
        compare: tuple[int, int] | None,  # noqa: ARG002
        table: FrequencyTable | None = None,  # noqa: ARG002
    ) -> str:
        return front_page(front, self.columns(front), chosen, title=self.title, bound=self.bound)


def salt_of(seed: int | None) -> dict[str, str]:
    """Return the salt of a test, by which equal records are divided among classes. Real releases draw theirs."""
    return {} if seed is None else {"salt": f"test {seed}"}


def ratio(point: Point) -> str:
    """Return the ratio of a point's loss to its lower bound, as text."""
    return f"{point.details['ratio']:.3f}" if "ratio" in point.details else "–"


def times_bound(manifest: Mapping[str, Any], loss: float, bound: float) -> float | None:
    """Return the ratio of a release's loss to a lower bound, without the records left out; None if the bound is 0."""
    entered = [loss_of_entered(one, manifest["records"], manifest["left_out"]) for one in (loss, bound)]
    return entered[0] / entered[1] if entered[1] > 0 else None


def without_left_out(manifest: Mapping[str, object]) -> str:
    """Return a clause that names the records excluded from a ratio to a lower bound."""
    return " without the records left out because of missing values" if manifest["left_out"] else ""


K_AND_LOSS = (Objective(K.name, "max"), Objective(GENERAL_LOSS.name, "min"))
Item = TypeVar("Item")


def reachable_ks(ks: Sequence[int], study: Study, table: FrequencyTable) -> list[int]:
    """Return the values of k to search for, none below its constraint and none above the records or persons."""
    least = math.ceil(study.search.constraints.get(K.name, 1.0) - 1e-9)
    most, what = (table.rows, "record") if table.units is None else (table.units.number, "person")
    reachable = sorted({max(k, least) for k in ks if max(k, least) <= most})
    if not reachable:
        raise UnreachableError(
            f"the table has {counted(most, what)}, fewer than k = {max(min(ks), least)}", expected=f"k up to {most}"
        )
    return reachable


def best_for_each_k(
    items: Iterable[Item], k_of: Callable[[Item], float], loss_of: Callable[[Item], float]
) -> list[Item]:
    """Return the items that lose less than every item of a higher k, by falling k."""
    kept: list[Item] = []
    for item in sorted(items, key=lambda one: (-k_of(one), loss_of(one))):
        if not kept or loss_of(item) < loss_of(kept[-1]) - 1e-12:
            kept.append(item)
    return kept


def persons_in(table: FrequencyTable, plan: BoxPlan) -> tuple[int, int]:
    """Return the fewest persons in a class of a plan with undivided tuples, and the persons with a suppressed row."""
    owner = np.full(table.tuples, -1, dtype=np.int64)
    of, classes, _ = np.array(plan.members, dtype=np.int64).reshape(-1, 3).T
    owner[of] = classes
    measured = class_table(table, owner, len(plan.labels), ())
    return int(measured.size[measured.kept].min()), measured.suppressed_units


class KeptState:
    """The state of a search on disk, if one is kept: loaded to resume, saved on the way, removed when it is done."""

    def __init__(self, run: Run, study: Study, table: FrequencyTable) -> None:
        self.state, self.resume = run.kept(study, table.fingerprint), run.resume

    def load(self) -> Parts:
        """Return the saved state of a search that is resumed, or nothing for a new one."""
        return (self.state.load() or {}) if self.state is not None and self.resume else {}

    def save(self, parts: Callable[[], Parts]) -> None:
        """Save the state if enough time has passed."""
        if self.state is not None:
            self.state.save(parts)

    def end(self, parts: Callable[[], Parts], stopped: bool) -> None:
        """Save the state of a search that was stopped, and remove that of a finished one."""
        if self.state is not None and stopped:
            self.state.save(parts, now=True)
        elif self.state is not None:
            self.state.remove()
