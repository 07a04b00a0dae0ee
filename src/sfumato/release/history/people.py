"""Whether two tables are about the same people: keyed hashes of their rows, all of them or the smallest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sfumato.runtime.arrays import Counts64
from sfumato.sources.cells import cleaned
from sfumato.sources.engines.engine import Engine, quoted
from sfumato.sources.source import Source

KEPT = 2**18  # hashes that are kept; of a table with more different rows, the smallest of them are a sample
LARGEST = 2**64 - 1
ROOM = 1.1  # how many more hashes than are kept are asked for
SAME = 0.5  # of the rows of the smaller table must be in the other one
NEARLY_ALL = 0.99  # where most rows occur more than once, so that equal rows are no sign of equal people
TELLING = 0.9  # of the people must differ in the columns that tell people apart


@dataclass(frozen=True, eq=False)
class HashedRows:
    """The rows of a table in some of its columns, as keyed hashes in rising order, each with the number of its rows.

    All hashes up to `limit` are here. `rows` counts all rows, `distinct` the different ones, which is an estimate where
    hashes are left out.
    """

    columns: tuple[str, ...]
    rows: int
    distinct: int
    hashes: npt.NDArray[np.uint64]
    counts: Counts64
    limit: int = LARGEST

    @property
    def whole(self) -> bool:
        """Whether every row's hash is here, so that new rows are known one by one."""
        return self.limit == LARGEST

    def shared(self, other: HashedRows) -> float:
        """The share of the smaller table's rows that are in the other one; from samples where rows were left out."""
        limit = min(self.limit, other.limit)
        sides = [(t.hashes[t.hashes <= limit], t.counts[t.hashes <= limit]) for t in (self, other)]
        rows = min(int(counts.sum()) for _, counts in sides)
        _, one, two = np.intersect1d(sides[0][0], sides[1][0], assume_unique=True, return_indices=True)
        return float(np.minimum(sides[0][1][one], sides[1][1][two]).sum() / rows) if rows else 0.0

    def same_people(self, other: HashedRows) -> bool:
        """Whether at least half of the rows are shared; nearly all where most rows occur more than once."""
        apart = all(2 * table.distinct >= table.rows for table in (self, other))
        return self.shared(other) >= (SAME if apart else NEARLY_ALL)


def hash_sql(source: Source, columns: Sequence[str], key: str) -> str:
    """SQL for the keyed hash of a row: 16 hexadecimal digits of SHA-256, the same on every engine."""
    cells = (f"({cleaned(source, source.column(name))})" for name in columns)
    parts = (f"coalesce(CAST(length({cell}) AS STRING) || ':' || {cell}, '-')" for cell in cells)
    return f"substr(digest({' || '.join((quoted(key), *parts))}), 1, 16)"


def hashed_rows(engine: Engine, source: Source, columns: Sequence[str], key: str) -> HashedRows:
    """The hashed rows of a source that is attached as `raw`: all, or the smallest hashes.

    Hashes are spread evenly, so a share of their range holds that share of the different rows. The range is chosen by
    the number of rows, and again if there turn out to be far fewer different ones: the engine never holds them all.
    """
    names = tuple(sorted(columns))
    hashed = f"SELECT {hash_sql(source, names, key)} AS h FROM raw"
    rows = int(engine.rows("SELECT count(*) FROM raw")[0][0])
    share = _share(rows)
    while True:
        limit = LARGEST if share >= 1 else int(share * LARGEST)
        below = f"SELECT h, count(*) AS n FROM ({hashed}) AS t WHERE h <= '{limit:016x}' GROUP BY h"
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
    """The share of the hashes' range in which a table of so many different rows has as many as are kept."""
    return 1.0 if distinct <= KEPT else ROOM * KEPT / distinct


def hash_text(hashes: npt.NDArray[np.uint64]) -> list[str]:
    """Hashes as the engine writes them.

    >>> hash_text(np.array([255], dtype=np.uint64))
    ['00000000000000ff']
    """
    return [f"{int(number):016x}" for number in hashes]


def own_hashes(engine: Engine, source: Source, person: Sequence[str], key: str) -> list[HashedRows]:
    """What a ledger keeps of the rows of a source: over all columns, and over those that tell people apart if they do.

    The second recognizes the same people in a table with other columns.
    """
    kept = [hashed_rows(engine, source, source.names, key)]
    if person and set(person) != set(source.names):
        people = hashed_rows(engine, source, person, key)
        if people.distinct >= TELLING * people.rows:
            kept.append(people)
    return kept
