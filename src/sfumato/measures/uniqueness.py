"""How unique the records of a table are over some of its columns, as the text that a reader sees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sfumato.data.engine import Engine
from sfumato.data.rows import cleaned
from sfumato.data.source import Source


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


def uniqueness(engine: Engine, source: Source, names: Sequence[str], view: str = "written") -> Uniqueness:
    """Count over a view that has a source's columns. A missing value is a value like any other."""
    return uniqueness_of(engine, [cleaned(source, source.column(name)) for name in names], view)


def uniqueness_of(engine: Engine, cells: Sequence[str], view: str) -> Uniqueness:
    """Count over a view by the SQL of some cells; without any, all records are alike."""
    named = ", ".join(f"{cell} AS c{place}" for place, cell in enumerate(cells))
    keys = ", ".join(f"c{place}" for place in range(len(cells)))
    grouped = f"SELECT count(*) AS n FROM (SELECT {named} FROM {view}) AS t GROUP BY {keys}"
    if not cells:
        grouped = f"SELECT count(*) AS n FROM {view}"
    records, classes, unique, smallest = engine.rows(
        "SELECT CAST(coalesce(sum(n), 0) AS BIGINT), count(*), count(CASE WHEN n = 1 THEN 1 END), "
        f"coalesce(min(n), 0) FROM ({grouped}) AS g"
    )[0]
    return Uniqueness(len(cells), int(records), int(classes), int(unique), int(smallest))
