"""What a release shows of persons and households: counted on the source, because their numbers are in no file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.auditing.whole import WholeFile
from sfumato.errors import SfumatoError
from sfumato.measures.classes import ClassTable


@dataclass(frozen=True)
class Persons:
    """The persons of a source and those of whom a record is suppressed; how unique they are over all columns."""

    number: int
    suppressed: int
    whole: WholeFile

    def as_dict(self) -> dict[str, Any]:
        return {"number": self.number, "suppressed": self.suppressed, "whole": self.whole.as_dict()}


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


def stated_persons(own: Mapping[str, Any]) -> Persons | None:
    """What a manifest states of persons, if it does."""
    stated = own.get("persons")
    if stated is None:
        return None
    return Persons(int(stated["number"]), int(stated["suppressed"]), WholeFile.from_dict(stated["whole"]))
