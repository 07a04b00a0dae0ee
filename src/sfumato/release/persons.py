"""Figures in persons and households, counted on the source because no released file has their numbers.

They are counted on the rows of the source in the classes of the plan. The classes hold whole tuples, so the persons of
each class are known. Publication and `verify --source` check row by row that the file has the rows of these classes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from sfumato.auditing.uniqueness import HOUSEHOLD, PERSON, WholeFile, whole_file
from sfumato.base.arrays import Counts64
from sfumato.base.compare import ABSENT
from sfumato.data.cells import MISSING
from sfumato.data.engine import Engine
from sfumato.data.settings import Role
from sfumato.errors import InputError, SfumatoError
from sfumato.measures.classes import ClassTable
from sfumato.measures.units import class_table
from sfumato.release.classes_rows import Assigned
from sfumato.release.format import Entry
from sfumato.release.readback import in_persons, measures_of, source_figures
from sfumato.release.rows import RowView
from sfumato.study import Study
from sfumato.tables.frequency import FrequencyTable
from sfumato.tables.units import units_from

VIEW = "held_rows"


@dataclass(frozen=True)
class Persons:
    """The persons of a source, those with a suppressed record, and how unique they are over all columns."""

    number: int
    suppressed: int
    whole: WholeFile

    def as_dict(self) -> dict[str, object]:
        return {"number": self.number, "suppressed": self.suppressed, "whole": self.whole.as_dict()}


@dataclass(frozen=True)
class Holders:
    """The persons of a release, and how unique its households are over all columns, if these are declared."""

    persons: Persons | None = None
    households: WholeFile | None = None

    def as_dict(self) -> dict[str, object]:
        """Return the entries of a manifest."""
        entries = {"persons": self.persons, "households": self.households}
        return {name: entry.as_dict() for name, entry in entries.items() if entry is not None}

    @classmethod
    def stated(cls, own: Entry) -> Holders:
        """Return the figures that a manifest states."""
        persons, households = own.get("persons"), own.get("households")
        return cls(
            None
            if persons is None
            else Persons(int(persons["number"]), int(persons["suppressed"]), WholeFile.from_dict(persons["whole"])),
            None if households is None else WholeFile.from_dict(households),
        )

    def entries(self) -> dict[str, object]:
        """Return the entries of a manifest by their path, absent ones too."""
        found = self.as_dict()
        return {f"own.{name}": found.get(name, ABSENT) for name in ("persons", "households")}


NO_HOLDERS = Holders()


def holders_of(engine: Engine, study: Study, rows: RowView, classes: ClassTable) -> Holders:
    """Return the persons and households of a release, by the rows that are released and the classes of the source."""
    if not rows.holders:
        return NO_HOLDERS
    engine.run(f"CREATE OR REPLACE TEMP VIEW {VIEW} AS {rows.sql(holders=True)}")
    persons, households = None, None
    if PERSON in rows.holders and classes.table.units is not None:
        whole = whole_file(engine, study, rows.released, VIEW, PERSON)
        persons = Persons(classes.table.persons, classes.suppressed_units, whole)
    if HOUSEHOLD in rows.holders:
        households = whole_file(engine, study, rows.released, VIEW, HOUSEHOLD, "households")
    return Holders(persons, households)


def refuse_other_classes(planned: ClassTable, written: ClassTable) -> None:
    """Raise unless the classes whose persons are counted are those of the written file."""
    one, two = (np.sort(classes.rows[classes.kept]) for classes in (planned, written))
    if not np.array_equal(one, two):
        raise SfumatoError(
            "the classes of the written file are not those of the plan",
            expected="the same classes; nothing was released",
            remedy="search again with this version",
        )


HOLDERS = (Role.UNIT, Role.HOUSEHOLD)


def may_count_persons(study: Study) -> bool:
    """Return whether the run file of a study names a column with numbers of persons or households."""
    return any(study.named(role) for role in HOLDERS)


def person_classes(study: Study, table: FrequencyTable, of: Counts64, owner: Counts64, classes: int) -> ClassTable:
    """Return the classes of a plan on the tuples of the source, with their persons and households."""
    if np.any(np.bincount(of, minlength=table.tuples) > 1):
        raise InputError(
            "the plan divides rows with equal quasi-identifiers, which may be rows of one person",
            expected="a plan that was found for persons or households",
            remedy="search again",
        )
    owners = np.full(table.tuples, -1, dtype=np.int64)
    owners[of] = owner
    return class_table(table, owners, classes, study.weights_for(table))


def person_figures(study: Study, classes: ClassTable) -> dict[str, dict[str, object]]:
    """Return every privacy measure in persons and households, measured on the source."""
    known, figures = measures_of(study), in_persons(source_figures(study, classes))
    return {name: entry for name, entry in figures.items() if known[name].reads not in ("originals", "population")}


def with_persons(after: ClassTable, table: FrequencyTable, plan: Assigned, of: Counts64, owner: Counts64) -> ClassTable:
    """Return the classes of a file with the persons of its rows.

    `of` and `owner` are the entries of the plan on the source.
    """
    units, file = table.units, after.table
    if units is None:
        return after
    codes = []
    for j, domain in enumerate(file.domains):
        runs = zip(plan.low[:, j].tolist(), plan.high[:, j].tolist(), strict=True)
        code_of = {label: code for code, label in enumerate(domain.labels)}
        codes.append([code_of[plan.columns[j].labels[run] or MISSING] for run in runs])
    place = {row: t for t, row in enumerate(zip(*file.codes.tolist(), strict=True))}
    tuple_of_class = np.array([place[row] for row in zip(*codes, strict=True)], dtype=np.int64)
    owners = np.full(table.tuples, -1, dtype=np.int64)
    owners[of] = owner
    inside = owners[units.tuple_of] >= 0
    there = tuple_of_class[owners[units.tuple_of[inside]]]
    number = np.unique(units.unit[inside], return_inverse=True)[1].reshape(-1).astype(np.int32)
    held = units_from("unit", file.tuples, there, number, units.rows[inside], {})
    return replace(after, table=replace(file, units=replace(held, number=units.number)))
