"""Comparison of two releases of one table: joint classes, exact values and linked rows, counted on the rows themselves.

The attacker has both files. In the worst case they know which row of one file belongs to which row of the other. Then a
person is protected only by the people with the same labels in both files: the joint class. The module also counts the
rows that link without doubt because they fit each other and no other row. All counts run in the engine, over the source
that is attached as `raw`.

Releases with random rows are compared in two more ways: what their reports of one column reveal together, and which
swaps are visible because two files show a row in different places.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.base.arrays import Floats
from sfumato.data.engine import Engine
from sfumato.data.source import Source
from sfumato.data.value_counts import cell_sql
from sfumato.measures.channel import attribute_figures
from sfumato.plans.channel import Channel
from sfumato.release.history.description import Description, ShownColumn
from sfumato.release.history.people import HASH, HashedRows, with_hashes
from sfumato.release.history.side_by_side import SideBySide

MANY_PAIRS = 50_000_000  # pairs of rows to compare; with more, links are counted by parts only, which gives fewer


def linking(pair: SideBySide) -> tuple[str, ...]:
    """Return the columns by which rows of the two files can be linked."""
    if pair.first.ordered and pair.second.ordered:
        return ("the order of the rows",)
    telling = [pair.names[i] for i, overlapped in pair.overlaps.items() if overlapped.telling]
    return tuple(name for name in pair.source.names if name in {*pair.shared, *telling})


def links(pair: SideBySide) -> tuple[int, int, bool]:
    """Return the people whose rows fit each other only, how many of them are affected, and if all are counted."""
    if pair.first.ordered and pair.second.ordered:
        linked, affected = pair.numbers("SELECT sum(n), sum(n * f) FROM ledger_seen WHERE ia = 1 AND ib = 1")
        return linked, affected, True
    crossing = [i for i, overlapped in pair.overlaps.items() if overlapped.crossing]
    keys = ["x", *pair.listed("c")]
    if crossing and _pairs(pair, keys, crossing) <= MANY_PAIRS:
        linked, affected = _links_across(pair, keys, crossing)
        return linked, affected, True
    sums = "sum(n * ia) AS na, sum(n * ib) AS nb, sum(n * ia * ib) AS nn, sum(n * ia * ib * f) AS nf"
    grouped = f"SELECT {sums} FROM ledger_seen GROUP BY {', '.join(keys)}"
    single = f"SELECT count(*), sum(nf) FROM ({grouped}) AS g WHERE na = 1 AND nb = 1 AND nn = 1"
    linked, affected = pair.numbers(single)
    return linked, affected, not crossing


def _pairs(pair: SideBySide, keys: Sequence[str], crossing: Sequence[int]) -> int:
    """Return the number of pairs of rows to compare, and the different rows of each file."""
    listed = ", ".join(keys)
    for side in "ab":
        own = ", ".join([*keys, *pair.listed(side, crossing)])
        pair.table(f"view_{side}", f"SELECT {own}, sum(n) AS n FROM ledger_seen WHERE i{side} = 1 GROUP BY {own}")
    own = ", ".join([*keys, *pair.listed("ab", crossing)])
    single = f"SELECT {own}, sum(n) AS n, sum(n * f) AS f FROM ledger_seen WHERE ia = 1 AND ib = 1 GROUP BY {own}"
    joins = " ".join(
        f"JOIN ledger_view_{s} AS v{s} ON "
        + " AND ".join(f"t.{name} = v{s}.{name}" for name in [*keys, *pair.listed(s, crossing)])
        for s in "ab"
    )
    cells = ", ".join(f"t.{name}" for name in [*keys, *pair.listed("ab", crossing), "f"])
    pair.table("single", f"SELECT {cells} FROM ({single}) AS t {joins} WHERE t.n = 1 AND va.n = 1 AND vb.n = 1")
    counted = "SELECT {0}, count(*) AS {1} FROM {2} GROUP BY {0}"
    parts = [counted.format(listed, "m", "ledger_single")]
    parts += [counted.format(listed, f"m{side}", f"ledger_view_{side}") for side in "ab"]
    on = " AND ".join(f"s.{name} = {{0}}.{name}" for name in keys)
    return pair.number(
        f"SELECT CAST(sum(CAST(s.m AS DOUBLE) * (a.ma + b.mb)) AS BIGINT) FROM ({parts[0]}) AS s "
        f"JOIN ({parts[1]}) AS a ON {on.format('a')} JOIN ({parts[2]}) AS b ON {on.format('b')}"
    )


def _links_across(pair: SideBySide, keys: Sequence[str], crossing: Sequence[int]) -> tuple[int, ...]:
    """Return rows that are single in both files, and whose labels fit no other row of either file."""
    own = [*keys, *pair.listed("ab", crossing)]
    fitting = []
    for side, other in (("a", "b"), ("b", "a")):
        joins = f"JOIN ledger_view_{other} AS v ON " + " AND ".join(f"s.{name} = v.{name}" for name in keys)
        joins += "".join(
            f" JOIN ledger_fits{i} AS f{i} ON f{i}.{side} = s.{side}{i} AND f{i}.{other} = v.{other}{i}"
            for i in crossing
        )
        listed = ", ".join(f"s.{name}" for name in own)
        fitting.append(f"SELECT {listed}, s.f, sum(v.n) AS d FROM ledger_single AS s {joins} GROUP BY {listed}, s.f")
    on = " AND ".join(f"p.{name} = q.{name}" for name in own)
    return pair.numbers(
        f"SELECT count(*), sum(p.f) FROM ({fitting[0]}) AS p JOIN ({fitting[1]}) AS q ON {on} WHERE p.d = 1 AND q.d = 1"
    )


FAR = 2**62


@dataclass(frozen=True)
class Joint:
    """What two releases show together of the people in either of them.

    The `small` people are in a joint class below k that is smaller than their class in one of the files. For each
    column, `exact` counts people with a value that follows from the two labels and not from one alone. For each
    sensitive column, `alike` counts people in a joint class with too few values, and fewer than in each file alone. The
    `unique` people are unique in the two files together and not in one alone.

    Of the `rows` in both files, `linked` rows fit each other and no other row. This is a lower bound if `counted` is
    false. Among them, `linked_affected` rows belong to people who are small or exact. The columns that link are
    `linking`. Without any, rows cannot be linked. If `first_adds` is true, the first file shows what does not follow
    from the second.
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
    rows: int
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
    holder: str | None = None,
) -> Joint:
    """Compare two releases of a source. `known` are the rows of the first release if there are new rows now.

    `holder` is the SQL of the person or household that a row belongs to, if rows are not people.
    """
    pair = SideBySide(engine, source, first.within(source.names), second.within(source.names), holder)
    pair.fill(known, key)
    people, both, single, smallest, small = _classes(pair, k)
    linked, linked_affected, counted = links(pair)
    joint = Joint(
        people=people,
        both=both,
        single=single,
        smallest=smallest,
        small=small,
        exact=_exact_values(pair),
        alike=_alike(pair, l) if l > 1 else {},
        unique=_uniques(pair),
        affected=pair.number(f"SELECT {pair.people('f = 1')} FROM ledger_seen"),
        linked=linked,
        linked_affected=linked_affected,
        rows=both if pair.holder is None else pair.number("SELECT sum(n) FROM ledger_seen WHERE ia + ib = 2"),
        counted=counted,
        linking=linking(pair),
        first_adds=_columns_add(pair, "a", pair.first, pair.second) or _presence_adds(pair, "a", "b"),
        second_adds=_columns_add(pair, "b", pair.second, pair.first) or _presence_adds(pair, "b", "a"),
    )
    pair.drop()
    return joint


