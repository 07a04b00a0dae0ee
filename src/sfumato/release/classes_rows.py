"""The rows of a release by classes: every record has the labels of its class, and its other cells are unchanged.

A box plan becomes columns with labels, classes as runs, and the class of each record. Inside the engine, tuples are
joined with the rows of the source, and the records of a divided tuple are assigned by a hash.

The records of a tuple that lies in several classes are numbered in the order of a hash of their released cells and a
salt. Records with equal cells are interchangeable, so the classes can be computed from the source at verification.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sfumato.auditing.uniqueness import holder_cells
from sfumato.base.arrays import Codes, Counts64
from sfumato.base.formats import read_json
from sfumato.data.cells import neutralised_sql
from sfumato.data.engine import Engine
from sfumato.data.source import Column, Source, quoted
from sfumato.data.value_counts import cell_sql
from sfumato.errors import DataError, InputError, StudyError
from sfumato.hierarchies import Hierarchy
from sfumato.hierarchies.hierarchy import flat
from sfumato.plans.boxes import BoxPlan
from sfumato.plans.segments import segments_of
from sfumato.release.classes_labels import BoxColumn, Run, box_column
from sfumato.release.format import Entry, raw_cell
from sfumato.release.rows import RowView, complete_rows
from sfumato.study import Study
from sfumato.study.methods import METHODS
from sfumato.tables.frequency import FrequencyTable

FILE = "private/classes.json"
Earlier = Mapping[str, Mapping[Run, str]]


@dataclass(frozen=True, eq=False)
class Assigned:
    """The sorted tuples with their counts, the classes as runs, and the number of records of each tuple in each class.

    Entry e: `count[e]` records of tuple `of[e]` are in class `owner[e]`, and -1 means suppressed. The `salt` decides
    which records of a tuple these are, because they are taken in the order of a hash of their cells and the salt.
    """

    columns: tuple[BoxColumn, ...]
    codes: Codes
    counts: Counts64
    low: Counts64
    high: Counts64
    of: Counts64
    owner: Counts64
    count: Counts64
    salt: str

    @property
    def records(self) -> int:
        return int(self.counts.sum())

    @property
    def suppressed(self) -> int:
        return int(self.count[self.owner < 0].sum())

    @property
    def classes(self) -> int:
        return len(self.low)

    @property
    def rows(self) -> Counts64:
        """The number of records of each class."""
        inside = self.owner >= 0
        summed = np.bincount(self.owner[inside], weights=self.count[inside], minlength=self.classes)
        return summed.astype(np.int64)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    @property
    def split(self) -> Counts64:
        """The tuples whose records are in several classes."""
        return np.flatnonzero(np.bincount(self.of, minlength=len(self.counts)) > 1)

    def trees(self) -> dict[str, Hierarchy]:
        """Return flat hierarchies with the values in order, so that a table read with them has the same positions."""
        return {column.name: flat(column.name, column.values) for column in self.columns}

    def save(self, folder: Path) -> None:
        columns = {column.name: column.as_dict() for column in self.columns}
        saved = {
            "columns": columns,
            "salt": self.salt,
            "low": self.low.tolist(),
            "high": self.high.tolist(),
            "codes": self.codes.tolist(),
            "counts": self.counts.tolist(),
            "entries": np.stack([self.of, self.owner, self.count]).tolist(),
        }
        text = json.dumps(saved, ensure_ascii=False, separators=(",", ":"))
        (folder / FILE).write_text(text + "\n", encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> Assigned:
        """Return the classes of a release folder. Raises DataError if its entries contradict each other."""
        saved = read_json(folder / FILE)
        try:
            columns = tuple(BoxColumn.from_dict(name, own) for name, own in saved["columns"].items())
            width = len(columns)
            arrays = [np.array(saved[name], dtype=np.int64).reshape(-1, width) for name in ("low", "high")]
            codes = np.array(saved["codes"], dtype=np.int32).reshape(width, -1)
            counts = np.array(saved["counts"], dtype=np.int64)
            of, owner, count = np.array(saved["entries"], dtype=np.int64).reshape(3, -1)
            result = cls(columns, codes, counts, arrays[0], arrays[1], of, owner, count, str(saved["salt"]))
            result.check()
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError, IndexError) as error:
            raise DataError(f"{FILE} cannot be read", expected="the classes of a release") from error
        return result

    def check(self) -> None:
        """Raise ValueError unless every record is in one class and inside its labels."""
        fits = (
            self.codes.shape[1] == len(self.counts) and len(self.low) == len(self.high) and bool(np.all(self.count > 0))
        )
        fits = fits and (len(self.of) == 0 or (self.of.min() >= 0 and self.of.max() < len(self.counts)))
        fits = fits and (len(self.of) == 0 or (self.owner.min() >= -1 and self.owner.max() < len(self.low)))
        if not fits:
            raise ValueError("the classes do not fit together")
        summed = np.bincount(self.of, weights=self.count, minlength=len(self.counts))
        inside = self.owner >= 0
        codes = self.codes[:, self.of[inside]].T
        low, high = self.low[self.owner[inside]], self.high[self.owner[inside]]
        if not np.array_equal(summed, self.counts) or not np.all((low <= codes) & (codes < high)):
            raise ValueError("a record is in no class, or outside the labels of its class")
        for j, column in enumerate(self.columns):
            used = set(zip(self.low[:, j].tolist(), self.high[:, j].tolist(), strict=True))
            if not used <= set(column.labels):
                raise ValueError("a class has a label that its column lacks")


def assigned(study: Study, table: FrequencyTable, plan: BoxPlan, salt: str, earlier: Earlier | None = None) -> Assigned:
    """Return a plan assigned to the records of its table. A plan that does not fit the table is refused."""
    if plan.columns != table.columns:
        raise InputError("the plan and the table differ in their quasi-identifiers", expected="a plan of this table")
    segments = segments_of(study, table)
    position = [np.argsort(np.array(segment.domain.order)) for segment in segments]
    codes = np.stack([own[codes] for own, codes in zip(position, table.codes, strict=True)]).astype(np.int32)
    order = np.lexsort(codes[::-1])
    rank = np.argsort(order)
    places = [
        {segment.domain.hierarchy.leaves[leaf]: at for at, leaf in enumerate(segment.domain.order)}
        for segment in segments
    ]
    try:
        low = [[places[j][span[0]] for j, span in enumerate(spans)] for spans in plan.labels]
        high = [[places[j][span[1]] + 1 for j, span in enumerate(spans)] for spans in plan.labels]
        entries = np.array(plan.members, dtype=np.int64).reshape(-1, 3)
        lows, highs = (np.array(ends, dtype=np.int64).reshape(-1, len(segments)) for ends in (low, high))
        given = entries[:, 0]
        if len(given) and int(given.max()) >= table.tuples:
            raise ValueError("a tuple that is not there")
        inside = entries[:, 1] >= 0
        seen = codes[:, given[inside]]
        columns = []
        for j, segment in enumerate(segments):
            released = np.zeros(len(segment.domain.order), dtype=np.bool_)
            released[seen[j]] = True
            runs = zip(lows[:, j].tolist(), highs[:, j].tolist(), strict=True)
            columns.append(box_column(study, segment, runs, released, (earlier or {}).get(segment.name)))
        of, owner, count = rank[given], entries[:, 1], entries[:, 2]
        by = np.lexsort((owner, of))
        made = Assigned(
            tuple(columns), codes[:, order], table.counts[order], lows, highs, of[by], owner[by], count[by], salt
        )
        made.check()
    except (KeyError, ValueError, IndexError) as error:
        raise InputError(
            "the plan does not fit the table: nothing was released",
            expected="a plan that was found for this table",
            remedy="search again",
        ) from error
    return made


NO_CLASS = -1


@dataclass(frozen=True)
class Division:
    """The class of each record of a table, with everything that decides it.

    `values` holds those of each column in order. Row t of `codes` has the positions of tuple t, one for each column.
    `entries` are tuples, classes and counts. `cells` are the columns that distinguish the records of a tuple.
    """

    columns: tuple[str, ...]
    values: tuple[tuple[str, ...], ...]
    codes: tuple[tuple[int, ...], ...]
    entries: tuple[tuple[int, ...], ...]
    salt: str
    cells: tuple[str, ...]

    @classmethod
    def of(cls, plan: Assigned, cells: Sequence[str]) -> Division:
        return cls(
            plan.names,
            tuple(column.values for column in plan.columns),
            tuple(tuple(own) for own in plan.codes.tolist()),
            (tuple(plan.of.tolist()), tuple(plan.owner.tolist()), tuple(plan.count.tolist())),
            plan.salt,
            tuple(cells),
        )

    def as_dict(self) -> dict[str, object]:
        return {name: getattr(self, name) for name in ("columns", "values", "codes", "entries", "salt", "cells")}

    @classmethod
    def from_dict(cls, given: Entry) -> Division:
        """Return a saved division. Invalid entries raise KeyError, ValueError or TypeError."""
        entries = tuple(tuple(int(n) for n in row) for row in given["entries"])
        codes = tuple(tuple(int(n) for n in row) for row in given["codes"])
        values = tuple(tuple(map(str, own)) for own in given["values"])
        columns = tuple(map(str, given["columns"]))
        if len(entries) != 3 or len({*map(len, entries)}) != 1 or not len(columns) == len(values) == len(codes):
            raise ValueError("no division of records into classes")
        return cls(columns, values, codes, entries, str(given["salt"]), tuple(map(str, given["cells"])))

    def arrays(self) -> tuple[Counts64, Counts64, Counts64, Counts64, Counts64]:
        """Return tuples, classes, the range of numbers of each entry, and whether its tuple is divided."""
        of, owner, count = (np.array(row, dtype=np.int64) for row in self.entries)
        by = np.lexsort((owner, of))
        of, owner, count = of[by], owner[by], count[by]
        ends = np.cumsum(count)
        starts = ends - count
        new = np.ones(len(of), dtype=np.bool_)
        new[1:] = of[1:] != of[:-1]
        base = starts[new][np.cumsum(new) - 1] if len(of) else starts
        divided = np.bincount(of, minlength=int(of.max(initial=0)) + 1)[of] > 1
        return of, owner, starts - base, ends - base, divided.astype(np.int64)


def classed_rows(
    engine: Engine,
    source: Source,
    division: Division,
    rows: str,
    name: str,
    complete: str = "1 = 1",
    beside: Sequence[str] = (),
) -> str:
    """Return SQL for the rows of a view with the class of each as `name`, -1 for rows in no class.

    `rows` is the view, with the columns of the source and those named in `beside`. Rows that are not `complete` have no
    class. Temporary tables of the engine have names that begin with `name`.
    """
    of, owner, start, end, divided = division.arrays()
    codes = np.array(division.codes, dtype=np.int64).reshape(len(division.columns), -1)
    span = range(len(division.columns))
    for i, values in enumerate(division.values):
        engine.upload(f"{name}_map{i}", {"v": list(values), "p": np.arange(len(values), dtype=np.int64)})
    first = np.unique(of, return_index=True)[1]
    keys = {f"p{i}": codes[i][of] for i in span}
    listed = {key: column[first] for key, column in keys.items()}
    engine.upload(f"{name}_tuples", listed | {"q": owner[first], "d": divided[first]})
    some = divided == 1
    parts = {key: column[some] for key, column in keys.items()}
    engine.upload(f"{name}_parts", parts | {"q": owner[some], "a": start[some], "b": end[some]})
    cells = ", ".join(f"{cell_sql(source, column)} AS {name}_k{i}" for i, column in enumerate(division.columns))
    cells += f", CASE WHEN {complete} THEN 1 ELSE 0 END AS {name}_w"
    positions = ", ".join(
        f"CASE WHEN r.{name}_w = 1 THEN coalesce(m{i}.p, -1) ELSE -1 END AS {name}_p{i}" for i in span
    )
    maps = " ".join(f"LEFT JOIN {name}_map{i} AS m{i} ON r.{name}_k{i} = m{i}.v" for i in span)
    keyed = f"SELECT r.*, {positions} FROM (SELECT t.*, {cells} FROM {rows} AS t) AS r {maps}"
    same = " AND ".join(f"k.{name}_p{i} = u.p{i}" for i in span)
    result = f"SELECT k.*, coalesce(u.q, {NO_CLASS}) AS {name}, coalesce(u.d, 0) AS {name}_d FROM ({keyed}) AS k "
    result += f"LEFT JOIN {name}_tuples AS u ON {same}"
    if not some.any():
        return result
    stated = [cell_sql(source, column) for column in division.cells]
    order = ", ".join([engine.hashed([quoted(division.salt), *stated]), *stated])
    by = ", ".join(f"{name}_p{i}" for i in span)
    numbered = f"SELECT f.*, row_number() OVER (PARTITION BY {by} ORDER BY {order}) - 1 AS {name}_i "
    numbered += f"FROM ({result}) AS f WHERE {name}_d = 1"
    kept = ", ".join([*(f"k.{c.sql}" for c in source.columns), *(f"k.{extra}" for extra in beside), f"k.{name}_d"])
    whole = f"SELECT {kept}, k.{name} FROM ({result}) AS k WHERE k.{name}_d = 0"
    inside = f"{same} AND k.{name}_i >= u.a AND k.{name}_i < u.b"
    taken = f"SELECT {kept}, coalesce(u.q, {NO_CLASS}) AS {name} FROM ({numbered}) AS k "
    taken += f"LEFT JOIN {name}_parts AS u ON {inside}"
    return f"{whole} UNION ALL {taken}"


def box_rows(engine: Engine, source: Source, study: Study, plan: Assigned, target: Source | None = None) -> RowView:
    """Prepare the engine to release a source by classes. A source that has other tuples is an error."""
    target = target or source
    engine.attach(source, "raw")
    released = tuple(c for c in source.columns if study.columns[c.name].role.released)
    division = Division.of(plan, [column.name for column in released])
    complete = complete_rows(source, study)
    classed = classed_rows(engine, source, division, "raw", "boxed", complete)
    cells = ", ".join(f"({_without_name(raw_cell(source, c, target))}) AS w{c.position}" for c in released)
    holders = holder_cells(source, study)
    cells += "".join(f", {cell} AS {name}" for name, cell in holders.items())
    engine.run(f"CREATE OR REPLACE TEMP VIEW boxed_rows AS SELECT t.*, {cells} FROM ({classed}) AS t WHERE {complete}")
    bounds = bounded(study, plan)
    engine.upload("boxes", {"q": np.arange(plan.classes, dtype=np.int64), **_labels(plan, bounds)})
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
    ends = [f"CAST(b.{end}{plan.names.index(name)} AS STRING)" for name in bounds for end in ("a", "z")]
    return RowView(
        source,
        target,
        released,
        [*(column.name for column in released), *bound_names(bounds)],
        (*(_cell(plan, column, plain) for column in released), *ends),
        "boxed_rows AS r JOIN boxes AS b ON r.boxed = b.q",
        frozenset(column.name for column in plan.columns if column.generalized),
        tuple(holders),
        read,
        int(total),
        plan.suppressed + study.data.removed,
    )


def _labels(plan: Assigned, bounds: Sequence[str]) -> dict[str, list[str | None]]:
    """Return the label of each class in each column, and the ends of its range in the columns of `bounds`."""
    labels: dict[str, list[str | None]] = {}
    for j, column in enumerate(plan.columns):
        runs = list(zip(plan.low[:, j].tolist(), plan.high[:, j].tolist(), strict=True))
        labels[f"l{j}"] = [column.labels[run] for run in runs]
        if column.name in bounds:
            values = column.values
            hidden = [high - low == len(values) > 1 for low, high in runs]
            ends = zip(runs, hidden, strict=True)
            shown = [(None, None) if hides else (values[low], values[high - 1]) for (low, high), hides in ends]
            labels |= {f"a{j}": [low or None for low, _ in shown], f"z{j}": [high or None for _, high in shown]}
    return labels


def _cell(plan: Assigned, column: Column, neutralise: bool) -> str:
    """Return the SQL of a released cell."""
    if column.name not in plan.names:
        raw = f"r.w{column.position}"
        return neutralised_sql(raw) if neutralise and column.is_text else raw
    j = plan.names.index(column.name)
    if column.is_text or plan.columns[j].generalized:
        return f"CAST(b.l{j} AS STRING)"
    return f"CASE WHEN b.l{j} IS NULL THEN NULL ELSE r.w{column.position} END"


def bounded(study: Study, plan: Assigned) -> tuple[str, ...]:
    """Return the numeric columns that are released with the ends of their ranges, if the study requires that."""
    if not METHODS[study.system].lower_bound or not study.local.bounds:
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
    """Return the names of the columns that hold the ends of ranges.

    >>> bound_names(["age"])
    ['age_low', 'age_high']
    """
    return [f"{name}_{end}" for name in names for end in ("low", "high")]


def _without_name(cell: str) -> str:
    """Return the SQL of a cell without its column name."""
    return cell.rsplit(" AS ", 1)[0] if cell.rsplit(" AS ", 1)[-1].isidentifier() else cell
