"""Candidates for dependences, found on some rows and counted later on all rows.

One column can reveal another by its values, or by its order where the values hardly repeat. Two columns with few values
can reveal a third by their combinations. A number can be a sum of one or two others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np
import numpy.typing as npt

from sfumato.base.arrays import Codes, Counts64
from sfumato.base.compiled import compiled
from sfumato.tables.dependence.count import (
    ERRORS,
    LEAST,
    RIGHT,
    ROWS,
    Candidate,
    Guess,
    Protected,
    fit,
    guess_by_order,
    guess_by_value,
    guess_on_line,
    joined,
    likely_lines,
    tolerances,
)
from sfumato.tables.dependence.rows import Hashes, Look, Looks

SLACK = 0.05  # a share on some rows may be lower than on all of them
SLACK_BY_VALUE = 0.10  # and lower still where the rows are those of some values
MANY = 100  # different numbers from which the order of a column says more than its values

Labels = Mapping[str, tuple[Hashes, Sequence[Codes]]]


@dataclass
class Search:
    """State of a search. `labels` are the sorted hashes of a generalized column's values with labels by step."""

    looks: Looks
    kept: Sequence[str]
    beside: Sequence[str]
    protected: Sequence[Protected]
    labels: Labels
    _known: dict[tuple[int, str], list[Codes]] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """All columns, in the order of their positions in the engine's tables."""
        return list(self.looks.sample.codes)

    def may_tell(self, name: str, protected: Protected) -> bool:
        """Return whether it is tested what one column alone reveals about another.

        Sensitive columns are not tested against each other, because no outsider knows either. Quasi-identifiers that
        are released unchanged are tested against generalized ones only, and generalized ones against none.
        """
        if name in self.kept:
            return self.may_help(name, protected)
        return name != protected.name and protected.status == "generalized" and name in self.beside

    def may_help(self, name: str, protected: Protected) -> bool:
        """Return whether a column may be one of two that reveal another."""
        secret = any(p.name == name and p.status == "sensitive" for p in self.protected)
        return name != protected.name and not (protected.status == "sensitive" and secret)

    def questions(self) -> Iterator[tuple[str, Protected]]:
        """Yield every column that may reveal another alone, and the other."""
        for protected in self.protected:
            for name in (*self.kept, *self.beside):
                if self.may_tell(name, protected):
                    yield name, protected

    def steps(self, look: Look, protected: Protected) -> list[Codes]:
        """Return the values of a protected column on some rows, then the labels by step; the last is released."""
        key = (id(look), protected.name)
        if key not in self._known:
            values = look.codes[protected.name]
            labels = [np.zeros(len(values), dtype=np.int32)]
            if protected.steps:
                hashes, columns = self.labels[protected.name]
                index = np.minimum(np.searchsorted(hashes, look.hashes[protected.name]), len(hashes) - 1)
                known = hashes[index] == look.hashes[protected.name]
                labels = [np.where(known, column[index], column.max() + 1)[values] for column in columns]
            self._known[key] = [values, *(label.astype(np.int32) for label in labels)]
        return self._known[key]

    def suggests(self, guess: Guess, look: Look) -> bool:
        """Return whether a guess on some rows is near enough to a dependence to be counted on all of them."""
        slack = 0.0 if self.looks.whole else SLACK if look is self.looks.sample else SLACK_BY_VALUE
        return guess.tells(slack)

    def ordered(self, name: str) -> bool:
        """Return whether a column is a number with so many values that neighbours in its order are looked at."""
        return self.looks.numeric(name) and len(self.looks.sample.hashes[name]) >= MANY

    def rank(self, name: str) -> int:
        """Return 0 for a kept column, 1 for a quasi-identifier that is released unchanged, and 2 for others."""
        return 0 if name in self.kept else 1 if name in self.beside else 2


def adds(share: float, alone: float) -> bool:
    """Return whether two columns remove at least half of the errors that the better of them makes alone."""
    return share > alone and share - alone >= ERRORS * (1 - alone)


PAIR_ROWS = 2_000  # rows on which every pair is tested; pairs near the threshold are tested on the sample
VALUES = 30  # values that a column of a pair may have


def pair_candidates(search: Search, explained: Collection[tuple[str, str]]) -> list[Candidate]:
    """Return pairs with at least one kept column, where neither column reveals the same alone (`explained`)."""
    sample = search.looks.sample
    few = [n for n in (*search.kept, *search.beside) if 2 <= len(sample.hashes[n]) <= VALUES]
    if len(few) < 2:
        return []
    rows = slice(0, PAIR_ROWS)  # they come in random order
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
    """Return pairs ordered by the frequency of their columns, so that a column of many pairs comes first."""
    often = Counter(name for candidate in candidates for name in candidate.kept)
    ordered = []
    for candidate in candidates:
        names = sorted(candidate.kept, key=lambda name: (name not in kept, -often[name]))
        ordered.append(replace(candidate, kept=tuple(names)))
    return sorted(ordered, key=lambda c: -max(often[name] for name in c.kept))


