"""What a column is to the publisher. Every column has exactly one role before anything runs."""

from __future__ import annotations

from enum import StrEnum


class Role(StrEnum):
    """The role of a column.

    >>> Role("sensitive").meaning
    'what must not be learned about a person'
    """

    QUASI_IDENTIFIER = "quasi_identifier"
    SENSITIVE = "sensitive"
    LABEL = "label"
    IDENTIFIER = "identifier"
    WEIGHT = "weight"
    OTHER = "other"
    DROP = "drop"
    VITAL = "vital"
    AREA = "area"
    BASIC = "basic"

    @property
    def meaning(self) -> str:
        return MEANINGS[self]

    @property
    def measured(self) -> bool:
        """Whether a missing value in such a column is subject to the missing rule."""
        return self in (Role.QUASI_IDENTIFIER, Role.SENSITIVE, Role.LABEL, Role.WEIGHT)


MEANINGS = {
    Role.QUASI_IDENTIFIER: "known to outsiders, so together such columns can single a person out",
    Role.SENSITIVE: "what must not be learned about a person",
    Role.LABEL: "the class an analyst wants to predict",
    Role.IDENTIFIER: "names a person directly; never released",
    Role.WEIGHT: "how many people of the population a record stands for",
    Role.OTHER: "kept as it is",
    Role.DROP: "left out",
    Role.VITAL: "defines the group to protect (groups system)",
    Role.AREA: "the place a group is counted in (groups system)",
    Role.BASIC: "an attribute an attacker can learn the group from (groups system)",
}
