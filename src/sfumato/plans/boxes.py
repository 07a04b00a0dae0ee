"""A plan of local recoding: equivalence classes with their own labels, and the records of each class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from sfumato.plans.recodings import JsonObject

Span = tuple[str, str]
Entry = tuple[int, int, int]


@dataclass(frozen=True)
class BoxPlan:
    """The labels of each class (their first and last value in the column's order) and the records of each class.

    An entry (tuple, class, records) of `members` says how many records of a tuple are in a class. Records of class -1
    are suppressed. A value may be in several labels, and the records of a tuple in several classes.

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
    def rank(self) -> tuple[object, ...]:
        return (len(self.labels), self.labels, self.members)

    def entries(self) -> dict[str, object]:
        """Return what may be shown: the number of classes. Which record is in which class is only for the owner."""
        return {"classes": len(self.labels)}

    def saved(self) -> dict[str, object]:
        """Return the plan as a list of labels for each column, with classes and members as rows of numbers."""
        spans: list[dict[Span, int]] = [{} for _ in self.columns]
        classes = [[spans[j].setdefault(span, len(spans[j])) for j, span in enumerate(c)] for c in self.labels]
        labels = {name: [list(span) for span in own] for name, own in zip(self.columns, spans, strict=True)}
        return {
            "classes": len(classes),
            "plan": {"labels": labels, "classes": _text(classes), "members": _text(self.members)},
        }

    @classmethod
    def from_saved(cls, saved: JsonObject) -> Self:
        """Return the plan of a saved point. Raise ValueError if the entries are not those of a plan."""
        plan = saved["plan"]
        spans = {str(name): [_span(span) for span in own] for name, own in plan["labels"].items()}
        width = len(spans)
        labels = []
        for numbers in _rows(plan["classes"], width):
            if min(numbers, default=0) < 0:
                raise ValueError("labels are numbered from 0")
            labels.append(tuple(own[number] for own, number in zip(spans.values(), numbers, strict=True)))
        members = tuple((t, owner, count) for t, owner, count in _rows(plan["members"], 3))
        if saved["classes"] != len(labels):
            raise ValueError("another number of classes")
        return cls(tuple(spans), tuple(labels), members)


def _text(rows: Sequence[Sequence[int]]) -> str:
    return ";".join(" ".join(map(str, row)) for row in rows)


def _rows(text: object, width: int) -> list[list[int]]:
    if not isinstance(text, str) or len(text) > 2**31:
        raise ValueError("rows of numbers are a text")
    rows = [[int(number) for number in row.split()] for row in text.split(";")] if text else []
    if any(len(row) != width or any(abs(number) >= 2**62 for number in row) for row in rows):
        raise ValueError("rows of numbers are of one length")
    return rows


def _span(given: Sequence[object]) -> Span:
    first, last = given
    if not isinstance(first, str) or not isinstance(last, str):
        raise ValueError("a label is from one value to another")
    return first, last
