"""A file as a whole: how unique a record is over every column that leaves, counted in a figure or not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sfumato.auditing.own_values import OwnValues, own_values
from sfumato.sources.cells import as_seen
from sfumato.sources.engines.engine import Engine
from sfumato.sources.roles import Role
from sfumato.sources.source import Source
from sfumato.study import Study

COUNTED = (Role.QUASI_IDENTIFIER, Role.SENSITIVE, Role.LABEL)


@dataclass(frozen=True)
class Uniqueness:
    """Records that share the same values in some columns: how many columns, classes and records, and the smallest.

    Where persons are counted, `records` is their number, and `unique` those of whom a record is in a class that holds
    no other person; `expected` is then the share of correct matches, each person with the most exposed record.

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
        """The expected share of correct matches: one record of every class, whichever is guessed."""
        return self.classes / max(self.records, 1) if self.expected is None else self.expected

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Uniqueness:
        """What `as_dict` says; the expected share is kept as it is stated."""
        columns, records, classes = (int(given[name]) for name in ("columns", "records", "classes"))
        unique, smallest = int(given["unique"]), int(given["smallest"])
        return cls(columns, records, classes, unique, smallest, float(given["expected_correct_matches"]))

    def as_dict(self) -> dict[str, Any]:
        return {
            "columns": self.columns,
            "records": self.records,
            "classes": self.classes,
            "unique": self.unique,
            "smallest": self.smallest,
            "unique_share": self.unique_share,
            "expected_correct_matches": self.matches,
        }


@dataclass(frozen=True)
class WholeFile:
    """A released file over all its columns, and over those that are not sensitive; and the columns in no figure.

    `known` is what an attacker may know: the quasi-identifiers and the released columns that are not sensitive. `own`
    are the released columns, quasi-identifiers left out, in which some record has a value of its own.
    """

    everything: Uniqueness
    known: Uniqueness
    uncounted: tuple[str, ...]
    counted: str = "records"
    own: tuple[OwnValues, ...] = ()

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> WholeFile:
        """What `as_dict` says."""
        everything, known = given["all_columns"], given["quasi_identifiers_and_kept"]
        uncounted = tuple(map(str, given["columns_in_no_figure"]))
        own = tuple(OwnValues.from_dict(name, about) for name, about in given["own_values"].items())
        counted = given.get("counted", "records")
        return cls(Uniqueness.from_dict(everything), Uniqueness.from_dict(known), uncounted, counted, own)

    def as_dict(self) -> dict[str, Any]:
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
    """Measure a file over all columns that are released. The file is a view of the engine's.

    With `unit`, a column of the view that names the person of each record, persons are counted; `counted` names them,
    and may be households.
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
    """How unique the records of a view are over some of its columns, as the text that a reader sees."""
    cells = [as_seen(source, source.column(name)) for name in names]
    return uniqueness_of(engine, cells, view) if unit is None else uniqueness_in_units(engine, cells, view, unit)


def uniqueness_in_units(engine: Engine, cells: Sequence[str], view: str, unit: str) -> Uniqueness:
    """How many persons have a record that no other person shares, by the SQL of some cells."""
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
    """The same by the SQL of some cells; without any, all records are alike. A missing value is like any other."""
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
