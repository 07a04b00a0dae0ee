"""One column that gives another away: by its values, or by its order where hardly two rows have the same."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from sfumato.tables.dependence.counts import Guess, guess_by_order, guess_by_value
from sfumato.tables.dependence.rows import Look
from sfumato.tables.dependence.search import Search
from sfumato.tables.dependence.types import Candidate, Protected


def single_candidates(search: Search, identifying: Collection[str]) -> list[Candidate]:
    """What some rows suggest, for each pair of columns in the order in which it is to be counted on all rows."""
    candidates = []
    for name, protected in search.questions():
        candidates += _telling(search, name, protected, name in identifying)
        if protected.status == "generalized" and name in search.kept and name not in identifying:
            candidates += _following(search, name, protected)
        if protected.rare is not None:
            candidates.append(Candidate((name,), protected, "finds"))  # some rows may hold too few of them to tell
    return candidates


def _telling(search: Search, name: str, protected: Protected, identifying: bool) -> list[Candidate]:
    """Finest step first; a column that is unique for most rows can only be looked at in order."""
    ways = [False] * (not identifying) + [True] * search.ordered(name)
    return [
        Candidate((name,), protected, "tells", step, by_order)
        for step in range(max(len(protected.steps), 1))
        for by_order in ways
        if search.suggests(_tells(search, name, protected, step, by_order), _rows_for(search, name, by_order))
    ]


def _following(search: Search, name: str, protected: Protected) -> list[Candidate]:
    ways = [False] + [True] * search.ordered(protected.name)
    return [
        Candidate((name,), protected, "follows", 0, by_order)
        for by_order in ways
        if search.suggests(_follows(search, name, protected, by_order), _rows_for(search, protected.name, by_order))
    ]


def _rows_for(search: Search, given: str, by_order: bool) -> Look:
    return search.looks.sample if by_order else search.looks.given(given)


def _tells(search: Search, name: str, protected: Protected, step: int, by_order: bool) -> Guess:
    look = _rows_for(search, name, by_order)
    columns = search.steps(look, protected)
    rows = ~look.missing[protected.name]
    if not by_order:
        return guess_by_value(look.codes[name][rows], columns[step][rows], columns[-1][rows])
    rows &= np.isfinite(look.numbers[name])
    return guess_by_order(look.numbers[name][rows], columns[step][rows], columns[-1][rows])


def _follows(search: Search, name: str, protected: Protected, by_order: bool) -> Guess:
    look = _rows_for(search, protected.name, by_order)
    columns = search.steps(look, protected)
    rows = ~look.missing[name] & ~look.missing[protected.name]
    if not by_order:
        return guess_by_value(columns[0][rows], look.codes[name][rows], columns[-1][rows])
    rows &= np.isfinite(look.numbers[protected.name])
    return guess_by_order(look.numbers[protected.name][rows], look.codes[name][rows], columns[-1][rows])
