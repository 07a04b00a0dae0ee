"""Section [groups] of a run file: the auxiliary files, the attack and the protection."""

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
    """A file that reveals who is in the group. Settings that it does not state are those of the file to publish."""

    name: str | None = None
    """Name of the file in reports. The default is the name of the file on disk."""
    held_out: bool = False
    """Whether attacks from this file are held out: no plan is fitted to them or chosen by them."""

    @property
    def title(self) -> str:
        """The name of the file in reports, without its folder."""
        return self.name or Path(self.path).name


class AttackSettings(Settings):
    """Settings of the attack: how the group is learned and which areas count as outliers."""

    attacker: AttackerName = "exact"
    """Model that learns who is in the group."""
    gamma: float | None = Field(default=None, gt=0)
    """Least relative confidence of a rule (γ). It is chosen by cross-validation or taken from the paper unless
    stated."""
    kappa: float | None = Field(default=None, ge=0, lt=1)
    """Support that a rule must exceed (κ). It is chosen by cross-validation or taken from the paper unless stated."""
    least_records: int = Field(default=5, ge=0)
    """Least sum of the memberships of group members in a rule."""
    significance: float = Field(default=0.01, gt=0, lt=1)
    """Significance level of the outlier tests."""
    folds: int = Field(default=5, ge=2, le=20)
    """Number of folds of the cross-validation."""
    seed: Seed = 1
    """First seed of the random numbers of an attack."""
    seeds: int = Field(default=5, ge=1, le=1000)
    """Number of seeds with which an attack is repeated."""
    population: int = Field(default=100, ge=4, le=100_000)
    """Number of rules in a generation of the evolutionary attacker."""
    replaced: int = Field(default=40, ge=1, le=100_000)
    """Number of rules that are replaced in each generation of the evolutionary attacker."""
    tournament: int = Field(default=10, ge=1, le=100_000)
    """Number of rules in a tournament of the evolutionary attacker."""
    mutation: float = Field(default=0.05, ge=0, le=1)
    """Probability of a mutation in the evolutionary attacker."""
    generations: int = Field(default=100, ge=1, le=10**6)
    """Number of generations of the evolutionary attacker."""
    runs: int = Field(default=10, ge=1, le=1000)
    """Number of runs of the evolutionary attacker, whose rules are put together."""


class ProtectSettings(Settings):
    """Settings of the protection, which swaps records between areas.

    Plans are fitted to known attacks and chosen by fresh attacks, which have other seeds. Held-out attacks judge the
    finished plans. They are the attackers of both lists with seeds of their own, and every attack from a file that is
    held out. The partners in a swap must not be guessed, so the operating system chooses among equally good ones.
    """

    method: Literal["exact", "memetic"] = "exact"
    """Algorithm that plans the swaps: exact plans, or the evolutionary search of the paper (memetic)."""
    targets: dict[str, Annotated[float, Field(ge=0)]] = Field(default_factory=dict)
    """Largest number of members that an area may show, by area. Without targets, swaps are planned until no attack
    finds an area."""
    attackers: tuple[AttackerName, ...] = PLANNED
    """Attackers to which plans are fitted, and by which they are chosen with other seeds."""
    sealed_attackers: tuple[AttackerName, ...] = SEALED
    """Attackers that are held out: they judge the finished plans and take no part in making them."""
    levels: int = Field(default=3, ge=1, le=50)
    """Number of steps between no protection and the full one for which a plan is made."""
    suspicious_partners: bool = False
    """Whether a record that an attacker flags may be a partner in a swap."""
    metric: Literal["cells", "influential"] = "cells"
    """Cost of a swap: the number of attributes that differ (cells), or the influential metric, which weights ordinal
    attributes."""
    columns: tuple[str, ...] = ()
    """Attributes that the cost of a swap counts. The default is all attributes."""
    generations: int = Field(default=1000, ge=1, le=10**6)
    """Number of generations of the method memetic."""
    known_seeds: int = Field(default=2, ge=1, le=1000)
    """Number of seeds of the attacks to which plans are fitted."""
    fresh_seeds: int = Field(default=1, ge=1, le=1000)
    """Number of seeds of the attacks that choose among the plans."""
    sealed_seeds: int = Field(default=1, ge=1, le=1000)
    """Number of seeds of the held-out attacks that judge the plans."""
    swap_rates: tuple[Annotated[float, Field(gt=0, le=0.5)], ...] = (0.02, 0.05, 0.1)
    """Rates of targeted record swapping, which is measured for comparison with the plans."""
    risk: int = Field(default=3, ge=1, le=1000)
    """Number of similar records in its area below which targeted record swapping counts a record as at risk."""
    test_seed: Seed | None = None
    """Seed of the choice among partners of equal cost, which the operating system makes in a real release. For tests
    only."""


class GroupsSettings(FileMapping):
    """Settings of the method groups. The file to publish is in [data]."""

    auxiliary: tuple[AuxiliarySettings, ...] = ()
    """Files from which an attacker can learn who is in the group."""
    expert: tuple[str, ...] = ()
    """Areas that must not be found. Without them, they are the outliers of the true counts."""
    exclude: tuple[str, ...] = ()
    """Areas that need no protection."""
    swap: tuple[str, ...] = ()
    """Further columns that are exchanged together with the area."""
    withhold: tuple[str, ...] = ()
    """Further columns that are not released."""
    other_columns: Literal["release", "withhold"] | None = None
    """Treatment of columns that neither this section nor [columns] names."""
    unit: str | None = None
    """Column whose values number units, such as households. The records of a unit are moved together."""
    naming: float = Field(default=0.5, gt=0, le=1)
    """Average precision above which a single released column counts as one that names the group, and is refused."""
    attack: AttackSettings = AttackSettings()
    """Settings of the attacks."""
    protect: ProtectSettings = ProtectSettings()
    """Settings of the protection."""

    def mapping(self, auxiliary: AuxiliarySettings | None = None) -> FileMapping:
        """Return the mapping of the file to publish, or of an auxiliary file, completed by its recipe."""
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
    """Return an attribute of an auxiliary file, with the range of the file to publish unless it has its own."""
    if theirs is None:
        return mine
    return theirs if theirs.range is not None else theirs.model_copy(update={"range": mine.range})


def with_recipe(given: FileMapping) -> FileMapping:
    """Return a mapping completed by its recipe. Declared attributes replace those of the recipe."""
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
