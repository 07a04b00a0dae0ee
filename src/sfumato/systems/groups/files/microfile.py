"""A harmonised microfile in memory: codes of the common attributes, the area, who is in the group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sfumato.errors import DataError, shortened
from sfumato.runtime.arrays import Codes, Counts64, Flags, Floats
from sfumato.sources.cells import cleaned
from sfumato.sources.engines.engine import Engine, require_order
from sfumato.sources.source import Source
from sfumato.study.file_mapping import FileMapping, vital_columns
from sfumato.systems.groups.files.harmonise import check_columns, expression, meets
from sfumato.systems.groups.files.wide import NUMBER, Wide, read_wide


@dataclass(frozen=True)
class Dropped:
    """What harmonising dropped: rows read, left out by condition, and for each reason the rows it applies to.

    A row may have several reasons; `alone` counts those that had only this one.
    """

    read: int
    left_out: int
    kept: int
    reasons: Mapping[str, int]
    alone: Mapping[str, int]

    def as_dict(self) -> dict[str, Any]:
        return {
            "rows_read": self.read,
            "left_out": self.left_out,
            "kept": self.kept,
            "reasons": dict(self.reasons),
            "only_reason": dict(self.alone),
        }


@dataclass(frozen=True)
class Whole:
    """That every row with an area is read, not only those in range: with which columns as they are, and whose
    values say which rows stay together (a household's number)."""

    columns: tuple[str, ...] = ()
    unit: str | None = None


@dataclass(frozen=True)
class Microfile:
    """Records in the order of the file. `rows` is each record's place in it, from 0.

    As a rule they are the records in range. Of a file that is read whole, `inside` tells which those are, and an
    attribute may be NaN; `unit_of` numbers what stays together, and `wide` holds columns as they are.
    `members` holds a flag per record for each group; it is empty if the file lacks the vital columns.
    `everyone` counts the members of each group per area over all rows, in range or not.
    """

    name: str
    attributes: tuple[str, ...]
    values: tuple[Floats, ...]
    codes: Codes
    areas: tuple[str, ...]
    area_of: Codes
    members: Mapping[str, Flags]
    rows: Counts64
    dropped: Dropped
    everyone: Mapping[str, Counts64]
    inside: Flags
    unit_of: Counts64 | None = None
    wide: Wide | None = None

    @property
    def records(self) -> int:
        return len(self.rows)

    def column(self, name: str) -> Floats:
        """The values of an attribute, record by record."""
        position = self.attributes.index(name)
        values: Floats = self.values[position][self.codes[position]]
        return values

    def table(self) -> Floats:
        """All attributes as numbers, one row per record."""
        return np.stack([self.values[j][self.codes[j]] for j in range(len(self.attributes))], axis=1)

    def sizes(self) -> Counts64:
        """Records per area."""
        return np.bincount(self.area_of, minlength=len(self.areas)).astype(np.int64)

    def quantity(self, group: str) -> Counts64:
        """The quantity signal q: members per area."""
        return np.bincount(self.area_of[self.members[group]], minlength=len(self.areas)).astype(np.int64)

    def with_areas(self, area_of: Codes) -> Microfile:
        """The same records in other areas."""
        return replace(self, area_of=area_of)

    def part(self, chosen: Flags, name: str | None = None) -> Microfile:
        """Some of the records."""
        return replace(
            self,
            name=name or self.name,
            codes=self.codes[:, chosen],
            area_of=self.area_of[chosen],
            members={group: flags[chosen] for group, flags in self.members.items()},
            rows=self.rows[chosen],
            inside=self.inside[chosen],
            unit_of=None if self.unit_of is None else self.unit_of[chosen],
            wide=None if self.wide is None else self.wide.part(chosen),
        )

    def in_range(self) -> Microfile:
        """The records in range alone."""
        return self if self.inside.all() else replace(self, wide=None).part(self.inside)


def read_microfile(
    engine: Engine,
    source: Source,
    mapping: FileMapping,
    name: str,
    *,
    need_members: bool = True,
    whole: Whole | None = None,
) -> Microfile:
    """Harmonise a source: one scan in the engine, then a column of codes at a time; in range, or `whole`."""
    require_order(engine, "the groups system")
    check_columns(source, mapping)
    absent = [column for column in vital_columns(mapping) if column not in source.names]
    if absent and need_members:
        raise DataError(
            f"{name} lacks the vital columns {shortened(absent)}",
            expected="columns that say who is in the group",
            remedy="an auxiliary file with them, or other conditions under [groups.vital]",
        )
    groups = [] if absent else list(mapping.vital)
    engine.attach(source, "raw")
    read, left_out = _harmonise(engine, source, mapping, groups)
    attributes = list(mapping.attributes)
    dropped = _dropped(engine, mapping, read, left_out)
    if dropped.kept == 0:
        worst = max(
            dropped.alone or {"": 0}, key=lambda reason: (dropped.alone.get(reason, 0), dropped.reasons[reason])
        )
        raise DataError(
            f"the ranges drop all {read:,} rows of {name}",
            expected="ranges that keep records",
            remedy=f"{worst} drops {dropped.reasons.get(worst, 0):,} of them; widen it",
        )
    areas = [str(row[0]) for row in engine.rows("SELECT DISTINCT area FROM harmonised WHERE area <> '' ORDER BY area")]
    engine.upload("areas", {"label": areas, "code": np.arange(len(areas), dtype=np.int32)})
    engine.run(
        "CREATE OR REPLACE TEMP TABLE kept AS SELECT h.*, a.code AS code FROM harmonised AS h "
        f"JOIN areas AS a ON h.area = a.label WHERE {'h.inside' if whole is None else 'TRUE'} ORDER BY h.r"
    )
    rest = engine.arrays("SELECT r, code, coalesce(inside, FALSE) AS inside FROM kept ORDER BY r")
    values, codes = [], np.empty((len(attributes), len(rest["r"])), np.int32)
    for position in range(len(attributes)):
        column = engine.arrays(f"SELECT coalesce(a{position}, {NUMBER}) AS v FROM kept ORDER BY r")["v"]
        distinct, code = np.unique(column.astype(np.float64), return_inverse=True)
        codes[position] = code.reshape(-1)
        values.append(distinct)
    members = {
        group: engine.arrays(f"SELECT g{position} AS g FROM kept ORDER BY r")["g"].astype(np.bool_)
        for position, group in enumerate(groups)
    }
    everyone = {group: _everyone(engine, position, len(areas)) for position, group in enumerate(groups)}
    return Microfile(
        name=name,
        attributes=tuple(attributes),
        values=tuple(values),
        codes=codes,
        areas=tuple(areas),
        area_of=rest["code"].astype(np.int32),
        members=members,
        rows=rest["r"].astype(np.int64),
        dropped=dropped,
        everyone=everyone,
        inside=rest["inside"].astype(np.bool_),
        unit_of=_units(engine, source, whole.unit, name) if whole is not None and whole.unit else None,
        wide=read_wide(engine, source, whole.columns, "kept") if whole is not None else None,
    )


def _units(engine: Engine, source: Source, unit: str, name: str) -> Counts64:
    """A number for each record's unit; a record whose unit is not named is one of its own."""
    read: Counts64 = read_wide(engine, source, [unit], "kept").codes[0].astype(np.int64)
    alone = read < 0
    read[alone] = read.max(initial=-1) + 1 + np.arange(int(alone.sum()))
    area_of = engine.arrays("SELECT code FROM kept ORDER BY r")["code"].astype(np.int64)
    spread = np.unique(np.stack([read, area_of]), axis=1).shape[1] - len(np.unique(read))
    if spread:
        raise DataError(
            f"{spread} of the units that {unit} names in {name} lie in more than one area",
            expected="a unit, such as a household, in one area",
            remedy="another column for unit under [groups], or none",
        )
    return read


def _harmonise(engine: Engine, source: Source, mapping: FileMapping, groups: list[str]) -> tuple[int, int]:
    """The table `harmonised`: place, attributes, area, group flags, whether the row is in range."""
    attributes = list(mapping.attributes.values())
    cells = [f"CAST({expression(source, attribute)} AS DOUBLE) AS a{i}" for i, attribute in enumerate(attributes)]
    area = " || '-' || ".join(f"{cleaned(source, source.column(name))}" for name in mapping.area)
    flags = [f"{meets(source, mapping.vital[group])} AS g{i}" for i, group in enumerate(groups)]
    inside = " AND ".join(f"({_inside(i, a.range)})" for i, a in enumerate(attributes)) or "TRUE"
    keep = f"NOT {meets(source, mapping.leave_out)}" + (f" AND {meets(source, mapping.only)}" if mapping.only else "")
    numbered = f"SELECT row_number() OVER () - 1 AS r, {', '.join(c.sql for c in source.columns)} FROM raw"
    cleaned_up = f"SELECT r, {', '.join([*cells, *flags])}, coalesce({area}, '') AS area FROM ({numbered}) WHERE {keep}"
    engine.run(
        f"CREATE OR REPLACE TEMP TABLE harmonised AS SELECT *, (area <> '' AND {inside}) AS inside FROM ({cleaned_up})"
    )
    read = int(engine.rows("SELECT count(*) FROM raw")[0][0])
    return read, read - int(engine.rows("SELECT count(*) FROM harmonised")[0][0])


def _inside(position: int, limits: tuple[float, float] | None) -> str:
    cell = f"a{position}"
    return f"{cell} IS NOT NULL" + (f" AND {cell} BETWEEN {limits[0]!r} AND {limits[1]!r}" if limits else "")


def _dropped(engine: Engine, mapping: FileMapping, read: int, left_out: int) -> Dropped:
    tests = {"area missing": "area <> ''"}
    for position, (name, attribute) in enumerate(mapping.attributes.items()):
        said = f" outside {attribute.range[0]:g}..{attribute.range[1]:g}" if attribute.range else " missing"
        tests[name + said] = f"coalesce({_inside(position, attribute.range)}, FALSE)"
    failing = " + ".join(f"CASE WHEN {test} THEN 0 ELSE 1 END" for test in tests.values())
    counts = ", ".join(
        f"count(*) FILTER (NOT ({test})), count(*) FILTER (NOT ({test}) AND failing = 1)" for test in tests.values()
    )
    row = engine.rows(
        f"SELECT count(*) FILTER (inside), {counts} FROM (SELECT *, {failing} AS failing FROM harmonised)"
    )[0]
    pairs = {name: (int(row[1 + 2 * i]), int(row[2 + 2 * i])) for i, name in enumerate(tests)}
    reasons = {name: pair[0] for name, pair in pairs.items() if pair[0]}
    return Dropped(read, left_out, int(row[0]), reasons, {name: pairs[name][1] for name in reasons})


def _everyone(engine: Engine, position: int, areas: int) -> Counts64:
    counts = np.zeros(areas, np.int64)
    for code, count in engine.rows(
        "SELECT a.code, count(*) FROM harmonised AS h JOIN areas AS a ON h.area = a.label "
        f"WHERE h.g{position} GROUP BY 1"
    ):
        counts[int(code)] = int(count)
    return counts
