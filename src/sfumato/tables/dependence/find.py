"""Columns that give others away, found on some rows and counted on all.

A column that is released as it is can undo what was done to another: a code that is one-to-one with a generalized
place, an age beside a generalized date of birth, a total and a part beside the other part. Three things count:

- **tells**: the value of the protected column, or its label on a level finer than the released one, is guessed right
  from the kept column *and the released label* for at least 95 % of the rows.
- **follows**: the kept column follows from a generalized one for at least 95 % of the rows: it is a coarser copy.
  Whoever knows the value knows the kept cell, so it splits the records of a released label. A copy that is no finer
  than the released label splits nothing, and is no dependence.
- **computes**: a number lies within rounding of a sum of one or two others for at least 95 % of the rows; if it is
  generalized or sensitive, within 2 % of its usual range suffices.
- **finds**: a value is named that is rare and not to be found, such as membership of a group, and most rows with some
  values of the kept column have it; these are more than half of all rows that have it. A guess of "no" is right for
  nearly all rows of a rare group, so the first rule says little about it.

A coarser or rounded copy of a column that is *withheld* does not count: releasing an age in place of a date of birth is
what withholding the date is for.

In each case the column must also remove at least half of the errors that are made from the released label alone, and
four fifths where fewer than 1 % of the rows are at stake. One value in 97 % of the rows makes every guess right for
97 %, and would otherwise be told by every column of the table.
And each row is guessed from *other* rows, or a column with many values would seem to tell everything. A kept column
whose value is unique for at least half of the rows is named apart, as identifying: it needs no other column's help.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from sfumato.sources.engines.engine import Engine
from sfumato.sources.source import Source
from sfumato.sources.value_counts import require
from sfumato.tables.dependence.confirm import confirm, hold, unique_share, upload_labels
from sfumato.tables.dependence.pairs import pair_candidates
from sfumato.tables.dependence.rows import Cells, Looks, look_at
from sfumato.tables.dependence.search import Search
from sfumato.tables.dependence.single import single_candidates
from sfumato.tables.dependence.sums import sum_candidates
from sfumato.tables.dependence.types import Candidate, Dependence, Dependences, Identifying, Protected

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
    """What kept columns tell of protected ones.

    `kept` are released unchanged and in no figure; a sensitive column may stand in both lists. `beside` are
    quasi-identifiers that are released unchanged: records that differ in them are in different classes anyway, so they
    are reported only for what they tell of generalized columns, and where they do so together with a kept one.
    `rows` is a condition on the columns of the view `raw`, as which the source is attached; `made` are columns that the
    source does not have, as text expressions of those of the view.
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
    """Kept columns that are unique for most rows.

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
    """The first candidate of the same columns that holds on all rows; `explained` grows by the columns of each.

    A pair counts only where no column of it tells the same alone, or in a pair that comes before: a column that tells
    nearly everything would otherwise be listed once with each column that supplies the rest.
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
