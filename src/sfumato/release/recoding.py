"""The draft of a release of a recoding, by the method lattice or cuts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from sfumato.auditing.uniqueness import WholeFile, whole_file
from sfumato.base.progress import stage
from sfumato.data.engine import Engine
from sfumato.data.labelled_write import Written
from sfumato.data.settings import Role
from sfumato.data.source import TEXT, Column, Source
from sfumato.errors import InputError, SfumatoError, shortened
from sfumato.front import Front, Point
from sfumato.hierarchies import Hierarchy
from sfumato.measures.classes import ClassTable, classify
from sfumato.measures.measure import Measure
from sfumato.measures.registry import K, measure
from sfumato.measures.suppression import suppress_by_plan
from sfumato.plans.recodings import RecodingPlan
from sfumato.release import manifest as pack
from sfumato.release.columns import ColumnRecode, Naming, column_recodes, named_trees, namings
from sfumato.release.dictionary import data_dictionary, labels_in
from sfumato.release.draft import Draft, Measured
from sfumato.release.format import format_of, target_of
from sfumato.release.history.description import Description, describe_recoding
from sfumato.release.manifest import Content
from sfumato.release.persons import NO_HOLDERS, Holders, holders_of, refuse_other_classes
from sfumato.release.policy import (
    UNIQUES,
    Evidence,
    Finding,
    dependence_findings,
    extreme_columns,
    extreme_warnings,
    policy_findings,
    unique_findings,
    with_households,
)
from sfumato.release.readback import (
    RULED,
    before_after,
    exempt_classes,
    external_facts,
    figure_value,
    figures_of,
    loss_of,
    per_column,
    refuse_differences,
    released_classes,
    released_loss,
    ruled_figures,
    small_classes,
    unchanged,
)
from sfumato.release.rows import Below, Recoded, differing_rows, recode, refuse_torn, write_mixed
from sfumato.report.release_pages import external_page, internal_page
from sfumato.study import Study
from sfumato.study.methods import METHODS
from sfumato.tables.frequency import FrequencyTable


@dataclass(frozen=True, eq=False)
class NamedPlan:
    """The classes of a plan, its hierarchies with a level in each, and the names of its groups."""

    classes: ClassTable
    trees: Mapping[str, Hierarchy]
    levels: Mapping[str, int]
    names: Mapping[str, Naming]


def named_plan(
    study: Study, table: FrequencyTable, plan: RecodingPlan, earlier: Mapping[str, Naming] | None = None
) -> NamedPlan:
    """Return a plan with groups named by released values. Groups that an `earlier` release named keep their names."""
    classes = classify(table, plan.recoding(table), study.weights_for(table))
    classes = suppress_by_plan(classes, plan, study.measures)
    trees, levels = pack.trees_and_levels(study, table, plan)
    names = namings(study.columns, classes, trees, levels)
    known = {name: naming for name, naming in (earlier or {}).items() if name in names}
    names |= {name: naming.with_values(names[name].values) for name, naming in known.items()}
    return NamedPlan(classes, named_trees(trees, names), levels, names)


@dataclass(eq=False, kw_only=True)
class RecodingDraft(Draft):
    """The draft of a point of a front.

    `target` is the source in the format of the release. `given` is the table if its hierarchies are not those of the
    study. `earlier` holds how an earlier release named their groups, and `noted` further warnings for the publisher.
    """

    front: Front
    point: Point
    target: Source
    given: FrequencyTable | None = None
    earlier: Mapping[str, Naming] = field(default_factory=dict)
    noted: Sequence[str] = ()

    files: Mapping[str, str] = field(init=False)
    hierarchies: Mapping[str, dict[str, Any]] = field(init=False)
    recoded: Recoded = field(init=False)
    whole: WholeFile = field(init=False)
    holders: Holders = field(init=False, default=NO_HOLDERS)
    warnings: list[str] = field(init=False)
    dependences: Sequence[Finding] = field(init=False)

    @classmethod
    def of(
        cls, front: Front, point: Point, name: str | None = None, kind: str | None = None, **given: Any
    ) -> RecodingDraft:
        """Return the draft of a point. Its file may have a name or a format (`kind`) of its own."""
        _refuse_printed(front)
        study, source = front.study, front.study.source()
        kind = format_of(source, name, kind)
        return cls(
            system=front.system,
            study=study,
            source=source,
            fingerprint=front.fingerprint,
            data=pack.data_name(source, name, kind),
            target=target_of(source, kind),
            front=front,
            point=point,
            **given,
        )

    @cached_property
    def table(self) -> FrequencyTable:
        return self.study.table() if self.given is None else self.given

    @cached_property
    def planned(self) -> NamedPlan:
        table = self.table
        with stage("classify"):
            return named_plan(self.study, table, self.point.recoding_plan, self.earlier)

    @cached_property
    def columns(self) -> tuple[ColumnRecode, ...]:
        return column_recodes(self.study, self.planned.levels, self.planned.trees)

    def foresee(self) -> Sequence[Finding]:
        return class_findings(self.study, self.planned.classes)

    def prepare(self, folder: Path) -> None:
        self.files = pack.write_hierarchies(folder, self.planned.trees)
        self.hierarchies = pack.about_hierarchies(
            self.study, folder, self.planned.trees, self.files, self.planned.names
        )

    def describe(self, engine: Engine) -> Description:
        with stage("count classes"):
            below = Below.of(self.point.recoding_plan, self.planned.classes, self.columns)
            self.recoded = recode(engine, self.source, self.study, self.columns, below, self.target)
        return describe_recoding(self.system, self.study, self.recoded, self.columns)

    def write(self, engine: Engine, folder: Path) -> Study:
        written = write_mixed(engine, self.recoded, folder / self.data)
        return write_run_file(folder, self.study, self.table, self.recoded, self.data, self.files, written)

    def compare(self, engine: Engine, own: Study) -> None:
        written = own.source()
        with stage("compare every row"):
            refuse_torn(differing_rows(engine, self.recoded, written))
        with stage("look for extremes"):
            self.warnings = extreme_warnings(extreme_columns(engine, self.study, written))
        with stage("measure all columns together"):
            self.whole = whole_file(engine, self.study, written)
            self.holders = recoded_holders(engine, self.study, self.recoded, self.columns, self.planned.classes)
        with stage("look for dependences"):
            self.dependences, in_vain = dependence_findings(engine, self.source, self.study, self.columns)
        self.warnings += [*in_vain, *_label_warnings(self.columns, self.planned.names), *_name_warnings(self.recoded)]

    def measure(self, own: Study) -> Measured:
        front, recoded = self.front, self.recoded
        after = released_classes(own, self.columns, recoded.suppressed)
        before = classify(self.table, weights=self.study.weights_for(self.table))
        planned = self.planned.classes
        refuse_other_classes(planned, after)
        figures, loss = figures_of(self.study, after, planned), loss_of(after)
        counted = planned if self.table.counts_units else after
        compare_figures(front, self.point, self.planned.classes, recoded, figures, loss)
        return Measured(
            columns=recoded.names,
            rows_read=recoded.rows_read,
            records=recoded.records,
            suppressed=recoded.suppressed,
            left_out=self.table.left_out,
            loss=loss,
            figures=figures,
            whole=self.whole,
            point=self.point.as_dict(),
            dictionary=data_dictionary(
                self.study,
                recoded.names,
                {column.name: column for column in self.columns},
                Path(self.data).name,
                len(self.source.columns) - len(recoded.columns),
                labels_in(after),
            ),
            own={
                "algorithm": front.algorithm,
                "exact": front.exact,
                "objectives": [objective.as_dict() for objective in front.objectives],
                "levels": dict(self.planned.levels),
                "released_loss": released_loss(after, self.columns, self.hierarchies),
                "exempt": exempt_classes(self.study, after),
                "front": front.as_dict(),
                "comparison": {
                    "measures": before_after(self.study, before, figures),
                    "columns": per_column(before, counted, self.columns, labels_in(after)),
                    "small_before": small_classes(before),
                    "small_after": small_classes(counted),
                },
                **self.holders.as_dict(),
            },
            findings=[
                *self.dependences,
                *release_findings(self.study, figures, self.whole, recoded.suppressed, after, self.holders),
            ],
            warnings=[*self.noted, *self.warnings],
            hierarchies=self.hierarchies,
        )

    def pages(self, folder: Path, manifest: Content) -> Mapping[str, str]:
        return pages_of(folder, manifest)


def _refuse_printed(front: Front) -> None:
    """Refuse to release by the rule that problem 4 prints, which guarantees nothing (docs/readings.md, 2.2)."""
    settings = front.study.search
    if METHODS[front.system].problems and settings.problem == 4 and settings.reproduction:
        raise InputError(
            "the front was found with the rule printed in the paper, which does not guarantee k and ℓ in the file",
            expected="a front for release",
            remedy="search again without reproduction = true",
        )


def pages_of(_: Path, manifest: Content) -> dict[str, str]:
    """Return the reports of a release from its manifest, for publication and for verification."""
    return {
        pack.EXTERNAL: external_page(external_facts(manifest), manifest["dictionary"]),
        pack.INTERNAL: internal_page(manifest),
    }


def release_findings(
    study: Study,
    figures: Mapping[str, Mapping[str, Any]],
    whole: WholeFile,
    suppressed: int,
    classes: ClassTable,
    holders: Holders = NO_HOLDERS,
) -> list[Finding]:
    """Return what a recoded file violates of the policy by its figures. `classes` are those of the file.

    If a household is declared, a value or record that only one household has is unique, and the worse count is used.
    """
    persons = holders.persons
    if persons is not None:
        known = Evidence(figures, persons.number, persons.suppressed, unchanged(classes), persons.whole, "person")
    else:
        known = Evidence(figures, classes.records, suppressed, unchanged(classes), whole)
    known = replace(known, left_out=classes.table.left_out, entered=classes.records)
    findings = policy_findings(study.policy, known)
    if holders.households is not None:
        findings = with_households(findings, unique_findings(study.policy, holders.households))
    return [_about_weight(study, finding) for finding in findings]


def _about_weight(study: Study, finding: Finding) -> Finding:
    """Return a finding on unique records with what can be done about a released weight, which is often unique."""
    weights = study.named(Role.WEIGHT)
    if finding.rule != UNIQUES or not weights:
        return finding
    advice = (
        f" The weight {weights[0]} is one of these columns. Round it (round), give it the role drop, or accept the "
        "rule with a reason."
    )
    return replace(finding, what=finding.what + advice)


def recoded_holders(
    engine: Engine, study: Study, recoded: Recoded, columns: Sequence[ColumnRecode], classes: ClassTable
) -> Holders:
    """Return the persons and households of a release, by the rows that were recoded."""
    rows = recoded.sql(holders=True)
    return holders_of(engine, study, rows, as_source(recoded, columns), recoded.holders, classes)


def class_findings(
    study: Study,
    classes: ClassTable,
    measures: Sequence[Measure] = RULED,
    own: Mapping[str, Mapping[str, Any]] | None = None,
) -> list[Finding]:
    """Return the findings of the classes of a plan, before the file is written. `own` are figures of the method."""
    known = Evidence(
        {**ruled_figures(study, classes, measures), **(own or {})},
        classes.table.persons,
        classes.suppressed_units,
        unchanged(classes),
        noun="record" if classes.table.units is None else "person",
        left_out=classes.table.left_out,
        entered=classes.records,
    )
    return policy_findings(study.policy, known)


def as_source(recoded: Recoded, columns: Sequence[ColumnRecode]) -> Source:
    """Return the released columns of a view of recoded rows, by position. Generalized columns are texts."""
    generalized = {column.name for column in columns if column.level > 0}
    released = tuple(
        Column(column.name, TEXT if column.name in generalized else column.type, position)
        for position, column in enumerate(recoded.columns)
    )
    return replace(recoded.source, columns=released)


def write_run_file(
    folder: Path,
    study: Study,
    table: FrequencyTable,
    recoded: Recoded,
    data: str,
    files: Mapping[str, str],
    written: Written,
) -> Study:
    """Write the run file of a release: the roles of the released columns and their saved hierarchies."""
    sections = run_file_sections(study, table, recoded.names, recoded.suppressed, files, written)
    return pack.write_run_file(folder, study, recoded.target, recoded.names, data, sections)


def run_file_sections(
    study: Study,
    table: FrequencyTable,
    names: Sequence[str],
    suppressed: int,
    files: Mapping[str, str],
    written: Written,
) -> dict[str, Any]:
    """Return the sections of the run file besides those that read the data. `files` are saved hierarchies."""
    columns: dict[str, dict[str, Any]] = {}
    distances = pack.distances_of(table)
    for name in (name for name in study.columns if name in names):
        column = study.columns[name]
        columns[name] = {"role": str(column.role)}
        if column.missing is not None:
            columns[name]["missing"] = column.missing
        distance = distances.get(name, column.distance)
        if distance is not None:  # the default depends on the values that occur, so it is stated
            columns[name]["distance"] = distance
        if column.harmless is not None:
            columns[name]["harmless"] = list(column.harmless)
        if name in files:
            path = Path(files[name]).relative_to(pack.PRIVATE).as_posix()
            columns[name]["hierarchy"] = {"path": path, "separator": ",", "header": True}
    data_section = {"na": list(study.data.na), "missing": study.data.missing, "removed": suppressed}
    data_section |= {"left_out": table.left_out} if table.left_out else {}
    data_section |= written.settings()
    sections: dict[str, Any] = {"data": data_section, "columns": columns}
    if study.measures:
        sections["measures"] = {name: dict(given) for name, given in study.measures.items()}
    if study.search.weights:
        sections["search"] = {"weights": dict(study.search.weights)}
    return sections


def _label_warnings(columns: Sequence[ColumnRecode], names: Mapping[str, Naming]) -> list[str]:
    """Return warnings of labels with another meaning on another level.

    A value as the name of a group is no such label, because it is true of all records of the group.
    """
    own = {name: set(naming.labels) - set(naming.tree.levels[naming.level]) for name, naming in names.items()}
    ambiguous = {c.name: [label for label in c.ambiguous if label not in own.get(c.name, ())] for c in columns}
    return [
        f"{name} is released with {len(labels)} labels that its hierarchy uses on several levels: "
        "read without the plan they mean something else."
        for name, labels in ambiguous.items()
        if labels
    ]


def _name_warnings(recoded: Recoded) -> list[str]:
    names = pack.clashing(recoded.names)
    if not names:
        return []
    return [f"column names that differ only in case are written with a number at the end: {shortened(names)}."]


def compare_figures(
    front: Front, point: Point, planned: ClassTable, recoded: Recoded, figures: Mapping[str, Any], loss: float
) -> None:
    """Raise unless the figures that were measured on the file are those of the search.

    An objective taken before suppression cannot be measured on the file, so it is taken from the plan's own classes.
    """
    taken = {objective.name: objective for objective in front.objectives if objective.taken != "released"}
    pairs: list[tuple[str, float, float]] = [
        ("the number of records", planned.records, recoded.records),
        ("the number of suppressed records", point.suppressed, recoded.suppressed),
        ("loss", point.loss, loss),
        (K.name, K.value(planned), figure_value(figures[K.name])),
    ]
    if planned.table.units is not None:
        stated = -1 if point.suppressed_units is None else point.suppressed_units
        pairs.append(("the number of suppressed persons", stated, planned.suppressed_units))
    for name, expected in point.values.items():
        if name not in figures:
            raise SfumatoError(f"{name} could not be measured on the released file", expected="every objective")
        result = measure(name).with_settings(front.study.measures)
        value = taken[name].value(result, planned) if name in taken else figure_value(figures[name])
        pairs.append((name, expected, value))
    refuse_differences(pairs)
