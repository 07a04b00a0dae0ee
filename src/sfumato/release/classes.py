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
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.auditing.uniqueness import WholeFile, whole_file
from sfumato.base.arrays import Counts64
from sfumato.base.progress import stage
from sfumato.data.engine import Engine
from sfumato.data.settings import Role
from sfumato.data.source import Source
from sfumato.errors import DataError, InputError, SfumatoError
from sfumato.front import PRICE_UNIT, Front, Point
from sfumato.hierarchies.hierarchy import flat
from sfumato.measures.classes import ClassTable, classify
from sfumato.measures.loss.table_error import TABLE_ERROR
from sfumato.measures.registry import K
from sfumato.measures.two_way import MOST_VALUES, box_errors, mean_and_largest, worst_pair
from sfumato.plans.boxes import BoxPlan
from sfumato.release.classes_labels import BoxColumn
from sfumato.release.classes_readback import classes_in, dictionary_of, per_column, released_loss
from sfumato.release.classes_rows import Assigned, BoxRows, Earlier, assigned, bound_names, box_rows
from sfumato.release.columns import ColumnRecode
from sfumato.release.downcoding import downcode
from sfumato.release.draft import Draft, Measured
from sfumato.release.foreseen import classes_before
from sfumato.release.format import format_of, target_of
from sfumato.release.history.description import Description, describe_classes
from sfumato.release.manifest import (
    Content,
    about_hierarchies,
    data_name,
    kept_domains,
    write_hierarchies,
    write_run_file,
)
from sfumato.release.persons import (
    NO_HOLDERS,
    Holders,
    box_holders,
    person_classes,
    person_figures,
    refuse_other_classes,
    with_persons,
)
from sfumato.release.policy import (
    Evidence,
    Finding,
    dependence_findings,
    extreme_columns,
    extreme_warnings,
    policy_findings,
)
from sfumato.release.readback import (
    FROM_SOURCE,
    RULED,
    before_after,
    exempt_classes,
    figure_value,
    figures_of,
    loss_of,
    refuse_differences,
    ruled_figures,
    small_classes,
    unchanged,
)
from sfumato.release.recoding import class_findings, release_findings, run_file_sections
from sfumato.release.rows import differing_rows, refuse_torn, write_mixed
from sfumato.study import Study
from sfumato.study.methods import METHODS
from sfumato.tables.domain import loss_of_entered
from sfumato.tables.frequency import FrequencyTable


def table_figures(plan: Assigned) -> dict[str, dict[str, Any]]:
    """Return the mean and the largest error of all two-way tables, no figure for very wide columns."""
    inside = plan.owner >= 0
    rows = np.bincount(plan.owner[inside], weights=plan.count[inside], minlength=plan.classes).astype(np.int64)
    widths = [len(column.values) for column in plan.columns]
    if max(widths) > MOST_VALUES:
        return {}
    errors = box_errors(plan.codes, plan.counts, widths, plan.low, plan.high, rows)
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
REMEDY = "search again"


def refuse_floors(front: Front, point: Point, table: FrequencyTable) -> None:
    """Raise unless every lower bound of a front, and that of the released point, fits its prices and losses.

    Args:
        front: the front as it was saved.
        point: the released point. A random draw may have changed its loss.
        table: the frequency table of its study.
    """
    full = sum(front.study.weights_for(table)) * table.records
    for one in front.points:
        floor = stated_floor(front, one, full)
        if floor is not None and METHODS[front.system].lower_bound:
            refuse_unproven(floor, front, int(one.values[K.name]), table)
    floor = point.details.get("floor")
    if floor is not None and (
        point.details["floor"] != front.point(point.id).details.get("floor") or not _at_most(floor, point.loss)
    ):
        raise _refused("its loss is below its floor, or the floor is not that of the front")


def stated_floor(front: Front, point: Point, full: float) -> float | None:
    """Return the lower bound of a point for the records that entered the search, None if it has none.

    Raises an error if the loss, ratio or bound of the point contradicts it.
    """
    details = point.details
    if "floor" not in details:
        if "ratio" in details or (point.bound is not None and point.bound > 0):
            raise _refused(f"point {point.id} has a ratio or a bound and no floor")
        return None
    floor, ratio = details["floor"], details.get("ratio")
    if not _number(floor) or floor < 0 or (ratio is not None and not _number(ratio)):
        raise _refused(f"the floor of point {point.id} is no share of the cells")
    if not _at_most(floor, point.loss):
        raise _refused(f"the loss of point {point.id} is below its floor")
    floor, loss = front.loss_of_entered(floor), front.loss_of_entered(point.loss)
    if (ratio is None) != (floor == 0) or (ratio is not None and not _close(ratio * floor, loss)):
        raise _refused(f"the ratio of point {point.id} is not its loss divided by its floor")
    if point.bound is None or not _close(point.bound, floor * full):
        raise _refused(f"the bound of point {point.id} is not its floor")
    return float(floor)


