"""Dependences, by which columns reveal others: candidates are found on some rows and counted on all rows.

A column that is released unchanged can undo the protection of another. Examples are a code that is one-to-one with a
generalized place, an age next to a generalized date of birth, and a total with one of two parts. Four kinds count:

- `tells`: for at least 95 % of the rows, the kept column *and the released label* allow a correct guess of the
  protected value, or of its label on a level finer than the released one.
- `follows`: for at least 95 % of the rows, the kept column follows from a generalized one, of which it is a coarser
  copy. An attacker who knows the value knows the kept cell, so it splits the records of a released label. A copy that
  is no finer than the released label splits nothing, and is no dependence.
- `computes`: for at least 95 % of the rows, a number equals a sum of one or two others up to rounding. For generalized
  and sensitive numbers, 2 % of the usual range suffices.
- `finds`: a rare value must not be found, such as membership of a group, and most rows with some values of the kept
  column have it. These are more than half of all rows with the rare value. A guess of "no" is right for nearly all rows
  of a rare group, so the first rule says little about it.

A coarser or rounded copy of a *withheld* column does not count, because a date of birth is withheld in order to release
the age.

In each case the column must also remove at least half of the errors that are made from the released label alone, and
four fifths where fewer than 1 % of the rows are at stake. One value in 97 % of the rows makes every guess right for
97 %, and every column of the table would seem to reveal it.
And each row is guessed from *other* rows, or a column with many values would seem to reveal everything. A kept column
whose value is unique for at least half of the rows is reported separately as identifying.

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
from sfumato.data.engine import Engine
from sfumato.data.source import Source
from sfumato.data.value_counts import require
from sfumato.tables.dependence.count import (
    ERRORS,
    FOUND,
    LEAST,
    RIGHT,
    ROWS,
    Candidate,
    Dependence,
    Dependences,
    Guess,
    Identifying,
    Kind,
    Protected,
    count_by_order,
    count_by_value,
    count_on_line,
    count_rare,
    fit,
    guess_by_order,
    guess_by_value,
    guess_on_line,
    joined,
    likely_lines,
    tolerances,
)
from sfumato.tables.dependence.rows import Cells, Hashes, Look, Looks, look_at, number_sql, signed

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
    """Return the linear function that fits most rows: of two columns only if it fits better than those of one."""
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


def unique_share(engine: Engine, index: int, total: int) -> float:
    """Return the share of rows whose value of a column no other row has; a missing one is no value."""
    counted = f"SELECT t{index} FROM searched WHERE t{index} <> '' GROUP BY t{index} HAVING count(*) = 1"
    return int(engine.rows(f"SELECT count(*) FROM ({counted}) AS t")[0][0]) / total


def upload_labels(engine: Engine, protected: Sequence[Protected]) -> dict[str, tuple[Hashes, list[Codes]]]:
    """Return the labels of generalized columns as tables `labels0`, … and as arrays by the hashes of the values."""
    labels = {}
    for index, column in enumerate(protected):
        if not column.steps:
            continue
        values = sorted(set().union(*column.steps))
        coded = {f"s{i + 1}": _coded([step.get(value) for value in values]) for i, step in enumerate(column.steps)}
        engine.upload(f"labels{index}", {"value": values, **coded})
        hashed = engine.arrays(f"SELECT {engine.hashed(['value'])} AS h, {', '.join(coded)} FROM labels{index}")
        hashes = signed(hashed["h"])
        order = np.argsort(hashes)
        labels[column.name] = hashes[order], [np.asarray(hashed[s])[order].astype(np.int32) for s in coded]
    return labels


def _coded(labels: Sequence[str | None]) -> Codes:
    codes: dict[str | None, int] = {}
    return np.array([codes.setdefault(label, len(codes)) for label in labels], dtype=np.int32)


def hold(engine: Engine, names: Sequence[str], wanted: Collection[str]) -> None:
    """Copy the cells of some columns to a table, because a view would read the file for every count."""
    cells = ", ".join(["r", *(f"t{i}" for i, name in enumerate(names) if name in wanted)])
    engine.run(f"CREATE OR REPLACE TEMP TABLE held_cells AS SELECT {cells} FROM searched")


def confirm(engine: Engine, source: Source, search: Search, candidate: Candidate) -> Dependence | None:
    """Return the dependence if it holds on all rows."""
    column, names = candidate.protected, search.names
    target = f"t{names.index(column.name)}"
    given = [f"t{names.index(name)}" for name in candidate.kept]
    steps = [f"m.s{i + 1} AS s{i + 1}" for i in range(len(column.steps))]
    label = f"coalesce(m.s{len(column.steps)}, -1)" if steps else "0"
    joined = f" LEFT JOIN labels{search.protected.index(column)} AS m ON a.{target} = m.value" if steps else ""
    rows = f"SELECT {', '.join(['a.*', *steps, f'{label} AS g'])} FROM held_cells AS a{joined} WHERE a.{target} <> ''"
    if candidate.way == "finds":
        there, hits = count_rare(engine, rows, given[0], target, column.rare or "")
        if hits <= FOUND * there:
            return None
        return Dependence(candidate.kept, column.name, column.status, "finds", "nearly", hits / there, 0.0, there)
    guess = _counted(engine, source, search, candidate, rows)
    if not guess.tells() or (len(given) == 2 and not adds(guess.share, candidate.alone)):
        return None
    if not candidate.by_order and candidate.line is None:
        kind = _kind(engine, given, target)
    else:
        kind = "many_to_one" if guess.right == guess.rows and candidate.exact else "nearly"
    shares = guess.share, guess.base_share, guess.rows
    return Dependence(candidate.kept, column.name, column.status, candidate.way, kind, *shares, candidate.step)


def _counted(engine: Engine, source: Source, search: Search, candidate: Candidate, rows: str) -> Guess:
    """Return the guesses of a candidate, counted in the way that it names on a query's rows."""
    names = (candidate.protected.name, *candidate.kept)
    target, *given = (f"t{search.names.index(name)}" for name in names)
    dates = [name in search.looks.dates for name in names]
    number, *numbers = (number_sql(source, *each) for each in zip((target, *given), dates, strict=True))
    if candidate.line is not None:
        return count_on_line(engine, rows, candidate.line, numbers, number, candidate.near)
    if candidate.way == "follows":
        rows += f" AND a.{given[0]} <> ''"
        given, guessed, numbers = [target], given[0], [number]
    else:
        guessed = f"s{candidate.step}" if candidate.step else target
    if candidate.by_order:
        return count_by_order(engine, rows, numbers[0], guessed, "g")
    return count_by_value(engine, rows, given, guessed, "g")


