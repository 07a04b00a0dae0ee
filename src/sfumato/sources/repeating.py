"""Columns that number persons or households and repeat: several rows belong to one of them.

Three things point at such a column. Its role: an identifier that repeats. Its name: a patient, person or household
number, whatever its role. Its values: few rows have each, and the quasi-identifiers are constant among them, though
they do not determine each other. A region has many rows, and an occupation says neither age nor sex.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

from sfumato.errors import counted
from sfumato.sources.cells import cleaned
from sfumato.sources.engines.engine import Engine
from sfumato.sources.known_codes import code_of
from sfumato.sources.known_names import NAMES, counts_within, is_name_part, number_named, spelled
from sfumato.sources.roles import Role
from sfumato.sources.source import Source

Holder = Literal["unit", "household"]
FEW = 50  # rows that a number has on average, at most, where only values point at it
LEAST = 20  # numbers with several rows, at least, before values alone say something
CONSTANT = 0.95  # share of the rows in numbers with several rows whose quasi-identifier does not vary within them
COMMON = 0.8  # the largest value of a quasi-identifier that says something by being constant
MOST_CODES = 30
JOINED = " + "


@dataclass(frozen=True)
class Repeating:
    """A column whose values are numbers of persons or households: how many there are, and how many rows they have."""

    column: str
    holder: Holder
    values: int
    rows: int
    most: int

    @property
    def mean(self) -> float:
        return self.rows / max(self.values, 1)

    @property
    def counts(self) -> str:
        """Its values and rows, as a clause.

        >>> Repeating("patient_id", "unit", 600, 4483, 12).counts
        '600 values in 4,483 rows (7.5 rows each on average, 12 at most)'
        """
        return f"{counted(self.values, 'value')} in {self.rows:,} rows ({self.mean:.1f} rows each on average, {self.most:,} at most)"

    @property
    def sentence(self) -> str:
        """What is seen, and what follows.

        >>> print(Repeating("hid", "household", 2, 5, 3).sentence)
        hid repeats: 2 values in 5 rows (2.5 rows each on average, 3 at most). Several rows may belong to one household.
        """
        whose = "person" if self.holder == "unit" else "household"
        return f"{self.column} repeats: {self.counts}. Several rows may belong to one {whose}."

    def as_dict(self) -> dict[str, str | int | float]:
        return {
            "column": self.column,
            "suggested_role": self.holder,
            "values": self.values,
            "rows": self.rows,
            "mean_rows": round(self.mean, 3),
            "most_rows": self.most,
        }


def repeating(
    engine: Engine,
    source: Source,
    roles: Mapping[str, Role | None],
    view: str,
    cells: Mapping[str, str] | None = None,
) -> list[Repeating]:
    """The columns of a view that number persons or households and repeat, by the roles that columns have so far.

    `cells` is the SQL of each column in the view: that of clean text, unless given.
    """
    sql = {name: f"lower(trimmed({cell}))" for name, cell in (cells or _cells(source)).items()}
    keys = [name for name, role in roles.items() if role is Role.QUASI_IDENTIFIER and name in sql]
    found = []
    for column, cell in _candidates(roles, sql):
        known = _by_name(column, roles)
        by_role = roles.get(column) is Role.IDENTIFIER
        counts = _counts(engine, cell, view)
        if counts.values == 0 or counts.rows == counts.values:
            continue
        if (by_role or (known is not None and not _within(column, counts))) or _holds_constant(
            engine, view, cell, [sql[key] for key in keys if key != column], counts
        ):
            found.append(Repeating(column, known or "unit", counts.values, counts.rows, counts.most))
    return found


def _cells(source: Source) -> dict[str, str]:
    return {column.name: cleaned(source, column) for column in source.columns}


def _candidates(roles: Mapping[str, Role | None], sql: Mapping[str, str]) -> list[tuple[str, str]]:
    """The columns that can number persons or households: named so, identifiers, or of no known meaning.

    First and last names are looked at together.
    """
    parts = [name for name in sql if is_name_part(spelled(name))]
    chosen = []
    for name in sql:
        role = roles.get(name)
        if name in parts:
            continue
        if role is Role.IDENTIFIER or _by_name(name, roles) is not None or (_unknown(name) and _may_hold(role)):
            chosen.append((name, sql[name]))
    if parts:
        together = " || '|' || ".join(f"coalesce({sql[name]}, '')" for name in parts)
        chosen.append((JOINED.join(parts), together))
    return chosen


def _may_hold(role: Role | None) -> bool:
    return role not in (Role.QUASI_IDENTIFIER, Role.WEIGHT)


def _by_name(column: str, roles: Mapping[str, Role | None]) -> Holder | None:
    """Whom the name of a column numbers. A declared unit or household is one."""
    declared = roles.get(column)
    if declared in (Role.UNIT, Role.HOUSEHOLD):
        return "household" if declared is Role.HOUSEHOLD else "unit"
    return number_named(column)


def _unknown(name: str) -> bool:
    """Whether nothing is known about a column of that name, or only that it identifies."""
    words = spelled(name)
    known = code_of(name) or next((each for each in NAMES if each.pattern.search(words)), None)
    return known is None or known.role is Role.IDENTIFIER


def _within(column: str, counts: _Counts) -> bool:
    """Whether a column numbers the persons of each household from 1, so that all households share its values."""
    return counts_within(spelled(column)) and counts.values <= MOST_CODES


@dataclass(frozen=True)
class _Counts:
    values: int
    rows: int
    most: int
    several: int  # values with several rows
    in_several: int  # rows of these


def _counts(engine: Engine, cell: str, view: str) -> _Counts:
    grouped = f"SELECT v, count(*) AS n FROM (SELECT {cell} AS v FROM {view}) AS t WHERE v IS NOT NULL GROUP BY v"
    result = engine.rows(
        "SELECT count(*), CAST(coalesce(sum(n), 0) AS BIGINT), coalesce(max(n), 0), count(CASE WHEN n > 1 THEN 1 END), "
        f"CAST(coalesce(sum(CASE WHEN n > 1 THEN n END), 0) AS BIGINT) FROM ({grouped}) AS g"
    )[0]
    return _Counts(*map(int, result))


def _holds_constant(engine: Engine, view: str, cell: str, keys: Sequence[str], counts: _Counts) -> bool:
    """Whether two quasi-identifiers that do not determine each other are constant within nearly all values."""
    if len(keys) < 2 or counts.several < LEAST or counts.rows > FEW * counts.values:
        return False
    named = ", ".join(f"coalesce({key}, '') AS y{place}" for place, key in enumerate(keys))
    texts = f"SELECT {cell} AS v, {named} FROM {view}"
    ends = ", ".join(f"min(y{place}) AS a{place}, max(y{place}) AS z{place}" for place in range(len(keys)))
    grouped = f"SELECT count(*) AS n, {ends} FROM ({texts}) AS t WHERE v IS NOT NULL GROUP BY v"
    sums = ", ".join(
        f"CAST(coalesce(sum(CASE WHEN a{place} = z{place} THEN n END), 0) AS BIGINT)" for place in range(len(keys))
    )
    rows = engine.rows(f"SELECT {sums} FROM ({grouped}) AS g WHERE n > 1")[0]
    constant = [place for place, number in enumerate(rows) if int(number) >= CONSTANT * counts.in_several]
    telling = {place: distinct for place in constant if (distinct := _telling(engine, keys[place], view)) is not None}
    return any(_independent(engine, keys, pair, telling, view) for pair in combinations(telling, 2))


def _telling(engine: Engine, key: str, view: str) -> int | None:
    """The number of values of a quasi-identifier, if it varies enough that being constant says something."""
    grouped = f"SELECT count(*) AS n FROM (SELECT coalesce({key}, '') AS y FROM {view}) AS t GROUP BY y"
    distinct, most, rows = engine.rows(
        f"SELECT count(*), coalesce(max(n), 0), CAST(coalesce(sum(n), 0) AS BIGINT) FROM ({grouped}) AS g"
    )[0]
    return int(distinct) if int(most) <= COMMON * int(rows) else None


def _independent(
    engine: Engine, keys: Sequence[str], pair: tuple[int, int], distinct: Mapping[int, int], view: str
) -> bool:
    """Whether neither of two quasi-identifiers determines the other."""
    named = ", ".join(f"coalesce({keys[place]}, '') AS y{place}" for place in pair)
    both = engine.rows(f"SELECT count(*) FROM (SELECT DISTINCT {named} FROM {view}) AS t")[0][0]
    return all(int(both) > 1.1 * distinct[place] for place in pair)
