"""Recognition of two tables about the same people by keyed hashes of their rows: all rows, or the smallest hashes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt

from sfumato.base.arrays import Counts64
from sfumato.data.cells import cleaned
from sfumato.data.engine import Engine
from sfumato.data.source import Source, quoted

KEPT = 2**18  # the number of hashes kept: in a larger table, the smallest hashes are a sample
LARGEST = 2**64 - 1
MORE_HASHES = 1.1  # the factor by which more hashes are read than are kept
SAME = 0.5  # of the rows of the smaller table must be in the other one
NEARLY_ALL = 0.99  # where most rows occur more than once, so that equal rows are no sign of equal people
PARTS = 3  # all columns but every third one are hashed too
SKETCHED = 256  # values of a column that are kept, as hashes
HASH = "ledger_hash"
IDENTIFYING = 0.9  # of the people must differ in the columns that identify people


@dataclass(frozen=True, eq=False)
class HashedRows:
    """The keyed hashes of the rows of a table in some columns, in rising order, with the number of rows of each.

    All hashes up to `limit` are included. `rows` counts all rows, and `distinct` the different ones, which is an
    estimate if hashes are left out.
    """

    columns: tuple[str, ...]
    rows: int
    distinct: int
    hashes: npt.NDArray[np.uint64]
    counts: Counts64
    limit: int = LARGEST

    @property
    def whole(self) -> bool:
        """Whether the hash of every row is included, so that new rows can be identified."""
        return self.limit == LARGEST

    def shared(self, other: HashedRows) -> float:
        """Return the share of the smaller table's rows in the other table, from samples if rows were left out."""
        limit = min(self.limit, other.limit)
        sides = [(t.hashes[t.hashes <= limit], t.counts[t.hashes <= limit]) for t in (self, other)]
        rows = min(int(counts.sum()) for _, counts in sides)
        _, one, two = np.intersect1d(sides[0][0], sides[1][0], assume_unique=True, return_indices=True)
        return float(np.minimum(sides[0][1][one], sides[1][1][two]).sum() / rows) if rows else 0.0

    def same_people(self, other: HashedRows) -> bool:
        """Return whether at least half of the rows are shared, nearly all, if most rows occur more than once."""
        apart = all(2 * table.distinct >= table.rows for table in (self, other))
        return self.shared(other) >= (SAME if apart else NEARLY_ALL)


def recognized_rows(source: Source, names: Sequence[str], rows: str = "raw") -> tuple[str, list[str]]:
    """Return SQL for rows with cells in one spelling, and the names of these cells.

    Numbers count by their value, so 25, 25.0 and 025 are equal. Dates are written as 2026-11-18 if their order is
    certain: year first, or with points between. Other texts ignore case and blanks. A missing cell is NULL. Each step
    is a query of its own, so that no engine plans the same expression several times.
    """
    texts = [f"ledger_text_{place}" for place in range(len(names))]
    cells = [f"ledger_cell_{place}" for place in range(len(names))]
    read = ", ".join(f"{_text(source, name)} AS {text}" for name, text in zip(names, texts, strict=True))
    made = ", ".join(f"{_recognized(source, text)} AS {cell}" for text, cell in zip(texts, cells, strict=True))
    return f"(SELECT *, {made} FROM (SELECT *, {read} FROM {rows}) AS ledger_texts)", cells


def _text(source: Source, name: str) -> str:
    text = f"lower(trimmed({cleaned(source, source.column(name))}))"
    for old, new in ((" ", "\u0001\u0002"), ("\u0002\u0001", ""), ("\u0001\u0002", " ")):  # blanks become one
        text = f"replace({text}, {quoted(old)}, {quoted(new)})"
    return text


