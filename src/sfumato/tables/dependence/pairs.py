"""Two columns that together tell a third: by counting, for columns with few values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import replace
from itertools import combinations

import numpy as np
import numpy.typing as npt

from sfumato.runtime.arrays import Codes, Counts64
from sfumato.runtime.compiled import compiled
from sfumato.tables.dependence.counts import ERRORS, LEAST, RIGHT, guess_by_value, joined
from sfumato.tables.dependence.search import SLACK_BY_VALUE, Search, adds
from sfumato.tables.dependence.types import Candidate, Protected

ROWS = 2_000  # rows that every pair is looked at on; what is near there is looked at on the whole sample
VALUES = 30  # values that a column of a pair may have


def pair_candidates(search: Search, explained: Collection[tuple[str, str]]) -> list[Candidate]:
    """Pairs with at least one kept column, where neither column tells the same alone (`explained`)."""
    sample = search.looks.sample
    few = [n for n in (*search.kept, *search.beside) if 2 <= len(sample.hashes[n]) <= VALUES]
    if len(few) < 2:
        return []
    rows = slice(0, ROWS)  # they come in random order
    codes = np.vstack([sample.codes[n][rows] for n in few])
    sizes = np.array([len(sample.hashes[n]) for n in few], dtype=np.int64)
    candidates = []
    for protected in search.protected:
        usable = [
            i for i, n in enumerate(few) if search.may_help(n, protected) and (n, protected.name) not in explained
        ]
        chosen = [(i, j) for i, j in combinations(usable, 2) if few[i] in search.kept or few[j] in search.kept]
        if not chosen or len(sample.hashes[protected.name]) < 2:
            continue
        firsts, seconds = (np.array(side, dtype=np.int32) for side in zip(*chosen, strict=True))
        columns = search.steps(sample, protected)
        values, target = np.unique(columns[0][rows], return_inverse=True)
        target[sample.missing[protected.name][rows]] = -1
        labels, label = np.unique(columns[-1][rows], return_inverse=True)
        given = target.astype(np.int32), len(values), label.astype(np.int32), len(labels)
        every = np.arange(len(few), dtype=np.int32)
        counted, hits = score_pairs(codes, sizes, every, every, *given)
        alone = hits / np.maximum(counted, 1)
        tried, right = score_pairs(codes, sizes, firsts, seconds, *given)
        likely = (tried >= LEAST) & (right >= (RIGHT - SLACK_BY_VALUE) * tried)
        share = right / np.maximum(tried, 1)
        better = np.maximum(alone[firsts], alone[seconds])
        likely &= share - better >= (ERRORS - 2 * SLACK_BY_VALUE) * (1 - better)
        named = [(few[firsts[index]], few[seconds[index]]) for index in np.flatnonzero(likely).tolist()]
        candidates += _most_frequent_first(
            [c for names in named for c in _together(search, names, protected)], search.kept
        )
    return candidates


def _most_frequent_first(candidates: list[Candidate], kept: Collection[str]) -> list[Candidate]:
    """Pairs in the order of how often their columns occur: of many pairs with one column, that column is named."""
    often = Counter(name for candidate in candidates for name in candidate.kept)
    ordered = []
    for candidate in candidates:
        names = sorted(candidate.kept, key=lambda name: (name not in kept, -often[name]))
        ordered.append(replace(candidate, kept=tuple(names)))
    return sorted(ordered, key=lambda c: -max(often[name] for name in c.kept))


def _together(search: Search, names: tuple[str, str], protected: Protected) -> list[Candidate]:
    """A pair, if on the whole sample it tells what neither of the two does."""
    sample = search.looks.sample
    columns = search.steps(sample, protected)
    rows = ~sample.missing[protected.name]
    one, two = (sample.codes[name][rows] for name in names)
    target, label = columns[0][rows], columns[-1][rows]
    guess = guess_by_value(joined(one, two), target, label)
    if not search.suggests(guess, sample):
        return []
    alone = max(guess_by_value(given, target, label).share for given in (one, two))
    return [Candidate(names, protected, "tells", alone=alone)] if adds(guess.share, alone) else []


@compiled
def score_pairs(
    codes: npt.NDArray[np.int32],
    sizes: Counts64,
    firsts: Codes,
    seconds: Codes,
    target: Codes,
    width: int,
    label: Codes,
    labels: int,
) -> tuple[Counts64, Counts64]:
    """For each pair of columns the rows on which `target` could be guessed from them and its label, and those right.

    As `guess_by_value` counts them, but without rows that are alone in their label, so that no pair is lost. Rows with
    a negative target are left out.
    """
    pairs, rows = len(firsts), len(target)
    tried, right = np.zeros(pairs, np.int64), np.zeros(pairs, np.int64)
    cell_of = np.full(sizes.max() * sizes.max() * labels, -1, np.int32)
    cells = np.zeros(rows, np.int32)
    counts = np.zeros(rows * width, np.int32)
    for pair in range(pairs):
        one, two = codes[firsts[pair]], codes[seconds[pair]]
        size = sizes[seconds[pair]]
        first, second, total = np.zeros(rows, np.int32), np.zeros(rows, np.int32), np.zeros(rows, np.int32)
        known = 0
        for row in range(rows):
            if target[row] >= 0:
                key = (one[row] * size + two[row]) * labels + label[row]
                if cell_of[key] < 0:
                    cell_of[key] = known
                    known += 1
                cells[row] = cell_of[key]
                counts[cells[row] * width + target[row]] += 1
        for row in range(rows):
            if target[row] >= 0:
                index = cells[row] * width + target[row]
                count, cell = counts[index], cells[row]
                counts[index] = 0
                total[cell] += count
                if count > first[cell]:
                    first[cell], second[cell] = count, first[cell]
                elif count > second[cell]:
                    second[cell] = count
                cell_of[(one[row] * size + two[row]) * labels + label[row]] = -1
        for cell in range(known):
            if total[cell] >= 2:
                tried[pair] += total[cell]
                if first[cell] > second[cell] + 1:
                    right[pair] += first[cell]
    return tried, right
