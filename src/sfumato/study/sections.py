"""The sections of a run file that are about one column, the search and the release."""

from __future__ import annotations

from decimal import Decimal
from itertools import pairwise
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from sfumato.errors import StudyError, shortened
from sfumato.hierarchies.recipes import Declared
from sfumato.runtime.settings import Settings
from sfumato.sources.roles import Role
from sfumato.sources.settings import Missing, Seed, Threads
from sfumato.sources.treatment import DateUnit, exact

ALGORITHMS = {"lattice": ("exact", "exhaustive", "pbg_ea", "best_first"), "cuts": ("memetic", "nsga2")}
SYSTEM_OF = {  # settings of [search] that only one system reads
    **dict.fromkeys(("problem", "prefer", "generations", "local_search"), "cuts"),
    **dict.fromkeys(("iterations", "evaluations"), "lattice"),
}
SUPPRESSION = {"lattice": ("threshold", "paper"), "cuts": ("none", "within", "below_mean", "safe")}
ANY_SYSTEM = ("objectives", "max_suppression", "constraints", "weights", "seed", "threads")  # mean the same in both
WITHIN = dict.fromkeys(("local", "cells"), ("max_suppression", "constraints", "weights", "seed"))  # beside a section


SMALLEST = Decimal("1e-12")  # what a step of rounding is a multiple of
Step = Annotated[float, Field(ge=1e-12, le=1e15)]
Edge = Annotated[float, Field(ge=-1e15, le=1e15)]


class ColumnSettings(Settings):
    """What is declared about one column.

    `round` and `bands` say what the values of a released column that is no quasi-identifier are recoded to: multiples
    of a step, a part of a date, or bands between edges. `harmless` are released values of a sensitive column that
    reveal nothing.
    """

    role: Role
    hierarchy: Declared | None = None
    missing: Missing | None = None
    distance: Literal["equal", "ordered", "hierarchical"] | None = None
    constrained: bool | None = None
    order: tuple[str, ...] | None = None
    breaks: tuple[float, ...] | None = None
    round: Step | DateUnit | None = None
    bands: tuple[Edge, ...] | None = Field(default=None, min_length=1, max_length=1_000)
    harmless: tuple[str, ...] | None = Field(default=None, min_length=1)

    @model_validator(mode="after")
    def _one_treatment(self) -> Self:
        if self.round is not None and self.bands is not None:
            raise ValueError("a column with either round or bands")
        if isinstance(self.round, float) and exact(self.round) % SMALLEST:
            raise ValueError("a step with at most 12 decimals")
        if self.bands is not None and any(high <= low for low, high in pairwise(self.bands)):
            raise ValueError("the edges of bands in rising order, each once")
        return self

    @property
    def along_tree(self) -> bool:
        """Whether cuts keep to the column's hierarchy: they do where it has one, unless free cuts are asked for."""
        return self.hierarchy is not None if self.constrained is None else self.constrained


class ObjectiveSettings(Settings):
    """A measure to search over; its direction may be turned round."""

    name: str
    direction: Literal["max", "min"] | None = None


class SearchSettings(Settings):
    """What to search for, how, and within which limits."""

    system: Literal["lattice", "cuts", "channel", "groups", "local", "cells"] = "lattice"
    problem: Literal[1, 2, 3, 4] | None = None
    prefer: Literal["k", "l"] = "k"
    suppression: Literal["threshold", "paper", "none", "within", "below_mean", "safe"] | None = None
    algorithm: Literal["exact", "exhaustive", "pbg_ea", "best_first", "memetic", "nsga2"] | None = None
    objectives: tuple[str | ObjectiveSettings, ...] = Field(default=("k", "general_loss"), min_length=1)
    max_suppression: float = Field(default=0.0, ge=0, lt=1)
    constraints: dict[str, Annotated[float, Field(ge=-1e15, le=1e15)]] = Field(default_factory=dict)
    weights: dict[str, Annotated[float, Field(ge=0, le=1e6)]] = Field(default_factory=dict)
    epsilon: tuple[Annotated[float, Field(ge=1e-12, le=1e12)], ...] | None = None
    seed: Seed = 1
    population: int | None = Field(default=None, ge=4, le=100_000)
    iterations: int = Field(default=100, ge=1, le=10**9)
    generations: int = Field(default=250, ge=1, le=10**9)
    local_search: int = Field(default=16, ge=1, le=10**6)
    evaluations: int | None = Field(default=None, ge=1, le=10**15)
    reproduction: bool = False
    threads: Threads | None = None

    @model_validator(mode="after")
    def _own_settings(self) -> Self:
        own = {"system", *WITHIN.get(self.system, ())}
        if self.system not in ALGORITHMS and self.model_fields_set - own:
            extra = sorted(self.model_fields_set - own)
            raise StudyError(
                f"{shortened(extra)} under [search], and the system is {self.system}",
                expected=f"the settings of the {self.system} system under [{self.system}]",
                remedy=f"leave {extra[0]} out",
            )
        for name in self.model_fields_set & set(SYSTEM_OF):
            if SYSTEM_OF[name] != self.system and getattr(self, name) is not None:
                raise StudyError(
                    f"{name} under [search] belongs to the {SYSTEM_OF[name]} system, and the system is {self.system}",
                    expected=f"settings that the {self.system} system reads",
                    remedy=f'leave {name} out, or set system = "{SYSTEM_OF[name]}"',
                )
        if self.suppression is not None and self.suppression not in SUPPRESSION.get(self.system, ()):
            raise StudyError(
                f'suppression = "{self.suppression}" for {self.system}',
                expected="one of: " + ", ".join(SUPPRESSION[self.system]),
                remedy="leave suppression out",
            )
        if self.algorithm is not None and self.algorithm not in ALGORITHMS.get(self.system, ()):
            raise StudyError(
                f'algorithm = "{self.algorithm}" for {self.system}',
                expected="one of: " + ", ".join(ALGORITHMS[self.system]),
                remedy=f"leave algorithm out to take {ALGORITHMS[self.system][0]}",
            )
        return self

    @property
    def method(self) -> str:
        """The algorithm: as given, else the system's own."""
        return self.algorithm or ALGORITHMS[self.system][0]

    @property
    def paper(self) -> bool:
        """Whether suppression follows the paper of the lattice: the whole limit is spent on the smallest classes."""
        return self.suppression == "paper"

    @property
    def named(self) -> tuple[ObjectiveSettings, ...]:
        """The objectives, each as a name and a direction that may be open."""
        return tuple(ObjectiveSettings(name=o) if isinstance(o, str) else o for o in self.objectives)


class ReleaseSettings(Settings):
    """What the metadata of a release say of it as a whole. All of it is public."""

    title: str | None = Field(default=None, min_length=1, max_length=500)
    description: str | None = Field(default=None, min_length=1, max_length=20_000)
    creator: str | None = Field(default=None, min_length=1, max_length=500)
    license: str | None = Field(default=None, min_length=1, max_length=500)
    url: str | None = Field(default=None, min_length=1, max_length=2_000)
    version: str | None = Field(default=None, min_length=1, max_length=100)