def _together(search: Search, names: tuple[str, str], protected: Protected) -> list[Candidate]:
    """Return a pair if it reveals on the sample what neither of the two columns reveals."""
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
    """Return for each pair of columns the rows on which `target` can be guessed from them, and the correct guesses.

    They are counted as in `guess_by_value`, but without rows that are alone in their label, so that no pair is lost.
    Rows with a negative target are left out.
    """
    # A table of a hundred columns has thousands of pairs. The buffers are made once and cleared cell by cell, because
    # clearing them for each pair would take longer than the counting.
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


def single_candidates(search: Search, identifying: Collection[str]) -> list[Candidate]:
    """Return the candidates for single columns, in the order in which they are counted on all rows.

    A column that is unique for most rows is only tested by its order.
    """
    candidates = []
    for name, protected in search.questions():
        ways = [False] * (name not in identifying) + [True] * search.ordered(name)
        steps = range(max(len(protected.steps), 1))  # the finest first
        likely = [Candidate((name,), protected, "tells", step, by_order) for step in steps for by_order in ways]
        if protected.status == "generalized" and name in search.kept and name not in identifying:
            ways = [False] + [True] * search.ordered(protected.name)
            likely += [Candidate((name,), protected, "follows", by_order=by_order) for by_order in ways]
        candidates += [candidate for candidate in likely if _suggested(search, candidate)]
        if protected.rare is not None:
            candidates.append(Candidate((name,), protected, "finds"))  # some rows may hold too few of them
    return candidates


def _suggested(search: Search, candidate: Candidate) -> bool:
    """Return whether some rows suggest that a column reveals another, or follows from it."""
    (name,), protected, follows = candidate.kept, candidate.protected, candidate.way == "follows"
    given = protected.name if follows else name
    look = search.looks.sample if candidate.by_order else search.looks.given(given)
    labels = search.steps(look, protected)
    rows = ~look.missing[protected.name]
    if follows:
        rows &= ~look.missing[name]
    target = look.codes[name] if follows else labels[candidate.step]
    if candidate.by_order:
        rows &= np.isfinite(look.numbers[given])
        guess = guess_by_order(look.numbers[given][rows], target[rows], labels[-1][rows])
    else:
        guess = guess_by_value(look.codes[given][rows], target[rows], labels[-1][rows])
    return search.suggests(guess, look)


FEW = 20  # different numbers that a column must have for a sum to be looked for
PRESENT = 0.5  # the share of a column's numbers beside which the others must be present


def sum_candidates(search: Search, explained: Collection[tuple[str, str]]) -> list[Candidate]:
    """Return sums of at least one kept column and another that is released unchanged or known to outsiders."""
    sample = search.looks.sample
    numeric = {n for n in sample.codes if search.looks.numeric(n) and len(sample.hashes[n]) >= 3}
    outside = [p.name for p in search.protected if p.status == "generalized"]
    pool = [n for n in dict.fromkeys((*search.kept, *search.beside, *outside)) if n in numeric]
    rng = np.random.default_rng(0)  # which rows are tried first; what they suggest is counted on all
    candidates = []
    for protected in search.protected:
        if protected.name in numeric and len(sample.hashes[protected.name]) >= FEW:
            names = [n for n in pool if search.may_help(n, protected) and (n, protected.name) not in explained]
            candidates += _lines(search, protected, names, rng)
    return candidates


def _lines(search: Search, protected: Protected, names: list[str], rng: np.random.Generator) -> list[Candidate]:
    kept = np.array([search.may_tell(n, protected) for n in names], dtype=np.bool_)
    if not kept.any():
        return []
    values, *columns = (search.looks.sample.numbers[n][:ROWS] for n in (protected.name, *names))
    candidates = []
    for places in likely_lines(columns, values, kept[:, None] | kept[None, :], rng):
        chosen = tuple(sorted((names[i] for i in places), key=search.rank))
        candidates.append(_fitted(search, protected, chosen, rng))
    return [candidate for candidate in candidates if candidate is not None]


def _fitted(search: Search, protected: Protected, names: tuple[str, ...], rng: np.random.Generator) -> Candidate | None:
    """Return the line through most rows, if it is near enough, and nearer than either of two columns comes alone."""
    sample = search.looks.sample
    columns = np.stack([sample.numbers[n][:ROWS] for n in (protected.name, *names)])
    present = np.isfinite(columns).all(axis=0)
    if present.sum() < max(PRESENT * np.isfinite(columns[0]).sum(), 2):
        return None
    y, *x = columns[:, present]
    label = search.steps(sample, protected)[-1][:ROWS][present]
    line = fit(names, protected.name, x, y, rng)
    exact, *loose = tolerances(y)
    for near in (exact, *loose) if protected.status != "withheld" else (exact,):
        guess = guess_on_line(line, x, y, label, near)
        if search.suggests(guess, sample):
            if len(names) == 1:
                return Candidate(names, protected, "computes", line=line, near=near, exact=near == exact)
            single = [fit((name,), protected.name, [column], y, rng) for name, column in zip(names, x, strict=True)]
            alone = max(guess_on_line(s, [c], y, label, near).share for s, c in zip(single, x, strict=True))
            if adds(guess.share, alone):
                return Candidate(names, protected, "computes", line=line, near=near, exact=near == exact, alone=alone)
    return None
