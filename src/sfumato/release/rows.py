"""The rows of a release: recoded and written by the engine in a random order, and compared with the written file.

The rows never pass through Python, and the engine does not hold them in memory either. One scan counts the distinct
`tuples`, from which the classes and their `sizes` follow. `recoded` is a view with one row per record that the missing
rule keeps: a group per quasi-identifier, and the released columns. Writing reads this view row by row.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from sfumato.auditing.uniqueness import holder_cells
from sfumato.data.cells import MISSING, cleaned, neutralised, neutralised_sql
from sfumato.data.engine import Engine
from sfumato.data.labelled_write import Written
from sfumato.data.settings import Role
from sfumato.data.source import TEXT, Column, Source, quoted
from sfumato.data.value_counts import cell_sql
from sfumato.errors import DataError, HierarchyError, counted, shortened
from sfumato.measures.classes import ClassTable
from sfumato.plans.recodings import LevelPlan, RecodingPlan
from sfumato.release.columns import ColumnRecode
from sfumato.release.format import plain_missing, raw_cell, same_text, write_rows
from sfumato.study import Study
from sfumato.tables.domain import present


class Rows(Protocol):
    """The rows to be released: a query with the columns `c0`, `c1`, …, their names, and their source.

    `target` is the source as it is written, `coded` the columns whose cells are categories.
    """

    @property
    def source(self) -> Source: ...

    @property
    def target(self) -> Source: ...

    @property
    def coded(self) -> frozenset[str]: ...

    @property
    def names(self) -> list[str]: ...

    def sql(self) -> str: ...


@dataclass(frozen=True)
class RowView:
    """The rows to be released: SQL for their `cells` and for the `table` that holds them inside the engine.

    `columns` are the released columns of the source, and `names` those of the file, which may have more at the end. The
    `coded` columns have some label that covers several values. The table also has the person or household of each row
    (`holders`), which are counted and not released.
    """

    source: Source
    target: Source
    columns: tuple[Column, ...]
    names: list[str]
    cells: tuple[str, ...]
    table: str
    coded: frozenset[str]
    holders: tuple[str, ...]
    rows_read: int
    records: int
    suppressed: int

    @property
    def released(self) -> Source:
        """The released columns of a view of these rows, by position. Generalized columns are texts."""
        columns = (
            Column(column.name, TEXT if column.name in self.coded else column.type, position)
            for position, column in enumerate(self.columns)
        )
        return replace(self.source, columns=tuple(columns))

    def sql(self, holders: bool = False) -> str:
        """Return SQL for the released rows: columns `c0`, `c1`, … and, for counting, the person or household."""
        cells = [f"{cell} AS c{position}" for position, cell in enumerate(self.cells)]
        cells += [f"r.{name}" for name in self.holders] if holders else []
        return f"SELECT {', '.join(cells)} FROM {self.table}"


def write_mixed(engine: Engine, rows: Rows, path: Path) -> Written:
    """Write rows in the order of a hash of their cells and a salt that is not kept. Return how to read them.

    Row numbers are not used, so the order reveals nothing about the order of the source. The result does not depend on
    an engine that computes some rows twice.
    """
    cells = [quoted(os.urandom(16).hex()), *(f"c{position}" for position in range(len(rows.names)))]
    ordered = f"SELECT * FROM ({rows.sql()}) AS t ORDER BY {engine.hashed(cells)}"
    return write_rows(engine, ordered, path, rows.target, rows.names, rows.coded)


def differing_rows(engine: Engine, rows: Rows, written: Source) -> int:
    """Return how many rows are only in the written file or only among the rows to be written.

    Rows are compared by sums of SHA-256 over their cells and a key that is drawn for the comparison, so no file can be
    constructed to have the same sums. If the sums differ, the rows themselves are compared. The engine's own hash is
    not safe: texts with the same hash are found in seconds, and remain equal with any other cell in front of them.
    """
    engine.attach(written, "written")
    cell = same_text(rows.source, written)  # a text file does not distinguish an empty cell from a missing one
    cells = ", ".join(cell(position) for position in range(len(rows.names)))
    keys = [f"c{position}" for position in range(len(rows.names))]
    sides = [f"SELECT {cells} FROM ({rows.sql()}) AS a", f"SELECT {cells} FROM written AS b"]
    # A cell is written with its length, so that different rows have different texts.
    text_of_row = " || ".join(f"coalesce(CAST(length({key}) AS STRING) || ':' || {key}, '-')" for key in keys)
    digests = f"digest('{secrets.token_hex(32)}' || {text_of_row})"
    sums = ", ".join(f"sum(CAST(hex_number(substr(d, {start}, 16)) AS DECIMAL(38, 0)))" for start in (1, 17))
    first, second = (
        engine.rows(f"SELECT count(*), {sums} FROM (SELECT {digests} AS d FROM ({side}) AS s) AS t")[0]
        for side in sides
    )
    if first == second:
        return 0
    both = f"SELECT *, 1 AS side FROM ({sides[0]}) AS s UNION ALL SELECT *, -1 AS side FROM ({sides[1]}) AS s"
    counted = f"SELECT sum(side) AS n FROM ({both}) AS t GROUP BY {', '.join(keys)}"
    return int(engine.rows(f"SELECT CAST(coalesce(sum(abs(n)), 0) AS BIGINT) FROM ({counted}) AS d")[0][0])


def refuse_torn(rows: int) -> None:
    """Raise if rows of a file do not read back as they were written."""
    if rows:
        raise DataError(
            f"{counted(rows, 'row of the written file does', 'rows of the written file do')} not read back as intended",
            expected="cells that can be written with the file's separator and quote",
            remedy="""quote = '"' under [data] if the file quotes its values""",
        )


@dataclass(frozen=True)
class Below:
    """The suppressed classes: smaller than `size`, or with fewer different sensitive values than `diversity`.

    If the engine cannot count what decides, the suppressed classes are `listed` by their groups. This applies to other
    criteria, units, harmless or missing values, and missing values that match anything.
    """

    size: int = 0
    diversity: int = 0
    listed: tuple[tuple[int, ...], ...] | None = None

    @classmethod
    def of(cls, plan: RecodingPlan, classes: ClassTable, columns: Sequence[ColumnRecode]) -> Below:
        """Return what a plan suppresses of some classes. `columns` number their groups as the engine does."""
        limits = plan.limits if isinstance(plan, LevelPlan) else {}
        counted = plan.diversity_below <= 1 or not classes.table.special
        if not limits and classes.pairs is None and not classes.table.counts_units and counted:
            return cls(plan.suppress_below, plan.diversity_below)
        groups = []
        for column, domain, codes in zip(columns, classes.table.domains, classes.table.codes, strict=True):
            number = dict(zip(column.tree.leaves, column.groups, strict=True))
            leaves = [domain.labels[code] for code in codes[classes.first[classes.suppressed]]]
            groups.append([number[leaf] for leaf in leaves])
        return cls(plan.suppress_below, plan.diversity_below, tuple(zip(*groups, strict=True)))

    @property
    def sql(self) -> str:
        """Return the condition on the table `sizes`, called s."""
        if self.listed is not None:
            return "(s.f = 1)"
        return f"(s.n < {int(self.size)}" + (f" OR s.v < {int(self.diversity)})" if self.diversity > 1 else ")")


def recode(
    engine: Engine,
    source: Source,
    study: Study,
    columns: Sequence[ColumnRecode],
    below: Below,
    target: Source | None = None,
) -> RowView:
    """Recode a source by a plan. Values that a hierarchy does not have are an error.

    `target` is the source in the format of the release, by default its own.
    """
    target = target or source
    released = tuple(c for c in source.columns if study.columns[c.name].role.released)
    engine.attach(source, "raw")
    for position, column in enumerate(columns):
        engine.upload(f"map{position}", {"label": column.keys, "released": column.released, "grp": column.groups})
    values = [cell_sql(source, name) for name in study.named(Role.SENSITIVE) if name in source.names]
    values = values if below.diversity > 1 else []
    complete = complete_rows(source, study)
    _count(engine, source, target, columns, values, complete)
    _refuse_unknown(engine, columns)
    _sizes(engine, columns, len(values), below)
    _spellings(engine, columns, _kept(columns, below))
    _view(engine, source, target, released, columns, complete, holder_cells(source, study))
    read = int(engine.rows("SELECT CAST(coalesce(sum(n), 0) AS BIGINT) FROM tuples")[0][0])
    records, gone = engine.rows(
        f"SELECT CAST(coalesce(sum(n), 0) AS BIGINT), "
        f"CAST(coalesce(sum(CASE WHEN {below.sql} THEN n ELSE 0 END), 0) AS BIGINT) FROM sizes AS s"
    )[0]
    if gone == records:
        raise DataError(
            f"all {records} records are in classes that the plan suppresses, so nothing would be released",
            expected="a plan that leaves records",
            remedy="a plan with a smaller k, or with coarser levels",
        )
    plain = _neutralised(study, released, columns)
    keys = " AND ".join(f"r.g{i} = s.g{i}" for i in range(len(columns)))
    return RowView(
        source,
        target,
        released,
        [column.name for column in released],
        tuple(neutralised_sql(f"r.{c.sql}") if c.name in plain else f"r.{c.sql}" for c in released),
        f"recoded AS r JOIN sizes AS s ON {keys} WHERE NOT ({below.sql})",
        frozenset(column.name for column in columns if column.generalized),
        tuple(holder_cells(source, study)),
        read,
        int(records),
        int(gone),
    )


def _neutralised(study: Study, released: Sequence[Column], columns: Sequence[ColumnRecode]) -> frozenset[str]:
    """Return the kept columns whose cells become plain text. Labels must already be plain text."""
    if not study.data.neutralise_formulas:
        return frozenset()
    formulas = [c.name for c in columns if any(label != neutralised(label) for label in c.released if label)]
    if formulas:
        raise HierarchyError(
            f"{shortened(formulas)} would be released with labels that a spreadsheet takes for formulas",
            expected="labels that start with none of the signs =, +, - and @, where neutralise_formulas = true",
            remedy="a hierarchy with other labels",
        )
    own = {column.name for column in columns}
    return frozenset(column.name for column in released if column.is_text and column.name not in own)


def complete_rows(source: Source, study: Study) -> str:
    """Return the condition for rows that the missing rule keeps, as when the table was measured."""
    names = [name for name in study.complete_columns if name in source.names]
    return present(cleaned(source, source.column(name)) for name in names)


def _keys(source: Source, columns: Sequence[ColumnRecode]) -> list[str]:
    return [f"{cell_sql(source, column.name)} AS k{i}" for i, column in enumerate(columns)]


def _count(
    engine: Engine,
    source: Source,
    target: Source,
    columns: Sequence[ColumnRecode],
    sensitive: Sequence[str],
    complete: str,
) -> None:
    """Count the distinct keys, complete or not, and their sensitive values if the plan needs them.

    If missing cells remain, one spelling of them is kept.
    """
    cells = [*_keys(source, columns), *(f"{value} AS v{i}" for i, value in enumerate(sensitive))]
    cells.append(f"CASE WHEN {complete} THEN 1 ELSE 0 END AS whole")
    held = [f"k{i}" for i in range(len(columns))] + [f"v{i}" for i in range(len(sensitive))] + ["whole"]
    counts = ["count(*) AS n"]
    for position, column in enumerate(columns):
        if column.missing_stays:
            part = source.column(column.name)
            spelled = f"NULLIF(trimmed({part.sql}), '')" if part.is_text else part.sql
            cells.append(("NULL" if plain_missing(source, target) else spelled) + f" AS w{position}")
            counts.append(f"min(CASE WHEN k{position} = {quoted(MISSING)} THEN w{position} END) AS m{position}")
    listed = ", ".join(held)
    engine.run(
        f"CREATE OR REPLACE TEMP TABLE tuples AS SELECT {listed}, {', '.join(counts)} "
        f"FROM (SELECT {', '.join(cells)} FROM raw) AS t GROUP BY {listed}"
    )


def _refuse_unknown(engine: Engine, columns: Sequence[ColumnRecode]) -> None:
    """Raise if a column has values that its hierarchy lacks, because the plan was made for another table."""
    unknown = []
    for position, column in enumerate(columns):
        strange = engine.rows(
            f"SELECT count(*) FROM (SELECT DISTINCT k{position} AS k FROM tuples WHERE whole = 1) AS t "
            f"WHERE k NOT IN (SELECT label FROM map{position})"
        )
        if strange[0][0]:
            unknown.append(column.name)
    if unknown:
        raise DataError(
            f"the hierarchies lack values of {shortened(unknown)}",
            expected="the table that the plan was made for",
            remedy="search again",
        )


def _kept(columns: Sequence[ColumnRecode], below: Below) -> str:
    """Return the tuples of classes that are released."""
    cells = ", ".join(["k.*", *_groups(columns)])
    grouped = f"SELECT {cells} FROM tuples AS k {_joins(columns)} WHERE k.whole = 1"
    keys = " AND ".join(f"r.g{i} = s.g{i}" for i in range(len(columns)))
    return f"SELECT r.* FROM ({grouped}) AS r JOIN sizes AS s ON {keys} WHERE NOT {below.sql}"


def _spellings(engine: Engine, columns: Sequence[ColumnRecode], kept: str) -> None:
    """Return one spelling of missing cells per column, because `?` and `NA` would distinguish equal records.

    It is a spelling that released records have.
    """
    aggregates = ["count(*) AS one"]  # an aggregate even where no column needs a spelling: the table has one row
    aggregates += [
        f"min(m{position}) AS m{position}" for position, column in enumerate(columns) if column.missing_stays
    ]
    tuples = f"({kept})" if len(aggregates) > 1 else "tuples"
    engine.run(f"CREATE OR REPLACE TEMP TABLE spellings AS SELECT {', '.join(aggregates)} FROM {tuples} AS t")


def _cell(column: Column, columns: Sequence[ColumnRecode]) -> str:
    """Return the SQL of a released cell. A column keeps its type unless some of its labels are texts."""
    position = next((i for i, c in enumerate(columns) if c.name == column.name), None)
    if position is None:
        return f"k.{column.sql}"
    part = columns[position]
    typed = not column.is_text and part.level == 0
    label = f"k.{column.sql}" if typed else f"CAST(m{position}.released AS STRING)"
    if part.missing_stays:
        spelling = f"p.m{position}" if typed or column.is_text else "NULL"  # a NaN as text would be a word
        label = f"CASE WHEN m{position}.grp = {part.kept_group} THEN {spelling} ELSE {label} END"
    return f"{label} AS {column.sql}"


def _joins(columns: Sequence[ColumnRecode]) -> str:
    return " ".join(f"JOIN map{i} AS m{i} ON k.k{i} = m{i}.label" for i in range(len(columns)))


def _groups(columns: Sequence[ColumnRecode]) -> list[str]:
    return [f"m{i}.grp AS g{i}" for i in range(len(columns))]


def _sizes(engine: Engine, columns: Sequence[ColumnRecode], sensitive: int, below: Below) -> None:
    """Count the classes, and the values of the least diverse sensitive column in each."""
    held = [*_groups(columns), "k.n", *(f"k.v{i}" for i in range(sensitive))]
    grouped = f"SELECT {', '.join(held)} FROM tuples AS k {_joins(columns)} WHERE k.whole = 1"
    keys = ", ".join(f"g{i}" for i in range(len(columns)))
    counted = [f"count(DISTINCT v{i})" for i in range(sensitive)]
    least = counted[0] if len(counted) == 1 else f"least({', '.join(counted)})" if counted else "0"
    counts = f"SELECT {keys}, CAST(sum(n) AS BIGINT) AS n, {least} AS v FROM ({grouped}) AS t GROUP BY {keys}"
    if below.listed is not None:
        listed = list(zip(*below.listed, strict=True)) or [()] * len(columns)
        engine.upload("gone", {f"g{i}": list(groups) for i, groups in enumerate(listed)})
        same = " AND ".join(f"c.g{i} = x.g{i}" for i in range(len(columns)))
        flag = "CASE WHEN x.g0 IS NULL THEN 0 ELSE 1 END AS f"
        counts = f"SELECT c.*, {flag} FROM ({counts}) AS c LEFT JOIN gone AS x ON {same}"
    engine.run(f"CREATE OR REPLACE TEMP TABLE sizes AS {counts}")


def _view(
    engine: Engine,
    source: Source,
    target: Source,
    released: Sequence[Column],
    columns: Sequence[ColumnRecode],
    complete: str,
    holders: Mapping[str, str],
) -> None:
    """Return a view of the records: their groups, their released cells, and the declared persons or households."""
    own = [f"{cell} AS {name}" for name, cell in holders.items()]
    rows = ", ".join([*(raw_cell(source, column, target) for column in released), *_keys(source, columns), *own])
    cells = [*(_cell(column, columns) for column in released), *(f"k.{name}" for name in holders)]
    engine.run(
        f"CREATE OR REPLACE TEMP VIEW recoded AS SELECT {', '.join([*_groups(columns), *cells])} "
        f"FROM (SELECT {rows} FROM raw WHERE {complete}) AS k {_joins(columns)} CROSS JOIN spellings AS p"
    )
