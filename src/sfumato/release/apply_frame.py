"""Recoding of a table in memory by a plan. The result is a table of the same kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.base.arrays import Counts64, Flags
from sfumato.data.cells import MISSING, cleaned
from sfumato.data.engine import Engine, open_engine
from sfumato.data.frame import Frame, Labels, Numbers, rebuilt
from sfumato.data.source import Source, quoted
from sfumato.errors import InputError
from sfumato.front import Front, Point
from sfumato.release.columns import ColumnRecode, column_recodes
from sfumato.release.readback import reading
from sfumato.release.recoding import named_plan
from sfumato.release.rows import Below, complete_rows, recode
from sfumato.study import Study


@dataclass(frozen=True, eq=False)
class RowGroups:
    """The group of each row in each recoded column (-1: in no hierarchy), and whether the row is released."""

    groups: tuple[Counts64, ...]
    kept: Flags


def recoded_frame(front: Front, point: Point, table: Any = None) -> Any:
    """Return a table recoded and suppressed by a point of a front, as the kind of table that was given."""
    study = front.study
    frame = study.frame if table is None else Frame(table)
    if frame is None:
        raise InputError(
            f"{study.title} is not in memory", expected="a table to recode", remedy="choice.apply(df), or publish it"
        )
    held = frame.native if frame.can_be_read_again else frame.table()
    columns, below = plan_columns(front, point, None if table is None else held)
    source = study.source(held)
    with open_engine(study.engine, study.engine_options) as engine:
        recode(engine, source, study, columns, below)
        rows = row_groups(engine, source, study, columns, below)
        spellings = _spellings(engine, source, columns)
        treated = {name: _treated(engine, source, name) for name in source.treatments}
    kept = np.flatnonzero(rows.kept)
    recoded: dict[int, Labels | Numbers] = {}
    for name, cells in treated.items():
        recoded[source.column(name).position] = _in_rows(cells, kept)
    for column, groups, spelling in zip(columns, rows.groups, spellings, strict=True):
        part = source.column(column.name)
        if not part.is_text and column.level == 0:
            continue  # a number or a date that stays as it is
        labels: list[str | None] = list(column.labels)
        if column.missing_stays:
            labels[column.kept_group] = spelling
        recoded[part.position] = Labels(labels, groups[kept])
    places = [part.position for part in source.columns if study.columns[part.name].role.released]
    return rebuilt(frame, kept, places, recoded)


def _treated(engine: Engine, source: Source, name: str) -> list[Any]:
    """Return the treated cells of a column of the attached source, in the order of its rows."""
    return [value for (value,) in engine.rows(f"SELECT {source.column(name).sql} FROM raw_numbered ORDER BY r")]


def _in_rows(cells: Sequence[Any], rows: Counts64) -> Labels | Numbers:
    """Return the cells of some rows: numbers, or texts by their positions."""
    chosen = [cells[row] for row in rows]
    if not any(isinstance(cell, str) for cell in chosen):
        return Numbers(np.array([np.nan if cell is None else float(cell) for cell in chosen]))
    labels: list[str | None] = list(dict.fromkeys(chosen))
    place = {label: number for number, label in enumerate(labels)}
    return Labels(labels, np.array([place[cell] for cell in chosen], dtype=np.int64))


def plan_columns(front: Front, point: Point, table: Any = None) -> tuple[tuple[ColumnRecode, ...], Below]:
    """Return the recoding of each quasi-identifier with its released labels, and the suppressed classes.

    The classes are those of the front's own table, or of another table that is read with the same hierarchies.
    """
    study, plan = front.study, point.recoding_plan
    counts = study.table()
    planned = named_plan(study, counts, plan)
    columns = column_recodes(study, planned.levels, planned.trees)
    below = Below.of(plan, planned.classes, columns)
    if table is not None and below.listed is not None:  # listed classes are those of the given table
        trees = {domain.name: domain.hierarchy for domain in counts.domains}
        own = named_plan(study, reading(study, table).table(trees=trees), plan)
        below = Below.of(plan, own.classes, columns)
    return columns, below


def row_groups(
    engine: Engine, source: Source, study: Study, columns: Sequence[ColumnRecode], below: Below
) -> RowGroups:
    """Return the groups of every row of the attached source, by the tables `map0`, `map1`, … and `sizes`."""
    keys = ", ".join(
        f"coalesce({cleaned(source, source.column(c.name))}, {quoted(MISSING)}) AS k{i}" for i, c in enumerate(columns)
    )
    groups = ", ".join(f"CAST(coalesce(m{i}.grp, -1) AS BIGINT) AS g{i}" for i in range(len(columns)))
    maps = " ".join(f"LEFT JOIN map{i} AS m{i} ON k.k{i} = m{i}.label" for i in range(len(columns)))
    same = " AND ".join(f"m{i}.grp = s.g{i}" for i in range(len(columns)))
    result = engine.arrays(
        f"SELECT {groups}, CASE WHEN k.whole = 1 AND s.n IS NOT NULL AND NOT {below.sql} THEN 1 ELSE 0 END AS kept "
        f"FROM (SELECT r, {keys}, CASE WHEN {complete_rows(source, study)} THEN 1 ELSE 0 END AS whole "
        f"FROM raw_numbered) AS k {maps} LEFT JOIN sizes AS s ON {same} ORDER BY k.r"
    )
    return RowGroups(tuple(result[f"g{i}"] for i in range(len(columns))), result["kept"] == 1)


def _spellings(engine: Engine, source: Source, columns: Sequence[ColumnRecode]) -> list[str | None]:
    """Return how missing values are written in each column that keeps them, None is a missing cell."""
    cells = [f"m{i}" if c.missing_stays and source.column(c.name).is_text else "NULL" for i, c in enumerate(columns)]
    return list(engine.rows(f"SELECT {', '.join(cells)} FROM spellings")[0])