def _classes(pair: SideBySide, k: int) -> tuple[int, int, int, int, int]:
    """Count people, those in both files and in one only, the smallest joint class, and people in small ones."""
    keys = ["ia", "ib", *pair.listed("ab")]
    listed = ", ".join(keys)
    sized = _sized(pair, keys, {"n": keys, "na": ["ia", *pair.listed("a")], "nb": ["ib", *pair.listed("b")]})
    larger = "greatest(CASE WHEN ia = 1 THEN na ELSE 0 END, CASE WHEN ib = 1 THEN nb ELSE 0 END)"
    small = f"CASE WHEN n < {int(k)} AND n < {larger} THEN 1 ELSE 0 END AS small"
    pair.table("classes", f"SELECT DISTINCT {listed}, n, {small} FROM ({sized}) AS o")
    exact = " + ".join(["0", *pair.listed("e")])
    on = " AND ".join(f"p.{name} = z.{name}" for name in keys)
    flag = f"CASE WHEN z.small = 1 OR (p.ia = 1 AND p.ib = 1 AND {exact} > 0) THEN 1 ELSE 0 END AS f"
    pair.table("seen", f"SELECT p.*, z.small, {flag} FROM ledger_present AS p JOIN ledger_classes AS z ON {on}")
    counts = [pair.people(), pair.people("ia + ib = 2"), pair.people("ia + ib = 1"), pair.people("small = 1")]
    people, both, single, affected = pair.numbers(f"SELECT {', '.join(counts)} FROM ledger_seen")
    return people, both, single, pair.number("SELECT min(n) FROM ledger_classes"), affected


