"""The file with exchanged places, inside the engine: every other cell of every row stays as it is.

Before the file is written, columns are refused that would undo the protection: those that name the group or reveal the
original area. Further geographic columns are exchanged together with the area.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from sfumato.base.settings import toml_value
from sfumato.data.cells import cleaned
from sfumato.data.engine import Engine, open_engine, require_order
from sfumato.data.source import Column, Source
from sfumato.errors import DataError, StudyError, counted, nearest, shortened
from sfumato.methods.groups.files import read_whole, settings_of
from sfumato.methods.groups.microfile import Microfile, meets
from sfumato.methods.groups.revealing import following_columns, refuse_marked, refuse_naming
from sfumato.plans.swaps import SwapPlan
from sfumato.release.format import raw_cell
from sfumato.study import Study
from sfumato.study.census_mapping import vital_columns
from sfumato.study.groups import GroupsSettings


@dataclass(frozen=True)
class Released:
    """The columns of a release, and those of them that are exchanged with the area."""

    columns: tuple[Column, ...]
    exchanged: frozenset[str]

    @property
    def stay(self) -> list[Column]:
        """The columns that stay with their records: all that attackers can learn from."""
        return [column for column in self.columns if column.name not in self.exchanged]

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.columns]


@dataclass(frozen=True)
class Swapped(Released):
    """The file to release, and how many rows it has. No column is generalized, so none is `coded`."""

    source: Source
    target: Source
    rows: int
    coded: ClassVar[frozenset[str]] = frozenset()

    def sql(self, mark: bool = False) -> str:
        """Return the released rows. Their columns are `c0`, `c1`, … and, for internal use, `swapped`."""
        cells = [
            f"CASE WHEN s.partner IS NULL THEN r.{c.sql} ELSE p.{c.sql} END AS c{i}"
            if c.name in self.exchanged
            else f"r.{c.sql} AS c{i}"
            for i, c in enumerate(self.columns)
        ]
        if mark:
            cells.append("s.partner IS NOT NULL AS swapped")
        return (
            f"SELECT {', '.join(cells)} FROM held AS r LEFT JOIN swaps AS s ON r.r = s.r "
            f"LEFT JOIN held AS p ON p.r = s.partner"
        )


def released_columns(engine: Engine, source: Source, study: Study, settings: GroupsSettings) -> Released:
    """Return the columns of a release of the source, the view `raw` of the engine; refuse those that undo it."""
    withheld = withheld_columns(study, settings, source)
    mapping = settings.mapping()
    columns = tuple(column for column in source.columns if column.name not in withheld)
    area = " || '-' || ".join(f"coalesce({cleaned(source, source.column(name))}, '')" for name in mapping.area)
    # A geography that stays with its record would reveal the original area, so all of it moves with the area.
    exchanged = {*mapping.area, *settings.swap, *mapping.usually_swapped} & {column.name for column in columns}
    members = " OR ".join(meets(source, conditions) for conditions in mapping.vital.values())
    stay = [column for column in columns if column.name not in exchanged]
    exchanged |= following_columns(engine, source, stay, area, members, basic_columns(settings))
    return Released(columns, frozenset(exchanged))


def basic_columns(settings: GroupsSettings) -> set[str]:
    """Return the columns that the attributes are made of."""
    return {name for attribute in settings.mapping().attributes.values() for name in attribute.columns}


def staying_columns(study: Study) -> tuple[str, ...]:
    """Return the released columns of a study's file that stay with their records, by name."""
    settings, source = settings_of(study), study.opened()
    withheld_columns(study, settings, source)  # checked before anything is read
    with open_engine(study.engine, study.engine_options) as engine:
        require_order(engine, "the groups system")
        engine.attach(source, "raw")
        return tuple(column.name for column in released_columns(engine, source, study, settings).stay)


def read_released(study: Study, names: Sequence[str] | None = None) -> Microfile:
    """Read every row of the file to publish with the columns that stay; refuse a column that nearly names a group.

    `names` are these columns if they are known.
    """
    settings = settings_of(study)
    target = read_whole(study, staying_columns(study) if names is None else names)
    refuse_naming(target, basic_columns(settings), settings.naming)
    return target


