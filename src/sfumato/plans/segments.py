"""Quasi-identifiers as ordered units of values, between which a search may cut.

A free column may join any neighbours. A constrained column joins values only along its tree, so that every group is a
node. Missing values have their own unit, which is joined to others only if all units are joined.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from sfumato.base.arrays import Codes, Counts64
from sfumato.data.cells import MISSING
from sfumato.errors import HierarchyError, StudyError, shortened
from sfumato.study import Study
from sfumato.tables.domain import Domain, leaf_values
from sfumato.tables.frequency import FrequencyTable

Bits = npt.NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class Node:
    """A node of a constrained column: the units from `low` to below `high`, and the first unit of each child."""

    low: int
    high: int
    children: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Segment:
    """A column as units of values, the gaps between them, and the nodes of its tree.

    The unit of a leaf is `unit_of[leaf]`, and unit u has `leaves[u]` leaves. If neighbours may be joined freely there
    are no `nodes`. If `guarded`, the last unit has the missing values, which are joined only if all units are joined.
    """

    domain: Domain
    unit_of: Codes
    leaves: Counts64
    nodes: tuple[Node, ...]
    guarded: bool

    @property
    def name(self) -> str:
        return self.domain.name

    @property
    def units(self) -> int:
        return len(self.leaves)

    @property
    def gaps(self) -> int:
        return self.units - 1

    @property
    def constrained(self) -> bool:
        return bool(self.nodes)

    @cached_property
    def starts(self) -> tuple[str, ...]:
        """Return the first value of each unit."""
        labels = self.domain.hierarchy.leaves
        first: dict[int, str] = {}
        for leaf in self.domain.order:
            first.setdefault(int(self.unit_of[leaf]), labels[leaf])
        return tuple(first[unit] for unit in range(self.units))

    @cached_property
    def members(self) -> list[list[int]]:
        """Return the children of each node."""
        position = {(node.low, node.high): number for number, node in enumerate(self.nodes)}
        return [
            [position[pair] for pair in zip(node.children, (*node.children[1:], node.high), strict=False)]
            for node in self.nodes
        ]

    @property
    def size(self) -> int:
        """Return the number of partitions of the column."""
        if not self.constrained:
            return int(2 ** (self.gaps - (self.guarded and self.gaps > 1)))
        count: dict[int, int] = {}
        for number, below in enumerate(self.members):  # children come before their parents
            product = 1
            for child in below:
                product *= count[child]
            count[number] = 1 + product if below else 1
        return count[len(self.nodes) - 1]

    def missing_separated(self, bits: Bits) -> Bits:
        """Cut off the missing values, unless all units are joined."""
        if self.guarded and not self.constrained and self.gaps > 1:
            bits[..., -1] = bits[..., :-1].any(axis=-1)
        return bits

    def sampled(self, rng: np.random.Generator, count: int) -> Bits:
        """Draw random partitions: each gap is cut with probability 1/2, or each node of the tree is split with it."""
        if not self.constrained:
            return self.missing_separated(rng.integers(0, 2, (count, self.gaps), dtype=np.uint8))
        bits = np.zeros((count, self.gaps), dtype=np.uint8)
        open_ = np.zeros((len(self.nodes), count), dtype=np.bool_)
        open_[-1] = True
        for number in range(len(self.nodes) - 1, -1, -1):
            node, below = self.nodes[number], self.members[number]
            if below:
                parts = open_[number] & (rng.random(count) < 0.5)
                for child in below:
                    open_[child] = parts
                for start in node.children[1:]:
                    bits[parts, start - 1] = 1
        return bits

    def valid(self, bits: Bits) -> bool:
        """Return whether the bits are a partition that the column allows."""
        if not self.constrained:
            return bool(np.array_equal(self.missing_separated(bits.copy()), bits))
        ends = [*np.flatnonzero(bits) + 1, self.units]
        known = {(node.low, node.high) for node in self.nodes}
        return all(pair in known for pair in zip([0, *ends[:-1]], ends, strict=True))


def segments_of(study: Study, table: FrequencyTable) -> list[Segment]:
    """Return the columns as a study declares them.

    If the study does not say whether a column is constrained, a tree whose groups are not runs of neighbours does not
    constrain it.
    """
    segments = []
    for domain in table.domains:
        column = study.columns.get(domain.name)
        along, breaks = (column.constrained, column.breaks) if column else (None, None)
        try:
            segments.append(segment_of(domain, along, breaks))
        except HierarchyError:
            if along is not None:
                raise
            segments.append(segment_of(domain, False, breaks))
    return segments


def segment_of(domain: Domain, constrained: bool | None = None, breaks: Sequence[float] | None = None) -> Segment:
    """Return a column as units of neighbouring values, along its tree if it is constrained."""
    if len(domain.labels) > len(domain.hierarchy.leaves):
        raise HierarchyError(
            f"{domain.name} contains labels that are already generalized",
            expected="values of the raw table",
            remedy="search the raw table instead",
        )
    if domain.wildcard:
        raise StudyError(
            f"{domain.name} has missing values that match anything",
            expected='missing = "drop" or "category" for a search over groups of values',
            remedy='missing = "category" under [data]',
        )
    numeric = leaf_values(domain.hierarchy, domain.decimal)
    if constrained is None:
        constrained = domain.along_tree
    if breaks is not None and (constrained or numeric is None):
        raise StudyError(
            f"breaks for {domain.name}",
            expected="breaks only for a column of numbers that is not constrained",
            remedy=f"leave breaks out, or set constrained = false for {domain.name}",
        )
    order = np.array(domain.order, dtype=np.int64)
    unit_of = np.empty(len(order), dtype=np.int32)
    unit_of[order] = np.arange(len(order)) if breaks is None else _binned(domain, numeric, order, breaks)
    leaves = np.bincount(unit_of).astype(np.int64)
    nodes = _nodes(domain, unit_of) if constrained else ()
    guarded = domain.missing is not None and domain.hierarchy.leaves[domain.missing] == MISSING
    return Segment(domain, unit_of, leaves, nodes, guarded and len(leaves) > 1)


def _binned(domain: Domain, values: npt.NDArray[np.float64] | None, order: Counts64, breaks: Sequence[float]) -> Codes:
    """Return the unit of each value in order. A unit begins at each break, and missing values have their own unit."""
    if list(breaks) != sorted(set(breaks)):
        raise StudyError(
            f"the breaks of {domain.name} are not ascending", expected="numbers in ascending order, each once"
        )
    ordered = (np.full(len(order), np.nan) if values is None else values)[order]
    bins = np.searchsorted(np.array(breaks), ordered, side="right")
    bins[np.isnan(ordered)] = len(breaks) + 1
    return np.asarray(np.unique(bins, return_inverse=True)[1], dtype=np.int32)


def _nodes(domain: Domain, unit_of: Codes) -> tuple[Node, ...]:
    """Return the nodes of a column's tree as runs of units, the smallest first. Raise if a node is not a run."""
    tree = domain.hierarchy
    spans: dict[tuple[int, int], None] = {}
    torn = []
    for level in range(tree.height + 1):
        for position, label in enumerate(tree.levels[level]):
            units = np.sort(unit_of[tree.maps[level] == position])
            low, high = int(units[0]), int(units[-1]) + 1
            if high - low > len(units):
                torn.append(label)
            spans[low, high] = None
    if torn:
        raise HierarchyError(
            f"{domain.name} is constrained by its hierarchy, but {len(torn)} of its groups are not runs of neighbours: "
            f"{shortened(map(repr, torn), 3)}",
            expected="an order in which the values of every group of the hierarchy are neighbours",
            remedy=f"order = [...] for {domain.name}, or constrained = false",
        )
    ordered = sorted(spans, key=lambda span: (span[1] - span[0], span[0]))
    return tuple(Node(low, high, _children(low, high, ordered)) for low, high in ordered)


def _children(low: int, high: int, spans: Sequence[tuple[int, int]]) -> tuple[int, ...]:
    """Return the first unit of each of the largest nodes strictly inside a node. A leaf has none."""
    starts, at = [], low
    while at < high and high - low > 1:
        inside = [b for a, b in spans if a == at and b <= high and (a, b) != (low, high)]
        starts.append(at)
        at = max(inside)
    return tuple(starts)