def refuse_unproven(floor: float, front: Front, k: int, table: FrequencyTable) -> None:
    """Raise if a lower bound is more than the sum of its dual prices."""
    if k not in front.prices:
        raise _refused(f"there are no prices for the floor at k = {k}")
    prices: Counts64 = front.prices[k]
    if len(prices) != table.tuples or not np.all((prices >= 0) & (prices <= PRICE_UNIT)):
        raise _refused(f"the prices of the floor at k = {k} are not between 0 and 1, one for each tuple")
    if not _at_most(floor, float((prices / PRICE_UNIT) @ table.counts) / table.rows):
        raise _refused(f"the floor at k = {k} is more than its prices add up to")


def floor_differences(point: dict[str, Any], loss: float, records: int, left_out: int) -> list[str]:
    """Return the contradictions between the lower bound of a manifest and its other figures.

    The ratio excludes the records left out. After a random draw, the ratio still refers to the promised loss.
    """
    details = point.get("details", {})
    if "floor" not in details:
        return ["its point has a ratio and no floor"] if "ratio" in details else []
    floor, ratio = details["floor"], details.get("ratio")
    if not _number(floor) or not _at_most(floor, loss):
        return ["its floor is above its loss"]
    floor, loss = (loss_of_entered(one, records, left_out) for one in (floor, details.get("promised", loss)))
    if ratio is None and floor == 0:
        return []
    if not _number(ratio) or not _close(ratio * floor, loss):
        return ["its ratio is not its loss divided by its floor"]
    return []


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
        remedy=REMEDY,
    )


Pages = Callable[[Path, Content], Mapping[str, str]]
Beside = Callable[[Study, Assigned], Mapping[str, dict[str, Any]]]


def nothing(*_: object) -> Mapping[str, dict[str, Any]]:
    """Return no figures: a method without figures of its own."""
    return {}


