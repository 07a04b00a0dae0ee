"""What a measure is: a frozen description, a function that gives its property, and the fold that gives its value.

What a measure says of itself beside its definition: how it is shown, and which fast ways there are to its value.

A measure as a goal of a search: which way is better, and perhaps a limit.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Literal, NamedTuple

import numpy as np

from sfumato.base.arrays import Codes, Counts64, Floats
from sfumato.errors import MeasureError, nearest
from sfumato.measures.classes import ClassTable
from sfumato.measures.criteria import Criterion
from sfumato.measures.oracle import Records
from sfumato.measures.property import Property
from sfumato.tables.frequency import FrequencyTable


class Form(StrEnum):
    """The figures that follow from a histogram of classes by size and diversity, under any suppression."""

    SIZE = "k"
    DIVERSITY = "l"
    MEAN_SIZE = "weighted_k"
    MEAN_DIVERSITY = "weighted_l"

    @property
    def mean(self) -> bool:
        """Whether it is a mean over records, not the least of the classes."""
        return self in (Form.MEAN_SIZE, Form.MEAN_DIVERSITY)


class Headline(NamedTuple):
    """A figure that an audit shows first: its position, the words below the number, and whether it marks a danger."""

    position: int
    says: str
    warns: bool = False


def _none() -> Counts64:
    return np.empty(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class NodeFigures:
    """What is counted of releases of nodes of a lattice, one entry each; or of nodes with nothing suppressed.

    `kept` are the records released and `sums`, for each node and column, the leaves that their labels cover; both
    follow from the margins of the table where nothing is suppressed. The others need a visit: the sums over records of
    class sizes and of how often their own sensitive value occurs in the class, and the records whose label is not the
    commonest of their class.
    """

    table: FrequencyTable
    weights: Floats
    nodes: Codes
    kept: Counts64
    sums: Counts64
    size_sum: Counts64 = field(default_factory=_none)
    own_sum: Counts64 = field(default_factory=_none)
    mislabelled: Counts64 = field(default_factory=_none)


@dataclass(frozen=True)
class Walked:
    """How the compiled walk over a lattice gives a measure: from its figures, or already from the margins."""

    value: Callable[[NodeFigures], Any]
    from_margins: bool = False


@dataclass(frozen=True)
class PerClass:
    """How compiled loops give what one class has of a measure that is the worst of the classes.

    `parameter` is the name of the measure's own parameter that they read; `whole` says that it compares a class with
    the distribution of the table, which for the choice of what is suppressed is that of the whole input; `risk` that
    it is one over what is counted.
    """

    criterion: Criterion
    parameter: str = ""
    whole: bool = False
    risk: bool = False

    def value(self, counted: Any) -> Any:
        """The measure from what is counted, and the other way round."""
        return 1.0 / counted if self.risk else counted


@dataclass(frozen=True, eq=False)
class CutFigures:
    """What is counted of cuts: losses as shares of all that could be lost, and `full`, which that is.

    `least_size`, `least_distinct` and `mean` (of sizes, or of diversities) are there as the rule of suppression has it.
    """

    least_size: Floats
    least_distinct: Floats
    mean: Floats
    generalized: Floats
    suppressed: Floats
    full: float


Kind = Literal["privacy", "loss"]
Direction = Literal["max", "min"]
Reads = Literal["sizes", "cells", "sensitive", "label", "population", "weights", "originals", "household"]
Scale = Literal["linear", "log"]
Unit = Literal["number", "count", "share"]
Fold = Literal["worst", "sum", "mean"] | Callable[[ClassTable, Property], float]

MOST_WHOLE, MOST = 10**9, 1e12  # of a parameter
NEEDS = {
    "sensitive": ("a sensitive column", 'role = "sensitive" for what must not be learned'),
    "label": ("a label column", 'role = "label" for the class an analyst predicts'),
    "population": ("a population table", "[population] with path = ... in the run file"),
    "weights": ("a weight column", 'role = "weight" for how many people a record stands for'),
    "household": ("a household column", 'role = "household" for the number of the household'),
    "originals": ("the original values", "measure the original table"),
}


@dataclass(frozen=True)
class Measure:
    """A figure of disclosure or of loss.

    `direction` says which way is better; `monotone` how the value moves when a table is generalized further with
    nothing suppressed ("rises", "falls", or None when it can do either); `highest` gives the top of its range.
    `bound` is an optimistic figure that does move so even with a suppression budget, which lets a search discard whole
    regions: the value with nothing suppressed, or the best that spending the budget on it alone reaches. It holds for
    `bound_direction`, by default the measure's own. None: nothing is discarded on its account.

    How it is shown: `short` names it in a clause ("k 5"), `scale` and `unit` say how it is drawn and written,
    `headline` puts it first in an audit, `usual` among the objectives that are offered first, and `attacker` names the
    attacker whose success it is. `aliases` are other names of the same measure.

    Other ways to its value: `histogram` is what it is a form of where histograms of classes answer it, `walked`
    how the compiled walk over a lattice gives it, `per_class` how compiled loops give what one class has of it,
    `tallied` how the compiled figures of cuts do; without them it is taken from class tables, which is slower and
    always right. A search over real values tells losses apart in steps of `resolution`, a share of the highest value.

    What a suppressed record has: `suppressed` is "worst" (no record has more of a loss), "nothing" (another measure
    counts them) or "own" (all that this record had). `ties` says that a record's own number may depend on which of
    equals is taken, so that only their sum is defined.

    For the reference: `formula` in one line, when to `use` it, and what it is called `elsewhere`, by tool or author.
    """

    name: str
    title: str
    kind: Kind
    direction: Direction
    reads: Reads
    function: Callable[..., Property]
    oracle: Callable[..., float]
    fold: Fold
    monotone: Literal["rises", "falls"] | None
    sentence: str
    citation: str
    lowest: float = 0.0
    highest: Callable[[ClassTable], float] = lambda classes: float("inf")
    parameters: Mapping[str, float | str] = field(default_factory=dict)
    choices: tuple[str, ...] = ()
    bound: Literal["unsuppressed", "own_budget"] | None = None
    bound_direction: Direction | None = None
    unfit: Callable[[ClassTable], str | None] = lambda classes: None
    aliases: tuple[str, ...] = ()
    short: str = ""
    scale: Scale = "linear"
    unit: Unit = "number"
    headline: Headline | None = None
    usual: bool = False
    attacker: str = ""
    histogram: Form | None = None
    walked: Walked | None = None
    per_class: PerClass | None = None
    tallied: Callable[[CutFigures], Floats] | None = None
    resolution: float = 0.0
    suppressed: Literal["worst", "nothing", "own"] = "worst"
    ties: bool = False
    formula: str = ""
    use: str = ""
    elsewhere: Mapping[str, str] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """Every name it has, its own first."""
        return (self.name, *self.aliases)

    @property
    def label(self) -> str:
        """What it is called in a clause: its short name if it has one, else its title."""
        return self.short or self.title

    def as_dict(self) -> dict[str, Any]:
        """What it says of itself, as `sfumato measures --json` prints it and the page reads it."""
        headline = self.headline
        return {
            "name": self.name,
            "aliases": list(self.aliases),
            "title": self.title,
            "short": self.label,
            "kind": self.kind,
            "direction": self.direction,
            "reads": self.reads,
            "sentence": self.sentence,
            "citation": self.citation,
            "parameters": dict(self.parameters),
            "scale": self.scale,
            "unit": self.unit,
            "usual": self.usual,
            "attacker": self.attacker or None,
            "headline": None if headline is None else headline._asdict(),
        }

    def with_settings(self, given: Mapping[str, Mapping[str, Any]]) -> Measure:
        """The same measure with the parameters that a run file gives it, under whichever of its names."""
        parameters: dict[str, Any] = {}
        for name in reversed(self.names):
            parameters |= given.get(name, {})
        return self.with_parameters(parameters)

    def available(self, classes: ClassTable) -> str | None:
        """Why this table cannot answer, or None if it can."""
        table = classes.table
        if self.reads == "population" and classes.population is None:
            return classes.population_reason
        there = {
            "sensitive": bool(table.sensitive),
            "label": table.label is not None,
            "weights": table.weights is not None,
            "household": table.households is not None,
            "originals": not table.removed and not any(domain.generalized for domain in table.domains),
        }
        return self.unfit(classes) if there.get(self.reads, True) else f"needs {NEEDS[self.reads][0]}"

    def columns(self, classes: ClassTable) -> list[str | None]:
        """The columns it is taken for: each sensitive one, the label, or none."""
        if self.reads == "sensitive":
            return list(classes.table.sensitive)
        if self.reads == "label" and classes.table.label is not None:
            return [classes.table.label.domain.name]
        return [None]

    def property(self, classes: ClassTable, column: str | None = None) -> Property:
        """The property: one number per record. Where several columns are sensitive, say which."""
        if reason := self.available(classes):
            expected, remedy = NEEDS.get(self.reads, ("a table that can answer", "another measure"))
            raise MeasureError(f"{self.name} {reason}", expected=expected, remedy=remedy)
        columns = self.columns(classes)
        chosen = columns[0] if column is None and len(columns) == 1 else column
        if chosen not in columns:
            known = [name for name in columns if name is not None]
            raise MeasureError(
                f"{self.name} of {column!r}",
                expected="one of its columns",
                remedy=nearest(str(column), known),
            )
        if chosen is None:
            found = self.function(classes, **self.parameters)
        else:
            found = self.function(classes, chosen, **self.parameters)
        return found.in_units(self.direction) if self.kind == "privacy" else found

    def for_table(self, table: FrequencyTable, suppressing: bool = True) -> Measure:
        """The same measure with the bounds that hold on a table.

        ℓ, t, α, β and δ count units: where a unit has records in several tuples, joining two classes can make any of
        them worse (SPEC 8: {u₁: a, u₂: b} and {u₁: b, u₂: a} have ℓ 2, their union has ℓ 1), so nothing is discarded.

        Where values are harmless or missing, a class may be exempt from ℓ and δ, and what it is joined with is not. So
        joining can make δ worse, and the best ℓ that a suppression budget reaches (not ℓ without suppression).
        """
        if table.special and self.per_class is not None:
            kind = self.per_class.criterion
            if kind is Criterion.DELTA or (kind is Criterion.DISTINCT and suppressing):
                return replace(self, monotone=None, bound=None)
        counted = [units for units in (table.units, table.households) if units is not None]
        if self.reads != "sensitive" or all(units.constant for units in counted):
            return self
        return replace(self, monotone=None, bound=None)

    def value(self, classes: ClassTable, column: str | None = None) -> float:
        """The value: over several sensitive columns, the worst of theirs."""
        if column is None and len(self.columns(classes)) > 1:
            values = [self.value(classes, name) for name in self.columns(classes)]
            return min(values) if self.direction == "max" else max(values)
        return self.folded(classes, self.property(classes, column))

    def folded(self, classes: ClassTable, values: Property) -> float:
        if self.fold == "worst":
            return values.worst(self.direction)
        if self.fold == "sum":
            return values.total()
        if self.fold == "mean":
            return values.mean()
        return self.fold(classes, values)

    def with_parameters(self, given: Mapping[str, Any]) -> Measure:
        """The same measure with other parameters."""
        for name in given:
            if name not in self.parameters:
                raise MeasureError(
                    f'{self.name} has no parameter "{name}"',
                    expected="a known parameter",
                    remedy=nearest(name, self.parameters),
                )
            self._check(name, given[name])
        return replace(self, parameters={**self.parameters, **given})

    def _check(self, name: str, value: Any) -> None:
        """A parameter has the kind of its default: one of some words, a whole number from 1, or a number above 0."""
        default = self.parameters[name]
        if isinstance(default, str):
            fits, expected = value in self.choices, "one of: " + ", ".join(self.choices)
        elif isinstance(default, int):
            fits, expected = (
                isinstance(value, int | float) and 1 <= value <= MOST_WHOLE and value == int(value),
                f"a whole number from 1 to {MOST_WHOLE:,}",
            )
        else:
            fits, expected = (
                isinstance(value, int | float) and 0 < value <= MOST,
                f"a number above 0, and at most {MOST:g}",
            )
        if not fits:
            raise MeasureError(
                f"{self.name} with {name} = {value!r}", expected=expected, remedy=f"{name} = {json.dumps(default)}"
            )

    def expected_records(self, records: Records, column: str | None = None) -> Floats:
        """The property by the plain oracle: for tests."""
        return records.each(self.oracle, column, self.parameters)


@dataclass(frozen=True)
class Goal:
    """A measure with the direction that is better here, and perhaps a limit."""

    measure: Measure
    direction: str
    limit: float | None = None

    @property
    def sign(self) -> float:
        """What turns its value into one that is minimised."""
        return -1.0 if self.direction == "max" else 1.0

    @property
    def bounded(self) -> bool:
        """Whether the measure's bound holds for this direction."""
        return self.measure.bound is not None and self.direction == (
            self.measure.bound_direction or self.measure.direction
        )

    @property
    def moves(self) -> str | None:
        """How the minimised bound moves when a node is generalized."""
        if not self.bounded or self.measure.monotone is None:
            return None
        turned = {"rises": "falls", "falls": "rises"}
        return turned[self.measure.monotone] if self.direction == "max" else self.measure.monotone
