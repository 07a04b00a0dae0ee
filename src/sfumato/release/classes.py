"""The draft of a release by classes: each class has labels of its own, as in local recoding.

The module also measures how useful such a file is (its two-way tables and the labels per value), and refuses a saved
front whose lower bounds contradict its other figures.

Anybody can edit the file of a front, so its lower bound is not trusted. It must be at most the sum of its dual prices
and at most the loss of the point, and the ratio and the bound must follow from it. Whether the dual prices are feasible
for every box is checked by `sfumato floor`, which visits all boxes. Without that check the lower bound is a statement
of the search.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.base.arrays import Counts64
from sfumato.base.compare import ABSENT
from sfumato.base.progress import stage
from sfumato.data.engine import Engine, open_engine
from sfumato.errors import DataError, InputError, counted
from sfumato.front import PRICE_UNIT, Front, Point
from sfumato.hierarchies.hierarchy import flat
from sfumato.measures.classes import ClassTable
from sfumato.measures.loss.table_error import TABLE_ERROR
from sfumato.measures.registry import K
from sfumato.measures.two_way import MOST_VALUES, box_errors, mean_and_largest, worst_pair
from sfumato.plans.boxes import BoxPlan
from sfumato.release.classes_labels import BoxColumn
from sfumato.release.classes_rows import FILE, Assigned, Division, Earlier, assigned, box_rows
from sfumato.release.columns import ColumnRecode
from sfumato.release.downcoding import downcode
from sfumato.release.draft import Difference, Entries, Facts, ReleasedFolder, Verifier
from sfumato.release.foreseen import classes_before
from sfumato.release.format import Entry, target_of
from sfumato.release.history.description import Description, describe_classes
from sfumato.release.manifest import (
    MANIFEST,
    Content,
    about_hierarchies,
    kept_domains,
    load_hierarchies,
    write_hierarchies,
)
from sfumato.release.persons import (
    NO_HOLDERS,
    holders_of,
    may_count_persons,
    person_classes,
    person_figures,
    with_persons,
)
from sfumato.release.policy import (
    Finding,
)
from sfumato.release.readback import (
    FROM_SOURCE,
    RULED,
    figures_of,
    in_persons,
    loss_of,
    released_classes,
    table_of,
    unchanged,
)
from sfumato.release.recoding import OF_CLASSES, PlanDraft, class_facts, class_findings, says
from sfumato.release.rows import differing_rows
from sfumato.study import Study
from sfumato.study.methods import METHODS
from sfumato.tables.domain import loss_of_entered
from sfumato.tables.frequency import FrequencyTable


def table_figures(plan: Assigned) -> dict[str, dict[str, object]]:
    """Return the mean and the largest error of all two-way tables, no figure for very wide columns."""
    widths = [len(column.values) for column in plan.columns]
    if max(widths) > MOST_VALUES:
        return {}
    errors = box_errors(plan.codes, plan.counts, widths, plan.low, plan.high, plan.rows)
    mean, largest = mean_and_largest(errors)
    figure: dict[str, Any] = {"value": mean, "largest": largest}
    pair = worst_pair(errors)
    if pair is not None:
        figure["largest_columns"] = [plan.columns[place].name for place in pair]
    figure |= {"measured_on": "source", "reason": FROM_SOURCE["originals"]}
    return {TABLE_ERROR.name: figure}


def labels_per_value(plan: Assigned) -> float:
    """Return how many different labels a value has, on average over the released values of all columns."""
    inside = plan.owner >= 0
    carried = values = 0
    for j, codes in enumerate(plan.codes):
        own = codes[plan.of[inside]].astype(np.int64)
        low, high = (ends[plan.owner[inside], j] for ends in (plan.low, plan.high))
        carried += len(np.unique(np.stack([own, low, high], axis=1), axis=0))
        values += len(np.unique(own))
    return carried / max(values, 1)


ROUNDING = 1e-9


def refuse_floors(front: Front, point: Point, table: FrequencyTable) -> None:
    """Raise unless every lower bound of a front, and that of the released point, fits its prices and losses.

    Args:
        front: the front as it was saved.
        point: the released point. A random draw may have changed its loss.
        table: the frequency table of its study.
    """
    full = sum(front.study.weights_for(table)) * table.records
    for one in front.points:
        what = _wrong_floor(one.details, one.loss, front.loss_of_entered)
        if what:
            raise _refused(f"{what} (point {one.id})")
        floor = front.loss_of_entered(one.details["floor"]) if "floor" in one.details else 0.0
        if (one.bound is None and "floor" in one.details) or not _close(one.bound or 0.0, floor * full):
            raise _refused(f"the bound of point {one.id} is not its floor")
        if "floor" in one.details and METHODS[front.system].lower_bound:
            _refuse_unproven(floor, front, int(one.values[K.name]), table)
    stated = point.details.get("floor")
    if stated != front.point(point.id).details.get("floor") or not _at_most(stated or 0.0, point.loss):
        raise _refused("its loss is below its floor, or the floor is not that of the front")


def _wrong_floor(details: Entry, loss: float, entered: Callable[[float], float]) -> str:
    """Return the contradiction between a lower bound and the loss and the ratio beside it, empty if there is none.

    The ratio excludes the records left out (`entered`). After a random draw, it still refers to the promised loss.
    """
    if "floor" not in details:
        return "it has a ratio and no floor" if "ratio" in details else ""
    floor, ratio = details["floor"], details.get("ratio")
    if not _number(floor) or floor < 0 or (ratio is not None and not _number(ratio)):
        return "its floor is no share of the cells"
    if not _at_most(floor, loss):
        return "its loss is below its floor"
    floor, promised = entered(floor), entered(details.get("promised", loss))
    if (ratio is None) != (floor == 0) or (ratio is not None and not _close(ratio * floor, promised)):
        return "its ratio is not its loss divided by its floor"
    return ""


def _refuse_unproven(floor: float, front: Front, k: int, table: FrequencyTable) -> None:
    """Raise if a lower bound is more than the sum of its dual prices."""
    if k not in front.prices:
        raise _refused(f"there are no prices for the floor at k = {k}")
    prices: Counts64 = front.prices[k]
    if len(prices) != table.tuples or not np.all((prices >= 0) & (prices <= PRICE_UNIT)):
        raise _refused(f"the prices of the floor at k = {k} are not between 0 and 1, one for each tuple")
    if not _at_most(floor, float((prices / PRICE_UNIT) @ table.counts) / table.rows):
        raise _refused(f"the floor at k = {k} is more than its prices add up to")


def floor_differences(point: dict[str, Any], loss: float, records: int, left_out: int) -> list[str]:
    """Return the contradictions between the lower bound of a manifest and its other figures."""
    what = _wrong_floor(point.get("details", {}), loss, lambda one: loss_of_entered(one, records, left_out))
    return [what] if what else []


def _number(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def _at_most(floor: float, loss: float) -> bool:
    return floor <= loss * (1 + ROUNDING) + ROUNDING**2


def _close(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=ROUNDING, abs_tol=ROUNDING**2)


def _refused(what: str) -> DataError:
    return DataError(
        f"the front contradicts itself: {what}",
        expected="a front as the search saved it; nothing was released",
        remedy="search again",
    )


Beside = Callable[[Study, Assigned], Mapping[str, dict[str, Any]]]
Details = Callable[[Study, Assigned, Entry], Entry]


def nothing(*_: object) -> Mapping[str, dict[str, Any]]:
    """Return no figures and no details: a method without any of its own."""
    return {}


@dataclass(eq=False, kw_only=True)
class BoxDraft(PlanDraft):
    """The draft of a point of a front whose plan is a `BoxPlan`.

    `beside` returns the figures of the method, which are added to those of every release. If the boxes of another
    release are applied, `earlier` has the labels of that release. The operating system draws the salt that divides
    tuples unless it is given.
    """

    salt: str = field(default_factory=lambda: secrets.token_hex(16))
    earlier: Earlier = field(default_factory=dict)
    beside: Beside = nothing

    @property
    def boxes(self) -> BoxPlan:
        """The plan of the point."""
        if not isinstance(self.point.plan, BoxPlan):
            raise InputError("the point has no classes of its own", expected="a front of local recodings")
        return self.point.plan

    @cached_property
    def plan(self) -> Assigned:
        boxes, table = self.boxes, self.table
        with stage("classify"):
            made = assigned(self.study, table, boxes, self.salt, self.earlier)
        refuse_floors(self.front, self.point, table)
        return made

    @property
    def columns(self) -> Sequence[BoxColumn]:
        return self.plan.columns

    @property
    def recodes(self) -> Sequence[ColumnRecode]:
        """The columns for the search for dependences, hidden if any of their labels covers several values."""
        columns = self.plan.columns
        missing = [column.values.index("") if "" in column.values else None for column in columns]
        trees = [flat(column.name, column.values) for column in columns]
        return [ColumnRecode(c.name, t, int(c.generalized), m) for c, t, m in zip(columns, trees, missing, strict=True)]

    @property
    def on_source(self) -> ClassTable | None:
        return self.persons if self.table.counts_units else None

    def in_persons(self, after: ClassTable) -> ClassTable:
        of, owner, _ = np.array(self.boxes.members, dtype=np.int64).reshape(-1, 3).T
        return with_persons(after, self.table, self.plan, of, owner)

    def foresee(self) -> Sequence[Finding]:
        """Return the findings that are known before the file is written.

        Which records of a divided tuple are in which class is not known yet, so ℓ and t are checked on the written
        file.
        """
        with stage("classify"):
            classes = classes_before(self.study, self.table, self.boxes, self.plan)
        if self.table.counts_units:
            return class_findings(self.study, self.persons, RULED, self.own_figures, unchanged(classes))
        return class_findings(self.study, classes, (K,) if len(self.plan.split) else RULED, self.own_figures)

    @cached_property
    def persons(self) -> ClassTable:
        """The classes of the plan on the source, where rows belong to persons or households."""
        of, owner, _ = np.array(self.boxes.members, dtype=np.int64).reshape(-1, 3).T
        return person_classes(self.study, self.table, of, owner, self.plan.classes)

    @cached_property
    def person_figures(self) -> Mapping[str, dict[str, Any]]:
        """The figures in persons and households."""
        with stage("count persons"):
            return person_figures(self.study, self.persons)

    @cached_property
    def own_figures(self) -> Mapping[str, dict[str, Any]]:
        """The figures of its method, which follow from the plan."""
        with stage("measure the plan"):
            return self.beside(self.study, self.plan)

    def prepare(self, folder: Path) -> None:
        self.plan.save(folder)
        own = {domain.name for domain in self.table.domains}
        trees = {n: d.hierarchy for n, d in kept_domains(self.study, self.table).items() if n not in own}
        self.files = write_hierarchies(folder, trees)
        self.hierarchies = about_hierarchies(self.study, folder, trees, self.files, {})

    def describe(self, engine: Engine) -> Description:
        with stage("count classes"):
            self.rows = box_rows(engine, self.source, self.study, self.plan, self.target)
        names = [column.name for column in self.rows.columns]
        return describe_classes(self.system, self.study, self.source, names, self.plan, Division.of(self.plan, names))

    def stated(self, own: Study) -> dict[str, Any]:
        stated = super().stated(own)
        stated["own"]["classes"] = self.plan.classes
        return stated | {"figures": self.person_figures if self.table.counts_units else {}}


def released_values(plan: Assigned) -> dict[str, set[str]]:
    """Return the values of the released records, by column."""
    kept = np.unique(plan.of[plan.owner >= 0])
    return {
        column.name: {column.values[position] for position in np.unique(codes[kept])}
        for column, codes in zip(plan.columns, plan.codes, strict=True)
    }


def box_facts(folder: ReleasedFolder, beside: Beside, details: Details) -> Facts:
    """Return the facts of a release by classes."""
    manifest, own, study = folder.manifest, folder.own, folder.study
    plan = Assigned.load(folder.path)
    classes = released_classes(own, plan.columns)
    figures = figures_of(own, classes, {})
    if may_count_persons(study):
        stated = in_persons(manifest["figures"])
        over = K.name in stated and stated[K.name]["value"] > figures[K.name]["value"]
        figures |= stated if not over else {}  # a class has no more persons than rows
    figures |= {**table_figures(plan), **beside(study, plan)}
    facts = class_facts(folder, plan.columns, classes, figures, released_values(plan))
    found = details(study, plan, figures)
    entries = {
        "own.classes": plan.classes,
        "own.divided": len(plan.split),
        "own.labels_per_value": round(labels_per_value(plan), 3),
        "own.downcoding": downcode(plan, classes.attribute_weights, int(classes.rows.min())).as_dict(),
        **{f"point.details.{name}": value for name, value in found.items()},
    }
    removed = int(study.data.removed or 0)
    agree = {
        (folder.data, "its classes are not those of the release"): np.array_equal(
            np.sort(classes.rows), np.sort(plan.rows)
        ),
        (FILE, "its records are not those of the file"): (plan.records + removed, plan.suppressed + removed)
        == (classes.records, own.data.removed),
    }
    differences = [Difference(file, what) for (file, what), fine in agree.items() if not fine]
    contradictions = floor_differences(manifest["point"], loss_of(classes), facts.records, manifest["left_out"])
    differences += [Difference(MANIFEST, what) for what in contradictions]
    return replace(facts, entries={**facts.entries, **entries}, differences=differences)


def boxes_on_source(folder: ReleasedFolder, study: Study) -> tuple[Entries, list[Difference]]:
    """Assign the records of the source to their classes and compare the tuples and the rows, in any order."""
    plan = Assigned.load(folder.path)
    trees = load_hierarchies(folder.path, folder.manifest["hierarchies"])
    distances = {name: column.distance for name, column in folder.own.columns.items() if column.distance is not None}
    table = study.table(trees={**trees, **plan.trees()}, distances=distances)
    if not np.array_equal(table.codes, plan.codes) or not np.array_equal(table.counts, plan.counts):
        return {}, [Difference(FILE, "its tuples are not those of the source")]
    holders, found = NO_HOLDERS, dict[str, dict[str, Any]]()
    with open_engine(study.engine, study.engine_options) as engine:
        source = table_of(study)
        rows = box_rows(engine, source, study, plan, target_of(source, folder.written.format))
        torn = differing_rows(engine, rows, folder.written)
        if table.counts_units:
            classes = person_classes(study, table, plan.of, plan.owner, plan.classes)
            holders, found = holders_of(engine, study, rows, classes), person_figures(study, classes)
    differ = f"{counted(torn, 'row differs', 'rows differ')} from the source put into classes again"
    names = {*in_persons(folder.manifest["figures"]), *found}
    entries: dict[str, object] = {f"figures.{name}": found.get(name, ABSENT) for name in sorted(names)}
    entries |= {"source.rows_read": rows.rows_read, **holders.entries()}
    return entries, [Difference(folder.data, differ)] if torn else []


def box_verifier(
    pages: Callable[[Path, Content], Mapping[str, str]],
    beside: Beside = nothing,
    details: Details = nothing,
    own_records: str = "",
) -> Verifier:
    """Return the verifier of releases by classes.

    Args:
        pages: draws the reports of the method.
        beside: returns the figures that only this method has.
        details: returns the details of a point that follow from the plan in the folder and its figures.
        own_records: the reason why a plan cannot be applied to another table, empty if it can.

    Returns:
        The verifier.
    """
    return Verifier(
        pages=pages,
        facts=partial(box_facts, beside=beside, details=details),
        on_source=boxes_on_source,
        says=says,
        files=lambda _: (FILE,),
        own_records=own_records,
        measured=OF_CLASSES,
    )