def _recognized(source: Source, text: str) -> str:
    number = f"replace({text}, ',', '.')" if source.decimal == "," else text
    midnight = f"CASE WHEN {text} LIKE '____-__-__ 00:00:00%' THEN substr({text}, 1, 10) "
    midnight += f"WHEN {text} LIKE '____/__/__' THEN replace({text}, '/', '-') WHEN {text} LIKE '__.__.____' THEN "
    midnight += f"substr({text}, 7, 4) || '-' || substr({text}, 4, 2) || '-' || substr({text}, 1, 2) "
    return f"coalesce(CAST(TRY_CAST({number} AS DECIMAL(38, 10)) AS STRING), {midnight} ELSE NULLIF({text}, '') END)"


def with_hashes(source: Source, columns: Sequence[str], key: str, rows: str = "raw") -> str:
    """Return SQL for rows with their keyed hash over some columns, as HASH: 16 hexadecimal digits of SHA-256.

    The hash uses cells in one spelling and no column names. It is the same on every engine.
    """
    recognized, cells = recognized_rows(source, columns, rows)
    parts = (f"coalesce(CAST(length({cell}) AS STRING) || ':' || {cell}, '-')" for cell in cells)
    # One call with many arguments: a chain of || is planned in a time that grows with the square of the columns.
    hashed = f"substr(digest(concat({', '.join((quoted(key), *parts))})), 1, 16)"
    return f"(SELECT *, {hashed} AS {HASH} FROM {recognized} AS ledger_cells)"


def hashed_rows(engine: Engine, source: Source, columns: Sequence[str], key: str) -> HashedRows:
    """Return the hashed rows of a source that is attached as `raw`: all, or the smallest hashes.

    Hashes are spread evenly, so a share of their range contains the same share of the different rows. The range is
    chosen by the number of rows, and a second time if far fewer rows are different. The engine never holds all hashes.
    """
    names = tuple(columns)
    hashed = f"SELECT {HASH} AS h FROM {with_hashes(source, names, key)} AS r"
    rows = int(engine.rows("SELECT count(*) FROM raw")[0][0])
    share = _share(rows)
    while True:
        limit = LARGEST if share >= 1 else int(share * LARGEST)
        some = f"WHERE h <= '{limit:016x}' " if share < 1 else ""
        below = f"SELECT h, count(*) AS n FROM ({hashed}) AS t {some}GROUP BY h"
        smallest = engine.arrays(f"SELECT h, n FROM ({below}) AS s ORDER BY h")
        distinct = round(len(smallest["h"]) / min(share, 1.0))
        if share >= 1 or _share(distinct) < 2 * share:
            break
        share = _share(distinct)
    hashes = np.array([int(text, 16) for text in smallest["h"][:KEPT]], dtype=np.uint64)
    if len(smallest["h"]) > KEPT:
        limit = int(hashes[-1])
    return HashedRows(names, rows, distinct, hashes, np.asarray(smallest["n"][:KEPT]).astype(np.int64), limit)


def _share(distinct: int) -> float:
    """Return the share of the range of hashes that contains the number of hashes to keep."""
    return 1.0 if distinct <= KEPT else MORE_HASHES * KEPT / distinct


def hash_text(hashes: npt.NDArray[np.uint64]) -> list[str]:
    """Return hashes as the engine writes them.

    >>> hash_text(np.array([255], dtype=np.uint64))
    ['00000000000000ff']
    """
    return [f"{int(number):016x}" for number in hashes]


def own_hashes(engine: Engine, source: Source, person: Sequence[str], key: str) -> list[HashedRows]:
    """Return the hashes that a ledger keeps of the rows of a source.

    There are hashes over all columns, over the columns that identify people if there are any, and three times over all
    columns but a third of them. The second kind recognizes the same people in a table with other columns, and the
    others in a table that lacks a column.
    """
    names = sorted(source.names)
    kept = [hashed_rows(engine, source, names, key)]
    if person and set(person) != set(names):
        people = hashed_rows(engine, source, sorted(person), key)
        if people.distinct >= IDENTIFYING * people.rows:
            kept.append(people)
    if len(names) >= PARTS:
        thirds = ([name for place, name in enumerate(names) if place % PARTS != part] for part in range(PARTS))
        kept += [hashed_rows(engine, source, third, key) for third in thirds]
    return kept


