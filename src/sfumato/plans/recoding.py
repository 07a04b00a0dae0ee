"""What every kind of plan becomes before it is measured: per column, a group for each code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from sfumato.errors import HierarchyError, StudyError
from sfumato.runtime.arrays import Codes, Floats
from sfumato.tables.domain import Domain, span_share
from sfumato.tables.frequency import FrequencyTable


@dataclass(frozen=True, eq=False)
class ColumnRecoding:
    """One column recoded: `groups[code]` is a group; per group the leaves covered, the depth share, the span share."""

    labels: tuple[str, ...]
    groups: Codes
    covers: Codes
    depths: Floats
    spans: Floats | None

    @property
    def radix(self) -> int:
        return len(self.covers)


Recoding = tuple[ColumnRecoding, ...]


def as_it_stands(table: FrequencyTable) -> Recoding:
    """The recoding that changes nothing."""
    return tuple(
        ColumnRecoding(d.labels, np.arange(len(d.labels), dtype=np.int32), d.covers, d.depths, d.spans)
        for d in table.domains
    )


def at_levels(table: FrequencyTable, levels: Sequence[int]) -> Recoding:
    """Every column generalized to a level of its hierarchy: a node of the lattice."""
    if len(levels) != len(table.domains):
        raise StudyError(
            f"{len(levels)} levels for {len(table.domains)} quasi-identifiers",
            expected="one level per column",
        )
    return tuple(at_level(domain, level) for domain, level in zip(table.domains, levels, strict=True))


@lru_cache(maxsize=1 << 12)
def at_level(domain: Domain, level: int) -> ColumnRecoding:
    """One column generalized to a level of its hierarchy."""
    tree = domain.hierarchy
    if not 0 <= level <= tree.height:
        raise StudyError(f"level {level} of {domain.name}", expected=f"a level from 0 to {tree.height}")
    if len(domain.labels) > len(tree.leaves):
        raise HierarchyError(
            f"{domain.name} contains labels that are already generalized",
            expected="values of the raw table",
            remedy="recode the raw table instead",
        )
    groups, labels = tree.maps[level], tree.levels[level]
    value = domain.values()
    spans = None
    if value is not None:
        spans = np.array([span_share(value, groups == group) for group in range(len(labels))])
    depths = np.full(len(labels), level / tree.height)
    return ColumnRecoding(labels, groups, tree.sizes[level], depths, spans)


def without(recoding: Recoding, column: int) -> Recoding:
    """The same recoding with one column hidden."""
    part = recoding[column]
    hidden = replace(
        part,
        labels=("*",),
        groups=np.zeros_like(part.groups),
        covers=part.covers.max(keepdims=True),
        depths=np.ones(1),
        spans=None if part.spans is None else np.ones(1),
    )
    return (*recoding[:column], hidden, *recoding[column + 1 :])
