"""Measures: a definition (property and summary), and the texts by which it is shown.

A `Goal` is a measure with a direction, and possibly a limit, in a search.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Literal

from sfumato.errors import MeasureError, nearest
from sfumato.measures.classes import ClassTable
from sfumato.measures.criteria import Criterion
from sfumato.measures.fast_paths import FAST, NONE, Fast
from sfumato.measures.property import Property
from sfumato.tables.frequency import FrequencyTable

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
    "weights": ("a weight column", 'role = "weight" for the number of people that a record represents'),
    "household": ("a household column", 'role = "household" for the number of the household'),
    "originals": ("the original values", "measure the original table"),
}


@dataclass(frozen=True, order=True)
class Headline:
    """A figure at the top of an audit: its position, the words below the number, and whether it is a warning."""

    position: int
    says: str
    warns: bool = False


@dataclass(frozen=True)
class Texts:
    """The texts of a measure, and how its value is shown. The file `catalogue.toml` has those of the known measures.

    The `formula` is one line, `use` says when to use the measure, and `elsewhere` has its names by tool or author. It
    is also known by its `aliases`. A clause uses the `short` name ("k 5"), a plot the `scale`, a number the `unit`. An
    audit begins with measures that have a `headline`. Objectives that are `usual` are listed first. An `attacker` is
    named if the measure is that attacker's success.
    """

    title: str
    sentence: str
    citation: str
    formula: str = ""
    use: str = ""
    elsewhere: Mapping[str, str] = field(default_factory=dict)
    aliases: tuple[str, ...] = ()
    short: str = ""
    scale: Scale = "linear"
    unit: Unit = "number"
    usual: bool = False
    attacker: str = ""
    headline: Headline | None = None


@cache
def catalogue() -> dict[str, Texts]:
    """Return the texts of the known measures by their names."""
    entries = tomllib.loads(Path(__file__).with_name("catalogue.toml").read_text("utf-8"))
    for entry in entries.values():
        entry["aliases"] = tuple(entry.get("aliases", ()))
        entry["headline"] = Headline(**entry["headline"]) if "headline" in entry else None
    return {name: Texts(**entry) for name, entry in entries.items()}


def all_records(classes: ClassTable) -> float:
    """Return N, the highest size of a class."""
    return float(classes.records)


def all_pairs(classes: ClassTable) -> float:
    """Return N², the highest sum of class sizes over all records."""
    return float(classes.records) ** 2


@dataclass(frozen=True)
class Measure:
    """A measure of disclosure risk or of information loss.

    Definition: a property (`function`), summarised by `fold`. The better `direction` is "max" or "min". When a table is
    generalized further without suppression, the value "rises" or "falls" (`monotone`), or it may do either (None). The
    range is from 0 to `most`, which is 1 for shares unless it is stated. The `oracle` is the definition for one record.

    Pruning: `bound` names an optimistic figure that is monotone even with a suppression budget. It is the value without
    suppression, or the best value if the budget is used for this measure alone. The bound is valid for
    `bound_direction`, by default the measure's own. With None no node is pruned by this measure.

    Suppressed records: their number is the "worst" (no record has a higher loss), "nothing" (another measure counts
    them) or their "own" (all information that the record had). With `ties`, the number of a record depends on which of
    several equal records is selected, so only the sum is defined.

    The `texts` are those of the catalogue, unless the measure states them in its file.
    """

    name: str
    function: Callable[..., Property]
    oracle: Callable[..., float]
    fold: Fold
    kind: Kind
    direction: Direction
    reads: Reads
    monotone: Literal["rises", "falls"] | None
    most: Callable[[ClassTable], float] | None = None
    bound: Literal["unsuppressed", "own_budget"] | None = None
    bound_direction: Direction | None = None
    parameters: Mapping[str, float | str] = field(default_factory=dict)
    choices: tuple[str, ...] = ()
    unfit: Callable[[ClassTable], str | None] = lambda classes: None
    suppressed: Literal["worst", "nothing", "own"] = "worst"
    ties: bool = False
    texts: Texts | None = None

    @property
    def about(self) -> Texts:
        """Return the texts of the measure."""
        return self.texts or catalogue()[self.name]

    @property
    def fast(self) -> Fast:
        """Return the faster ways to compute the measure."""
        return FAST.get(self.name, NONE)

    def highest(self, classes: ClassTable) -> float:
        """Return the highest value for a table, which may be infinite."""
        if self.most is not None:
            return self.most(classes)
        return 1.0 if self.about.unit == "share" else float("inf")

    @property
    def names(self) -> tuple[str, ...]:
        """Return all names of the measure, the main name first."""
        return (self.name, *self.about.aliases)

    @property
    def label(self) -> str:
        """Return the name for a clause: the short name if there is one, else the title."""
        return self.about.short or self.about.title

    def as_dict(self) -> dict[str, object]:
        """Return the description that `sfumato measures --json` prints and the page reads."""
        about = self.about
        return {
            "name": self.name,
            "aliases": list(about.aliases),
            "title": about.title,
            "short": self.label,
            "kind": self.kind,
            "direction": self.direction,
            "reads": self.reads,
            "sentence": about.sentence,
            "citation": about.citation,
            "parameters": dict(self.parameters),
            "scale": about.scale,
            "unit": about.unit,
            "usual": about.usual,
            "attacker": about.attacker or None,
            "headline": None if about.headline is None else asdict(about.headline),
        }

    def with_settings(self, given: Mapping[str, Mapping[str, float | str]]) -> Measure:
        """Return the measure with the parameters of a run file, under any of its names."""
        parameters: dict[str, float | str] = {}
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
                f"{self.name} of {column!r}", expected="one of its columns", remedy=nearest(str(column), known)
            )
        found = self.function(classes, *(() if chosen is None else (chosen,)), **self.parameters)
        return found.in_units(self.direction) if self.kind == "privacy" else found

    def for_table(self, table: FrequencyTable, suppressing: bool = True) -> Measure:
        """Return the measure with only those bounds that are valid for a table."""
        # With harmless or missing values a class may be exempt from ℓ and δ, and the class it is joined with is not. So
        # joining can make δ worse, and also the best ℓ within a suppression budget (but not ℓ without suppression).
        kind = self.fast.criterion
        if table.special and (kind is Criterion.DELTA or (kind is Criterion.DISTINCT and suppressing)):
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
        found = self.property(classes, column)
        if callable(self.fold):
            return self.fold(classes, found)
        if self.fold == "worst":
            return found.worst(self.direction)
        return found.total() if self.fold == "sum" else found.mean()

    def with_parameters(self, given: Mapping[str, float | str]) -> Measure:
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

    def _check(self, name: str, value: float | str) -> None:
        """Raise if a parameter has not the kind of its default: a word, a whole number from 1, a number above 0."""
        default, number = self.parameters[name], value if isinstance(value, int | float) else float("nan")
        if isinstance(default, str):
            fits, expected = value in self.choices, "one of: " + ", ".join(self.choices)
        elif isinstance(default, int):
            fits = 1 <= number <= MOST_WHOLE and number == int(number)
            expected = f"a whole number from 1 to {MOST_WHOLE:,}"
        else:
            fits, expected = 0 < number <= MOST, f"a number above 0, and at most {MOST:g}"
        if not fits:
            raise MeasureError(
                f"{self.name} with {name} = {value!r}", expected=expected, remedy=f"{name} = {json.dumps(default)}"
            )


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
