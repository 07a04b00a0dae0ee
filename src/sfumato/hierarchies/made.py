"""Recipes of hierarchies by the names that a program calls them with."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sfumato.hierarchies.recipes import (
    BreaksRecipe,
    DateRecipe,
    EndsRecipe,
    FlatRecipe,
    FrequencyRecipe,
    HierarchyFile,
    IntervalRecipe,
    PrefixRecipe,
    QuantileRecipe,
)


def intervals(*widths: float, origin: float = 0.0) -> IntervalRecipe:
    """Intervals of equal width, nested: `intervals(5, 10, 20)`. Without widths they follow the column's range.

    Args:
        *widths: widths of the levels, finest first, each a multiple of the one before.
        origin: a number at which an interval begins.

    Returns:
        A recipe.

    >>> intervals(5, 10, 20).widths
    (5.0, 10.0, 20.0)
    """
    return IntervalRecipe.checked(build="interval", widths=widths or None, origin=origin)


def quantiles(bins: int = 8) -> QuantileRecipe:
    """Neighbouring values together, with about as many records in each of `bins` groups.

    Args:
        bins: groups of the finest level.

    Returns:
        A recipe.
    """
    return QuantileRecipe.checked(build="quantile", bins=bins)


def breaks(*levels: Sequence[float]) -> BreaksRecipe:
    """Fixed breaks, one list for each level, finest first: `breaks([18, 30, 45, 65], [30, 65])`.

    Args:
        *levels: the breaks of each level, finest first.

    Returns:
        A recipe.
    """
    return BreaksRecipe.checked(build="breaks", levels=tuple(tuple(level) for level in levels))


def top_bottom(*widths: float, bottom: float | None = None, top: float | None = None) -> EndsRecipe:
    """Top and bottom coding: `top_bottom(5, 10, bottom=18, top=85)` keeps single values from 18 to 84.

    Everything below `bottom` stands together, and everything from `top` on; the widths add levels of intervals between.

    Args:
        *widths: widths of the levels between the ends, finest first, each a multiple of the one before.
        bottom: the lowest value that is kept.
        top: the value from which on all stand together.

    Returns:
        A recipe.

    >>> top_bottom(5, top=85).top
    85.0
    """
    return EndsRecipe.checked(build="ends", bottom=bottom, top=top, widths=widths)


def prefixes(*keep: int, mask: str = "*") -> PrefixRecipe:
    """Fewer and fewer leading characters: `prefixes(3, 1)` makes 101** and then 1**** of 10115.

    Without numbers one character goes at each level.

    Args:
        *keep: how many characters each level keeps, most first.
        mask: what stands for a character that is hidden.

    Returns:
        A recipe.
    """
    return PrefixRecipe.checked(build="prefix", keep=keep or None, mask=mask)


def dates(*levels: str, pattern: str = "%Y-%m-%d") -> DateRecipe:
    """Days, months, quarters, years, decades: `dates("month", "year")`.

    Args:
        *levels: "month", "quarter", "year" or "decade", finest first.
        pattern: how the dates are written, as `strptime` has it.

    Returns:
        A recipe.
    """
    given: dict[str, Any] = {"levels": levels} if levels else {}
    return DateRecipe.checked(build="date", pattern=pattern, **given)


def rare_values(*shares: float, other: str = "other") -> FrequencyRecipe:
    """Values that are rarer than a share of the records together, the rarest first: `rare_values(0.01, 0.05)`.

    Args:
        *shares: shares of the records, smallest first.
        other: the label of what is put together.

    Returns:
        A recipe.
    """
    given: dict[str, Any] = {"shares": shares} if shares else {}
    return FrequencyRecipe.checked(build="frequency", other=other, **given)


def flat() -> FlatRecipe:
    """The value, or nothing.

    Returns:
        A recipe with one level.
    """
    return FlatRecipe.checked(build="flat")


def hierarchy_file(
    path: str | Path, *, separator: str | None = None, header: bool | None = None, public: bool = False
) -> HierarchyFile:
    """A hierarchy in a file whose separator or header cannot be guessed, or that everybody may know (`public`).

    Args:
        path: the file.
        separator: what stands between its levels.
        header: whether its first row has names.
        public: whether everybody may know it, so that a release may list its values.

    Returns:
        The file with how it is read.
    """
    return HierarchyFile.checked(path=str(path), separator=separator, header=header, public=public)
