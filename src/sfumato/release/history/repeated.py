"""Releases with random rows, compared with others of the same people: combined reports, and swaps that are visible."""

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
from sfumato.release.history.people import HASH, with_hashes

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
