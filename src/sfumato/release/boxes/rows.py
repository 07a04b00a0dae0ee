"""The rows of a release by classes: every record with the labels of its class, the other columns as they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from sfumato.auditing.own_values import holder_cells
from sfumato.errors import DataError, StudyError
from sfumato.release.boxes.assigned import Assigned
from sfumato.release.boxes.engine import Division, classed_rows
from sfumato.release.formats import raw_cell
from sfumato.release.recode import complete_rows
from sfumato.sources.engines.engine import Engine
from sfumato.sources.formulas import neutralised_sql
from sfumato.sources.source import TEXT, Column, Source
from sfumato.study import Study


@dataclass(frozen=True, eq=False)
class BoxRows:
    """What will be released: the columns, how many rows were read, and the classes."""

    source: Source
    target: Source
    columns: tuple[Column, ...]
    plan: Assigned
    rows_read: int
    division: Division
    neutralise: bool
    bounds: tuple[str, ...] = ()
    holders: tuple[str, ...] = ()

    @property
    def names(self) -> list[str]:
        return [*(column.name for column in self.columns), *bound_names(self.bounds)]

    @property
    def coded(self) -> frozenset[str]:
        return frozenset(column.name for column in self.plan.columns if column.generalized)

    @property
    def released_source(self) -> Source:
        """The released columns of a view of these rows: by position, generalized ones as text."""
        columns = (
            Column(column.name, TEXT if column.name in self.coded else column.type, position)
            for position, column in enumerate(self.columns)
        )
        return replace(self.source, columns=tuple(columns))

    def sql(self, holders: bool = False) -> str:
        """The released rows; their columns are `c0`, `c1`, … With `holders`, which no file gets, whose row it is."""
        cells = ", ".join(f"{self._cell(column)} AS c{position}" for position, column in enumerate(self.columns))
        first = len(self.columns)
        for position, name in enumerate(self.bounds):
            j = self.plan.names.index(name)
            low = first + 2 * position
            cells += f", CAST(b.a{j} AS STRING) AS c{low}, CAST(b.z{j} AS STRING) AS c{low + 1}"
        cells += "".join(f", r.{name}" for name in self.holders) if holders else ""
        return f"SELECT {cells} FROM boxed_rows AS r JOIN boxes AS b ON r.boxed = b.q"

    def _cell(self, column: Column) -> str:
        names = self.plan.names
        if column.name not in names:
            raw = f"r.w{column.position}"
            return neutralised_sql(raw) if self.neutralise and column.is_text else raw
        j = names.index(column.name)
        if column.is_text or self.plan.columns[j].generalized:
            return f"CAST(b.l{j} AS STRING)"
        return f"CASE WHEN b.l{j} IS NULL THEN NULL ELSE r.w{column.position} END"


def box_rows(engine: Engine, source: Source, study: Study, plan: Assigned, target: Source | None = None) -> BoxRows:
    """Make the engine ready to release a source by classes; a source that has other tuples is an error."""
    target = target or source
    engine.attach(source, "raw")
    released = tuple(c for c in source.columns if study.columns[c.name].role.released)
    division = Division.of(plan, [column.name for column in released])
    complete = complete_rows(source, study)
    classed = classed_rows(engine, source, division, "raw", "boxed", complete)
    cells = ", ".join(f"({_bare(raw_cell(source, c, target))}) AS w{c.position}" for c in released)
    holders = holder_cells(source, study)
    cells += "".join(f", {cell} AS {name}" for name, cell in holders.items())
    engine.run(f"CREATE OR REPLACE TEMP VIEW boxed_rows AS SELECT t.*, {cells} FROM ({classed}) AS t WHERE {complete}")
    labels = {
        f"l{j}": [column.labels[run] for run in zip(plan.low[:, j].tolist(), plan.high[:, j].tolist(), strict=True)]
        for j, column in enumerate(plan.columns)
    }
    bounds = bounded(study, plan)
    for name in bounds:
        j = plan.names.index(name)
        values, ends = plan.columns[j].values, zip(plan.low[:, j].tolist(), plan.high[:, j].tolist(), strict=True)
        shown = [
            (None, None) if high - low == len(values) > 1 else (values[low], values[high - 1]) for low, high in ends
        ]
        labels |= {f"a{j}": [low or None for low, _ in shown], f"z{j}": [high or None for _, high in shown]}
    engine.upload("boxes", {"q": np.arange(plan.classes, dtype=np.int64), **labels})
    read = int(engine.rows("SELECT count(*) FROM raw")[0][0])
    total, kept = engine.rows("SELECT count(*), count(CASE WHEN boxed >= 0 THEN 1 END) FROM boxed_rows")[0]
    if (int(total), int(kept)) != (plan.records, plan.records - plan.suppressed):
        raise DataError(
            f"{int(kept):,} of {int(total):,} records are in a class, not {plan.records - plan.suppressed:,} of "
            f"{plan.records:,}",
            expected="the table that the plan was made for",
            remedy="search again",
        )
    if not kept:
        raise DataError("the plan suppresses every record", expected="a plan that leaves records")
    plain = study.data.neutralise_formulas
    return BoxRows(source, target, released, plan, read, division, plain, bounds, tuple(holders))


def bounded(study: Study, plan: Assigned) -> tuple[str, ...]:
    """The columns whose ranges are released with their ends: numbers that keep to no tree, where that is asked for."""
    if study.system != "local" or not study.local.bounds:
        return ()
    names = [column.name for column in plan.columns if column.spans is not None and not column.nodes]
    names = [name for name in names if plan.columns[plan.names.index(name)].generalized]
    taken = [name for name in bound_names(names) if name in study.columns]
    if taken:
        raise StudyError(
            f"the table has a column {taken[0]}, which bounds would add",
            expected="no column of that name",
            remedy="bounds = false under [local]",
        )
    return tuple(names)


def bound_names(names: Sequence[str]) -> list[str]:
    """What the columns with the ends of ranges are called.

    >>> bound_names(["age"])
    ['age_low', 'age_high']
    """
    return [f"{name}_{end}" for name in names for end in ("low", "high")]


def _bare(cell: str) -> str:
    """A cell without the name that it is given."""
    return cell.rsplit(" AS ", 1)[0] if cell.rsplit(" AS ", 1)[-1].isidentifier() else cell
