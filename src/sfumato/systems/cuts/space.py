"""The space of cuts: one bit for every gap between neighbouring values, 1 where they are parted.

A column is a segment of bits. An ordered column may join any neighbours; a constrained one only along its tree, so that
every group is a node. A column with a place of its own for missing values joins them to others only when all is joined.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sfumato.plans.cuts import CutPlan
from sfumato.plans.recoding import ColumnRecoding, Recoding, at_level
from sfumato.plans.segments import Bits, Segment, segment_of
from sfumato.runtime.arrays import Counts64
from sfumato.tables.domain import span_share
from sfumato.tables.frequency import FrequencyTable


@dataclass(frozen=True, eq=False)
class CutSpace:
    """The segments of all quasi-identifiers side by side."""

    segments: tuple[Segment, ...]

    @classmethod
    def of(
        cls,
        table: FrequencyTable,
        constrained: Mapping[str, bool | None] | None = None,
        breaks: Mapping[str, Sequence[float] | None] | None = None,
    ) -> CutSpace:
        """The space of a table. Where nothing is said, a column with a hierarchy is cut along it."""
        along, at = constrained or {}, breaks or {}
        return cls(tuple(segment_of(domain, along.get(domain.name), at.get(domain.name)) for domain in table.domains))

    @cached_property
    def first(self) -> Counts64:
        """Where each segment begins; behind the last, the number of gaps."""
        return np.concatenate([[0], np.cumsum([segment.gaps for segment in self.segments])]).astype(np.int64)

    @property
    def gaps(self) -> int:
        return int(self.first[-1])

    @property
    def size(self) -> int:
        """How many cuts there are."""
        product = 1
        for segment in self.segments:
            product *= segment.size
        return product

    def parts(self, bits: Bits) -> list[Bits]:
        """The bits of each segment."""
        return [bits[..., a:b] for a, b in zip(self.first[:-1], self.first[1:], strict=True)]

    def sampled(self, rng: np.random.Generator, count: int) -> Bits:
        """Random cuts."""
        return np.concatenate([segment.sampled(rng, count) for segment in self.segments], axis=1)

    def ends(self) -> Bits:
        """The two extremes: everything joined, everything apart."""
        return np.stack([np.zeros(self.gaps, np.uint8), np.ones(self.gaps, np.uint8)])

    def valid(self, bits: Bits) -> bool:
        return all(segment.valid(part) for segment, part in zip(self.segments, self.parts(bits), strict=True))

    def at_levels(self, levels: Sequence[int]) -> Bits:
        """A node of the lattice as a cut; a group that is not a run of neighbours is split into its runs."""
        parts = []
        for segment, level in zip(self.segments, levels, strict=True):
            groups = at_level(segment.domain, level).groups
            order = np.array(segment.domain.order)
            apart = groups[order][1:] != groups[order][:-1]
            between = segment.unit_of[order][1:] != segment.unit_of[order][:-1]
            parts.append(segment.mended(apart[between].astype(np.uint8)))
        return np.concatenate(parts)

    def recoding(self, bits: Bits) -> Recoding:
        """What a cut does to the table, without labels: the same groups, covers and depths as its plan's recoding."""
        parts = []
        for segment, part in zip(self.segments, self.parts(bits), strict=True):
            group = np.concatenate([[0], np.cumsum(part)]).astype(np.int32)
            groups = group[segment.unit_of]
            covers = np.bincount(groups).astype(np.int32)
            level = 2 if len(covers) == 1 and len(groups) > 1 else 0 if len(covers) == len(groups) else 1
            values = segment.domain.values()
            spans = None
            if values is not None:
                spans = np.array([span_share(values, groups == g) for g in range(len(covers))])
            labels = tuple(map(str, range(len(covers))))
            parts.append(ColumnRecoding(labels, groups, covers, np.full(len(covers), level / 2), spans))
        return tuple(parts)

    def plan(self, bits: Bits, suppress_below: int = 0, diversity_below: int = 0) -> CutPlan:
        """Bits as a plan that says the first value of each group."""
        cuts = {}
        for segment, part in zip(self.segments, self.parts(bits), strict=True):
            starts = [0, *(np.flatnonzero(part) + 1).tolist()]
            cuts[segment.name] = tuple(segment.starts[unit] for unit in starts)
        return CutPlan(cuts, suppress_below, diversity_below)

    def bits_of(self, plan: CutPlan) -> Bits:
        """A plan as bits."""
        parts = [np.isin(s.starts[1:], plan.cuts[s.name]).astype(np.uint8) for s in self.segments]
        return np.concatenate(parts) if parts else np.zeros(0, np.uint8)
