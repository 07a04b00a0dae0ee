"""Numbers that follow from one or two others by a sum: which lines are worth counting on all rows."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from sfumato.runtime.arrays import Codes, Floats
from sfumato.tables.dependence.lines import ROWS, fit, guess_on_line, likely_lines, tolerances
from sfumato.tables.dependence.search import Search, adds
from sfumato.tables.dependence.types import Candidate, Protected

FEW = 20  # different numbers that a column must have for a sum to be looked for
PRESENT = 0.5  # the share of a column's numbers beside which the others must be present


def sum_candidates(search: Search, explained: Collection[tuple[str, str]]) -> list[Candidate]:
    """Sums of at least one kept column, and of one more that is released unchanged or that outsiders may know."""
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
    sample = search.looks.sample
    rows = slice(0, ROWS)
    values = sample.numbers[protected.name][rows]
    columns = {n: sample.numbers[n][rows] for n in names}
    label = search.steps(sample, protected)[-1][rows]
    candidates = []
    for places in likely_lines(list(columns.values()), values, kept[:, None] | kept[None, :], rng):
        chosen = tuple(names[i] for i in places)
        if len(chosen) == 2:
            chosen = search.kept_first(*chosen)
        candidate = _fitted(search, protected, chosen, [columns[n] for n in chosen], values, label, rng)
        if candidate is not None:
            candidates.append(candidate)
    return candidates


def _fitted(
    search: Search,
    protected: Protected,
    names: tuple[str, ...],
    columns: list[Floats],
    values: Floats,
    label: Codes,
    rng: np.random.Generator,
) -> Candidate | None:
    """The line through most rows, if it is near enough, and nearer than either of two columns comes alone."""
    present = np.isfinite(values) & np.isfinite(columns).all(axis=0)
    if present.sum() < max(PRESENT * np.isfinite(values).sum(), 2):
        return None
    y, x = values[present], [column[present] for column in columns]
    line = fit(names, protected.name, x, y, rng)
    exact, *loose = tolerances(y)
    for near in (exact, *loose) if protected.status != "withheld" else (exact,):
        guess = guess_on_line(line, x, y, label[present], near)
        if search.suggests(guess, search.looks.sample):
            if len(names) == 1:
                return Candidate(names, protected, "computes", line=line, near=near, exact=near == exact)
            single = [fit((name,), protected.name, [column], y, rng) for name, column in zip(names, x, strict=True)]
            alone = max(guess_on_line(s, [c], y, label[present], near).share for s, c in zip(single, x, strict=True))
            if adds(guess.share, alone):
                return Candidate(names, protected, "computes", line=line, near=near, exact=near == exact, alone=alone)
    return None