@dataclass(frozen=True)
class Sketch:
    """The values of a column as keyed hashes with their rows. Of many values the smallest hashes.

    `values` are hashes of the values in one spelling, `written` of the values as they are written.
    """

    values: Mapping[str, int]
    written: Mapping[str, int]


def sketches(engine: Engine, source: Source, key: str) -> dict[str, Sketch]:
    """Return a sketch of every column of a source that is attached as `raw`. One scan counts all columns."""
    rows, values = recognized_rows(source, source.names)
    written = [cleaned(source, source.column(name)) for name in source.names]
    sides = zip(*(_counted(engine, cells, rows, key) for cells in (values, written)), strict=True)
    return {name: Sketch(*pair) for name, pair in zip(source.names, sides, strict=True)}


def _counted(engine: Engine, cells: Sequence[str], rows: str, key: str) -> list[dict[str, int]]:
    """Return the smallest hashes of the values of each cell, with their rows."""
    names = [f"v{place}" for place in range(len(cells))]
    read = ", ".join(f"coalesce({cell}, '') AS {name}" for cell, name in zip(cells, names, strict=True))
    which = " ".join(f"WHEN grouping({name}) = 0 THEN {place}" for place, name in enumerate(names))
    grouped = (
        f"SELECT CASE {which} END AS g, coalesce({', '.join([*names, quoted('')])}) AS v, count(*) AS n "
        f"FROM (SELECT {read} FROM {rows} AS r) AS t GROUP BY GROUPING SETS ({', '.join(f'({n})' for n in names)})"
    )
    hashed = f"SELECT g, substr(digest({quoted(key)} || v), 1, 16) AS h, n FROM ({grouped}) AS s"
    ranked = f"SELECT g, h, n, row_number() OVER (PARTITION BY g ORDER BY h) AS place FROM ({hashed}) AS k"
    kept = engine.rows(f"SELECT g, h, n FROM ({ranked}) AS p WHERE place <= {SKETCHED} ORDER BY g, h")
    found: list[dict[str, int]] = [{} for _ in cells]
    for place, h, n in kept:
        found[int(place)][str(h)] = int(n)
    return found


def _alike(one: Mapping[str, int], two: Mapping[str, int]) -> tuple[float, float]:
    """Return the share of the smaller table's rows in both, and the similarity of the shares of values."""
    ends = [max(side) for side in (one, two) if len(side) >= SKETCHED]
    limit = min(ends) if ends else "g"  # behind every hexadecimal digit
    first, second = ({h: n for h, n in side.items() if h <= limit} for side in (one, two))
    totals = sum(first.values()), sum(second.values())
    if not min(totals):
        return 0.0, 0.0
    both = first.keys() & second.keys()
    inside = sum(min(first[h], second[h]) for h in both) / min(totals)
    return inside, sum(min(first[h] / totals[0], second[h] / totals[1]) for h in both)


def recognize(earlier: Mapping[str, Sketch], now: Mapping[str, Sketch]) -> tuple[Mapping[str, str], tuple[str, ...]]:
    """Match the columns of an earlier table with those of a table by their values, equal names first.

    Return the new name of each column, and the columns that are now written in another way.
    """
    pairs = []
    for (old, one), (new, two) in product(earlier.items(), now.items()):
        inside, near = _alike(one.values, two.values)
        if inside >= SAME:
            pairs.append((old == new, near, old, new))
    columns: dict[str, str] = {}
    taken: set[str] = set()
    for _, _, old, new in sorted(pairs, key=lambda pair: (-pair[0], -pair[1], pair[2], pair[3])):
        if old not in columns and new not in taken:
            columns[old] = new
            taken.add(new)
    rewritten = [old for old, new in columns.items() if _alike(earlier[old].written, now[new].written)[0] < SAME]
    return columns, tuple(rewritten)
