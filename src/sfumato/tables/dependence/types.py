"""What a search for dependences is asked, and what it answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from sfumato.tables.dependence.lines import Line

Status = Literal["generalized", "withheld", "sensitive", "disguised"]
Way = Literal["tells", "follows", "computes", "finds"]
Kind = Literal["one_to_one", "many_to_one", "nearly"]


@dataclass(frozen=True)
class Protected:
    """A column whose values a reader is not to learn.

    For a generalized one, `steps` are maps from value (as cleaned text; a missing one is empty) to label, the finest
    first: the last is what is released, those before are levels between the value and the release. A column that is
    withheld, sensitive or disguised has none, because a reader has nothing to start from.

    `rare` is a value whose rows are not to be found, such as membership of a group. A column then counts too if its
    values find more than half of these rows and are right more often than wrong.

    >>> Protected("zip", "generalized", ({"1011": "101", "1020": "102"}, {"1011": "1", "1020": "1"})).released["1011"]
    '1'
    """

    name: str
    status: Status = "withheld"
    steps: tuple[Mapping[str, str], ...] = ()
    rare: str | None = None

    @property
    def released(self) -> Mapping[str, str] | None:
        return self.steps[-1] if self.steps else None


@dataclass(frozen=True)
class Dependence:
    """A kept column, or two of them, that give a protected one away.

    `right` is the share of rows for which the guess from the kept columns and the released label is right, `base` the
    share from the released label alone. Where a column *follows* from the protected one, both are about guessing the
    kept column: from the value, and from its released label. `step` is what is guessed: 0 the value, otherwise the
    label of that step. `rows` were counted: those that are alike to another in what the guess is made from. Where a
    column *finds* a rare value, `rows` are the rows that have it, and `right` is the share of them that it finds.
    """

    kept: tuple[str, ...]
    protected: str
    status: Status
    way: Way
    kind: Kind
    right: float
    base: float
    rows: int
    step: int = 0

    def as_dict(self) -> dict[str, Any]:
        return {
            "kept": list(self.kept),
            "protected": self.protected,
            "status": self.status,
            "way": self.way,
            "kind": self.kind,
            "right": round(self.right, 4),
            "base": round(self.base, 4),
            "rows": self.rows,
            "step": self.step,
        }


@dataclass(frozen=True)
class Identifying:
    """A kept column that singles records out by itself: the share of rows whose value no other row has."""

    column: str
    share: float


@dataclass(frozen=True)
class Dependences:
    """All dependences and identifying columns of a table."""

    dependences: tuple[Dependence, ...] = ()
    identifying: tuple[Identifying, ...] = ()


@dataclass(frozen=True)
class Candidate:
    """A dependence that some rows suggest, and how it is to be counted: by value, by order, or on a line."""

    kept: tuple[str, ...]
    protected: Protected
    way: Way
    step: int = 0
    by_order: bool = False
    line: Line | None = None
    near: float = 0.0
    exact: bool = True  # whether near means no more than rounding
    alone: float = 0.0  # the share that the better of two columns guesses right without the other
