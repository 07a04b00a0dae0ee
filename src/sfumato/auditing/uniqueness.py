"""Uniqueness over all released columns together, and over each released column alone.

Figures of risk count quasi-identifiers. An attacker may know other released columns too, so these are counted here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from sfumato.base.progress import stage
from sfumato.base.text import percent
from sfumato.data.cells import MISSING, as_seen, cleaned, numeric
from sfumato.data.engine import Engine, open_engine
from sfumato.data.settings import Role
from sfumato.data.source import Source, quoted
from sfumato.plans.recodings import JsonObject
from sfumato.study import Study

MOSTLY = 0.95  # the share of different values that makes a column one of numbers, or of dates
WORDS = 30  # most different texts of a column of categories; a column with more is free text
DATES = ("____-__-__%", "__/__/____%", "__.__.____%")
ENOUGH = 0.5  # a column of few texts is free text too if this share of its records have a unique value

PERSON, HOUSEHOLD = "unit_text", "household_text"

Kind = Literal["number", "date", "text"]
TREATED: dict[Kind, str] = {
    "number": "Round it or put it in bands, wider ones if it has them (round, bands), or leave it out.",
    "date": 'Round it to months or more (round = "month"), or leave it out.',
    "text": "Leave it out, or code it into categories, wider ones if it has them (round, bands).",
}


@dataclass(frozen=True)
class OwnValues:
    """A column, the kind of its values, its number of different values, and how many of these only one record has.

    >>> wage = OwnValues("wage", "number", records=100, distinct=90, unique=85)
    >>> wage.share, wage.identifies(0.05), wage.identifies(0.9)
    (0.85, True, False)

    A category with a rare value is no free text.

    >>> OwnValues("ill", "text", records=16, distinct=3, unique=1).identifies(0.05)
    False
    """

    column: str
    kind: Kind
    records: int
    distinct: int
    unique: int
    counted: str = "records"

    @classmethod
    def from_dict(cls, column: str, given: JsonObject) -> OwnValues:
        """Return the figures of a dictionary of `as_dict`."""
        numbers = {name: int(given[name]) for name in ("records", "distinct", "unique")}
        return cls(column, given["kind"], **numbers, counted=str(given.get("counted", "records")))

    @property
    def share(self) -> float:
        return self.unique / max(self.records, 1)

    @property
    def category(self) -> bool:
        """Return whether the values are categories (few texts), of which some may be rare."""
        return self.kind == "text" and self.distinct <= WORDS and self.share < ENOUGH

    def identifies(self, limit: float) -> bool:
        """Return whether the column alone singles out more than a share of the records."""
        return self.share > limit and not self.category

    def as_dict(self) -> dict[str, object]:
        return {
            **({} if self.counted == "records" else {"counted": self.counted}),
            "kind": self.kind,
            "category": self.category,
            "records": self.records,
            "distinct": self.distinct,
            "unique": self.unique,
            "unique_share": self.share,
        }


def own_values(
    engine: Engine,
    source: Source,
    names: Sequence[str],
    view: str = "written",
    unit: str | None = None,
    counted: str = "persons",
) -> tuple[OwnValues, ...]:
    """Return the columns of a view in which some record has a unique value, as the text that a reader sees.

    A missing value is not a value. All columns are counted in one scan. If the column `unit` of the view has the
    person of each record, persons with a unique value are counted. Their noun is `counted`, which may be households.
    """
    if not names:
        return ()
    present, total = f"v <> {quoted(MISSING)}", "CAST(sum(n) AS BIGINT)"
    alone = f"CASE WHEN {present} AND n = 1 THEN {'1' if unit is None else 'u'} END"
    if unit is not None:
        alone, total = f"DISTINCT {alone}", str(int(engine.rows(f"SELECT count(DISTINCT {unit}) FROM {view}")[0][0]))
    dated = " OR ".join(f"trimmed(v) LIKE {quoted(form)}" for form in DATES)
    number = numeric(source, "trimmed(v)")
    found = engine.rows(
        f"SELECT g, {total}, count(CASE WHEN {present} THEN 1 END), count({alone}), "
        f"count(CASE WHEN {present} AND {number} IS NOT NULL THEN 1 END), "
        f"count(CASE WHEN {present} AND ({dated}) THEN 1 END) "
        f"FROM ({_holders_of_values(source, names, view, unit)}) AS s GROUP BY g ORDER BY g"
    )
    return tuple(
        OwnValues(
            names[int(g)],
            _kind(int(distinct), int(numbers), int(dates)),
            int(records),
            int(distinct),
            int(once),
            counted="records" if unit is None else counted,
        )
        for g, records, distinct, once, numbers, dates in found
        if once
    )


def _holders_of_values(source: Source, names: Sequence[str], view: str, unit: str | None) -> str:
    """Return SQL for the number n of records or units with each value v of each column g, and one of the units, u."""
    keys = [f"o{position}" for position in range(len(names))]
    cells = [
        f"coalesce({as_seen(source, source.column(name))}, {quoted(MISSING)}) AS {key}"
        for name, key in zip(names, keys, strict=True)
    ]
    sets = ", ".join(f"({key})" for key in keys)
    which = " ".join(f"WHEN grouping({key}) = 0 THEN {position}" for position, key in enumerate(keys))
    holders = "count(*) AS n, 0 AS u" if unit is None else "count(DISTINCT person) AS n, min(person) AS u"
    cells += [] if unit is None else [f"{unit} AS person"]
    return (
        f"SELECT CASE {which} END AS g, coalesce({', '.join([*keys, quoted(MISSING)])}) AS v, {holders} "
        f"FROM (SELECT {', '.join(cells)} FROM {view}) AS t GROUP BY GROUPING SETS ({sets})"
    )


def _kind(distinct: int, numbers: int, dates: int) -> Kind:
    return "number" if numbers >= MOSTLY * distinct else "date" if dates >= MOSTLY * distinct else "text"


def holder_cells(source: Source, study: Study) -> dict[str, str]:
    """Return the SQL of the person and of the household of a row by their names in a view, if they are declared."""
    named = {cell: study.named(role) for cell, role in ((PERSON, Role.UNIT), (HOUSEHOLD, Role.HOUSEHOLD))}
    present = {cell: names[0] for cell, names in named.items() if names and names[0] in source.names}
    return {cell: cleaned(source, source.column(name)) for cell, name in present.items()}


def worst(*counted: Sequence[OwnValues]) -> tuple[OwnValues, ...]:
    """Return each column as counted with the largest share: in records or persons, or in households."""
    found: dict[str, OwnValues] = {}
    for one in (one for columns in counted for one in columns):
        if one.column not in found or one.share > found[one.column].share:
            found[one.column] = one
    return tuple(found.values())


def released_alone(study: Study) -> list[OwnValues]:
    """Return the columns of a study's table that violate the rule `identifying`, before a search."""
    source = study.source()
    released = [
        name
        for name in source.names
        if study.columns[name].role.released and study.columns[name].role is not Role.QUASI_IDENTIFIER
    ]
    with open_engine(study.engine, study.engine_options) as engine, stage("columns by themselves"):
        engine.attach(source, "raw")
        cells = holder_cells(source, study)
        found = own_values(engine, source, released, "raw", cells.get(PERSON))
        if HOUSEHOLD in cells:
            found = worst(found, own_values(engine, source, released, "raw", cells[HOUSEHOLD], "households"))
        return identifying(study, found)