def _sized(pair: SideBySide, keys: Sequence[str], sizes: Mapping[str, Sequence[str]]) -> str:
    """Return SQL for groups of rows that are equal in some columns, with the people of larger groups, by name.

    People with several rows are listed one by one: the ranks from both ends give the number of different people,
    because a window function cannot count distinct values.
    """
    listed = ", ".join(keys)
    if pair.holder is None:
        grouped = f"SELECT {listed}, CAST(sum(n) AS BIGINT) AS m FROM ledger_present GROUP BY {listed}"
        windows = [f"sum(m) OVER (PARTITION BY {', '.join(own)}) AS {name}" for name, own in sizes.items()]
    else:
        grouped = f"SELECT DISTINCT {listed}, u FROM ledger_present"
        ranks = {name: f"dense_rank() OVER (PARTITION BY {', '.join(own)} ORDER BY u" for name, own in sizes.items()}
        windows = [f"{rank}) + {rank} DESC) - 1 AS {name}" for name, rank in ranks.items()]
    return f"SELECT *, {', '.join(windows)} FROM ({grouped}) AS g"


def _exact_values(pair: SideBySide) -> dict[str, int]:
    """Return for each column the number of people whose value follows from the two labels together."""
    where = {i: f"e{i} = 1 AND ia + ib = 2" for i, overlapped in pair.overlaps.items() if overlapped.pair_exact.any()}
    counts = {i: pair.number(f"SELECT {pair.people(known)} FROM ledger_present") for i, known in where.items()}
    return {pair.names[i]: count for i, count in counts.items() if count}


def _alike(pair: SideBySide, l: int) -> dict[str, int]:
    """Return for each sensitive column the people in joint classes with fewer than l values, fewer than in one file."""
    counted = {}
    for j, name in enumerate(pair.sensitive):
        shown = [name in d.columns and d.columns[name].kind == "kept" for d in (pair.first, pair.second)]
        sides = [side for side, visible in zip("ab", shown, strict=True) if visible]
        if not sides:
            continue
        keys = ["ia", "ib", *pair.listed("ab")]
        joins, alone = [], []
        for side in sides:
            own = [f"i{side}", *pair.listed(side)]
            on = " AND ".join(f"t.{name} = d{side}.{name}" for name in own)
            joins.append(f"JOIN ({_different(pair, own, j)}) AS d{side} ON {on}")
            alone.append(f"CASE WHEN t.i{side} = 1 THEN d{side}.d ELSE {FAR} END")
        before = f"least({', '.join(alone)})" if len(alone) > 1 else alone[0]
        where = f"t.d < {int(l)} AND t.d < {before} AND {before} < {FAR}"
        classes = f"FROM ({_different(pair, keys, j)}) AS t {' '.join(joins)} WHERE {where}"
        if pair.holder is None:
            counted[name] = pair.number(f"SELECT sum(t.n) {classes}")
            continue
        pair.table("few", f"SELECT {', '.join(f't.{name}' for name in keys)} {classes}")
        on = " AND ".join(f"p.{name} = g.{name}" for name in keys)
        counted[name] = pair.number(f"SELECT count(DISTINCT p.u) FROM ledger_present AS p JOIN ledger_few AS g ON {on}")
    return {name: count for name, count in counted.items() if count}


