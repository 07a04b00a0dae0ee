"""Declared hierarchies: a file, the tree itself, or a recipe that builds one from the column's values.

The functions make recipes in Python. The settings are those of a run file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, cast, get_args

from pydantic import Discriminator, Field, FiniteFloat, Tag

from sfumato.base.settings import Settings
from sfumato.errors import HierarchyError, nearest
from sfumato.hierarchies import build
from sfumato.hierarchies.build import DATE_LEVELS
from sfumato.hierarchies.hierarchy import Hierarchy
from sfumato.hierarchies.hierarchy import flat as flat_hierarchy


class HierarchyFile(Settings):
    """A hierarchy in a file whose separator or header cannot be detected, or that is public."""

    path: str = Field(description="File of the hierarchy.")
    separator: str | None = Field(
        default=None,
        min_length=1,
        max_length=1,
        description="Character between the levels. It is detected unless stated.",
    )
    header: bool | None = Field(
        default=None, description="Whether the first row has names. It is detected unless stated."
    )
    public: bool = Field(
        default=False,
        description="Whether the file is public, such as a codebook, and not made from the data. A release "
        "then lists all values below its labels.",
    )


class HierarchyPaths(Settings):
    """A hierarchy that is declared with all its labels."""

    paths: tuple[tuple[str, ...], ...] = Field(
        min_length=1, description="The tree: one row for each value, with the labels of the value from fine to coarse."
    )


class IntervalRecipe(Settings):
    """Intervals of equal width, nested."""

    build: Literal["interval"] = Field(description="Kind of the recipe: intervals of equal width.")
    widths: tuple[FiniteFloat, ...] | None = Field(
        default=None,
        description="Widths of the levels, finest first, each a multiple of the one before. The default "
        "follows the range of the column.",
    )
    origin: FiniteFloat = Field(default=0.0, description="Number at which an interval begins.")


class QuantileRecipe(Settings):
    """Neighbouring values with about equally many records."""

    build: Literal["quantile"] = Field(
        description="Kind of the recipe: neighbouring values with about equally many records."
    )
    bins: int = Field(
        default=8, ge=2, description="Number of groups of the finest level. Each further level joins two groups."
    )


class BreaksRecipe(Settings):
    """Fixed breaks, one list per level, finest first."""

    build: Literal["breaks"] = Field(description="Kind of the recipe: fixed breaks.")
    levels: tuple[tuple[FiniteFloat, ...], ...] = Field(min_length=1, description="Breaks of each level, finest first.")


class EndsRecipe(Settings):
    """Top and bottom coding, with intervals between the two ends."""

    build: Literal["ends"] = Field(description="Kind of the recipe: top and bottom coding.")
    bottom: FiniteFloat | None = Field(
        default=None, description="Lowest value that is kept. All values below it have one label."
    )
    top: FiniteFloat | None = Field(default=None, description="Value from which on all values have one label.")
    widths: tuple[FiniteFloat, ...] = Field(
        default=(),
        description="Widths of the intervals between the two ends, finest first. They are the levels above "
        "the single values.",
    )


class PrefixRecipe(Settings):
    """Fewer and fewer leading characters."""

    build: Literal["prefix"] = Field(description="Kind of the recipe: fewer leading characters at each level.")
    keep: tuple[int, ...] | None = Field(
        default=None,
        description="Number of leading characters that each level keeps, most first. The default is one "
        "character less at each level.",
    )
    mask: str = Field(
        default="*", min_length=1, max_length=1, description="Character that replaces a hidden character."
    )


class DateRecipe(Settings):
    """Days, months, quarters, years, decades."""

    build: Literal["date"] = Field(description="Kind of the recipe: parts of dates.")
    levels: tuple[str, ...] = Field(
        default=DATE_LEVELS, description="Parts of a date, finest first: month, quarter, year or decade."
    )
    pattern: str = Field(default="%Y-%m-%d", description="Format of the dates, as strptime reads it.")


class FrequencyRecipe(Settings):
    """A hierarchy that groups rare values first."""

    build: Literal["frequency"] = Field(description="Kind of the recipe: rare values are grouped first.")
    shares: tuple[FiniteFloat, ...] = Field(
        default=(0.005, 0.02, 0.1),
        description="Shares of the records, smallest first. A level joins all values that are rarer than its share.",
    )
    other: str = Field(default="other", description="Label of the joined values.")


class FlatRecipe(Settings):
    """The value, or nothing."""

    build: Literal["flat"] = Field(description="Kind of the recipe: the value, or nothing.")


Recipe = (
    IntervalRecipe
    | QuantileRecipe
    | BreaksRecipe
    | EndsRecipe
    | PrefixRecipe
    | DateRecipe
    | FrequencyRecipe
    | FlatRecipe
)
RECIPES: dict[str, type[Settings]] = {
    get_args(model.model_fields["build"].annotation)[0]: model for model in get_args(Recipe)
}


def _branch(declared: object) -> str | None:
    """Return the name of the way in which a run file declares a hierarchy."""
    if isinstance(declared, str):
        return "text"
    if isinstance(declared, Mapping):
        return str(declared.get("build", "paths" if "paths" in declared else "file"))
    return getattr(declared, "build", "paths" if hasattr(declared, "paths") else "file")


Declared = Annotated[
    Annotated[str, Tag("text")]
    | Annotated[HierarchyFile, Tag("file")]
    | Annotated[HierarchyPaths, Tag("paths")]
    | Annotated[IntervalRecipe, Tag("interval")]
    | Annotated[QuantileRecipe, Tag("quantile")]
    | Annotated[BreaksRecipe, Tag("breaks")]
    | Annotated[EndsRecipe, Tag("ends")]
    | Annotated[PrefixRecipe, Tag("prefix")]
    | Annotated[DateRecipe, Tag("date")]
    | Annotated[FrequencyRecipe, Tag("frequency")]
    | Annotated[FlatRecipe, Tag("flat")],
    Discriminator(_branch),
]
BRANCHES = {"text", "file", "paths", *RECIPES}


def recipe(kind: str, options: Mapping[str, Any]) -> Recipe:
    """Return a recipe by its kind. Unknown options are refused.

    >>> recipe("quantile", {"bins": 4}).bins
    4
    """
    if kind not in RECIPES:
        raise HierarchyError(f'unknown kind "{kind}"', expected="a kind of hierarchy", remedy=nearest(kind, RECIPES))
    model = RECIPES[kind]
    for name in options:
        if name not in model.model_fields:
            known = [field for field in model.model_fields if field != "build"]
            raise HierarchyError(f"{kind} has no option {name}", expected="its options", remedy=nearest(name, known))
    return cast(Recipe, model.checked(build=kind, **options))


def builder(name: str, recipe: Recipe, decimal: str = ".") -> Callable[[Sequence[str], Sequence[int]], Hierarchy]:
    """Return the function that builds a recipe's hierarchy from a column's labels and counts."""

    def built(labels: Sequence[str], counts: Sequence[int]) -> Hierarchy:
        match recipe:
            case IntervalRecipe():
                return build.equal_width(name, labels, recipe.widths, recipe.origin, decimal, counts)
            case QuantileRecipe():
                return build.quantile(name, labels, counts, recipe.bins, decimal)
            case BreaksRecipe():
                return build.breaks(name, labels, recipe.levels, decimal)
            case EndsRecipe():
                return build.ends(name, labels, recipe.bottom, recipe.top, recipe.widths, decimal)
            case PrefixRecipe():
                return build.prefix(name, labels, recipe.keep, recipe.mask)
            case DateRecipe():
                return build.dates(name, labels, recipe.levels, recipe.pattern)
            case FrequencyRecipe():
                return build.frequency(name, labels, counts, recipe.shares, recipe.other)
            case FlatRecipe():
                return flat_hierarchy(name, labels)

    return built


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
    """Return groups of neighbouring values with about as many records in each of `bins` groups.

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

    All values below `bottom` have one label, and all values from `top` on. The widths add levels of intervals between.

    Args:
        *widths: widths of the levels between the ends, finest first, each a multiple of the one before.
        bottom: the lowest value that is kept.
        top: the value from which on all values have one label.

    Returns:
        A recipe.

    >>> top_bottom(5, top=85).top
    85.0
    """
    return EndsRecipe.checked(build="ends", bottom=bottom, top=top, widths=widths)


def prefixes(*keep: int, mask: str = "*") -> PrefixRecipe:
    """Fewer and fewer leading characters: `prefixes(3, 1)` makes 101** and then 1**** of 10115.

    Without numbers, each level hides one more character.

    Args:
        *keep: how many characters each level keeps, most first.
        mask: the character that replaces a hidden character.

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
    """Return values that are rarer than a share of the records together, the rarest first: `rare_values(0.01, 0.05)`.

    Args:
        *shares: shares of the records, smallest first.
        other: the label of the joined values.

    Returns:
        A recipe.
    """
    given: dict[str, Any] = {"shares": shares} if shares else {}
    return FrequencyRecipe.checked(build="frequency", other=other, **given)


def flat() -> FlatRecipe:
    """Return the value, or nothing.

    Returns:
        A recipe with one level.
    """
    return FlatRecipe.checked(build="flat")


def hierarchy_file(
    path: str | Path, *, separator: str | None = None, header: bool | None = None, public: bool = False
) -> HierarchyFile:
    """Return a hierarchy in a file whose separator or header cannot be detected, or that is public.

    Args:
        path: the file.
        separator: the character between its levels.
        header: whether its first row has names.
        public: whether the file is public, so that a release may list its values.

    Returns:
        The file with how it is read.
    """
    return HierarchyFile.checked(path=str(path), separator=separator, header=header, public=public)