def identifying(study: Study, columns: Sequence[OwnValues]) -> list[OwnValues]:
    """Return the columns that violate the rule `identifying` of a study's policy and are not accepted."""
    accepted = {given.column for given in study.policy.accept if given.rule == "identifying"}
    return [one for one in columns if one.identifies(study.policy.identifying) and one.column not in accepted]


def identifying_sentence(one: OwnValues, limit: float) -> str:
    """Explain the risk of a column with unique values, and what can be done about it.

    >>> print(identifying_sentence(OwnValues("note", "text", records=9, distinct=9, unique=9), 0.05).partition(".")[0])
    note has a value that no other record has in 100
    >>> wage = OwnValues("wage", "number", records=90, distinct=90, unique=90, counted="persons")
    >>> print(identifying_sentence(wage, 0.05).partition(",")[0])
    wage has a value that no other person has for 100.0 % of the persons
    """
    noun = one.counted.removesuffix("s")
    return (
        f"{one.column} has a value that no other {noun} has {'in' if noun == 'record' else 'for'} {percent(one.share)} "
        f"of the {one.counted}, more than {percent(limit)}. An attacker who knows the value finds the {noun}. "
        f"{TREATED[one.kind]}"
    )


CLASSES = ("columns", "records", "classes", "unique", "smallest")  # the figures of `Uniqueness`
COUNTED = (Role.QUASI_IDENTIFIER, Role.SENSITIVE, Role.LABEL)


@dataclass(frozen=True)
class Uniqueness:
    """The classes of records with the same values in some columns: their number, their records, and the smallest.

    If persons are counted, `records` is their number, and a person is `unique` if one of the person's records is in a
    class without another person. The share of correct matches is then `expected`, with the record of each person that
    has the highest risk.

    >>> Uniqueness(columns=2, records=10, classes=6, unique=4, smallest=1).unique_share
    0.4
    """

    columns: int
    records: int
    classes: int
    unique: int
    smallest: int
    expected: float | None = None

    @property
    def unique_share(self) -> float:
        return self.unique / max(self.records, 1)

    @property
    def matches(self) -> float:
        """Return the expected share of correct matches: one record of every class, whichever is guessed."""
        return self.classes / max(self.records, 1) if self.expected is None else self.expected

    @classmethod
    def from_dict(cls, given: JsonObject) -> Uniqueness:
        """Return the figures of a dictionary of `as_dict`. The expected share is kept as stated."""
        figures = {name: int(given[name]) for name in CLASSES}
        return cls(**figures, expected=float(given["expected_correct_matches"]))

    def as_dict(self) -> dict[str, object]:
        figures = {name: getattr(self, name) for name in CLASSES}
        return figures | {"unique_share": self.unique_share, "expected_correct_matches": self.matches}


