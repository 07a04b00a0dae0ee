"""A file as a whole: how unique a record is over every column that leaves, counted in a figure or not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sfumato.sources.cells import cleaned
from sfumato.sources.engines.engine import Engine
from sfumato.sources.roles import Role
from sfumato.sources.source import Source
from sfumato.study import Study

COUNTED = (Role.QUASI_IDENTIFIER, Role.SENSITIVE, Role.LABEL)


@dataclass(frozen=True)
class Uniqueness:
    """Records that share the same values in some columns: how many columns, classes and records, and the smallest.

    >>> Uniqueness(columns=2, records=10, classes=6, unique=4, smallest=1).unique_share
    0.4
    """

    columns: int
    records: int
    classes: int
    unique: int
    smallest: int

    @property
    def unique_share(self) -> float:
        return self.unique / max(self.records, 1)

    @property
    def matches(self) -> float:
        """The expected share of correct matches: one record of every class, whichever is guessed."""
        return self.classes / max(self.records, 1)

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

    `known` is what somebody may hold who knows the quasi-identifiers and all columns that are released unchanged.
    """

    everything: Uniqueness
    known: Uniqueness
    uncounted: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        return {
            "all_columns": self.everything.as_dict(),
            "quasi_identifiers_and_kept": self.known.as_dict(),
            "columns_in_no_figure": list(self.uncounted),
        }


def whole_file(engine: Engine, study: Study, source: Source, view: str = "written") -> WholeFile:
    """Measure a file over all columns that are released. The file is a view of the engine's."""
    roles = {name: study.columns[name].role for name in source.names if name in study.columns}
    released = [name for name in source.names if name not in roles or roles[name].released]
    known = [name for name in released if roles.get(name) is not Role.SENSITIVE]
    return WholeFile(
        everything=uniqueness(engine, source, released, view),
        known=uniqueness(engine, source, known, view),
        uncounted=tuple(name for name in released if roles.get(name) not in COUNTED),
    )


def uniqueness(engine: Engine, source: Source, names: Sequence[str], view: str = "written") -> Uniqueness:
    """How unique the records of a view are over some of its columns, as the text that a reader sees."""
    return uniqueness_of(engine, [cleaned(source, source.column(name)) for name in names], view)


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