def _different(pair: SideBySide, keys: Sequence[str], j: int) -> str:
    """Return SQL for the number of different values of a sensitive column in groups of rows.

    People with several rows count at most one value each, and one value if all people of a group have it.
    """
    listed = ", ".join(keys)
    if pair.holder is None:
        return f"SELECT {listed}, sum(n) AS n, count(DISTINCT s{j}) AS d FROM ledger_present GROUP BY {listed}"
    held = f"SELECT {listed}, s{j}, count(DISTINCT u) AS h FROM ledger_present GROUP BY {listed}, s{j}"
    sized = _sized(pair, keys, {"n": keys})
    people = f"SELECT DISTINCT {listed}, n FROM ({sized}) AS w"
    distinct = "CASE WHEN max(v.h) = max(z.n) THEN 1 ELSE least(count(*), max(z.n)) END AS d"
    grouped = ", ".join(f"v.{name}" for name in keys)
    on = " AND ".join(f"v.{name} = z.{name}" for name in keys)
    return f"SELECT {grouped}, {distinct} FROM ({held}) AS v JOIN ({people}) AS z ON {on} GROUP BY {grouped}"


def _uniques(pair: SideBySide) -> int:
    """Return the people who are unique in the two files together, but not in one of them."""
    keys = ["ia", "ib", *pair.listed("ab"), "x", "xa", "xb"]
    own = {f"n{side}": [f"i{side}", *pair.listed(side), "x", f"x{side}"] for side in "ab"}
    where = "n = 1 AND NOT (ia = 1 AND na = 1) AND NOT (ib = 1 AND nb = 1)"
    number = "sum(m)" if pair.holder is None else "count(DISTINCT u)"
    return pair.number(f"SELECT {number} FROM ({_sized(pair, keys, {'n': keys, **own})}) AS o WHERE {where}")


def _columns_add(pair: SideBySide, side: str, one: Description, two: Description) -> bool:
    if one.random or (one.swaps and sorted(one.swaps) != sorted(two.swaps)):
        return True
    return any(_column_adds(pair, side, name, column, two.columns.get(name)) for name, column in one.columns.items())


def _column_adds(pair: SideBySide, side: str, name: str, column: ShownColumn, other: ShownColumn | None) -> bool:
    if name not in pair.names:
        return other is None or other.kind != column.kind
    i = pair.names.index(name)
    if i not in pair.overlaps:  # only one of the two shows it for certain
        return pair.number(f"SELECT count(DISTINCT {side}{i}) FROM ledger_shown") > 1
    return not (pair.overlaps[i].first_follows if side == "a" else pair.overlaps[i].second_follows)


def _presence_adds(pair: SideBySide, side: str, other: str) -> bool:
    """Return whether a person is in this file only, or a class of the other file is only partly in this one."""
    keys = ", ".join([f"i{other}", *pair.listed(other)])
    spans = f"SELECT min(i{side}) AS low, max(i{side}) AS high FROM ledger_classes WHERE i{other} = 1 GROUP BY {keys}"
    single = pair.number(f"SELECT count(*) FROM ledger_classes WHERE i{side} = 1 AND i{other} = 0")
    return single > 0 or pair.number(f"SELECT count(*) FROM ({spans}) AS g WHERE low <> high") > 0


MANY_CELLS = 4_000_000  # the largest size of the matrix of all reports together: further reports are left out


@dataclass(frozen=True)
class Guess:
    """How well a column can be guessed: the share of people guessed correctly, and the largest certainty."""

    right: float
    surest: float


@dataclass(frozen=True)
class Reports:
    """Several files that each give information on one disguised column.

    `files` of them were combined. `alone` is the guess from the new file, or None if it does not show the column.
    """

    column: str
    files: int
    left_out: int
    together: Guess
    alone: Guess | None
    before: Guess


