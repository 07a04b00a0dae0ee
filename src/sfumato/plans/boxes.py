"""A plan of the local system: classes with a label of their own in each column, and which records are in which."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

Span = tuple[str, str]
Entry = tuple[int, int, int]


@dataclass(frozen=True)
class BoxPlan:
    """The label of each class and column by its first and last value in the column's order; and the records inside.

    Each of `members` is (tuple, class, records): so many records of a tuple of the frequency table are in a class, and
    those of class -1 are suppressed. The same value may stand in several labels, and a tuple in several classes.

    >>> BoxPlan(("age",), ((("20", "29"),), (("25", "25"),)), ((0, 0, 5), (1, 1, 5))).entries()
    {'classes': 2}
    """

    columns: tuple[str, ...]
    labels: tuple[tuple[Span, ...], ...]
    members: tuple[Entry, ...]

    def __post_init__(self) -> None:
        classes = len(self.labels)
        whole = all(len(spans) == len(self.columns) for spans in self.labels)
        if not whole or not all(t >= 0 and -1 <= owner < classes and count > 0 for t, owner, count in self.members):
            raise ValueError("the classes of the plan do not fit its labels")

    @property
    def rank(self) -> tuple[Any, ...]:
        return (len(self.labels), self.labels, self.members)

    def entries(self) -> dict[str, Any]:
        """What may be shown: how many classes there are. Who is in which is for the owner of the front."""
        return {"classes": len(self.labels)}

    def saved(self) -> dict[str, Any]:
        labels = [[list(span) for span in spans] for spans in self.labels]
        members = [list(entry) for entry in self.members]
        return {"plan": {"columns": list(self.columns), "labels": labels, "members": members}}

    @classmethod
    def from_saved(cls, found: Mapping[str, Any]) -> Self:
        """The plan of a point that was saved; ValueError if it cannot be one."""
        plan = found["plan"]
        labels = tuple(tuple(_span(span) for span in spans) for spans in plan["labels"])
        members = tuple(_entry(entry) for entry in plan["members"])
        return cls(tuple(str(name) for name in plan["columns"]), labels, members)


def _span(given: Sequence[Any]) -> Span:
    first, last = given
    if not isinstance(first, str) or not isinstance(last, str):
        raise ValueError("a label is from one value to another")
    return first, last


def _entry(given: Sequence[Any]) -> Entry:
    tuple_, owner, count = given
    if not all(isinstance(number, int) and abs(number) < 2**62 for number in given):
        raise ValueError("records are counted in whole numbers")
    return tuple_, owner, count
