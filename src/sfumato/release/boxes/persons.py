"""Figures in persons and households, whose numbers are not in the released file: of the source's rows in its classes.

They are measured where the classes of the plan hold whole tuples, because which persons a class has is known then. That
the file has the rows of these classes is checked row by row, at publication and by `verify --source`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from sfumato.errors import InputError
from sfumato.measures.classes import ClassTable
from sfumato.measures.owned import class_table
from sfumato.release.boxes.assigned import Assigned
from sfumato.release.boxes.rows import BoxRows
from sfumato.release.persons import Holders, holders_of
from sfumato.release.readback import IN_UNITS, figure_value, measures_of, same
from sfumato.runtime.arrays import Counts64
from sfumato.runtime.json_files import without_infinities
from sfumato.sources.cells import MISSING
from sfumato.sources.engines.engine import Engine
from sfumato.sources.roles import Role
from sfumato.study import Study
from sfumato.tables.frequency import FrequencyTable
from sfumato.tables.units import units_from

HOLDERS = (Role.UNIT, Role.HOUSEHOLD)


def may_count_persons(study: Study) -> bool:
    """Whether rows of a study may belong to persons or households: its run file names a column of their numbers."""
    return any(study.named(role) for role in HOLDERS)


def box_holders(engine: Engine, study: Study, rows: BoxRows, classes: ClassTable) -> Holders:
    """The persons and households of a release, by the rows that were put into classes."""
    return holders_of(engine, study, rows.sql(holders=True), rows.released_source, rows.holders, classes)


def person_classes(study: Study, table: FrequencyTable, of: Counts64, owner: Counts64, classes: int) -> ClassTable:
    """The classes of a plan on the tuples of the source, with their persons and households."""
    if np.any(np.bincount(of, minlength=table.tuples) > 1):
        raise InputError(
            "the plan divides rows with equal quasi-identifiers, which may be rows of one person",
            expected="a plan that was found for persons or households",
            remedy="search again",
        )
    owners = np.full(table.tuples, -1, dtype=np.int64)
    owners[of] = owner
    return class_table(table, owners, classes, study.weights_for(table))


def person_figures(study: Study, classes: ClassTable) -> dict[str, dict[str, Any]]:
    """Every privacy measure in persons and households, measured on the source."""
    figures = {}
    for name, chosen in measures_of(study).items():
        elsewhere = chosen.reads in ("originals", "population")
        if chosen.kind == "privacy" and not elsewhere and chosen.available(classes) is None:
            entry = {"value": chosen.value(classes), "measured_on": "source", "reason": IN_UNITS}
            figures[name] = without_infinities(entry)
    return figures


def in_persons(figures: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """The figures of a manifest that count persons or households."""
    return {name: dict(entry) for name, entry in figures.items() if entry.get("reason") == IN_UNITS}


def figure_differences(figures: Mapping[str, Mapping[str, Any]], found: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The figures in persons of a manifest that are not those of the source, and those it lacks."""
    stated = in_persons(figures)
    both = [name for name in found if name in stated and same(figure_value(stated[name]), figure_value(found[name]))]
    return sorted({*stated, *found} - set(both))


def with_persons(after: ClassTable, table: FrequencyTable, plan: Assigned, of: Counts64, owner: Counts64) -> ClassTable:
    """The classes of a file with the persons of its rows; `of` and `owner` are the plan's entries on the source."""
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