def add_up(
    engine: Engine, source: Source, column: str, new: Description, earlier: Sequence[Description]
) -> Reports | None:
    """Return what all files that show a column reveal together for a person whose rows are linked.

    Each file is a channel: a disguise with its probabilities, or a label or the value itself with certainty. Reports
    are independent given the true value, so their probabilities multiply. The result is None if the files have no value
    in common.
    """
    showing = [d for d in (new, *earlier) if column in d.columns and d.columns[column].kind != "exchanged"]
    names = dict.fromkeys([column, *(n for d in showing for c in d.channels if column in c.columns for n in c.columns)])
    listed = ", ".join(f"{cell_sql(source, name)} AS k{i}" for i, name in enumerate(names))
    keys = ", ".join(f"k{i}" for i in range(len(names)))
    rows = engine.rows(f"SELECT {keys}, count(*) FROM (SELECT {listed} FROM raw) AS t GROUP BY {keys} ORDER BY {keys}")
    truths = [dict(zip(names, map(str, row[:-1]), strict=True)) for row in rows]
    matrices = [_matrix(d, column, truths) for d in showing]
    known = np.logical_and.reduce([matrix.sum(axis=0) > 0 for matrix in matrices])
    if known.sum() < 1:
        return None
    prior = np.array([int(row[-1]) for row in rows], dtype=np.float64)[known]
    prior /= prior.sum()
    values = [truth[column] for truth, usable in zip(truths, known, strict=True) if usable]
    matrices = [matrix[:, known] for matrix in matrices]

    def guess(matrix: Floats) -> Guess:
        privacy, surest = attribute_figures(matrix, prior, values)
        return Guess(1.0 - privacy, surest)

    combined, files = matrices[0], 1
    for matrix in matrices[1:]:
        if combined.shape[0] * matrix.shape[0] * len(prior) > MANY_CELLS:
            break
        combined = (combined[:, None, :] * matrix[None, :, :]).reshape(-1, len(prior))
        combined, files = combined[combined.max(axis=1) > 0], files + 1
    shown = column in new.columns
    before = max((guess(matrix) for matrix in matrices[1 if shown else 0 :]), key=lambda g: g.right)
    return Reports(column, files, len(matrices) - files, guess(combined), guess(matrices[0]) if shown else None, before)


def _matrix(description: Description, column: str, truths: Sequence[Mapping[str, str]]) -> Floats:
    """Return P(what the file shows | truth), one column per truth, zeros if the file does not have the truth."""
    channel = next((c for c in description.channels if column in c.columns), None)
    if channel is not None:
        return _reported(channel, truths)
    codes = description.columns[column].codes([truth[column] for truth in truths])
    matrix = np.zeros((int(codes.max(initial=0)) + 1, len(truths)))
    known = codes >= 0
    matrix[codes[known], np.flatnonzero(known)] = 1.0
    return matrix


def _reported(channel: Channel, truths: Sequence[Mapping[str, str]]) -> Floats:
    numbers = {cell: number for number, cell in enumerate(channel.cells)}
    matrix = np.zeros((len(channel.outputs), len(truths)))
    for number, truth in enumerate(truths):
        cell = tuple(truth[name] for name in channel.columns)
        if cell in numbers:
            matrix[:, number] = channel.matrix[:, numbers[cell]]
    return matrix


@dataclass(frozen=True)
class Places:
    """Exchanged cells in two files: the pairs of each, the pairs in both, the rows that show different cells.

    `linked` of the rows that differ are unique in the columns that both files keep.
    """

    pairs: tuple[int, int]
    same: int
    differing: int
    linked: int
    columns: tuple[str, ...]


