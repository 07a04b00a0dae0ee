"""A plan of the lattice system: one level of its hierarchy for each quasi-identifier."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from sfumato.errors import StudyError, counted, shortened
from sfumato.hierarchies import Hierarchy
from sfumato.plans.recoding import Recoding, at_level, at_levels
from sfumato.runtime.arrays import Codes
from sfumato.tables.domain import Domain
from sfumato.tables.frequency import FrequencyTable


def all_nodes(shape: Sequence[int]) -> Codes:
    """Every node of a lattice, a row of levels each.

    >>> all_nodes((2, 2)).tolist()
    [[0, 0], [0, 1], [1, 0], [1, 1]]
    """
    return np.indices(tuple(shape), dtype=np.int32).reshape(len(shape), -1).T.copy()


@dataclass(frozen=True)
class LevelPlan:
    """Levels by column, and which classes are suppressed: those smaller than a size (0 and 1 suppress nothing).

    `diversity_below` suppresses classes with fewer sensitive values as well, and `limits` those that fall short of
    another criterion, by its name: t, β and δ against the distribution of the whole input.

    >>> LevelPlan({"age": 2, "sex": 0}, suppress_below=5).entries()
    {'suppress_below': 5, 'plan': {'age': 2, 'sex': 0}}
    """

    levels: Mapping[str, int]
    suppress_below: int = 0
    diversity_below: int = 0
    limits: Mapping[str, float] = field(default_factory=dict)

    @property
    def choices(self) -> Mapping[str, int]:
        """What is chosen for each column."""
        return self.levels

    def tree(self, domain: Domain) -> tuple[Hierarchy, int]:
        """The hierarchy of a column, and the level that says the plan."""
        if domain.name not in self.levels:
            raise StudyError(f"the plan has no level for {domain.name}", expected="one level for each quasi-identifier")
        return domain.hierarchy, self.levels[domain.name]

    def grouped(self, domain: Domain) -> tuple[Codes, Codes]:
        """The group of each code of a column and how many values each group has: the recoding without its labels."""
        part = at_level(domain, self.levels[domain.name])
        return part.groups, part.covers

    def recoding(self, table: FrequencyTable) -> Recoding:
        """What the plan does to a table."""
        absent = [name for name in table.columns if name not in self.levels]
        extra = [name for name in self.levels if name not in table.columns]
        if absent or extra:
            raise StudyError(
                f"the plan and the table differ in their quasi-identifiers: {shortened(absent + extra)}",
                expected="one level for each quasi-identifier",
            )
        return at_levels(table, [self.levels[name] for name in table.columns])

    def words(self, table: FrequencyTable) -> list[str]:
        """The plan in words, one sentence a column."""
        said = []
        for domain in table.domains:
            tree, level = domain.hierarchy, self.levels[domain.name]
            if level == 0:
                said.append(f"{domain.name} as it is")
            elif level == tree.height:
                said.append(f"{domain.name} hidden")
            else:
                labels = [domain.shown(label) for label in tree.levels[level] if label]
                said.append(f"{domain.name} in {counted(len(labels), 'group')} ({shortened(labels, 3)})")
        return said

    @property
    def rank(self) -> tuple[int, ...]:
        return tuple(self.levels.values())

    def entries(self) -> dict[str, Any]:
        result: dict[str, Any] = {"suppress_below": self.suppress_below}
        result |= {"diversity_below": self.diversity_below} if self.diversity_below else {}
        result |= {"limits": dict(self.limits)} if self.limits else {}
        return result | {"plan": dict(self.levels)}

    def saved(self) -> dict[str, Any]:
        return self.entries()

    @classmethod
    def from_saved(cls, saved: Mapping[str, Any]) -> Self:
        """The plan of a point that was saved; ValueError if it cannot be one."""
        levels, below, diverse = saved["plan"], saved["suppress_below"], saved.get("diversity_below", 0)
        if not all(isinstance(n, int) and 0 <= n < 2**62 for n in (below, diverse, *levels.values())):
            raise ValueError("levels and limits are whole numbers")
        limits = saved.get("limits", {})
        if not all(isinstance(n, int | float) and math.isfinite(n) for n in limits.values()):
            raise ValueError("limits are numbers")
        return cls(levels, below, diverse, dict(limits))
