"""Mappings of microfiles to the attributes of the groups paper (Tavrov, Chertov 2016, tables 2 to 4).

A run file declares a mapping by recoding and joining columns, by units and ranges, or names a ready one of
`census.toml`. The mapping `acs` is for American Community Survey PUMS person files as the Census Bureau publishes them,
with all races. The mapping `ipums` has the same attributes under their IPUMS names. In contrast, `acs_paper` and
`ipums_paper` are restricted to the two races of the paper.

A *pattern* names values of a column: `"55*"` names values with this beginning, `"2..7"` or `"5.."` a range of numbers,
`""` a blank. Any other pattern is the value itself (numbers are compared as numbers, so `"1"` also matches `01`).
"""

from __future__ import annotations

import tomllib
from pathlib import Path

from pydantic import Field, model_validator

from sfumato.base.settings import Settings
from sfumato.errors import StudyError, nearest


class TermSettings(Settings):
    """A linguistic term: a membership function and its numbers."""

    kind: str
    """Kind of the membership function."""
    numbers: tuple[float, ...]
    """Numbers of the membership function."""


class Case(Settings):
    """A value for rows that meet conditions on several columns."""

    when: dict[str, str | tuple[str, ...]] = Field(min_length=1)
    """Values that columns must have, as patterns by column."""
    value: float
    """Value of the attribute for rows that meet the conditions."""


class Attribute(Settings):
    """A common attribute, from one or more columns of a file.

    The value comes from the first of `cases` that a row meets, or else from `recode`. Without a recode it is the number
    itself, times `multiply`, divided by `divide`. Other values are missing.
    """

    column: str
    """Column of the file that the attribute is made from."""
    recode: dict[str, float] = Field(default_factory=dict)
    """Values of the attribute, by a pattern of values of the column."""
    cases: tuple[Case, ...] = ()
    """Values for conditions on several columns. The first case that a row meets decides, before the key recode."""
    multiply: tuple[float | str, ...] = ()
    """Factors of the column's number: numbers, or columns that hold a factor."""
    divide: float = Field(default=1.0, gt=0)
    """Divisor of the column's number."""
    rounded: bool = False
    """Whether the result is rounded to a whole number."""
    blank: float | None = None
    """Value of the attribute where the column is empty. It is missing unless stated."""
    range: tuple[float, float] | None = None
    """Least and greatest value that take part. Rows outside the range are dropped."""
    ordinal: bool = False
    """Whether the values have an order."""
    weight: float = Field(default=1.0, ge=0)
    """Weight of the attribute in the cost of a swap."""
    terms: dict[str, TermSettings] | None = None
    """Words for values of the attribute, each with its membership function."""
    quantiles: int | None = Field(default=None, ge=2, le=9)
    """Number of words that are made from quantiles where terms are not stated. The default is three."""

    @model_validator(mode="after")
    def _ordered(self) -> Attribute:
        if self.range is not None and self.range[0] > self.range[1]:
            raise ValueError("a range from the least to the greatest value")
        return self

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the attribute reads."""
        names = [self.column, *(name for case in self.cases for name in case.when)]
        return tuple(dict.fromkeys([*names, *(factor for factor in self.multiply if isinstance(factor, str))]))


class FileMapping(Settings):
    """The mapping of a microfile: the members of the group, the area, and each common attribute."""

    recipe: str | None = None
    """Ready mapping of a census file, such as acs or ipums."""
    vital: dict[str, tuple[dict[str, str | tuple[str, ...]], ...]] = Field(default_factory=dict)
    """Conditions that define the groups to protect, by the name of the group. A record that meets any of them is a
    member."""
    area: tuple[str, ...] = ()
    """Columns that name the area. Several columns are joined."""
    attributes: dict[str, Attribute] = Field(default_factory=dict)
    """Attributes that both files have in common, by name."""
    leave_out: tuple[dict[str, str | tuple[str, ...]], ...] = ()
    """Conditions on rows that take no part. A row that meets any of them is left out."""
    only: tuple[dict[str, str | tuple[str, ...]], ...] = ()
    """Conditions on rows that take part. A row that meets none of them is left out."""
    usually_withheld: tuple[str, ...] = ()
    """Columns that are not released if the file has them."""
    usually_swapped: tuple[str, ...] = ()
    """Columns that are exchanged with the area if the file has them."""


def vital_columns(mapping: FileMapping) -> tuple[str, ...]:
    """Return the columns that define the groups."""
    return tuple(dict.fromkeys(name for group in mapping.vital.values() for one in group for name in one))


# Where each run of equally long intervals of JWDP starts, and how many minutes they are long.
DEPARTURES = ((1, 0, 30), (7, 300, 10), (19, 500, 5), (79, 1000, 10), (133, 1900, 30), (137, 2100, 10), (149, 2300, 30))
DEPARTURE_CODES = 150
READY = Path(__file__).with_name("census.toml")


def departure_times() -> dict[str, float]:
    """JWDP's codes as the HHMM at which their interval starts; code 1 is 1, because 0 means not applicable.

    >>> times = departure_times()
    >>> times["1"], times["2"], times["19"], times["150"]
    (1, 30, 500, 2330)
    """
    values: dict[str, float] = {}
    ends = [first for first, _, _ in DEPARTURES[1:]] + [DEPARTURE_CODES + 1]
    for (first, start, minutes), end in zip(DEPARTURES, ends, strict=True):
        for code in range(first, end):
            past = start // 100 * 60 + start % 100 + (code - first) * minutes
            values[str(code)] = max(past // 60 * 100 + past % 60, 1)
    return values


def recipe(name: str) -> FileMapping:
    """Return a ready mapping by name.

    >>> list(recipe("acs").attributes)[:3], recipe("acs_paper").attributes["race"].range
    (['age', 'educ', 'sex'], (1.0, 2.0))
    """
    ready = tomllib.loads(READY.read_text("utf-8"))
    file, _, paper = name.partition("_")
    if name not in (names := ("acs", "acs_paper", "ipums", "ipums_paper")):
        raise StudyError(f'unknown recipe "{name}"', expected="a recipe", remedy=nearest(name, names))
    shared = ready["shared"] | (ready["paper"] if paper else {})
    if file == "acs":
        ready[file]["attributes"]["depart"]["recode"] = departure_times()
    own = {name: settings | shared[name] for name, settings in ready[file].pop("attributes").items()}
    return FileMapping(**ready[file], attributes=own)
