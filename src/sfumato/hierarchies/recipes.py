"""Hierarchies as a run file declares them: a file, or a recipe that builds one from the column's values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal, cast

from pydantic import Discriminator, Field, FiniteFloat, Tag

from sfumato.errors import HierarchyError, nearest
from sfumato.hierarchies import build
from sfumato.hierarchies.build import DATE_LEVELS
from sfumato.hierarchies.hierarchy import Hierarchy, flat
from sfumato.runtime.settings import Settings


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
                return flat(name, labels)

    return built
