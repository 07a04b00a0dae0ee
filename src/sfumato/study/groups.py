"""The [groups] section of a run file: both microfiles, the attack, the protection."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, get_args

from pydantic import Field

from sfumato.base.settings import Settings
from sfumato.data.settings import DataSettings, Seed
from sfumato.errors import StudyError, nearest
from sfumato.study.census_mapping import Attribute, FileMapping, recipe

AttackerName = Literal[
    "exact", "evolutionary", "boosted", "forest", "logistic", "boosted_all", "forest_all", "logistic_all"
]
ATTACKERS: tuple[AttackerName, ...] = get_args(AttackerName)
PLANNED: tuple[AttackerName, ...] = ("exact", "evolutionary", "forest", "boosted_all", "logistic_all")
SEALED: tuple[AttackerName, ...] = ("boosted", "forest_all")


class AuxiliarySettings(DataSettings, FileMapping):
    """A file that tells who is in the group. What it leaves out, ranges too, is as in the file to publish.

    Attacks from a file that is `held_out` are sealed: no plan is fitted to them or chosen by them.
    """

    name: str | None = None
    held_out: bool = False

    @property
    def title(self) -> str:
        """How it is called: as declared, else as the file is; where it stands does not matter."""
        return self.name or Path(self.path).name


class AttackSettings(Settings):
    """How the group is learned and which areas stand out. γ and κ are chosen by cross-validation unless given."""

    attacker: AttackerName = "exact"
    gamma: float | None = Field(default=None, gt=0)
    kappa: float | None = Field(default=None, ge=0, lt=1)
    least_records: int = Field(default=5, ge=0)
    significance: float = Field(default=0.01, gt=0, lt=1)
    folds: int = Field(default=5, ge=2, le=20)
    seed: Seed = 1
    seeds: int = Field(default=5, ge=1, le=1000)
    population: int = Field(default=100, ge=4, le=100_000)
    replaced: int = Field(default=40, ge=1, le=100_000)
    tournament: int = Field(default=10, ge=1, le=100_000)
    mutation: float = Field(default=0.05, ge=0, le=1)
    generations: int = Field(default=100, ge=1, le=10**6)
    runs: int = Field(default=10, ge=1, le=1000)


class ProtectSettings(Settings):
    """Which swaps hide the areas. `targets` are the most members an area may show; without them the swaps go on
    until no attacker finds the areas. `columns` are those of the influential metric. Which of equally good partners is
    taken comes from the operating system, since swaps must not be guessed; `test_seed` fixes it, for tests only.

    Plans are fitted to `attackers` with `known_seeds`, and chosen by the same with `fresh_seeds`. The verdict is that
    of sealed attacks, made when the plans are ready: `attackers` and `sealed_attackers` with `sealed_seeds`, and every
    attack from a file that is held out. `swap_rates` are those of targeted record swapping, the usual way, which is
    tried beside the plans; a record is at risk there if fewer than `risk` records of its area share its attributes.
    """

    method: Literal["exact", "memetic"] = "exact"
    targets: dict[str, Annotated[float, Field(ge=0)]] = Field(default_factory=dict)
    attackers: tuple[AttackerName, ...] = PLANNED
    sealed_attackers: tuple[AttackerName, ...] = SEALED
    levels: int = Field(default=3, ge=1, le=50)
    suspicious_partners: bool = False
    metric: Literal["cells", "influential"] = "cells"
    columns: tuple[str, ...] = ()
    generations: int = Field(default=1000, ge=1, le=10**6)
    known_seeds: int = Field(default=2, ge=1, le=1000)
    fresh_seeds: int = Field(default=1, ge=1, le=1000)
    sealed_seeds: int = Field(default=1, ge=1, le=1000)
    swap_rates: tuple[Annotated[float, Field(gt=0, le=0.5)], ...] = (0.02, 0.05, 0.1)
    risk: int = Field(default=3, ge=1, le=1000)
    test_seed: Seed | None = None


class GroupsSettings(FileMapping):
    """Everything the groups system needs beside [data], the file to publish.

    `other_columns` says what becomes of columns that neither this section nor [columns] names: nothing is assumed.
    `unit` is a column whose values say which rows stay together, such as a household's number: units move whole.
    A released column that tells members by itself with a greater average precision than `naming` is refused.
    """

    auxiliary: tuple[AuxiliarySettings, ...] = ()
    expert: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    swap: tuple[str, ...] = ()
    withhold: tuple[str, ...] = ()
    other_columns: Literal["release", "withhold"] | None = None
    unit: str | None = None
    naming: float = Field(default=0.5, gt=0, le=1)
    attack: AttackSettings = AttackSettings()
    protect: ProtectSettings = ProtectSettings()

    def mapping(self, auxiliary: AuxiliarySettings | None = None) -> FileMapping:
        """The whole mapping of the file to publish, or of an auxiliary file: its recipe, then what is declared."""
        own = with_recipe(self)
        if not own.attributes or not own.vital or not own.area:
            lacking = [n for n in ("vital", "area", "attributes") if not getattr(own, n)]
            raise StudyError(
                f"[groups] lacks {', '.join(lacking)}",
                expected="who is in the group, the area, and the common attributes",
                remedy='recipe = "acs" for American Community Survey person files, or declare them',
            )
        if auxiliary is None:
            return own
        other = with_recipe(auxiliary)
        unknown = [name for name in auxiliary.attributes if name not in own.attributes]
        if unknown:
            raise StudyError(
                f'{auxiliary.title} maps "{unknown[0]}", which the file to publish does not have',
                expected="attributes of both files",
                remedy=nearest(unknown[0], own.attributes),
            )
        attributes = {name: _common(mine, other.attributes.get(name)) for name, mine in own.attributes.items()}
        return FileMapping(
            vital={group: other.vital.get(group, own.vital[group]) for group in own.vital},
            area=other.area or own.area,
            attributes=attributes,
            leave_out=other.leave_out,
            only=other.only,
        )


def _common(mine: Attribute, theirs: Attribute | None) -> Attribute:
    """An attribute of an auxiliary file. Both files accept the same range, unless the auxiliary one has its own."""
    if theirs is None:
        return mine
    return theirs if theirs.range is not None else theirs.model_copy(update={"range": mine.range})


def with_recipe(given: FileMapping) -> FileMapping:
    """A mapping with its recipe under it; declared attributes stand in place of the recipe's of the same name."""
    ready = recipe(given.recipe) if given.recipe else FileMapping()
    return FileMapping(
        vital=given.vital or ready.vital,
        area=given.area or ready.area,
        attributes={**ready.attributes, **given.attributes},
        leave_out=given.leave_out,
        only=given.only,
        usually_withheld=given.usually_withheld or ready.usually_withheld,
        usually_swapped=given.usually_swapped or ready.usually_swapped,
    )
