"""How a microfile becomes common attributes: recoding, merging columns, units, ranges, as a run file declares it.

A *pattern* names values of a column: `"55*"` what starts so, `"2..7"` or `"5.."` a range of numbers, `""` a blank,
anything else the value itself (numbers are compared as numbers, so `"1"` is also `01`).
"""

from __future__ import annotations

from pydantic import Field, model_validator

from sfumato.runtime.settings import Settings


class TermSettings(Settings):
    """A word for some values: a membership function and its numbers."""

    kind: str
    numbers: tuple[float, ...]


class Case(Settings):
    """A value for rows that meet conditions on several columns."""

    when: dict[str, str | tuple[str, ...]] = Field(min_length=1)
    value: float


class Attribute(Settings):
    """A common attribute, from one or more columns of a file.

    The first of `cases` that a row meets decides; then `recode` of `column`; without a recode the number itself,
    times each of `multiply` (numbers, or columns that hold a factor), over `divide`, rounded where `rounded`. What none
    of them gives is missing. `range` is what the linguistic variable accepts: rows outside it are dropped.
    """

    column: str
    recode: dict[str, float] = Field(default_factory=dict)
    cases: tuple[Case, ...] = ()
    multiply: tuple[float | str, ...] = ()
    divide: float = Field(default=1.0, gt=0)
    rounded: bool = False
    blank: float | None = None
    range: tuple[float, float] | None = None
    ordinal: bool = False
    weight: float = Field(default=1.0, ge=0)
    terms: dict[str, TermSettings] | None = None
    quantiles: int | None = Field(default=None, ge=2, le=9)

    @model_validator(mode="after")
    def _ordered(self) -> Attribute:
        if self.range is not None and self.range[0] > self.range[1]:
            raise ValueError("a range from the least to the greatest value")
        return self

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column it reads."""
        names = [self.column, *(name for case in self.cases for name in case.when)]
        return tuple(dict.fromkeys([*names, *(factor for factor in self.multiply if isinstance(factor, str))]))


class FileMapping(Settings):
    """What one microfile is to the common attributes: who is in the group, where, and each attribute.

    A recipe also knows columns that are usually withheld from a release, or swapped with the area, if a file has them.
    """

    recipe: str | None = None
    vital: dict[str, tuple[dict[str, str | tuple[str, ...]], ...]] = Field(default_factory=dict)
    area: tuple[str, ...] = ()
    attributes: dict[str, Attribute] = Field(default_factory=dict)
    leave_out: tuple[dict[str, str | tuple[str, ...]], ...] = ()
    only: tuple[dict[str, str | tuple[str, ...]], ...] = ()
    usually_withheld: tuple[str, ...] = ()
    usually_swapped: tuple[str, ...] = ()


def vital_columns(mapping: FileMapping) -> tuple[str, ...]:
    """The columns that define the groups."""
    return tuple(dict.fromkeys(name for group in mapping.vital.values() for one in group for name in one))
