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
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from sfumato.base.arrays import Codes
from sfumato.data.engine import Engine
from sfumato.data.source import Source
from sfumato.data.value_counts import require
from sfumato.tables.dependence.candidates import Search, adds, pair_candidates, single_candidates, sum_candidates
from sfumato.tables.dependence.count import (
    FOUND,
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
)
from sfumato.tables.dependence.rows import Cells, Hashes, Looks, look_at, number_sql, signed


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
