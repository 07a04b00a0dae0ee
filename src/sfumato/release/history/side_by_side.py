"""The tables in the engine that compare two releases: what each shows of every person, and who is in which.

For each column they state which labels fit each other, and which values follow from two labels together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy  # its parts are loaded at their first use: most commands compare no releases

from sfumato.base.arrays import Counts64
from sfumato.data.engine import Engine
from sfumato.data.source import Source
from sfumato.data.value_counts import cell_sql
from sfumato.release.classes_rows import classed_rows
from sfumato.release.history.description import NO_GROUP, Description
from sfumato.release.history.people import HASH, HashedRows, hash_text, with_hashes


@dataclass(frozen=True, eq=False)
class Overlap:
    """Two groupings of the same values.

    The values in `exact` are the only ones with their two labels, although each label has others. The pairs of labels
    among `fits` that have such a value are marked in `pair_exact`. The numbers in `part` are those of the finest groups
    that are unions of groups in both groupings, so labels of different parts never fit each other. If `crossing` is
    true, some labels of one part do not fit each other, and `fits` lists the pairs that do. If `telling` is true, some
    two labels do not fit, so the column helps to link rows.
    """

    exact: npt.NDArray[np.bool_]
    pair_exact: npt.NDArray[np.bool_]
    part: Counts64
    fits: Counts64
    crossing: bool
    telling: bool

    @property
    def first_follows(self) -> bool:
        """Whether the first label follows from the second."""
        return len(np.unique(self.fits[:, 1])) == len(self.fits)

    @property
    def second_follows(self) -> bool:
        """Whether the second label follows from the first."""
        return len(np.unique(self.fits[:, 0])) == len(self.fits)


def overlap(first: Counts64, second: Counts64) -> Overlap:
    """Compare two groupings, given as the group of each value, -1 if one of them does not have the value.

    >>> shifted = overlap(np.array([0, 0, 1, 1]), np.array([0, 0, 0, 1]))  # bands of four ages, one break moved
    >>> shifted.exact.tolist(), shifted.crossing, shifted.second_follows
    ([False, False, True, False], True, False)
    >>> overlap(np.array([0, 1, 2, 2]), np.array([0, 0, 1, 1])).second_follows
    True
    """
    known = (first != NO_GROUP) & (second != NO_GROUP)
    pairs, pair_of, counts = np.unique(
        np.stack([first[known], second[known]], axis=1), axis=0, return_inverse=True, return_counts=True
    )
    sizes = [np.bincount(side[side != NO_GROUP]) for side in (first, second)]
    alone = (counts == 1) & (sizes[0][pairs[:, 0]] > 1) & (sizes[1][pairs[:, 1]] > 1)
    exact = np.zeros(len(first), dtype=np.bool_)
    exact[known] = alone[pair_of.reshape(-1)]
    # The parts are the connected components of the labels. The last node is for values without a label in either.
    shift, nodes = len(sizes[0]), len(sizes[0]) + len(sizes[1])
    ends = (pairs[:, 0], pairs[:, 1] + shift)
    fitting = scipy.sparse.coo_array((np.ones(len(pairs)), ends), shape=(nodes + 1, nodes + 1))
    component = scipy.sparse.csgraph.connected_components(fitting, directed=False)[1].astype(np.int64)
    other = np.where(second != NO_GROUP, second + shift, nodes)
    # Within a part all labels fit, unless it has fewer pairs than combinations.
    part = component[pairs[:, 0]]
    labels = [np.bincount(part[np.unique(side, return_index=True)[1]]) for side in pairs.T]
    return Overlap(
        exact=exact,
        pair_exact=np.asarray(alone),
        part=component[np.where(first != NO_GROUP, first, other)],
        fits=pairs.astype(np.int64),
        crossing=bool(np.any(labels[0] * labels[1] != np.bincount(part))),
        telling=len(pairs) < int(np.count_nonzero(sizes[0]) * np.count_nonzero(sizes[1])),
    )


def overlap_labels(first: npt.NDArray[np.bool_], second: npt.NDArray[np.bool_]) -> Overlap:
    """Compare labels that may overlap, given as the values of each. All of them are taken as one part.

    >>> both = overlap_labels(np.array([[1, 1, 0], [0, 1, 1]], bool), np.array([[0, 1, 1], [1, 1, 1]], bool))
    >>> both.fits.tolist(), both.pair_exact.tolist()
    ([[0, 0], [0, 1], [1, 0], [1, 1]], [True, False, False, False])
    """
    shared = first.astype(np.int64) @ second.astype(np.int64).T
    pairs = np.argwhere(shared > 0)
    sizes = first.sum(axis=1), second.sum(axis=1)
    alone = (shared[tuple(pairs.T)] == 1) & (sizes[0][pairs[:, 0]] > 1) & (sizes[1][pairs[:, 1]] > 1)
    some = len(pairs) < int((sizes[0] > 0).sum()) * int((sizes[1] > 0).sum())
    nothing = np.zeros(first.shape[1], dtype=np.int64)
    return Overlap(nothing > 0, np.asarray(alone), nothing, pairs.astype(np.int64), crossing=some, telling=some)


ABSENT = -9
START = {"a": "p.old = 1", "b": "1 = 1"}  # which rows the first release can have, and the second


class SideBySide:
    """The tables `ledger_*` in the engine, and the SQL that makes and reads them.

    Columns that one of the two releases recodes are numbered. For column 0, the cell is `k0`, its group in the first
    and the second file is `a0` and `b0`, and its part is `c0`. Whether its value is exact is in `e0`. The cells that
    both files keep are `x`, and those that one file keeps are `xa` and `xb`. Whether a row is in the first and in the
    second file is in `ia` and `ib`.

    If `holder` states in SQL to whom a row belongs, `u` is this person or household, and these are counted. If there is
    no `holder`, rows are counted.
    """

    def __init__(
        self, engine: Engine, source: Source, first: Description, second: Description, holder: str | None = None
    ) -> None:
        self.engine, self.source, self.first, self.second, self.holder = engine, source, first, second, holder
        recoded = {*first.recoded, *second.recoded}
        self.names = [name for name in source.names if name in recoded]
        self.span = range(len(self.names))
        others = [name for name in source.names if name not in recoded]
        certain = [[n for n in others if n in d.columns and d.columns[n].certain] for d in (first, second)]
        shown = [[n for n in others if n in d.columns and d.columns[n].kind != "disguised"] for d in (first, second)]
        self.shared = [name for name in certain[0] if name in certain[1]]
        self.apart = [[name for name in side if name not in self.shared] for side in shown]
        self.sensitive = [n for n in source.names if n in first.sensitive or n in second.sensitive]
        self.divided = {s: d for s, d in (("a", first), ("b", second)) if d.division is not None}
        self.overlaps: dict[int, Overlap] = {}
        self.made: dict[str, None] = {}

    def numbers(self, sql: str) -> tuple[int, ...]:
        return tuple(int(number or 0) for number in self.engine.rows(sql)[0])

    def number(self, sql: str) -> int:
        return self.numbers(sql)[0]

    def table(self, name: str, sql: str) -> None:
        self.engine.run(f"CREATE OR REPLACE TEMP TABLE ledger_{name} AS {sql}")
        self.made[f"ledger_{name}"] = None

    def drop(self) -> None:
        """Delete the tables."""
        for name in self.made:
            self.engine.run(f"DROP TABLE {name}")

    def people(self, condition: str = "1 = 1") -> str:
        """Return SQL for the number of people with a row that meets a condition, each counted once."""
        if self.holder is None:
            return f"CAST(coalesce(sum(CASE WHEN {condition} THEN n ELSE 0 END), 0) AS BIGINT)"
        return f"count(DISTINCT CASE WHEN {condition} THEN u END)"

    @property
    def whose(self) -> list[str]:
        """The column with the person or household of a row, if these are counted."""
        return [] if self.holder is None else ["u"]

    def listed(self, letters: str, numbers: Sequence[int] | range | None = None, prefix: str = "") -> list[str]:
        return [f"{prefix}{letter}{i}" for letter in letters for i in (self.span if numbers is None else numbers)]

    def fill(self, known: HashedRows | None, key: str) -> None:
        """Make the tables. `known` are the rows of the first release if there are new rows now."""
        self._read(known, key)
        self._show()
        self._suppress()

    def _read(self, known: HashedRows | None, key: str) -> None:
        """Read the relevant cells in one scan and count equal rows. Mark rows that the first release lacks."""
        cells = [f"{cell_sql(self.source, name)} AS k{i}" for i, name in enumerate(self.names)]
        cells += [f"{cell_sql(self.source, name)} AS s{i}" for i, name in enumerate(self.sensitive)]
        for name, columns in (("x", self.shared), ("xa", self.apart[0]), ("xb", self.apart[1])):
            hashed = self.engine.hashed([cell_sql(self.source, column) for column in columns]) if columns else "0"
            cells.append(f"{hashed} AS {name}")
        for name, description in (("wa", self.first), ("wb", self.second)):
            cells.append(f"CASE WHEN {self._complete(description)} THEN 1 ELSE 0 END AS {name}")
        cells += [] if self.holder is None else [f"coalesce({self.holder}, '') AS u"]
        classes = [f"q{side}" for side in self.divided]
        cells += classes
        sensitive = self.listed("s", range(len(self.sensitive)))
        keys = [*self.listed("k"), *sensitive, "x", "xa", "xb", "wa", "wb", *self.whose, *classes]
        rows, hashed = self._classed(), ""
        if known is not None:
            rows, hashed = with_hashes(self.source, known.columns, key, f"{rows} AS q"), f", {HASH} AS h"
        grouped = ", ".join([*keys, *(["h"] if known is not None else [])])
        read = f"SELECT {', '.join(cells)}{hashed} FROM {rows} AS r"
        self.table("rows", f"SELECT {grouped}, count(*) AS n FROM ({read}) AS t GROUP BY {grouped}")
        listed = ", ".join(keys)
        if known is None:
            view = f"SELECT {listed}, n, 1 AS old FROM ledger_rows"
            self.engine.run(f"CREATE OR REPLACE TEMP VIEW ledger_people AS {view}")
            return
        self.engine.upload("ledger_known", {"h": hash_text(known.hashes), "m": known.counts})
        joined = "FROM ledger_rows AS r LEFT JOIN ledger_known AS k ON r.h = k.h"
        before = "least(n, coalesce(m, 0))"
        self.table(
            "split",
            f"SELECT {listed}, {before} AS n, 1 AS old {joined} WHERE m IS NOT NULL "
            f"UNION ALL SELECT {listed}, n - {before} AS n, 0 AS old {joined} WHERE n > coalesce(m, 0)",
        )
        self.engine.run("CREATE OR REPLACE TEMP VIEW ledger_people AS SELECT * FROM ledger_split")

    def _complete(self, description: Description) -> str:
        """Return the condition that a row lacks no value that a release needs."""
        return " AND ".join(f"{cell_sql(self.source, name)} <> ''" for name in description.complete) or "1 = 1"

    def _classed(self) -> str:
        """Return the source with the class of each row in a file that is divided into classes."""
        rows: str = "raw"
        beside: list[str] = []
        for side, description in self.divided.items():
            if (division := description.division) is None:
                continue
            name, whole = f"q{side}", self._complete(description)
            sql = classed_rows(self.engine, self.source, division, rows, name, whole, beside)
            self.engine.run(f"CREATE OR REPLACE TEMP VIEW ledger_classed_{side} AS {sql}")
            rows, beside = f"ledger_classed_{side}", [*beside, name]
            labels = np.array([[NO_GROUP] * len(division.columns), *description.boxes], dtype=np.int64)
            columns = {f"l{j}": labels[:, j].copy() for j in range(len(division.columns))}
            self.engine.upload(f"ledger_box_{side}", {"q": np.arange(len(labels), dtype=np.int64) - 1, **columns})
            self.made[f"ledger_box_{side}"] = None
        return rows

    def _boxed(self, side: str, i: int) -> str:
        """Return SQL for the label of a column in the class of a row, empty if the column is not boxed in a file."""
        description = self.divided.get(side)
        if description is None or description.division is None or self.names[i] not in description.division.columns:
            return ""
        return f"x{side}.l{description.division.columns.index(self.names[i])}"

    def _show(self) -> None:
        """Compute the groups of each person in the two files, before any record is suppressed."""
        for i, name in enumerate(self.names):
            values = [str(row[0]) for row in self.engine.rows(f"SELECT DISTINCT k{i} FROM ledger_people ORDER BY k{i}")]
            sides = []
            for side, description in (("a", self.first), ("b", self.second)):
                column = description.columns.get(name)
                visible = column is not None and column.kind != "disguised" and not self._boxed(side, i)
                nothing = np.zeros(len(values), dtype=np.int64)
                sides.append(column.codes(values) if column and visible else nothing)
            overlapped = self._overlap(i, values, sides)
            exact = part = np.zeros(len(values), dtype=np.int64)
            if all(name in d.columns and d.columns[name].certain for d in (self.first, self.second)):
                self.overlaps[i] = overlapped
                exact, part = overlapped.exact.astype(np.int64), overlapped.part
                fits = {"a": overlapped.fits[:, 0].copy(), "b": overlapped.fits[:, 1].copy()}
                self.engine.upload(f"ledger_fits{i}", fits | {"e": overlapped.pair_exact.astype(np.int64)})
            self.engine.upload(f"ledger_map{i}", {"v": values, "a": sides[0], "b": sides[1], "c": part, "e": exact})
        known = [" AND ".join([old, *(f"{self._shown(s, i)} >= 0" for i in self.span)]) for s, old in START.items()]
        cells = ["p.n", "p.x", "p.xa", "p.xb", *self.listed("s", range(len(self.sensitive)), "p.")]
        cells += [f"p.{name}" for name in self.whose]
        cells += [f"CASE WHEN p.w{s} = 1 AND {w} THEN 1 ELSE 0 END AS w{s}" for s, w in zip("ab", known, strict=True)]
        cells += [f"{self._shown(letter, i)} AS {letter}{i}" for i in self.span for letter in "abce"]
        joins = [f"JOIN ledger_map{i} AS m{i} ON p.k{i} = m{i}.v" for i in self.span]
        joins += [f"JOIN ledger_box_{side} AS x{side} ON p.q{side} = x{side}.q" for side in self.divided]
        for i in (i for i in self.overlaps if self._boxed("a", i) or self._boxed("b", i)):
            on = " AND ".join(f"f{i}.{side} = {self._shown(side, i)}" for side in "ab")
            joins.append(f"LEFT JOIN ledger_fits{i} AS f{i} ON {on}")
        self.table("shown", f"SELECT {', '.join(cells)} FROM ledger_people AS p {' '.join(joins)}")

    def _shown(self, letter: str, i: int) -> str:
        """Return SQL for the group of a column in a file, for the part, or for whether the value is exact."""
        boxed = self._boxed("a", i), self._boxed("b", i)
        if letter in "ab" and boxed["ab".index(letter)]:
            return boxed["ab".index(letter)]
        if letter == "e" and any(boxed):
            return f"coalesce(f{i}.e, 0)" if i in self.overlaps else "0"
        return f"m{i}.{letter}"

    def _overlap(self, i: int, values: Sequence[str], sides: Sequence[Counts64]) -> Overlap:
        """Return how the labels of a column overlap. `sides` are groups of values if it is not boxed."""
        if not self._boxed("a", i) and not self._boxed("b", i):
            return overlap(*sides)
        held = (
            description.columns[self.names[i]].holds(values)
            if self._boxed(side, i)
            else np.arange(int(groups.max(initial=0)) + 1)[:, None] == groups
            for side, description, groups in zip("ab", (self.first, self.second), sides, strict=True)
        )
        return overlap_labels(*held)

    def _suppress(self) -> None:
        """Compute who is in which file. Suppressed classes are counted as their release counted them."""
        present, joins = [], []
        for side, description in (("a", self.first), ("b", self.second)):
            numbers = [i for i in self.span if self.names[i] in description.recoded]
            if description.listed is not None:
                joins.append(self._listed_join(side, numbers, description.listed))
                present.append(f"CASE WHEN t.w{side} = 1 AND z{side}.gone IS NULL THEN 1 ELSE 0 END")
                continue
            if not numbers or (description.size < 2 and description.diversity < 2):
                present.append(f"t.w{side}")
                continue
            keys = ", ".join(self.listed(side, numbers))
            places = [self.sensitive.index(name) for name in description.sensitive] if description.diversity > 1 else []
            values = [f"count(DISTINCT s{j})" for j in places] or ["0"]
            least = f"least({', '.join(values)})" if len(values) > 1 else values[0]
            sized = f"SELECT {keys}, sum(n) AS n, {least} AS v FROM ledger_shown WHERE w{side} = 1 GROUP BY {keys}"
            self.table(f"size_{side}", sized)
            on = " AND ".join(f"t.{key} = z{side}.{key}" for key in self.listed(side, numbers))
            joins.append(f"LEFT JOIN ledger_size_{side} AS z{side} ON {on}")
            gone = f"z{side}.n < {int(description.size)}"
            gone += f" OR z{side}.v < {int(description.diversity)}" if places else ""
            present.append(f"CASE WHEN t.w{side} = 1 AND NOT ({gone}) THEN 1 ELSE 0 END")
        inner = f"SELECT t.*, {present[0]} AS ia, {present[1]} AS ib FROM ledger_shown AS t {' '.join(joins)}"
        cells = ["n", "x", "ia", "ib", *self.listed("s", range(len(self.sensitive))), *self.whose]
        for side in "ab":
            cells.append(f"CASE WHEN i{side} = 1 THEN x{side} ELSE 0 END AS x{side}")
            cells += [f"CASE WHEN i{side} = 1 THEN {g} ELSE {ABSENT} END AS {g}" for g in self.listed(side)]
        cells += self.listed("ce")
        self.table("present", f"SELECT {', '.join(cells)} FROM ({inner}) AS q WHERE ia = 1 OR ib = 1")

    def _listed_join(self, side: str, numbers: Sequence[int], listed: Sequence[Sequence[int]]) -> str:
        """Return the join with the classes that a release names as suppressed."""
        order = sorted(numbers, key=lambda i: self.names[i])
        groups = np.array(listed, dtype=np.int64).reshape(-1, len(order))
        keys = {f"{side}{i}": groups[:, position].copy() for position, i in enumerate(order)}
        self.engine.upload(f"ledger_gone_{side}", keys | {"gone": np.ones(len(groups), dtype=np.int64)})
        on = " AND ".join(f"t.{key} = z{side}.{key}" for key in keys)
        return f"LEFT JOIN ledger_gone_{side} AS z{side} ON {on}"