@dataclass(frozen=True)
class WholeFile:
    """The uniqueness of a released file over all columns and over those that are not sensitive.

    An attacker may know the columns of `known`: quasi-identifiers and other released columns that are not sensitive.
    The released columns other than quasi-identifiers in which some record has a unique value are `own`.
    """

    everything: Uniqueness
    known: Uniqueness
    uncounted: tuple[str, ...]
    counted: str = "records"
    own: tuple[OwnValues, ...] = ()

    @classmethod
    def from_dict(cls, given: JsonObject) -> WholeFile:
        """Return the figures of a dictionary of `as_dict`."""
        everything, known = given["all_columns"], given["quasi_identifiers_and_kept"]
        uncounted = tuple(map(str, given["columns_in_no_figure"]))
        own = tuple(OwnValues.from_dict(name, about) for name, about in given["own_values"].items())
        counted = given.get("counted", "records")
        return cls(Uniqueness.from_dict(everything), Uniqueness.from_dict(known), uncounted, counted, own)

    def as_dict(self) -> dict[str, object]:
        return {
            **({} if self.counted == "records" else {"counted": self.counted}),
            "all_columns": self.everything.as_dict(),
            "quasi_identifiers_and_kept": self.known.as_dict(),
            "columns_in_no_figure": list(self.uncounted),
            "own_values": {one.column: one.as_dict() for one in self.own},
        }


def whole_file(
    engine: Engine,
    study: Study,
    source: Source,
    view: str = "written",
    unit: str | None = None,
    counted: str = "persons",
) -> WholeFile:
    """Measure a file, given as a view of the engine, over all released columns.

    If the column `unit` of the view has the person of each record, persons are counted. Their noun is `counted`, which
    may be households.
    """
    roles = {name: study.columns[name].role for name in source.names if name in study.columns}
    released = [name for name in source.names if name not in roles or roles[name].released]
    known = [name for name in released if roles.get(name) is not Role.SENSITIVE]
    others = [name for name in released if roles.get(name) is not Role.QUASI_IDENTIFIER]
    return WholeFile(
        everything=uniqueness(engine, source, released, view, unit),
        known=uniqueness(engine, source, known, view, unit),
        counted="records" if unit is None else counted,
        uncounted=tuple(name for name in released if roles.get(name) not in COUNTED),
        own=own_values(engine, source, others, view, unit, counted),
    )


def uniqueness(
    engine: Engine, source: Source, names: Sequence[str], view: str = "written", unit: str | None = None
) -> Uniqueness:
    """Return the uniqueness of the records of a view over some columns, as the text that a reader sees."""
    cells = [as_seen(source, source.column(name)) for name in names]
    return uniqueness_of(engine, cells, view) if unit is None else uniqueness_in_units(engine, cells, view, unit)


def uniqueness_in_units(engine: Engine, cells: Sequence[str], view: str, unit: str) -> Uniqueness:
    """Count the persons with a record that no other person shares, by the SQL of some cells."""
    named = ", ".join(f"{cell} AS c{position}" for position, cell in enumerate(cells)) or "0 AS c0"
    keys = ", ".join(f"c{position}" for position in range(max(len(cells), 1)))
    pairs = f"SELECT DISTINCT {named}, {unit} AS u FROM {view}"
    sizes = f"SELECT u, count(*) OVER (PARTITION BY {keys}) AS n FROM ({pairs}) AS p"
    least = f"SELECT min(n) AS n FROM ({sizes}) AS s GROUP BY u"
    counted = engine.rows(f"SELECT n, count(*) FROM ({least}) AS t GROUP BY n ORDER BY n")
    classes = engine.rows(f"SELECT count(*) FROM (SELECT DISTINCT {named} FROM {view}) AS t")[0][0]
    persons = {int(n): int(number) for n, number in counted}
    total = sum(persons.values())
    return Uniqueness(
        len(cells),
        total,
        int(classes),
        persons.get(1, 0),
        min(persons, default=0),
        sum(number / n for n, number in persons.items()) / max(total, 1),
    )


def uniqueness_of(engine: Engine, cells: Sequence[str], view: str) -> Uniqueness:
    """Return the uniqueness by the SQL of some cells. Missing values count as equal. Without cells all are equal."""
    named = ", ".join(f"{cell} AS c{position}" for position, cell in enumerate(cells))
    keys = ", ".join(f"c{position}" for position in range(len(cells)))
    grouped = f"SELECT count(*) AS n FROM (SELECT {named} FROM {view}) AS t GROUP BY {keys}"
    if not cells:
        grouped = f"SELECT count(*) AS n FROM {view}"
    records, classes, unique, smallest = engine.rows(
        "SELECT CAST(coalesce(sum(n), 0) AS BIGINT), count(*), count(CASE WHEN n = 1 THEN 1 END), "
        f"coalesce(min(n), 0) FROM ({grouped}) AS g"
    )[0]
    return Uniqueness(len(cells), int(records), int(classes), int(unique), int(smallest))
