"""Columns that number persons or households and repeat, so that several rows belong to one person or household.

Such a column is found in three ways. By its role, it is an identifier that repeats. By its name, it is a patient,
person or household number. By its values, few rows have each value, and the quasi-identifiers are constant within a
value although they do not determine each other. (A region has many rows, and an occupation determines neither age nor
sex.) Two columns can number persons together, such as a hospital and the number of a patient in it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

from sfumato.data.cells import cleaned
from sfumato.data.engine import Engine
from sfumato.data.profile import ColumnProfile
from sfumato.data.settings import Role
from sfumato.data.source import Source
from sfumato.data.suggest import KNOWN, MOST_CODES, NAMES, Suggestion, code_of, spelled
from sfumato.errors import counted

Holder = Literal["unit", "household"]
FEW = 50  # rows that a number has on average, at most, where only values point at it
LEAST = 20  # numbers with several rows, at least, before values alone say something
CONSTANT = 0.95  # share of the rows in numbers with several rows whose quasi-identifier does not vary within them
COMMON = 0.8  # the largest value of a quasi-identifier that says something by being constant
MOST_TOGETHER, MOST_PARTNERS = 6, 20  # columns that are looked at together with others, and these
JOINED = " + "
TAKEN = "numbered_rows"


PERSON_NUMBER, HOUSEHOLD_NUMBER, WITHIN, NAME_PART = (
    re.compile("".join(KNOWN["numbers"][kind])) for kind in ("person", "household", "within", "name_part")
)


def number_named(name: str) -> Literal["unit", "household"] | None:
    """Return what a column numbers by its name: persons, households, or neither.

    >>> number_named("PatientID"), number_named("ori_hid"), number_named("SERIALNO"), number_named("region code")
    ('unit', 'household', 'household', None)
    """
    words = spelled(name)
    if HOUSEHOLD_NUMBER.search(words):
        return "household"
    return "unit" if PERSON_NUMBER.search(words) else None


def is_name_part(name: str) -> bool:
    """Return whether a column holds a part of a name, which many persons share.

    >>> is_name_part("LastName"), is_name_part("name")
    (True, False)
    """
    return NAME_PART.search(spelled(name)) is not None


@dataclass(frozen=True)
class Repeating:
    """A column of numbers of persons or households, with the count of the numbers and of their rows."""

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
        return f"{counted(self.values, 'value')} in {self.rows:,} rows"

    @property
    def whose(self) -> str:
        return "person" if self.holder == "unit" else "household"

    @property
    def reason(self) -> str:
        """Why it is suggested as a unit or a household.

        >>> Repeating("patient_id", "unit", 600, 4483, 12).reason
        '600 values in 4,483 rows: several rows of one person (7.5 on average, 12 at most)'
        """
        return f"{self.counts}: several rows of one {self.whose} ({self.mean:.1f} on average, {self.most:,} at most)"

    @property
    def sentence(self) -> str:
        """What is seen, and what follows.

        >>> print(Repeating("hid", "household", 2, 5, 3).sentence)
        hid repeats: 2 values in 5 rows (2.5 rows each on average, 3 at most). Several rows may belong to one household.
        """
        rows = f"{self.mean:.1f} rows each on average, {self.most:,} at most"
        return f"{self.column} repeats: {self.counts} ({rows}). Several rows may belong to one {self.whose}."

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
    """Return the columns of a view that number persons or households and repeat, given the roles so far.

    `cells` is the SQL of each column in the view: that of clean text, unless given.
    """
    cells = cells or {column.name: cleaned(source, column) for column in source.columns}
    texts = {name: f"lower(trimmed({cell}))" for name, cell in cells.items()}
    keys = [name for name, role in roles.items() if role is Role.QUASI_IDENTIFIER and name in texts]
    chosen = candidates(roles)
    if not chosen:
        return []
    partners = [name for name, role in roles.items() if name in texts and role is not Role.WEIGHT][:MOST_PARTNERS]
    columns = _taken(engine, view, texts, {*keys, *partners, *(name for parts in chosen for name in parts)})
    found = []
    for parts in chosen:
        cell = _together([columns[part] for part in parts])
        counts = _counts(engine, cell)
        if counts.values == 0 or counts.rows == counts.values:
            continue
        known = _by_name(parts[0], roles)
        # A number of the persons in each household begins at 1 in all of them, so all share its values.
        within = WITHIN.search(spelled(parts[0])) is not None and counts.values <= MOST_CODES
        number = roles.get(parts[0]) is Role.IDENTIFIER or (known is not None and not within)
        others = [columns[key] for key in keys if key not in parts]
        if (number and not is_name_part(parts[0])) or _holds_constant(engine, cell, others, counts):
            found.append(Repeating(JOINED.join(parts), known or "unit", counts.values, counts.rows, counts.most))
    singles = [parts[0] for parts in chosen if len(parts) == 1][:MOST_TOGETHER]
    return found or _in_pairs(engine, singles, partners, keys, columns)


def _in_pairs(
    engine: Engine, names: Sequence[str], partners: Sequence[str], keys: Sequence[str], columns: Mapping[str, str]
) -> list[Repeating]:
    """Return pairs of columns that number persons together by their values, where neither column does alone."""
    whole = {name: _counts(engine, columns[name]) for name in dict.fromkeys([*names, *partners])}
    repeats = {name: counts for name, counts in whole.items() if 1 < counts.values < counts.rows}
    pairs = {frozenset((one, two)): (one, two) for one in names for two in partners if one != two}
    found = []
    for pair in pairs.values():
        if not repeats.keys() >= set(pair) or repeats[pair[0]].values * repeats[pair[1]].values < LEAST:
            continue
        cell = _together([columns[name] for name in pair])
        counts = _counts(engine, cell)
        others = [columns[key] for key in keys if key not in pair]
        if counts.values < counts.rows and _holds_constant(engine, cell, others, counts):
            found.append(Repeating(JOINED.join(pair), "unit", counts.values, counts.rows, counts.most))
    return found


def _taken(engine: Engine, view: str, texts: Mapping[str, str], names: Collection[str]) -> dict[str, str]:
    """Copy some columns of a view to a table of clean texts, so that the source is read once. Return their names."""
    columns = {name: f"t{place}" for place, name in enumerate(texts) if name in names}
    named = ", ".join(f"{texts[name]} AS {column}" for name, column in columns.items())
    engine.run(f"CREATE OR REPLACE TEMP TABLE {TAKEN} AS SELECT {named} FROM {view}")
    return columns


def _together(columns: Sequence[str]) -> str:
    """Return some columns as one text, missing where all are."""
    joined = " || '|' || ".join(f"coalesce({column}, '')" for column in columns)
    return f"NULLIF({joined}, '{'|' * (len(columns) - 1)}')" if len(columns) > 1 else columns[0]


def candidates(roles: Mapping[str, Role | None]) -> list[tuple[str, ...]]:
    """Return the columns that can number persons or households: named so, identifiers, or of no known meaning.

    First and last names are taken together.

    >>> candidates({"age": Role.QUASI_IDENTIFIER, "patient_id": Role.DROP, "first name": None, "surname": None})
    [('patient_id',), ('first name', 'surname')]
    """
    parts = tuple(name for name in roles if is_name_part(name))
    chosen: list[tuple[str, ...]] = [
        (name,)
        for name, role in roles.items()
        if name not in parts
        and (
            role is Role.IDENTIFIER or _by_name(name, roles) is not None or (_unknown(name) and role is not Role.WEIGHT)
        )
    ]
    return [*chosen, parts] if parts else chosen


def _by_name(column: str, roles: Mapping[str, Role | None]) -> Holder | None:
    """Return what a column numbers, by its name or because it is declared as unit or household."""
    declared = roles.get(column)
    if declared in (Role.UNIT, Role.HOUSEHOLD):
        return "household" if declared is Role.HOUSEHOLD else "unit"
    return number_named(column)


def _unknown(name: str) -> bool:
    """Return whether nothing is known about a column of that name, or only that it identifies."""
    words = spelled(name)
    known = code_of(name) or next((each for each in NAMES if each.pattern.search(words)), None)
    return known is None or known.role is Role.IDENTIFIER


@dataclass(frozen=True)
class _Counts:
    values: int
    rows: int
    most: int
    several: int  # values with several rows
    in_several: int  # rows of these


def _counts(engine: Engine, cell: str) -> _Counts:
    grouped = f"SELECT {cell} AS v, count(*) AS n FROM {TAKEN} WHERE {cell} IS NOT NULL GROUP BY {cell}"
    result = engine.rows(
        "SELECT count(*), CAST(coalesce(sum(n), 0) AS BIGINT), coalesce(max(n), 0), count(CASE WHEN n > 1 THEN 1 END), "
        f"CAST(coalesce(sum(CASE WHEN n > 1 THEN n END), 0) AS BIGINT) FROM ({grouped}) AS g"
    )[0]
    return _Counts(*map(int, result))


def _holds_constant(engine: Engine, cell: str, keys: Sequence[str], counts: _Counts) -> bool:
    """Return whether two quasi-identifiers that do not determine each other are constant within nearly all values."""
    if len(keys) < 2 or counts.several < LEAST or counts.rows > FEW * counts.values:
        return False
    ends = ", ".join(f"min({key}) AS a{place}, max({key}) AS z{place}" for place, key in enumerate(keys))
    known = ", ".join(f"count({key}) AS n{place}" for place, key in enumerate(keys))
    grouped = f"SELECT count(*) AS n, {ends}, {known} FROM {TAKEN} WHERE {cell} IS NOT NULL GROUP BY {cell}"
    sums = ", ".join(
        f"CAST(coalesce(sum(CASE WHEN n{place} = 0 OR (a{place} = z{place} AND n{place} = n) THEN n END), 0) AS BIGINT)"
        for place in range(len(keys))
    )
    rows = engine.rows(f"SELECT {sums} FROM ({grouped}) AS g WHERE n > 1")[0]
    constant = [key for key, number in zip(keys, rows, strict=True) if int(number) >= CONSTANT * counts.in_several]
    telling = {key: distinct for key in constant if (distinct := _telling(engine, cell, key)) is not None}
    return any(_independent(engine, cell, pair, telling) for pair in combinations(telling, 2))


def _telling(engine: Engine, cell: str, key: str) -> int | None:
    """Return the number of values of a quasi-identifier, if it varies enough for constancy to be informative."""
    grouped = f"SELECT count(*) AS n FROM {TAKEN} WHERE {cell} IS NOT NULL GROUP BY {key}"
    distinct, most, rows = engine.rows(
        f"SELECT count(*), coalesce(max(n), 0), CAST(coalesce(sum(n), 0) AS BIGINT) FROM ({grouped}) AS g"
    )[0]
    return int(distinct) if int(most) <= COMMON * int(rows) else None


def _independent(engine: Engine, cell: str, pair: tuple[str, str], distinct: Mapping[str, int]) -> bool:
    """Return whether neither of two quasi-identifiers determines the other."""
    pairs = f"SELECT DISTINCT {pair[0]}, {pair[1]} FROM {TAKEN} WHERE {cell} IS NOT NULL"
    both = engine.rows(f"SELECT count(*) FROM ({pairs}) AS p")[0][0]
    return all(int(both) > 1.1 * distinct[key] for key in pair)


def with_holders(
    suggestions: Sequence[Suggestion], columns: Sequence[ColumnProfile], found: Sequence[Repeating]
) -> list[Suggestion]:
    """Return the suggestions with the first repeating number of persons as unit, and of households as household."""
    result = list(suggestions)
    places = {column.name: place for place, column in enumerate(columns)}
    for holder in (Role.UNIT, Role.HOUSEHOLD):
        first = next((each for each in found if each.holder == holder and each.column in places), None)
        if first is not None:
            result[places[first.column]] = Suggestion(holder, first.reason)
    return result
