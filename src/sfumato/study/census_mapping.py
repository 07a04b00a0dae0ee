"""Mappings of microfiles to the attributes of the groups paper (Tavrov, Chertov 2016, tables 2 to 4).

A run file declares a mapping by recoding and joining columns, by units and ranges, or names a ready one. The mapping
`acs` is for American Community Survey PUMS person files as the Census Bureau publishes them, with all races. The
mapping `ipums` has the same attributes under their IPUMS names. In contrast, `acs_paper` and `ipums_paper` are
restricted to the two races of the paper.

A *pattern* names values of a column: `"55*"` names values with this beginning, `"2..7"` or `"5.."` a range of numbers,
`""` a blank. Any other pattern is the value itself (numbers are compared as numbers, so `"1"` also matches `01`).
"""

from __future__ import annotations

from typing import Any

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
# Columns that name the military by themselves or tie records of a household together, and service after September 2001,
# which shows whose place was exchanged; and places beside the area.
ACS_WITHHELD = ("SERIALNO", "OCCP", "INDP", "NAICSP", "ESR", "MIL", "MLPA")
ACS_PLACES = ("POWPUMA", "POWSP")
IPUMS_WITHHELD = (
    "SERIAL",
    "OCC",
    "OCC1990",
    "OCC2010",
    "IND",
    "IND1990",
    "INDNAICS",
    "EMPSTAT",
    "EMPSTATD",
    "LABFORCE",
    "VET01LTR",
)
MILITARY = "55*"  # the 2010 Standard Occupational Classification's major group


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


def _terms(**given: tuple[str, *tuple[float, ...]]) -> dict[str, TermSettings]:
    return {
        name.replace("_", " "): TermSettings(kind=kind, numbers=tuple(map(float, n)))
        for name, (kind, *n) in given.items()
    }


# The linguistic variables of the paper, in its order; race has a third value where all races are kept.
TERMS: dict[str, dict[str, TermSettings]] = {
    "age": _terms(
        young=("pi", 7.05, 15.40, 22.50, 27.18),
        in_the_late_twenties=("gaussian", 2.0, 27.5),
        in_the_early_thirties=("gaussian", 2.0, 32.5),
        in_the_late_thirties=("gaussian", 2.0, 37.5),
        over_forty=("pi", 37.85, 42.50, 47.51, 54.84),
    ),
    "educ": _terms(low_education=("trapezoid", 1, 1, 8, 10), high_education=("trapezoid", 8, 10, 11, 11)),
    "sex": _terms(male=("crisp", 1, 1), female=("crisp", 2, 2)),
    "race": _terms(White=("crisp", 1, 1), Black=("crisp", 2, 2), other_race=("crisp", 3, 9)),
    "uhrs": _terms(
        short_hours=("pi", 0.0, 0.0, 29.9, 40.3),
        full_time=("gaussian", 2.5, 40.0),
        long_hours=("pi", 40.2, 50.1, 100, 100),
    ),
    "hisp": _terms(not_Hispanic=("crisp", 0, 0), Hispanic=("crisp", 1, 9)),
    "marst": _terms(married=("crisp", 1, 2), not_married=("crisp", 3, 6)),
    "tran": _terms(
        drives_to_work=("crisp", 0, 20), public_transport=("crisp", 30, 36), walks_to_work=("crisp", 40, 50)
    ),
    "depart": _terms(
        leaves_at_night=("pi", 1, 1, 530, 630),
        leaves_in_the_morning=("pi", 530, 630, 800, 900),
        leaves_in_the_day=("pi", 800, 900, 2359, 2359),
    ),
    "ttime": _terms(
        short_way=("pi", 1, 1, 10, 15), medium_way=("pi", 10, 15, 30, 45), long_way=("pi", 35, 45, 120, 120)
    ),
    "wkswork": _terms(part_of_the_year=("trapezoid", 1, 1, 5, 6), all_year=("trapezoid", 5, 6, 6, 6)),
    "inctot": _terms(
        low_income=("pi", 0, 0, 9000, 12000),
        medium_income=("pi", 9000, 12000, 70000, 90000),
        high_income=("pi", 70000, 90000, 200000, 200000),
    ),
    "english": {},
}
RANGES: dict[str, tuple[float, float]] = {
    "age": (18, 45),
    "educ": (1, 11),
    "sex": (1, 2),
    "race": (1, 9),
    "uhrs": (0, 100),
    "hisp": (0, 9),
    "marst": (1, 6),
    "tran": (0, 70),
    "depart": (1, 2359),
    "ttime": (1, 119),
    "wkswork": (1, 6),
    "inctot": (0, 200000),
    "english": (2, 5),
}
ORDINAL = ("age", "uhrs", "depart", "ttime", "inctot")

