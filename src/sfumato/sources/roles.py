"""What a column is to the publisher. Every column has exactly one role before anything runs."""

from __future__ import annotations

from enum import StrEnum


class Role(StrEnum):
    """The role of a column.

    >>> Role("sensitive").meaning
    'confidential: must not be learned about a person'
    """

    QUASI_IDENTIFIER = "quasi_identifier"
    SENSITIVE = "sensitive"
    LABEL = "label"
    IDENTIFIER = "identifier"
    WEIGHT = "weight"
    OTHER = "other"
    DROP = "drop"
    VITAL = "vital"
    UNIT = "unit"
    HOUSEHOLD = "household"

    @property
    def meaning(self) -> str:
        return MEANINGS[self]

    @property
    def released(self) -> bool:
        """Whether such a column may be in a released file. No system releases the others.

        >>> [str(role) for role in Role if not role.released]
        ['identifier', 'drop', 'vital', 'unit', 'household']
        """
        return self not in (Role.IDENTIFIER, Role.DROP, Role.VITAL, Role.UNIT, Role.HOUSEHOLD)

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of a column in a run file that do something in this role, beside `role` itself."""
        return KEYS.get(self, ())

    @property
    def measured(self) -> bool:
        """Whether a missing value in such a column is subject to the missing rule."""
        return self in (Role.QUASI_IDENTIFIER, Role.SENSITIVE, Role.LABEL, Role.WEIGHT)


MEANINGS = {
    Role.QUASI_IDENTIFIER: "known to outsiders; together such columns can identify a person",
    Role.SENSITIVE: "confidential: must not be learned about a person",
    Role.LABEL: "the class an analyst wants to predict",
    Role.IDENTIFIER: "identifies a person directly; never released",
    Role.WEIGHT: "number of people in the population that a record represents",
    Role.OTHER: "released unchanged and not counted in any privacy measure",
    Role.DROP: "left out of the release",
    Role.VITAL: "defines the group to protect (groups system); never released",
    Role.UNIT: "number of the person that a record belongs to; classes count persons; never released",
    Role.HOUSEHOLD: "number of the household that a person belongs to; never released",
}

KEYS: dict[Role, tuple[str, ...]] = {
    Role.QUASI_IDENTIFIER: ("hierarchy", "missing", "constrained", "order", "breaks"),
    Role.SENSITIVE: ("hierarchy", "missing", "distance", "round", "bands", "harmless"),
    Role.LABEL: ("missing", "round", "bands"),
    Role.WEIGHT: ("round",),
    Role.OTHER: ("round", "bands"),
}