def exchange(
    engine: Engine,
    source: Source,
    study: Study,
    settings: GroupsSettings,
    plan: SwapPlan,
    target: Source | None = None,
) -> Swapped:
    """Prepare the engine to release a source with the places of some pairs of rows exchanged.

    `target` is the source in the format of the release, by default its own format.
    """
    target = target or source
    require_order(engine, "the groups system")
    mapping = settings.mapping()
    withheld_columns(study, settings, source)  # checked before anything is read
    engine.attach(source, "raw")
    listed = ", ".join(raw_cell(source, column, target) for column in source.columns)
    engine.run(f"CREATE OR REPLACE TEMP TABLE held AS SELECT row_number() OVER () - 1 AS r, {listed} FROM raw")
    rows = np.concatenate([plan.givers, plan.takers])
    engine.upload("swaps", {"r": rows, "partner": np.concatenate([plan.takers, plan.givers])})
    released = released_columns(engine, source, study, settings)
    count = int(engine.rows("SELECT count(*) FROM held")[0][0])
    if len(rows) and int(rows.max()) >= count:
        raise DataError("the plan swaps rows that are not in the file", expected="the file that was protected")
    swapped = Swapped(released.columns, released.exchanged, source, target, count)
    # As columns of the released rows, whose positions differ from those in the source.
    cells = {c.name: f"coalesce({cleaned(source, replace(c, position=i))}, '')" for i, c in enumerate(released.columns)}
    area = [cells[name] for name in mapping.area if name in cells]
    # A value that is rare in the new area marks a record that moved, although no column reveals the original area.
    if plan.swaps and area:
        stays = [(column.name, cells[column.name]) for column in released.stay]
        refuse_marked(engine, swapped.sql(mark=True), stays, " || '-' || ".join(area), "swapped")
    return swapped


def withheld_columns(study: Study, settings: GroupsSettings, source: Source) -> set[str]:
    """Return the columns that are not released: vital, withheld, identifying and dropped ones."""
    mapping = settings.mapping()
    vital = set(vital_columns(mapping))
    declared = {name: column.role for name, column in study.columns.items()}
    held = sorted(vital - set(settings.withhold))
    kept = [name for name in held if name in declared and declared[name].released]
    if kept:
        raise StudyError(
            f"the vital columns {shortened(kept)} are declared for release, and a file that has them names the group",
            expected='columns under withhold, or with role = "vital", "identifier" or "drop"',
            remedy=f"withhold = {toml_value([*settings.withhold, *kept])} under [groups]",
        )
    unknown = [name for name in (*settings.withhold, *settings.swap) if name not in source.names]
    if unknown:
        raise StudyError(
            f"the table has no column {shortened(unknown)}",
            expected="columns of the table under withhold and swap",
            remedy=nearest(unknown[0], source.names),
        )
    dropped = {name for name, role in declared.items() if not role.released}
    usual = set(mapping.usually_withheld) & set(source.names)
    withheld = vital | set(settings.withhold) | dropped | usual
    moved = {*mapping.area, *settings.swap, *mapping.usually_swapped}
    named = withheld | moved | declared.keys() | basic_columns(settings)
    undecided = [name for name in source.names if name not in named]
    # A column that was forgotten may reveal the group, so neither releasing nor withholding it is a default.
    if undecided and settings.other_columns is None:
        raise StudyError(
            f"{counted(len(undecided), 'column')} {'has' if len(undecided) == 1 else 'have'} no role: "
            f"{shortened(undecided, 12)}",
            expected="a role for every column under [columns], or other_columns under [groups]",
            remedy='other_columns = "release" or other_columns = "withhold"',
        )
    return withheld | (set(undecided) if settings.other_columns == "withhold" else set())


def changed_marginals(engine: Engine, source: Source, written: Source, names: Sequence[str]) -> list[str]:
    """Return the columns whose value counts in the written file differ from the source."""
    _side_by_side(engine, source, written)
    return [name for name in names if _differing(engine, source, written, [name])]


def differing_parts(engine: Engine, source: Source, written: Source, names: Sequence[str]) -> int:
    """Return the rows of two files that are in only one of them, compared in some columns."""
    _side_by_side(engine, source, written)
    return _differing(engine, source, written, names)


def _side_by_side(engine: Engine, source: Source, written: Source) -> None:
    """Create both files as tables, because a view would read its file for every column."""
    for name, file in (("before", source), ("after", written)):
        engine.attach(file, f"{name}_file")
        engine.run(f"CREATE OR REPLACE TEMP TABLE {name} AS SELECT * FROM {name}_file")


def _differing(engine: Engine, source: Source, written: Source, names: Sequence[str]) -> int:
    parts = []
    for view, file, side in (("before", source, 1), ("after", written, -1)):
        cells = [f"coalesce({cleaned(file, file.column(name))}, '') AS c{i}" for i, name in enumerate(names)]
        parts.append(f"SELECT {', '.join(cells)}, {side} AS side FROM {view}")
    keys = ", ".join(f"c{i}" for i in range(len(names)))
    sides = f"SELECT sum(side) AS n FROM ({' UNION ALL '.join(parts)}) GROUP BY {keys}"
    return int(engine.rows(f"SELECT CAST(coalesce(sum(abs(n)), 0) AS BIGINT) FROM ({sides})")[0][0])
