"""Small sets of columns that single most records out, looked for over all columns of a table.

Every column and every pair is looked at, and of three columns those that extend the best pairs. Where that would be
too much work the sets are looked for among some of the rows; the figures that are told are always of all rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from sfumato.auditing.whole import uniqueness_of
from sfumato.runtime.arrays import Counts64
from sfumato.sources.engines.engine import Engine
from sfumato.sources.source import Source

WORK = 300_000_000  # rows times pairs that are looked at
LEAST_ROWS, MOST_ROWS = 2_000, 1_000_000
BEAM = 12  # pairs that are extended to three columns
SHOWN = 3  # sets of each size
ALONE = 0.5  # a column that singles out so many by itself is left out of larger sets, where it would tell nothing

Sets = dict[tuple[int, ...], int]  # places of columns, and how many records they single out


@dataclass(frozen=True)
class Combination:
    """Columns, and the share of records that nobody shares their values with."""

    columns: tuple[str, ...]
    unique: float


@dataclass(frozen=True)
class SinglingOut:
    """The sets that single most records out, by size; and among how many rows they were looked for."""

    combinations: tuple[Combination, ...]
    rows_searched: int


def sets_that_single_out(engine: Engine, source: Source, names: Sequence[str], rows: int) -> SinglingOut:
    """Look for sets of up to three columns in the table `profiled`, which has a source's columns as clean text."""
    if not names or rows < 2:
        return SinglingOut((), rows)
    pairs = max(len(names) * (len(names) - 1) // 2, 1)
    wanted = min(max(WORK // pairs, LEAST_ROWS), MOST_ROWS)
    step = -(-rows // wanted)
    codes = _codes(engine, source, names, step)
    chosen = _chosen(codes)
    sets = []
    for places in chosen:
        columns = tuple(names[column] for column in places)
        cells = [source.column(name).sql for name in columns]
        share = uniqueness_of(engine, cells, "profiled").unique_share if step > 1 else _share(codes, places)
        sets.append(Combination(columns, share))
    sets.sort(key=lambda one: (len(one.columns), -one.unique, one.columns))
    return SinglingOut(tuple(sets), codes.shape[1])


def best_sets(codes: Counts64) -> list[tuple[tuple[int, ...], float]]:
    """The sets of up to three columns that single most records out, with the share they do; `codes` by column and row.

    Where there are very many rows, every so-manieth is looked at.

    >>> best_sets(np.array([[0, 0, 1, 1], [0, 1, 0, 1]]))[-1]
    ((0, 1), 1.0)
    """
    if not codes.size:
        return []
    pairs = max(len(codes) * (len(codes) - 1) // 2, 1)
    step = -(-codes.shape[1] // min(max(WORK // pairs, LEAST_ROWS), MOST_ROWS))
    some = codes[:, ::step]
    return [(places, _share(some, places)) for places in _chosen(some)]


def _codes(engine: Engine, source: Source, names: Sequence[str], step: int) -> Counts64:
    """Each column's values as numbers, for every row or every `step`-th."""
    cells = (f"coalesce({source.column(name).sql}, '')" for name in names)
    hashed = ", ".join(f"{engine.hashed([cell])} AS h{position}" for position, cell in enumerate(cells))
    rows = engine.arrays(f"SELECT {hashed} FROM profiled WHERE r % {step} = 0")
    return np.stack([np.unique(np.asarray(rows[f"h{i}"]), return_inverse=True)[1] for i in range(len(names))])


def _chosen(codes: Counts64) -> list[tuple[int, ...]]:
    """The best sets of one, two and three columns, as places."""
    alone: Sets = {(column,): _unique(codes[column]) for column in range(len(codes))}
    rest = [column for column in range(len(codes)) if alone[(column,)] < ALONE * codes.shape[1]]
    widths = [int(codes[column].max()) + 1 for column in range(len(codes))]
    two: Sets = {(a, b): _unique(codes[a] * widths[b] + codes[b]) for a, b in combinations(rest, 2)}
    three: Sets = {}
    for pair in _best(two, BEAM):
        joined = np.unique(codes[pair[0]] * widths[pair[1]] + codes[pair[1]], return_inverse=True)[1]
        for column in rest:
            triple = tuple(sorted({*pair, column}))
            if len(triple) == 3 and triple not in three:
                three[triple] = _unique(joined * widths[column] + codes[column])
    return [*_best(alone, SHOWN), *_best(two, SHOWN), *_best(three, SHOWN)]


def _best(unique: Sets, limit: int) -> list[tuple[int, ...]]:
    return sorted(unique, key=lambda places: (-unique[places], places))[:limit]


def _share(codes: Counts64, places: Sequence[int]) -> float:
    key = np.zeros(codes.shape[1], dtype=np.int64)
    for column in places:
        key = np.unique(key * (int(codes[column].max()) + 1) + codes[column], return_inverse=True)[1]
    return _unique(key) / int(codes.shape[1])


def _unique(key: Counts64) -> int:
    """How many numbers occur once."""
    top = int(key.max()) + 1
    if top <= 4 * len(key):
        return int(np.count_nonzero(np.bincount(key, minlength=top) == 1))
    ordered = np.sort(key)
    new = np.concatenate([[True], ordered[1:] != ordered[:-1], [True]])
    return int(np.count_nonzero(new[1:] & new[:-1]))
