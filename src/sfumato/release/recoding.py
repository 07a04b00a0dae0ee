"""The draft of a release of a recoding, by the method lattice or cuts."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from sfumato.auditing.uniqueness import WholeFile, whole_file
from sfumato.base.compare import ABSENT, same
from sfumato.base.progress import stage
from sfumato.base.text import number
from sfumato.data.engine import Engine, open_engine
from sfumato.data.labelled_write import Written
from sfumato.data.settings import Role
from sfumato.data.source import Source
from sfumato.errors import InputError, SfumatoError, shortened
from sfumato.front import Front, Point
from sfumato.hierarchies import Hierarchy
from sfumato.measures.classes import ClassTable, classify
from sfumato.measures.measure import Measure
from sfumato.measures.registry import K, measure
from sfumato.measures.suppression import suppress_by_plan
from sfumato.plans.recodings import LevelPlan, RecodingPlan
from sfumato.release import manifest as pack
from sfumato.release.columns import ColumnRecode, Naming, ReleasedColumn, column_recodes, named_trees, namings
from sfumato.release.dictionary import data_dictionary, labels_in
from sfumato.release.draft import Difference, Draft, Entries, Facts, ReleasedFolder, Verifier
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
    Figures,
    before_after,
    exempt_classes,
    external_facts,
    figures_of,
    loss_of,
    per_column,
    released_classes,
    released_loss,
    ruled_figures,
    small_classes,
    source_figures,
    table_of,
    unchanged,
)
from sfumato.release.rows import Below, RowView, differing_rows, recode, refuse_torn, write_mixed
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
class PlanDraft(Draft):
    """The draft of a point of a front whose plan makes classes of records.

    `target` is the source in the format of the release. `given` is the table if its hierarchies are not those of the
    study, and `noted` holds further warnings for the publisher.
    """

    front: Front
    point: Point
    target: Source
    given: FrequencyTable | None = None
    noted: Sequence[str] = ()

    rows: RowView = field(init=False)
    files: Mapping[str, str] = field(init=False)
    hierarchies: Mapping[str, dict[str, Any]] = field(init=False)
    holders: Holders = field(init=False, default=NO_HOLDERS)
    warnings: list[str] = field(init=False)

    @classmethod
    def of(
        cls,
        front: Front,
        point: Point,
        verifier: Verifier,
        name: str | None = None,
        kind: str | None = None,
        **given: Any,
    ) -> Self:
        """Return the draft of a point. Its file may have a name or a format (`kind`) of its own."""
        study, source = front.study, front.study.source()
        kind = format_of(source, name, kind)
        return cls(
            system=front.system,
            study=study,
            source=source,
            fingerprint=front.fingerprint,
            data=pack.data_name(source, name, kind),
            target=target_of(source, kind),
            verifier=verifier,
            front=front,
            point=point,
            **given,
        )

    @cached_property
    def table(self) -> FrequencyTable:
        return self.study.table() if self.given is None else self.given

    @property
    @abstractmethod
    def recodes(self) -> Sequence[ColumnRecode]:
        """The columns for the search for dependences."""

    @property
    @abstractmethod
    def on_source(self) -> ClassTable | None:
        """The classes of the plan on the source, None if nothing is counted there."""

    @abstractmethod
    def in_persons(self, after: ClassTable) -> ClassTable:
        """Return the classes of the file with the persons of its rows."""

    @property
    @abstractmethod
    def columns(self) -> Sequence[ReleasedColumn]:
        """The quasi-identifiers as they are released."""

    def write(self, engine: Engine, folder: Path) -> Study:
        written = write_mixed(engine, self.rows, folder / self.data)
        return write_run_file(folder, self.study, self.table, self.rows, self.data, self.files, written)

    def compare(self, engine: Engine, own: Study) -> None:
        written = own.source()
        with stage("compare every row"):
            refuse_torn(differing_rows(engine, self.rows, written))
        with stage("look for extremes"):
            self.warnings = extreme_warnings(extreme_columns(engine, self.study, written))
        if self.on_source is not None and self.rows.holders:
            with stage("count persons"):
                self.holders = holders_of(engine, self.study, self.rows, self.on_source)
        with stage("look for dependences"):
            dependences, in_vain = dependence_findings(engine, self.source, self.study, self.recodes)
        self.findings += dependences
        self.warnings += in_vain

    def stated(self, _: Study) -> dict[str, Any]:
        front, point = self.front, self.point
        if self.on_source is not None:
            refuse_other_values(front, point, self.on_source)
        own = front.as_dict()
        return {
            "rows_read": self.rows.rows_read,
            "records": front.rows,
            "suppressed": point.suppressed,
            "left_out": self.table.left_out,
            "loss": point.loss,
            "figures": {},
            "point": point.as_dict(),
            "warnings": [*self.noted, *self.warnings],
            "dictionary": {"columns_left_out": len(self.source.columns) - len(self.rows.columns)},
            "hierarchies": self.hierarchies,
            "own": {
                **{name: own[name] for name in ("algorithm", "exact", "objectives")},
                "front": own,
                **self.holders.as_dict(),
            },
        }

    def compared(self, content: Content, after: ClassTable) -> Entries:
        before, sized, counted = classify(self.table, weights=self.study.weights_for(self.table)), after, after
        if self.on_source is not None:
            refuse_other_classes(self.on_source, after)
        if self.on_source is not None and self.table.counts_units:
            sized, counted = self.on_source, self.in_persons(after)
        return {
            "own.comparison": {
                "measures": before_after(self.study, before, content["figures"]),
                "columns": per_column(before, counted, self.columns, labels_in(after)),
                "small_before": small_classes(before),
                "small_after": small_classes(sized),
            }
        }


@dataclass(eq=False, kw_only=True)
class RecodingDraft(PlanDraft):
    """The draft of a recoding by levels or cuts. `earlier` holds how an earlier release named its groups."""

    earlier: Mapping[str, Naming] = field(default_factory=dict)

    @cached_property
    def planned(self) -> NamedPlan:
        _refuse_printed(self.front)
        table = self.table
        with stage("classify"):
            return named_plan(self.study, table, self.point.recoding_plan, self.earlier)

    @cached_property
    def columns(self) -> tuple[ColumnRecode, ...]:
        return column_recodes(self.study, self.planned.levels, self.planned.trees)

    @property
    def recodes(self) -> Sequence[ColumnRecode]:
        return self.columns

    @property
    def on_source(self) -> ClassTable:
        return self.planned.classes

    def in_persons(self, after: ClassTable) -> ClassTable:  # noqa: ARG002
        return self.planned.classes

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
            self.rows = recode(engine, self.source, self.study, self.columns, below, self.target)
        return describe_recoding(self.system, self.study, self.rows, self.columns, below)

    def stated(self, own: Study) -> dict[str, Any]:
        planned = self.planned
        self.warnings += [*_label_warnings(self.columns, planned.names), *_name_warnings(self.rows)]
        stated = super().stated(own)
        stated["own"]["levels"] = dict(planned.levels)
        figures = {K.name: {"value": K.value(planned.classes)}, **source_figures(self.study, planned.classes)}
        return stated | {"figures": figures}


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
    figures: Figures,
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


def class_findings(
    study: Study,
    classes: ClassTable,
    measures: Sequence[Measure] = RULED,
    own: Figures | None = None,
    raw: bool | None = None,
) -> list[Finding]:
    """Return the findings of the classes of a plan, before the file is written. `own` are figures of the method.

    `raw` states whether the file has no changed quasi-identifier, where the classes do not have its labels.
    """
    known = Evidence(
        {**ruled_figures(study, classes, measures), **(own or {})},
        classes.table.persons,
        classes.suppressed_units,
        unchanged(classes) if raw is None else raw,
        noun="record" if classes.table.units is None else "person",
        left_out=classes.table.left_out,
        entered=classes.records,
    )
    return policy_findings(study.policy, known)


def write_run_file(
    folder: Path,
    study: Study,
    table: FrequencyTable,
    rows: RowView,
    data: str,
    files: Mapping[str, str],
    written: Written,
) -> Study:
    """Write the run file of a release: the roles of the released columns and their saved hierarchies (`files`)."""
    columns: dict[str, dict[str, Any]] = {}
    distances = pack.distances_of(table)
    for name in (name for name in study.columns if name in rows.names):
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
    columns |= {name: {"role": str(Role.DROP)} for name in rows.names if name not in columns}  # the ends of ranges
    data_section = {"na": list(study.data.na), "missing": study.data.missing, "removed": rows.suppressed}
    data_section |= {"left_out": table.left_out} if table.left_out else {}
    data_section |= written.settings()
    sections: dict[str, Any] = {"data": data_section, "columns": columns}
    if study.measures:
        sections["measures"] = {name: dict(given) for name, given in study.measures.items()}
    if study.search.weights:
        sections["search"] = {"weights": dict(study.search.weights)}
    return pack.write_run_file(folder, study, rows.target, rows.names, data, sections)


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


def _name_warnings(rows: RowView) -> list[str]:
    names = pack.clashing(rows.names)
    if not names:
        return []
    return [f"column names that differ only in case are written with a number at the end: {shortened(names)}."]


def refuse_other_values(front: Front, point: Point, planned: ClassTable) -> None:
    """Raise unless the figures of a point are those of its classes, as far as the file cannot show them.

    Objectives that are taken before suppression, and the number of persons, are not in the file.
    """
    pairs: list[tuple[str, float, float]] = []
    if planned.table.units is not None:
        stated = -1 if point.suppressed_units is None else point.suppressed_units
        pairs.append(("the number of suppressed persons", stated, planned.suppressed_units))
    for objective in front.objectives:
        if objective.taken != "released":
            result = measure(objective.name).with_settings(front.study.measures)
            pairs.append((objective.name, point.values[objective.name], objective.value(result, planned)))
    for name, expected, value in pairs:
        if not same(expected, value):
            raise SfumatoError(
                f"{name} of the plan is {value:.10g}, not {expected:.10g} as in the search",
                expected="the same figures on the file as in the search; nothing was released",
                remedy="search again with this version",
            )


def level_plan(manifest: Content) -> LevelPlan:
    """Return the plan of a release as levels of the hierarchies in its folder."""
    point, levels = manifest["point"], manifest["own"]["levels"]
    return LevelPlan(levels, point["suppress_below"], point.get("diversity_below", 0), point.get("limits", {}))


def columns_of(folder: ReleasedFolder) -> tuple[ColumnRecode, ...]:
    """Return the recoding of each quasi-identifier under the published plan."""
    trees = pack.load_hierarchies(folder.path, folder.manifest["hierarchies"])
    return column_recodes(folder.study, folder.manifest["own"]["levels"], trees)


def recoding_facts(folder: ReleasedFolder) -> Facts:
    """Return the facts of a release of a recoding."""
    manifest, own = folder.manifest, folder.own
    columns = columns_of(folder)
    classes = released_classes(own, columns)
    named = {name: entry["named"] for name, entry in manifest["hierarchies"].items()}
    values = {
        column.name: {*named[column.name]["values"]} & {*column.tree.leaves} if named[column.name] else None
        for column in columns
    }
    facts = class_facts(folder, columns, classes, figures_of(own, classes, manifest["figures"]), values)
    plan, agrees = manifest["point"]["plan"], _same_groups if METHODS[manifest["system"]].neighbours else _same_level
    wrong = [column.name for column in columns if not agrees(column, plan.get(column.name))]
    differences = [Difference(pack.MANIFEST, f"its point and its hierarchies differ in {name}") for name in wrong]
    return replace(facts, differences=differences)


def _same_level(column: ColumnRecode, level: object) -> bool:
    return same(level, column.level)


def _same_groups(column: ColumnRecode, starts: Any) -> bool:
    """Return whether the groups of a column start at the values that a cut lists."""
    groups = dict(zip(column.tree.leaves, column.groups, strict=True))
    return sorted(groups.get(start, -1) for start in starts or ()) == sorted(set(groups.values()))


def class_facts(
    folder: ReleasedFolder,
    columns: Sequence[ReleasedColumn],
    classes: ClassTable,
    figures: Figures,
    known: Mapping[str, Collection[str] | None],
) -> Facts:
    """Return the facts of a file with classes of records: its columns, classes, figures and released values."""
    manifest, own = folder.manifest, folder.own
    with open_engine(own.engine, own.engine_options) as engine, stage("measure all columns together"):
        engine.attach(folder.written, "written")
        whole = whole_file(engine, own, folder.written)
    loss, suppressed = loss_of(classes), own.data.removed
    taken = {objective["name"] for objective in manifest["own"]["objectives"] if "taken" in objective}
    values = {name: figures.get(name, {}).get("value", ABSENT) for name in manifest["point"]["values"]}
    holders = Holders.stated(manifest["own"])
    return Facts(
        records=classes.records,
        whole=whole,
        dictionary=data_dictionary(
            folder.study,
            folder.written.names,
            {column.name: column for column in columns},
            Path(folder.data).name,
            manifest["dictionary"]["columns_left_out"],
            labels_in(classes),
        ),
        entries={
            "suppressed": suppressed,
            "loss": loss,
            "figures": figures,
            "own.exempt": exempt_classes(folder.study, classes),
            "own.released_loss": released_loss(classes, columns, known),
            "point.loss": loss,
            "point.suppressed": suppressed,
            **{f"point.values.{name}": value for name, value in values.items() if name not in taken},
        },
        findings=release_findings(folder.study, figures, whole, suppressed, classes, holders),
        classes=classes,
    )


def recoding_on_source(folder: ReleasedFolder, study: Study) -> tuple[Entries, list[Difference]]:
    """Recode the source and compare the rows, in any order. Return the figures that are measured on the source."""
    columns = columns_of(folder)
    classes = _classes_again(folder, study, columns)
    plan, holders = level_plan(folder.manifest), NO_HOLDERS
    below = Below(plan.suppress_below, plan.diversity_below) if classes is None else Below.of(plan, classes, columns)
    with open_engine(study.engine, study.engine_options) as engine:
        source = table_of(study)
        recoded = recode(engine, source, study, columns, below, target_of(source, folder.written.format))
        torn = differing_rows(engine, recoded, folder.written)
        if classes is not None:
            holders = holders_of(engine, study, recoded, classes)
    differences = [Difference(folder.data, f"{torn} rows differ from the source recoded again")] if torn else []
    entries: dict[str, object] = {"source.rows_read": recoded.rows_read, **holders.entries()}
    found = {} if classes is None else source_figures(study, classes)
    stated = folder.manifest["figures"]
    names = [name for name, entry in stated.items() if entry["measured_on"] == "source"]
    return entries | {f"figures.{name}": found.get(name, ABSENT) for name in names}, differences


def _classes_again(folder: ReleasedFolder, study: Study, columns: Sequence[ColumnRecode]) -> ClassTable | None:
    """Return the classes of the source under the published plan, if the engine alone cannot count them."""
    plan = level_plan(folder.manifest)
    declared = study.named(Role.UNIT) or study.named(Role.HOUSEHOLD)
    on_source = any(entry["measured_on"] == "source" for entry in folder.manifest["figures"].values())
    wild = any(column.wild_group >= 0 for column in columns)
    special = plan.diversity_below > 1 and any(
        study.columns[name].harmless is not None or study.missing_rule(name) != "drop"
        for name in study.named(Role.SENSITIVE)
    )
    if not (plan.limits or wild or declared or on_source or special):
        return None
    distances = {name: result.distance for name, result in folder.own.columns.items() if result.distance is not None}
    table = study.table(trees={column.name: column.tree for column in columns}, distances=distances)
    classes = classify(table, plan.recoding(table), study.weights_for(table))
    return suppress_by_plan(classes, plan, study.measures)


def says(manifest: Content) -> str:
    """Return the size of the smallest class as a clause."""
    return f"{K.label} {number(manifest['figures'][K.name]['value'])}"


OF_CLASSES = ("figures", "loss", "records", "own.exempt")  # entries that are measured on a file with classes
RECODINGS = Verifier(pages_of, recoding_facts, recoding_on_source, says, measured=OF_CLASSES)
