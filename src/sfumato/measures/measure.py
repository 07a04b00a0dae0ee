"""Measures: a definition (property and summary), how the value is shown, and the faster ways to compute it.

A `Goal` is a measure with a direction, and possibly a limit, in a search.
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
    """The figures that follow from a histogram of classes by size and diversity, for every suppression."""

    SIZE = "k"
    DIVERSITY = "l"
    MEAN_SIZE = "weighted_k"
    MEAN_DIVERSITY = "weighted_l"

    @property
    def mean(self) -> bool:
        """Return whether the figure is a mean over records, not a minimum over classes."""
        return self in (Form.MEAN_SIZE, Form.MEAN_DIVERSITY)


class Headline(NamedTuple):
    """A figure at the top of an audit: its position, the words below the number, and whether it is a warning."""

    position: int
    says: str
    warns: bool = False


def _none() -> Counts64:
    return np.empty(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class NodeFigures:
    """The counts of releases of nodes of a lattice, or of nodes without suppression, one entry for each.

    The number of released records is `kept`. The leaves that their labels cover, for each node and column, are `sums`.
    Without suppression both follow from the margins of the table. The other counts need a visit of the node. They are
    the sum over records of class sizes, the sum over records of how often their own sensitive value occurs in the
    class, and the number of records whose label is not the most frequent one of their class.
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
    """A measure computed from the counts of the compiled walk over a lattice, or from the margins alone."""

    value: Callable[[NodeFigures], Any]
    from_margins: bool = False


@dataclass(frozen=True)
class PerClass:
    """A measure that is the worst of the classes, computed for each class by compiled loops.

    The loops read the parameter of the measure that is named in `parameter`. With `whole`, a class is compared with the
    distribution of the table, which is that of the input when classes are selected for suppression. With `risk`, the
    measure is one over the criterion.
    """

    criterion: Criterion
    parameter: str = ""
    whole: bool = False
    risk: bool = False

    def value(self, counted: Any) -> Any:
        """Return the measure from its criterion, or the criterion from the measure."""
        return 1.0 / counted if self.risk else counted


@dataclass(frozen=True, eq=False)
class CutFigures:
    """The counts of cuts. The losses are shares of the highest loss, which is `full`.

    The rule of suppression decides which of `least_size`, `least_distinct` and `mean` (of sizes, or of diversities) are
    known.
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
    """A measure of disclosure risk or of information loss.

    Definition: a property (`function`), summarised by `fold`. The better `direction` is "max" or "min". When a table is
    generalized further without suppression, the value "rises" or "falls" (`monotone`), or it may do either (None). The
    range is from `lowest` to `highest`.

    Pruning: `bound` names an optimistic figure that is monotone even with a suppression budget. It is the value without
    suppression, or the best value if the budget is used for this measure alone. The bound is valid for
    `bound_direction`, by default the measure's own. With None no node is pruned by this measure.

    Display: a clause uses the `short` name ("k 5"), a plot the `scale`, a number the `unit`. An audit begins with
    measures that have a `headline`. Objectives that are `usual` are listed first. An `attacker` is named if the measure
    is that attacker's success. The measure is also known by its `aliases`.

    Fast computation: from a `histogram` of classes, from the walk over a lattice (`walked`), from compiled loops over
    classes (`per_class`), or from the figures of cuts (`tallied`). Without these the value comes from class tables,
    which is slower and always correct. A search over real values compares losses in steps of `resolution`, a share of
    the highest value.

    Suppressed records: their number is the "worst" (no record has a higher loss), "nothing" (another measure counts
    them) or their "own" (all information that the record had). With `ties`, the number of a record depends on which of
    several equal records is selected, so only the sum is defined.

    Reference: the `formula` in one line, when to `use` the measure, and its names `elsewhere`, by tool or author.
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
        """Return all names of the measure, the main name first."""
        return (self.name, *self.aliases)

    @property
    def label(self) -> str:
        """Return the name for a clause: the short name if there is one, else the title."""
        return self.short or self.title

    def as_dict(self) -> dict[str, Any]:
        """Return the description that `sfumato measures --json` prints and the page reads."""
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
        """Return the measure with the parameters of a run file, under any of its names."""
        parameters: dict[str, Any] = {}
        for name in reversed(self.names):
            parameters |= given.get(name, {})
        return self.with_parameters(parameters)

    def available(self, classes: ClassTable) -> str | None:
        """Return why the measure cannot be computed for a table, or None if it can."""
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
        """Return the columns for which the measure is computed: each sensitive column, the label, or None."""
        if self.reads == "sensitive":
            return list(classes.table.sensitive)
        if self.reads == "label" and classes.table.label is not None:
            return [classes.table.label.domain.name]
        return [None]

    def property(self, classes: ClassTable, column: str | None = None) -> Property:
        """Return the property: one number for each record. With several sensitive columns, name the column."""
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
        """Return the measure with only those bounds that are valid for a table."""
        # With harmless or missing values a class may be exempt from ℓ and δ, and the class it is joined with is not. So
        # joining can make δ worse, and also the best ℓ within a suppression budget (but not ℓ without suppression).
        if table.special and self.per_class is not None:
            kind = self.per_class.criterion
            if kind is Criterion.DELTA or (kind is Criterion.DISTINCT and suppressing):
                return replace(self, monotone=None, bound=None)
        counted = [units for units in (table.units, table.households) if units is not None]
        # ℓ, t, α, β and δ count units. If a unit has records in several tuples, joining two classes can make each of
        # them worse (SPEC 8: {u₁: a, u₂: b} and {u₁: b, u₂: a} have ℓ 2, their union has ℓ 1).
        if self.reads != "sensitive" or all(units.constant for units in counted):
            return self
        return replace(self, monotone=None, bound=None)

    def value(self, classes: ClassTable, column: str | None = None) -> float:
        """Return the value. Of several sensitive columns it is the worst."""
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
        """Return the measure with other parameters."""
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
        """Raise if a parameter has not the kind of its default: a word, a whole number from 1, a number above 0."""
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
        """Return the property computed by the plain oracle, for tests."""
        return records.each(self.oracle, column, self.parameters)


@dataclass(frozen=True)
class Goal:
    """A measure with the better direction in a search, and possibly a limit."""

    measure: Measure
    direction: str
    limit: float | None = None

    @property
    def sign(self) -> float:
        """Return the factor by which a value becomes one that is minimised."""
        return -1.0 if self.direction == "max" else 1.0

    @property
    def bounded(self) -> bool:
        """Return whether the bound of the measure is valid for this direction."""
        return self.measure.bound is not None and self.direction == (
            self.measure.bound_direction or self.measure.direction
        )

    @property
    def moves(self) -> str | None:
        """Return how the minimised bound moves when a node is generalized."""
        if not self.bounded or self.measure.monotone is None:
            return None
        turned = {"rises": "falls", "falls": "rises"}
        return turned[self.measure.monotone] if self.direction == "max" else self.measure.monotone
