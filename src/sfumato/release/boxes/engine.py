"""Rows with the class of each, inside the engine: tuples joined, and records of divided tuples taken by a hash.

The records of a tuple that lies in several classes are numbered in the order of a hash of their released cells and a
salt; records that are alike in these are interchangeable, so that the classes can be worked out again from the source.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.release.boxes.assigned import Assigned
from sfumato.runtime.arrays import Counts64
from sfumato.sources.engines.engine import Engine, quoted
from sfumato.sources.source import Source
from sfumato.sources.value_counts import cell_sql

NOBODY = -1


@dataclass(frozen=True)
class Division:
    """Which records of a table are in which class: all that a row's class follows from.

    `values` are those of each column in order; row t of `codes` has the positions of a tuple, one column after the
    other in `codes`. `entries` are tuples, classes and counts; `cells` the columns by which records are told apart.
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

    def as_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("columns", "values", "codes", "entries", "salt", "cells")}

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Division:
        """As it was saved; anything amiss is a KeyError, ValueError or TypeError."""
        entries = tuple(tuple(int(n) for n in row) for row in given["entries"])
        codes = tuple(tuple(int(n) for n in row) for row in given["codes"])
        values = tuple(tuple(map(str, own)) for own in given["values"])
        columns = tuple(map(str, given["columns"]))
        if len(entries) != 3 or len({*map(len, entries)}) != 1 or not len(columns) == len(values) == len(codes):
            raise ValueError("no division of records into classes")
        return cls(columns, values, codes, entries, str(given["salt"]), tuple(map(str, given["cells"])))

    def arrays(self) -> tuple[Counts64, Counts64, Counts64, Counts64, Counts64]:
        """Tuples, classes, the first and behind the last number of each entry, and whether its tuple is divided."""
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
    """SQL for the rows of a view with the class of each as `name`, NOBODY's where it has none.

    `rows` is the view, with the columns of the source and those named in `beside`; rows that are not `complete` have
    no class. Tables of the engine's are called after `name`.
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
    result = f"SELECT k.*, coalesce(u.q, {NOBODY}) AS {name}, coalesce(u.d, 0) AS {name}_d FROM ({keyed}) AS k "
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
    taken = f"SELECT {kept}, coalesce(u.q, {NOBODY}) AS {name} FROM ({numbered}) AS k "
    taken += f"LEFT JOIN {name}_parts AS u ON {inside}"
    return f"{whole} UNION ALL {taken}"