def compare_places(engine: Engine, source: Source, key: str, first: Description, second: Description) -> Places | None:
    """Compare two files of which one has exchanged cells. None if no such column is in both.

    Rows are recognized by their hashes. Rows that are equal in the source are counted by their number.
    """
    common = [name for name in first.columns if name in second.columns and name in source.names]
    both = {name: (first.columns[name], second.columns[name]) for name in common}
    kinds = {name: {column.kind for column in pair} for name, pair in both.items()}
    shown = {n: pair for n, pair in both.items() if "exchanged" in kinds[n] and "disguised" not in kinds[n]}
    if not shown:
        return None
    kept = [name for name in source.names if kinds.get(name) == {"kept"}]
    rows = _rows(engine, source, key, [h for d in (first, second) for pair in d.swaps for h in pair], list(shown), kept)
    partners = [_partners(d.swaps) for d in (first, second)]
    differing = linked = 0
    for own in {*partners[0], *partners[1]} & set(rows):
        count, single, cells = rows[own]
        sides: list[Counter[tuple[object, ...]]] = []
        for side in (0, 1):
            others = [rows[other][2] for other in partners[side].get(own, ()) if other in rows]
            visible = [*others[:count], *[cells] * (count - len(others[:count]))]
            sides.append(Counter(_seen(shown, side, own_cells, cells) for own_cells in visible))
        apart = count - (sides[0] & sides[1]).total()
        differing += apart
        linked += apart if single else 0
    same = Counter(tuple(sorted(pair)) for pair in first.swaps) & Counter(tuple(sorted(p)) for p in second.swaps)
    return Places((len(first.swaps), len(second.swaps)), same.total(), differing, linked, tuple(shown))


def _partners(swaps: Sequence[tuple[str, str]]) -> Mapping[str, list[str]]:
    partners = defaultdict(list)
    for one, two in swaps:
        partners[one].append(two)
        partners[two].append(one)
    return partners


def _seen(
    shown: Mapping[str, tuple[ShownColumn, ShownColumn]],
    side: int,
    exchanged: Mapping[str, str],
    own: Mapping[str, str],
) -> tuple[object, ...]:
    """Return what one file shows of a row, as far as the other can show it: a label if one of the two has labels."""
    cells = []
    for name, pair in shown.items():
        value = exchanged[name] if pair[side].kind == "exchanged" else own[name]
        cells.append(next((int(column.codes([value])[0]) for column in pair if column.kind == "recoded"), value))
    return tuple(cells)


def _rows(
    engine: Engine, source: Source, key: str, hashes: Sequence[str], columns: Sequence[str], kept: Sequence[str]
) -> dict[str, tuple[int, bool, dict[str, str]]]:
    """Return rows by their hashes: their number, whether they are unique in the kept columns, and their cells."""
    if not hashes:
        return {}
    engine.upload("ledger_swapped", {"h": sorted(set(hashes))})
    cells = [f"{cell_sql(source, name)} AS k{i}" for i, name in enumerate(columns)]
    alike = engine.hashed([cell_sql(source, name) for name in kept]) if kept else "0"
    hashed = with_hashes(source, sorted(source.names), key)
    read = f"SELECT {HASH} AS h, {alike} AS x, {', '.join(cells)} FROM {hashed} AS r"
    keys = ", ".join(["h", "x", *(f"k{i}" for i in range(len(columns)))])
    counted = f"SELECT x, count(*) AS m FROM (SELECT {alike} AS x FROM raw) AS t GROUP BY x"
    engine.run(f"CREATE OR REPLACE TEMP TABLE ledger_alike AS {counted}")
    read = f"SELECT {keys}, count(*) AS n FROM ({read}) AS t GROUP BY {keys}"
    joined = "JOIN ledger_swapped AS s ON t.h = s.h JOIN ledger_alike AS a ON t.x = a.x"
    return {
        str(row[0]): (int(row[-2]), int(row[-1]) == 1, dict(zip(columns, map(str, row[2:-2]), strict=True)))
        for row in engine.rows(f"SELECT t.*, a.m FROM ({read}) AS t {joined}")
    }


def hashed_pairs(engine: Engine, source: Source, key: str, description: Description) -> tuple[tuple[str, str], ...]:
    """Return the swaps of a description by the hashes of their rows, from row numbers (counted from 0)."""
    if description.pairs is None:
        return description.swaps
    givers, takers = description.pairs
    engine.upload("ledger_numbers", {"r": np.concatenate([givers, takers]) + 1})
    numbered = with_hashes(source, sorted(source.names), key, "raw_numbered")
    hashed = f"SELECT r, {HASH} AS h FROM {numbered} AS q"
    joined = f"SELECT n.r, t.h FROM ({hashed}) AS t JOIN ledger_numbers AS n ON t.r = n.r"
    hashes = {int(row[0]) - 1: str(row[1]) for row in engine.rows(joined)}
    return tuple(sorted((hashes[int(a)], hashes[int(b)]) for a, b in zip(givers, takers, strict=True)))
