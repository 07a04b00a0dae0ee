"""Hierarchies as a run file declares them: a file, or a recipe that builds one from the column's values.

Recipes of hierarchies by the names that a program calls them with.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, cast

from pydantic import Discriminator, Field, FiniteFloat, Tag

from sfumato.base.settings import Settings
from sfumato.errors import HierarchyError, nearest
from sfumato.hierarchies import build
from sfumato.hierarchies.build import DATE_LEVELS
from sfumato.hierarchies.hierarchy import Hierarchy
from sfumato.hierarchies.hierarchy import flat as flat_hierarchy


class HierarchyFile(Settings):
    """A hierarchy in a file whose separator or header cannot be guessed, or that is public.

    `public` says that everybody may know the file, because it is a codebook and not made from the data: a release then
    lists all values that stand under its labels.
    """

    path: str
    separator: str | None = Field(default=None, min_length=1, max_length=1)
    header: bool | None = None
    public: bool = False


class HierarchyPaths(Settings):
    """A hierarchy as it is: for each value the labels it has from its own level up, as rows of equal length."""

    paths: tuple[tuple[str, ...], ...] = Field(min_length=1)


class IntervalRecipe(Settings):
    """Intervals of equal width, nested."""

    build: Literal["interval"]
    widths: tuple[FiniteFloat, ...] | None = None
    origin: FiniteFloat = 0.0


class QuantileRecipe(Settings):
    """Neighbouring values with about equally many records."""

    build: Literal["quantile"]
    bins: int = Field(default=8, ge=2)


class BreaksRecipe(Settings):
    """Fixed breaks, one list per level, finest first."""

    build: Literal["breaks"]
    levels: tuple[tuple[FiniteFloat, ...], ...] = Field(min_length=1)


class EndsRecipe(Settings):
    """Top and bottom coding: single values in between, everything below `bottom` and from `top` on together.

    Above that level are intervals of the widths between the two ends, if any.
    """

    build: Literal["ends"]
    bottom: FiniteFloat | None = None
    top: FiniteFloat | None = None
    widths: tuple[FiniteFloat, ...] = ()


class PrefixRecipe(Settings):
    """Fewer and fewer leading characters."""

    build: Literal["prefix"]
    keep: tuple[int, ...] | None = None
    mask: str = Field(default="*", min_length=1, max_length=1)


class DateRecipe(Settings):
    """Days, months, quarters, years, decades."""

    build: Literal["date"]
    levels: tuple[str, ...] = DATE_LEVELS
    pattern: str = "%Y-%m-%d"


class FrequencyRecipe(Settings):
    """Rare values together first."""

    build: Literal["frequency"]
    shares: tuple[FiniteFloat, ...] = (0.005, 0.02, 0.1)
    other: str = "other"


class FlatRecipe(Settings):
    """The value, or nothing."""

    build: Literal["flat"]


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
    "interval": IntervalRecipe,
    "quantile": QuantileRecipe,
    "breaks": BreaksRecipe,
    "ends": EndsRecipe,
    "prefix": PrefixRecipe,
    "date": DateRecipe,
    "frequency": FrequencyRecipe,
    "flat": FlatRecipe,
}


def _branch(declared: Any) -> str | None:
    """Which of the ways to declare a hierarchy a run file used."""
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
    """A recipe by its kind; options that it does not have are refused.

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
    """The function that builds a recipe's hierarchy from a column's labels and counts."""

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