def _kind(engine: Engine, given: Sequence[str], target: str) -> Kind:
    """Return whether each side, or one side, follows from the other without exception."""
    keys = ", ".join(given)
    pairs = f"SELECT {keys}, {target} AS v FROM held_cells WHERE {target} <> '' GROUP BY {keys}, {target}"
    both, values = engine.rows(f"SELECT count(*), count(DISTINCT v) FROM ({pairs}) AS t")[0]
    sides = engine.rows(f"SELECT count(*) FROM (SELECT DISTINCT {keys} FROM ({pairs}) AS t) AS u")[0][0]
    if both == values == sides:
        return "one_to_one"
    return "many_to_one" if both in (values, sides) else "nearly"


UNIQUE = 0.5  # the share of rows with a value of their own from which a column is identifying


def dependences(
    engine: Engine,
    source: Source,
    kept: Sequence[str],
    protected: Sequence[Protected],
    beside: Sequence[str] = (),
    *,
    rows: str = "1 = 1",
    raw: str = "raw",
    made: Mapping[str, str] | None = None,
) -> Dependences:
    """Return what kept columns reveal about protected ones.

    The `kept` columns are released unchanged and enter no figure. A sensitive column may be in both lists. In `beside`
    are quasi-identifiers that are released unchanged. Records that differ in them are in different classes, so they are
    reported only for generalized columns, and where they reveal one together with a kept column. The condition `rows`
    is on the columns of the view `raw` of the source. The columns `made` are columns that the source does not have, as
    text expressions of the columns of the view.
    """
    names = list(dict.fromkeys([*kept, *beside, *(p.name for p in protected)]))
    require(source, [name for name in names if name not in (made or {})])
    if not kept and not beside:
        return Dependences()
    looks = look_at(engine, Cells(source, names, rows, raw, made or {}))
    if looks.total == 0:
        return Dependences()
    identifying = _identifying(engine, looks, names, kept)
    search = Search(looks, kept, beside, protected, upload_labels(engine, protected))
    explained: set[tuple[str, str]] = set()
    single = _confirmed(engine, source, search, single_candidates(search, [i.column for i in identifying]), explained)
    several = pair_candidates(search, explained) + sum_candidates(search, explained)
    pairs = _confirmed(engine, source, search, several, explained)
    for table in ("picked", "sampled", "held_cells"):
        engine.run(f"DROP TABLE {table}")
    return Dependences((*single, *pairs), identifying)


def _identifying(engine: Engine, looks: Looks, names: Sequence[str], kept: Sequence[str]) -> tuple[Identifying, ...]:
    """Return the kept columns that are unique for most rows.

    In a sample at least as many rows are unique as in the table; rows drawn by value show nearly the share that are.
    """
    columns = []
    for name in kept:
        look = looks.given(name)
        once = np.bincount(look.codes[name])[look.codes[name]] == 1
        least = UNIQUE if look is looks.sample else 0.9 * UNIQUE
        if (once & ~look.missing[name]).sum() >= least * look.rows:
            share = unique_share(engine, names.index(name), looks.total)
            if share >= UNIQUE:
                columns.append(Identifying(name, share))
    return tuple(columns)


def _confirmed(
    engine: Engine, source: Source, search: Search, wanted: Sequence[Candidate], explained: set[tuple[str, str]]
) -> list[Dependence]:
    """Return the first candidate of the same columns that holds on all rows; `explained` grows by the columns of each.

    A pair counts only where neither of its columns reveals the same alone or in an earlier pair. Without this rule, a
    column that reveals nearly everything would be listed with each column that supplies the rest.
    """
    hold(engine, search.names, {name for c in wanted for name in (*c.kept, c.protected.name)})
    confirmed = []
    for candidate in wanted:
        parts = {(name, candidate.protected.name) for name in candidate.kept}
        if not parts & explained:
            dependence = confirm(engine, source, search, candidate)
            if dependence is not None:
                confirmed.append(dependence)
                explained |= parts
    return confirmed