@dataclass(eq=False, kw_only=True)
class BoxDraft(Draft):
    """The draft of a point of a front whose plan is a `BoxPlan`.

    `drawn` returns the pages of the method, and `beside` its own figures, which are added to those of every release. If
    the boxes of another release are applied, `given` is the table and `earlier` has the labels of that release. `noted`
    holds further warnings for the publisher.
    """

    front: Front
    point: Point
    target: Source
    drawn: Pages
    salt: str
    given: FrequencyTable | None = None
    earlier: Earlier = field(default_factory=dict)
    noted: Sequence[str] = ()
    beside: Beside = nothing

    rows: BoxRows = field(init=False)
    files: Mapping[str, str] = field(init=False)
    hierarchies: Mapping[str, dict[str, Any]] = field(init=False)
    whole: WholeFile = field(init=False)
    shown: Holders = field(init=False, default=NO_HOLDERS)
    warnings: list[str] = field(init=False)
    dependences: Sequence[Finding] = field(init=False)

    @classmethod
    def of(
        cls,
        front: Front,
        point: Point,
        drawn: Pages,
        name: str | None = None,
        kind: str | None = None,
        salt: str | None = None,
        **given: Any,
    ) -> BoxDraft:
        """Return the draft of a point. The operating system draws the salt that divides tuples unless it is given."""
        study, source = front.study, front.study.source()
        kind = format_of(source, name, kind)
        return cls(
            system=front.system,
            study=study,
            source=source,
            fingerprint=front.fingerprint,
            data=data_name(source, name, kind),
            target=target_of(source, kind),
            front=front,
            point=point,
            drawn=drawn,
            salt=salt or secrets.token_hex(16),
            **given,
        )

    @property
    def boxes(self) -> BoxPlan:
        """The plan of the point."""
        if not isinstance(self.point.plan, BoxPlan):
            raise InputError("the point has no classes of its own", expected="a front of local recodings")
        return self.point.plan

    @cached_property
    def table(self) -> FrequencyTable:
        return self.study.table() if self.given is None else self.given

    @cached_property
    def plan(self) -> Assigned:
        boxes, table = self.boxes, self.table
        with stage("classify"):
            made = assigned(self.study, table, boxes, self.salt, self.earlier)
        refuse_floors(self.front, self.point, table)
        return made

    def foresee(self) -> Sequence[Finding]:
        """Return the findings that are known before the file is written.

        Which records of a divided tuple are in which class is not known yet, so ℓ and t are checked on the written
        file.
        """
        with stage("classify"):
            classes = classes_before(self.study, self.table, self.boxes, self.plan)
        if self.table.counts_units:
            figures = {**ruled_figures(self.study, self.persons), **self.own_figures}
            noun, gone = "record" if self.table.units is None else "person", self.persons.suppressed_units
            known = Evidence(figures, self.table.persons, gone, unchanged(classes), noun=noun)
            known = replace(known, left_out=self.table.left_out, entered=classes.records)
            return policy_findings(self.study.policy, known)
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
        return describe_classes(
            self.system,
            self.study,
            self.source,
            [column.name for column in self.rows.columns],
            self.plan,
            self.rows.division,
        )

    def write(self, engine: Engine, folder: Path) -> Study:
        written = write_mixed(engine, self.rows, folder / self.data)
        gone = self.plan.suppressed + self.table.removed
        sections = run_file_sections(self.study, self.table, self.rows.names, gone, self.files, written)
        sections["columns"] |= {name: {"role": str(Role.DROP)} for name in bound_names(self.rows.bounds)}
        return write_run_file(folder, self.study, self.target, self.rows.names, self.data, sections)

    def compare(self, engine: Engine, own: Study) -> None:
        written = own.source()
        with stage("compare every row"):
            refuse_torn(differing_rows(engine, self.rows, written))
        with stage("look for extremes"):
            self.warnings = extreme_warnings(extreme_columns(engine, self.study, written))
        with stage("measure all columns together"):
            self.whole = whole_file(engine, own, written)
            if self.table.counts_units:
                self.shown = box_holders(engine, self.study, self.rows, self.persons)
        with stage("look for dependences"):
            columns = [as_recode(column) for column in self.plan.columns]
            self.dependences, in_vain = dependence_findings(engine, self.source, self.study, columns)
        self.warnings += in_vain

    def measure(self, own: Study) -> Measured:
        suppressed = self.plan.suppressed + self.table.removed
        after = classes_in(own, self.plan.columns, suppressed)
        before = classify(self.table, weights=self.study.weights_for(self.table))
        figures = {
            **figures_of(self.study, after, None),
            **(self.person_figures if self.table.counts_units else {}),
            **table_figures(self.plan),
            **self.own_figures,
        }
        sized, after_persons = after, after
        if self.table.counts_units:
            refuse_other_classes(self.persons, after)
            of, owner, _ = np.array(self.boxes.members, dtype=np.int64).reshape(-1, 3).T
            sized, after_persons = self.persons, with_persons(after, self.table, self.plan, of, owner)
        loss = loss_of(after)
        self._compare(after, figures, loss, suppressed)
        return Measured(
            columns=self.rows.names,
            rows_read=self.rows.rows_read,
            records=after.records,
            suppressed=suppressed,
            left_out=self.table.left_out,
            loss=loss,
            figures=figures,
            whole=self.whole,
            point=self.point.as_dict(),
            dictionary=dictionary_of(
                self.study,
                self.rows.names,
                self.plan.columns,
                Path(self.data).name,
                len(self.source.columns) - len(self.rows.columns),
                after,
            ),
            own={
                "algorithm": self.front.algorithm,
                "exact": self.front.exact,
                "objectives": [objective.as_dict() for objective in self.front.objectives],
                "released_loss": released_loss(after, self.plan.columns, released_values(self.plan)),
                "exempt": exempt_classes(self.study, after),
                "classes": self.plan.classes,
                "divided": len(self.plan.split),
                "labels_per_value": round(labels_per_value(self.plan), 3),
                "downcoding": downcode(self.plan, after.attribute_weights, smallest(after)).as_dict(),
                "front": self.front.as_dict(),
                "comparison": {
                    "measures": before_after(self.study, before, figures),
                    "columns": per_column(before, after_persons, self.plan.columns),
                    "small_before": small_classes(before),
                    "small_after": small_classes(sized),
                },
                **self.shown.as_dict(),
            },
            findings=[
                *self.dependences,
                *release_findings(self.study, figures, self.whole, suppressed, after, self.shown),
            ],
            warnings=[*self.noted, *self.warnings],
            hierarchies=self.hierarchies,
        )

    def _compare(self, after: ClassTable, figures: Mapping[str, Any], loss: float, suppressed: int) -> None:
        """Raise unless the figures measured on the file are those of the search."""
        pairs = [
            ("the number of records", self.front.rows, after.records),
            ("the number of suppressed records", self.point.suppressed, suppressed),
            ("the number of classes", self.plan.classes, len(after.rows)),
            ("loss", self.point.loss, loss),
        ]
        if self.point.suppressed_units is not None:
            gone = self.persons.suppressed_units
            pairs.append(("the number of suppressed persons", self.point.suppressed_units, gone))
        for name, expected in self.point.values.items():
            if name not in figures:
                raise SfumatoError(f"{name} could not be measured on the released file", expected="every objective")
            pairs.append((name, expected, figure_value(figures[name])))
        refuse_differences(pairs)

    def pages(self, folder: Path, manifest: Content) -> Mapping[str, str]:
        return self.drawn(folder, manifest)


def as_recode(column: BoxColumn) -> ColumnRecode:
    """Return a column for the search for dependences: hidden if any of its labels covers several values."""
    missing = column.values.index("") if "" in column.values else None
    return ColumnRecode(column.name, flat(column.name, column.values), int(column.generalized), missing)


def smallest(classes: ClassTable) -> int:
    """Return the number of records of the smallest class of a file."""
    return int(classes.rows.min())


def released_values(plan: Assigned) -> dict[str, list[str]]:
    """Return the values of the released records, by column."""
    kept = np.unique(plan.of[plan.owner >= 0])
    return {
        column.name: [column.values[position] for position in np.unique(codes[kept])]
        for column, codes in zip(plan.columns, plan.codes, strict=True)
    }