ACS: dict[str, dict[str, Any]] = {
    "age": {"column": "AGEP"},
    "educ": {
        "column": "SCHL",
        "blank": 0,
        "recode": {"1": 0, "2..7": 1, "8..11": 2, "12": 3, "13": 4, "14": 5, "15..18": 6, "19": 7, "20": 8, "21": 10}
        | {"22..24": 11},
    },
    "sex": {"column": "SEX"},
    "race": {"column": "RAC1P", "recode": {"1": 1, "2": 2, "3..5": 3, "6..7": 6, "8": 7, "9": 8}},
    "uhrs": {"column": "WKHP", "blank": 0},
    "hisp": {"column": "HISP", "recode": {"1": 0, "2": 1, "3": 2, "4": 3, "5..24": 4}},
    "marst": {
        "column": "MAR",
        "cases": (Case(when={"MAR": "1", "MSP": "2"}, value=2),),
        "recode": {"1": 1, "2": 5, "3": 4, "4": 3, "5": 6},
    },
    "tran": {
        "column": "JWTR",
        "blank": 0,
        "recode": {"1": 10, "8": 20, "2": 31, "3": 32, "4": 33, "5": 34, "7": 35, "6": 36, "9": 40, "10": 50}
        | {"12": 60, "11": 70},
    },
    "depart": {"column": "JWDP", "blank": 0, "recode": departure_times()},
    "ttime": {"column": "JWMNP", "blank": 0},
    "wkswork": {"column": "WKW", "blank": 0, "recode": {str(code): 7 - code for code in range(1, 7)}},
    "inctot": {"column": "PINCP", "multiply": ("ADJINC",), "divide": 1e6, "rounded": True},
    "english": {
        "column": "ENG",
        "cases": (Case(when={"ENG": "", "AGEP": "5.."}, value=3),),
        "recode": {"1": 4, "2": 5, "3": 6, "4": 1},
    },
}
IPUMS: dict[str, dict[str, Any]] = {
    name: {"column": column}
    for name, column in {
        "age": "AGE",
        "educ": "EDUC",
        "sex": "SEX",
        "race": "RACE",
        "uhrs": "UHRSWORK",
        "hisp": "HISPAN",
        "marst": "MARST",
        "tran": "TRANWORK",
        "depart": "DEPARTS",
        "ttime": "TRANTIME",
        "wkswork": "WKSWORK2",
        "inctot": "INCTOT",
        "english": "SPEAKENG",
    }.items()
}


def _mapping(columns: dict[str, dict[str, Any]], *, vital: str, area: tuple[str, ...], paper: bool) -> FileMapping:
    attributes = {}
    for name, settings in columns.items():
        terms, limits = TERMS[name], RANGES[name]
        if paper and name == "race":
            terms, limits = {term: terms[term] for term in ("White", "Black")}, (1.0, 2.0)
        attributes[name] = Attribute(**settings, range=limits, terms=terms, ordinal=name in ORDINAL)
    withheld, places = (ACS_WITHHELD, ACS_PLACES) if columns is ACS else (IPUMS_WITHHELD, ())
    return FileMapping(
        vital={"military": ({vital: MILITARY},)},
        area=area,
        attributes=attributes,
        usually_withheld=withheld,
        usually_swapped=places,
    )


def recipe(name: str) -> FileMapping:
    """Return a ready mapping by name.

    >>> list(recipe("acs").attributes)[:3], recipe("acs_paper").attributes["race"].range
    (['age', 'educ', 'sex'], (1.0, 2.0))
    """
    ready = {
        "acs": lambda: _mapping(ACS, vital="SOCP", area=("PUMA",), paper=False),
        "acs_paper": lambda: _mapping(ACS, vital="SOCP", area=("PUMA",), paper=True),
        "ipums": lambda: _mapping(IPUMS, vital="OCCSOC", area=("PWSTATE2", "PWPUMA00"), paper=False),
        "ipums_paper": lambda: _mapping(IPUMS, vital="OCCSOC", area=("PWSTATE2", "PWPUMA00"), paper=True),
    }
    if name not in ready:
        raise StudyError(f'unknown recipe "{name}"', expected="a recipe", remedy=nearest(name, ready))
    return ready[name]()
