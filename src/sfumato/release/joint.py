"""Two releases of one table held together: classes, exact values and rows that link, counted on the rows themselves.

The attacker holds both files. In the worst case they know which row of one belongs to which row of the other; then a
person hides only among those who look alike in both files: the joint class. How many rows in fact link without doubt,
by what both files show, is counted too. All of it runs in the engine, over the source that is attached as `raw`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.data.engine import Engine
from sfumato.data.source import Source
from sfumato.data.tally import cell_sql
from sfumato.release.overlap import Overlap, overlap
from sfumato.release.people import HashedRows, hash_sql, hash_text
from sfumato.release.shown import Description

MANY_PAIRS = 50_000_000  # of rows to set side by side; beyond it, links are counted by parts only, which are fewer
ABSENT = -9
FAR = 2**62


@dataclass(frozen=True)
class Joint:
    """What two releases show together of the people in either of them.

    `small` people are in a joint class below k that is smaller than their class in one of the files; `exact` have,
    per column, a value that follows from the two labels and from neither alone; `alike`, per sensitive column, are in
    a joint class with too few values of it, and fewer than each file alone; `unique` are told apart from everyone by
    the two files together and by neither alone. `linked` people's rows fit each other and no other row (at least so
    many where `counted` is false), `linked_affected` of them are small or exact. `linking` are the columns that link;
    without any, rows cannot be linked. `first_adds`: the first file shows what does not follow from the second.
    """

    people: int
    both: int
    single: int
    smallest: int
    small: int
    exact: dict[str, int]
    alike: dict[str, int]
    unique: int
    affected: int
    linked: int
    linked_affected: int
    counted: bool
    linking: tuple[str, ...]
    first_adds: bool
    second_adds: bool


def join_releases(
    engine: Engine,
    source: Source,
    first: Description,
    second: Description,
    *,
    k: int,
    l: int,
    known: HashedRows | None = None,
    key: str = "",
) -> Joint:
    """Hold two releases of a source together. `known` are the rows that the first was made of, if others are new."""
    pair = _Pair(engine, source, first.within(source.names), second.within(source.names))
    pair.read(known, key)
    pair.show()
    pair.suppress()
    people, both, single, smallest, small = pair.classes(k)
    exact = pair.exact_values()
    linked, linked_affected, counted = pair.links()
    affected = pair.number("SELECT sum(n * f) FROM ledger_seen")
    first_adds, second_adds = pair.adds()
    return Joint(
        people=people,
        both=both,
        single=single,
        smallest=smallest,
        small=small,
        exact=exact,
        alike=pair.alike(l) if l > 1 else {},
        unique=pair.uniques(),
        affected=affected,
        linked=linked,
        linked_affected=linked_affected,
        counted=counted,
        linking=pair.linking,
        first_adds=first_adds,
        second_adds=second_adds,
    )


class _Pair:
    """The tables `ledger_*` in the engine, and the SQL that makes and reads them.

    Columns that one of the two recodes are numbered: `k0` is the cell, `a0` and `b0` its group in the first and the
    second file, `c0` the part, `e0` whether the value is exact. `x` stands for the cells that both files keep, `xa`
    and `xb` for those that one keeps; `ia` and `ib` say who is in which file.
    """

    def __init__(self, engine: Engine, source: Source, first: Description, second: Description) -> None:
        self.engine, self.source, self.first, self.second = engine, source, first, second
        recoded = {*first.recoded, *second.recoded}
        self.names = [name for name in source.names if name in recoded]
        self.span = range(len(self.names))
        others = [name for name in source.names if name not in recoded]
        certain = [[n for n in others if n in d.columns and d.columns[n].certain] for d in (first, second)]
        shown = [[n for n in others if n in d.columns and d.columns[n].kind != "disguised"] for d in (first, second)]
        self.shared = [name for name in certain[0] if name in certain[1]]
        self.apart = [[name for name in side if name not in self.shared] for side in shown]
        self.sensitive = [n for n in source.names if n in first.sensitive or n in second.sensitive]
        self.overlaps: dict[int, Overlap] = {}

    def number(self, sql: str) -> int:
        return int(self.engine.rows(sql)[0][0] or 0)

    def table(self, name: str, sql: str) -> None:
        self.engine.run(f"CREATE OR REPLACE TEMP TABLE ledger_{name} AS {sql}")

    def listed(self, letters: str, numbers: Sequence[int] | range | None = None, prefix: str = "") -> list[str]:
        return [f"{prefix}{letter}{i}" for letter in letters for i in (self.span if numbers is None else numbers)]

    def read(self, known: HashedRows | None, key: str) -> None:
        """One scan: the cells that matter, equal rows counted; rows the first release did not have are told apart."""
        cells = [f"{cell_sql(self.source, name)} AS k{i}" for i, name in enumerate(self.names)]
        cells += [f"{cell_sql(self.source, name)} AS s{i}" for i, name in enumerate(self.sensitive)]
        for name, columns in (("x", self.shared), ("xa", self.apart[0]), ("xb", self.apart[1])):
            hashed = self.engine.hashed([cell_sql(self.source, column) for column in columns]) if columns else "0"
            cells.append(f"{hashed} AS {name}")
        for name, description in (("wa", self.first), ("wb", self.second)):
            whole = " AND ".join(f"{cell_sql(self.source, column)} <> ''" for column in description.complete)
            cells.append(f"CASE WHEN {whole or '1 = 1'} THEN 1 ELSE 0 END AS {name}")
        keys = [*self.listed("k"), *self.listed("s", range(len(self.sensitive))), "x", "xa", "xb", "wa", "wb"]
        hashed = f", {hash_sql(self.source, known.columns, key)} AS h" if known is not None else ""
        grouped = ", ".join([*keys, *(["h"] if known is not None else [])])
        read = f"SELECT {', '.join(cells)}{hashed} FROM raw"
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

    def show(self) -> None:
        """The groups of each person in the two files, before anybody is suppressed."""
        for i, name in enumerate(self.names):
            values = [str(row[0]) for row in self.engine.rows(f"SELECT DISTINCT k{i} FROM ledger_people ORDER BY k{i}")]
            sides = []
            for description in (self.first, self.second):
                column = description.columns.get(name)
                visible = column is not None and column.kind != "disguised"
                nothing = np.zeros(len(values), dtype=np.int64)
                sides.append(column.codes(values, starred=description.starred) if column and visible else nothing)
            overlapped = overlap(*sides)
            certain = [name in d.columns and d.columns[name].certain for d in (self.first, self.second)]
            if all(certain):
                self.overlaps[i] = overlapped
                self.engine.upload(
                    f"ledger_fits{i}", {"a": overlapped.fits[:, 0].copy(), "b": overlapped.fits[:, 1].copy()}
                )
            exact = overlapped.exact if all(certain) else np.zeros(len(values), dtype=np.bool_)
            part = overlapped.part if all(certain) else np.zeros(len(values), dtype=np.int64)
            groups = {"a": sides[0], "b": sides[1], "c": part, "e": exact.astype(np.int64)}
            self.engine.upload(f"ledger_map{i}", {"v": values, **groups})
        known = [
            " AND ".join(["p.old = 1", *(f"m{i}.a >= 0" for i in self.span)]),
            " AND ".join([*(f"m{i}.b >= 0" for i in self.span)]) or "1 = 1",
        ]
        cells = ["p.n", "p.x", "p.xa", "p.xb", *self.listed("s", range(len(self.sensitive)), "p.")]
        cells += [f"CASE WHEN p.w{s} = 1 AND {w} THEN 1 ELSE 0 END AS w{s}" for s, w in zip("ab", known, strict=True)]
        cells += [f"m{i}.{letter} AS {letter}{i}" for i in self.span for letter in "abce"]
        joins = " ".join(f"JOIN ledger_map{i} AS m{i} ON p.k{i} = m{i}.v" for i in self.span)
        self.table("shown", f"SELECT {', '.join(cells)} FROM ledger_people AS p {joins}")

    def suppress(self) -> None:
        """Who is in which file: classes that a release leaves out are counted as that release counted them."""
        present = []
        joins = []
        for side, description in (("a", self.first), ("b", self.second)):
            numbers = [i for i in self.span if self.names[i] in description.recoded]
            if not numbers or (description.size < 2 and description.diversity < 2):
                present.append(f"t.w{side}")
                continue
            keys = ", ".join(self.listed(side, numbers))
            places = [self.sensitive.index(name) for name in description.sensitive] if description.diversity > 1 else []
            values = [f"count(DISTINCT s{j})" for j in places] or ["0"]
            least = f"least({', '.join(values)})" if len(values) > 1 else values[0]
            self.table(
                f"size_{side}",
                f"SELECT {keys}, sum(n) AS n, {least} AS v FROM ledger_shown WHERE w{side} = 1 GROUP BY {keys}",
            )
            on = " AND ".join(f"t.{key} = z{side}.{key}" for key in self.listed(side, numbers))
            joins.append(f"LEFT JOIN ledger_size_{side} AS z{side} ON {on}")
            gone = f"z{side}.n < {int(description.size)}"
            gone += f" OR z{side}.v < {int(description.diversity)}" if places else ""
            present.append(f"CASE WHEN t.w{side} = 1 AND NOT ({gone}) THEN 1 ELSE 0 END")
        inner = f"SELECT t.*, {present[0]} AS ia, {present[1]} AS ib FROM ledger_shown AS t {' '.join(joins)}"
        cells = ["n", "x", "ia", "ib", *self.listed("s", range(len(self.sensitive)))]
        for side in "ab":
            cells.append(f"CASE WHEN i{side} = 1 THEN x{side} ELSE 0 END AS x{side}")
            cells += [f"CASE WHEN i{side} = 1 THEN {g} ELSE {ABSENT} END AS {g}" for g in self.listed(side)]
        cells += self.listed("ce")
        self.table("present", f"SELECT {', '.join(cells)} FROM ({inner}) AS q WHERE ia = 1 OR ib = 1")

    def classes(self, k: int) -> tuple[int, int, int, int, int]:
        """People, those in both files, those in one only, the smallest joint class, and people in small ones."""
        keys = ", ".join(["ia", "ib", *self.listed("ab")])
        grouped = f"SELECT {keys}, CAST(sum(n) AS BIGINT) AS n FROM ledger_present GROUP BY {keys}"
        own = [f"sum(n) OVER (PARTITION BY {', '.join([f'i{s}', *self.listed(s)])}) AS n{s}" for s in "ab"]
        larger = "greatest(CASE WHEN ia = 1 THEN na ELSE 0 END, CASE WHEN ib = 1 THEN nb ELSE 0 END)"
        small = f"CASE WHEN n < {int(k)} AND n < {larger} THEN 1 ELSE 0 END AS small"
        self.table("classes", f"SELECT {keys}, n, {small} FROM (SELECT *, {', '.join(own)} FROM ({grouped}) AS g) AS o")
        exact = " + ".join(["0", *self.listed("e")])
        on = " AND ".join(f"p.{name} = z.{name}" for name in ["ia", "ib", *self.listed("ab")])
        flag = f"CASE WHEN z.small = 1 OR (p.ia = 1 AND p.ib = 1 AND {exact} > 0) THEN 1 ELSE 0 END AS f"
        self.table("seen", f"SELECT p.*, {flag} FROM ledger_present AS p JOIN ledger_classes AS z ON {on}")
        counts = ["sum(n)", "sum(n * ia * ib)", "sum(n * (ia + ib - 2 * ia * ib))", "min(n)", "sum(n * small)"]
        row = self.engine.rows(f"SELECT {', '.join(counts)} FROM ledger_classes")[0]
        people, both, single, smallest, affected = (int(number or 0) for number in row)
        return people, both, single, smallest, affected

    def exact_values(self) -> dict[str, int]:
        """Per column, how many people's value follows from the two labels together."""
        counted = {
            self.names[i]: self.number(f"SELECT sum(n * e{i}) FROM ledger_present WHERE ia = 1 AND ib = 1")
            for i, overlapped in self.overlaps.items()
            if overlapped.exact.any()
        }
        return {name: count for name, count in counted.items() if count}

    def alike(self, l: int) -> dict[str, int]:
        """Per sensitive column, how many people are in joint classes with fewer than l values, fewer than alone."""
        counted = {}
        for j, name in enumerate(self.sensitive):
            shown = [name in d.columns and d.columns[name].kind == "kept" for d in (self.first, self.second)]
            sides = [side for side, visible in zip("ab", shown, strict=True) if visible]
            if not sides:
                continue
            keys = ["ia", "ib", *self.listed("ab")]
            values = f"count(DISTINCT s{j}) AS d"
            joint = f"SELECT {', '.join(keys)}, sum(n) AS n, {values} FROM ledger_present GROUP BY {', '.join(keys)}"
            joins, alone = [], []
            for side in sides:
                own = [f"i{side}", *self.listed(side)]
                one = f"SELECT {', '.join(own)}, {values} FROM ledger_present GROUP BY {', '.join(own)}"
                on = " AND ".join(f"t.{name} = d{side}.{name}" for name in own)
                joins.append(f"JOIN ({one}) AS d{side} ON {on}")
                alone.append(f"CASE WHEN t.i{side} = 1 THEN d{side}.d ELSE {FAR} END")
            before = f"least({', '.join(alone)})" if len(alone) > 1 else alone[0]
            where = f"t.d < {int(l)} AND t.d < {before} AND {before} < {FAR}"
            counted[name] = self.number(f"SELECT sum(t.n) FROM ({joint}) AS t {' '.join(joins)} WHERE {where}")
        return {name: count for name, count in counted.items() if count}

    def uniques(self) -> int:
        """People whom the two files together tell apart from everyone, though neither does alone."""
        keys = ["ia", "ib", *self.listed("ab"), "x", "xa", "xb"]
        grouped = f"SELECT {', '.join(keys)}, sum(n) AS n FROM ledger_present GROUP BY {', '.join(keys)}"
        own = [
            f"sum(n) OVER (PARTITION BY {', '.join([f'i{side}', *self.listed(side), 'x', f'x{side}'])}) AS n{side}"
            for side in "ab"
        ]
        where = "n = 1 AND NOT (ia = 1 AND na = 1) AND NOT (ib = 1 AND nb = 1)"
        return self.number(f"SELECT sum(n) FROM (SELECT *, {', '.join(own)} FROM ({grouped}) AS g) AS o WHERE {where}")

    @property
    def linking(self) -> tuple[str, ...]:
        """The columns by which rows of the two files can be linked."""
        if self.first.ordered and self.second.ordered:
            return ("the order of the rows",)
        telling = [self.names[i] for i, overlapped in self.overlaps.items() if overlapped.telling]
        return tuple(name for name in self.source.names if name in {*self.shared, *telling})

    def links(self) -> tuple[int, int, bool]:
        """People whose rows fit each other and no other row, how many of them are affected, and if all are counted."""
        if self.first.ordered and self.second.ordered:
            row = self.engine.rows("SELECT sum(n), sum(n * f) FROM ledger_seen WHERE ia = 1 AND ib = 1")[0]
            return int(row[0] or 0), int(row[1] or 0), True
        crossing = [i for i, overlapped in self.overlaps.items() if overlapped.crossing]
        keys = ["x", *self.listed("c")]
        if crossing and self._pairs(keys, crossing) <= MANY_PAIRS:
            return (*self._links_across(keys, crossing), True)
        sums = "sum(n * ia) AS na, sum(n * ib) AS nb, sum(n * ia * ib) AS nn, sum(n * ia * ib * f) AS nf"
        grouped = f"SELECT {sums} FROM ledger_seen GROUP BY {', '.join(keys)}"
        row = self.engine.rows(f"SELECT count(*), sum(nf) FROM ({grouped}) AS g WHERE na = 1 AND nb = 1 AND nn = 1")[0]
        return int(row[0] or 0), int(row[1] or 0), not crossing

    def _pairs(self, keys: Sequence[str], crossing: Sequence[int]) -> int:
        """How many pairs of rows stand to be compared; on the way, the different rows of each file."""
        listed = ", ".join(keys)
        for side in "ab":
            own = ", ".join([*keys, *self.listed(side, crossing)])
            self.table(f"view_{side}", f"SELECT {own}, sum(n) AS n FROM ledger_seen WHERE i{side} = 1 GROUP BY {own}")
        own = ", ".join([*keys, *self.listed("ab", crossing)])
        single = f"SELECT {own}, sum(n) AS n, sum(n * f) AS f FROM ledger_seen WHERE ia = 1 AND ib = 1 GROUP BY {own}"
        joins = " ".join(
            f"JOIN ledger_view_{s} AS v{s} ON "
            + " AND ".join(f"t.{name} = v{s}.{name}" for name in [*keys, *self.listed(s, crossing)])
            for s in "ab"
        )
        cells = ", ".join(f"t.{name}" for name in [*keys, *self.listed("ab", crossing), "f"])
        self.table("single", f"SELECT {cells} FROM ({single}) AS t {joins} WHERE t.n = 1 AND va.n = 1 AND vb.n = 1")
        counted = "SELECT {0}, count(*) AS {1} FROM {2} GROUP BY {0}"
        parts = [counted.format(listed, "m", "ledger_single")]
        parts += [counted.format(listed, f"m{side}", f"ledger_view_{side}") for side in "ab"]
        on = " AND ".join(f"s.{name} = {{0}}.{name}" for name in keys)
        return self.number(
            f"SELECT CAST(sum(CAST(s.m AS DOUBLE) * (a.ma + b.mb)) AS BIGINT) FROM ({parts[0]}) AS s "
            f"JOIN ({parts[1]}) AS a ON {on.format('a')} JOIN ({parts[2]}) AS b ON {on.format('b')}"
        )

    def _links_across(self, keys: Sequence[str], crossing: Sequence[int]) -> tuple[int, int]:
        """Rows that are single in both files, and whose labels fit no other row of either."""
        own = [*keys, *self.listed("ab", crossing)]
        fitting = []
        for side, other in (("a", "b"), ("b", "a")):
            joins = f"JOIN ledger_view_{other} AS v ON " + " AND ".join(f"s.{name} = v.{name}" for name in keys)
            joins += "".join(
                f" JOIN ledger_fits{i} AS f{i} ON f{i}.{side} = s.{side}{i} AND f{i}.{other} = v.{other}{i}"
                for i in crossing
            )
            listed = ", ".join(f"s.{name}" for name in own)
            fitting.append(
                f"SELECT {listed}, s.f, sum(v.n) AS d FROM ledger_single AS s {joins} GROUP BY {listed}, s.f"
            )
        on = " AND ".join(f"p.{name} = q.{name}" for name in own)
        row = self.engine.rows(
            f"SELECT count(*), sum(p.f) FROM ({fitting[0]}) AS p JOIN ({fitting[1]}) AS q ON {on} "
            "WHERE p.d = 1 AND q.d = 1"
        )[0]
        return int(row[0] or 0), int(row[1] or 0)

    def adds(self) -> tuple[bool, bool]:
        """Whether the first file shows what does not follow from the second, and the other way round."""
        answers = []
        for side, other, one, two in (("a", "b", self.first, self.second), ("b", "a", self.second, self.first)):
            answers.append(self._columns_add(side, one, two) or self._presence_adds(side, other))
        return answers[0], answers[1]

    def _columns_add(self, side: str, one: Description, two: Description) -> bool:
        if one.random or (one.swaps and sorted(one.swaps) != sorted(two.swaps)):
            return True
        for name, column in one.columns.items():
            other = two.columns.get(name)
            if name in self.names:
                overlapped = self.overlaps.get(self.names.index(name))
                if overlapped is None:  # only one of the two shows it for certain
                    if self.number(f"SELECT count(DISTINCT {side}{self.names.index(name)}) FROM ledger_shown") > 1:
                        return True
                elif not (overlapped.first_follows if side == "a" else overlapped.second_follows):
                    return True
            elif other is None or other.kind != column.kind:
                return True
        return False

    def _presence_adds(self, side: str, other: str) -> bool:
        """Whether somebody is in this file only, or a class of the other file is partly in this one."""
        keys = ", ".join([f"i{other}", *self.listed(other)])
        spans = (
            f"SELECT min(i{side}) AS low, max(i{side}) AS high FROM ledger_classes WHERE i{other} = 1 GROUP BY {keys}"
        )
        single = self.number(f"SELECT count(*) FROM ledger_classes WHERE i{side} = 1 AND i{other} = 0")
        return single > 0 or self.number(f"SELECT count(*) FROM ({spans}) AS g WHERE low <> high") > 0
