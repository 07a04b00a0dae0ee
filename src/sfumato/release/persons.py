"""What a release shows of persons and households: counted on the source, because their numbers are in no file."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.auditing.own_values import HOUSEHOLD, PERSON
from sfumato.auditing.whole import WholeFile, whole_file
from sfumato.errors import SfumatoError
from sfumato.measures.classes import ClassTable
from sfumato.sources.engines.engine import Engine
from sfumato.sources.source import Source
from sfumato.study import Study

VIEW = "held_rows"


@dataclass(frozen=True)
class Persons:
    """The persons of a source and those of whom a record is suppressed; how unique they are over all columns."""

    number: int
    suppressed: int
    whole: WholeFile

    def as_dict(self) -> dict[str, Any]:
        return {"number": self.number, "suppressed": self.suppressed, "whole": self.whole.as_dict()}


@dataclass(frozen=True)
class Holders:
    """What a release shows of persons, and how unique households are over all columns, where these are declared."""

    persons: Persons | None = None
    households: WholeFile | None = None

    def as_dict(self) -> dict[str, Any]:
        """The entries of a manifest."""
        persons = {} if self.persons is None else {"persons": self.persons.as_dict()}
        return persons | ({} if self.households is None else {"households": self.households.as_dict()})

    @classmethod
    def stated(cls, own: Mapping[str, Any]) -> Holders:
        """What a manifest states."""
        persons, households = own.get("persons"), own.get("households")
        return cls(
            None
            if persons is None
            else Persons(int(persons["number"]), int(persons["suppressed"]), WholeFile.from_dict(persons["whole"])),
            None if households is None else WholeFile.from_dict(households),
        )

    def differ(self, own: Mapping[str, Any]) -> list[str]:
        """What of these a manifest states otherwise."""
        found = self.as_dict()
        return [name for name in ("persons", "households") if own.get(name) != found.get(name)]


NOBODY = Holders()


def holders_of(
    engine: Engine, study: Study, rows: str, released: Source, holders: Collection[str], classes: ClassTable
) -> Holders:
    """The persons and households of a release; `rows` is the SQL of its rows with the cells that say whose they are."""
    if not holders:
        return NOBODY
    engine.run(f"CREATE OR REPLACE TEMP VIEW {VIEW} AS {rows}")
    persons, households = None, None
    if PERSON in holders and classes.table.units is not None:
        whole = whole_file(engine, study, released, VIEW, PERSON)
        persons = Persons(classes.table.persons, classes.suppressed_units, whole)
    if HOUSEHOLD in holders:
        households = whole_file(engine, study, released, VIEW, HOUSEHOLD, "households")
    return Holders(persons, households)


def refuse_other_classes(planned: ClassTable, written: ClassTable) -> None:
    """Raise unless the classes whose persons are counted are those of the written file."""
    one, two = (np.sort(classes.rows[classes.kept]) for classes in (planned, written))
    if not np.array_equal(one, two):
        raise SfumatoError(
            "the classes of the written file are not those of the plan",
            expected="the same classes; nothing was released",
            remedy="search again with this version",
        )


def with_stated(figures: Mapping[str, Any], stated: Mapping[str, Any]) -> dict[str, Any]:
    """Figures of a file, with those that a manifest states of persons, which the file alone cannot give."""
    return {**figures, **{name: entry for name, entry in stated.items() if entry["measured_on"] == "source"}}
