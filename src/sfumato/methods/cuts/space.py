"""The space of cuts, and its neighbourhood, crossover and mutation.

A candidate has one bit for every gap between neighbouring units of a column, which is 1 at a cut. `plans.segments`
says which bits a column permits. A neighbour joins two runs, splits one, shifts a boundary, or collapses or opens a
node of a tree. Crossover and mutation are those of the paper.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sfumato.base.arrays import Counts64, Flags, Floats
from sfumato.base.compiled import compiled
from sfumato.plans.recodings import ColumnRecoding, CutPlan, Recoding, at_level
from sfumato.plans.segments import Bits, Segment, segment_of
from sfumato.study import ColumnSettings
from sfumato.tables.domain import span_share
from sfumato.tables.frequency import FrequencyTable


@dataclass(frozen=True, eq=False)
class CutSpace:
    """The segments of all quasi-identifiers, one after the other."""

    segments: tuple[Segment, ...]

    @classmethod
    def of(cls, table: FrequencyTable, columns: Mapping[str, ColumnSettings] | None = None) -> CutSpace:
        """Return the space of a table. By default a column with a hierarchy is cut along it."""
        given = [(domain, (columns or {}).get(domain.name)) for domain in table.domains]
        return cls(tuple(segment_of(d, *((c.constrained, c.breaks) if c else (None, None))) for d, c in given))

    @cached_property
    def first(self) -> Counts64:
        """Return the first gap of each segment, followed by the number of gaps."""
        return np.concatenate([[0], np.cumsum([segment.gaps for segment in self.segments])]).astype(np.int64)

    @property
    def gaps(self) -> int:
        return int(self.first[-1])

    @property
    def size(self) -> int:
        """Return the number of candidates."""
        return math.prod(segment.size for segment in self.segments)

    def parts(self, bits: Bits) -> list[Bits]:
        """Return the bits of each segment."""
        return [bits[..., a:b] for a, b in zip(self.first[:-1], self.first[1:], strict=True)]

    def sampled(self, rng: np.random.Generator, count: int) -> Bits:
        """Draw random candidates."""
        return np.concatenate([segment.sampled(rng, count) for segment in self.segments], axis=1)

    def ends(self) -> Bits:
        """Return the two extreme candidates: without a cut, and with all cuts."""
        return np.stack([np.zeros(self.gaps, np.uint8), np.ones(self.gaps, np.uint8)])

    def at_levels(self, levels: Sequence[int]) -> Bits:
        """Return a node of the lattice as a candidate. A group that is not a run of neighbours is split into runs."""
        parts = []
        for segment, level in zip(self.segments, levels, strict=True):
            groups = at_level(segment.domain, level).groups
            order = np.array(segment.domain.order)
            apart = groups[order][1:] != groups[order][:-1]
            between = segment.unit_of[order][1:] != segment.unit_of[order][:-1]
            parts.append(segment.missing_separated(apart[between].astype(np.uint8)))
        return np.concatenate(parts)

    def recoding(self, bits: Bits) -> Recoding:
        """Return the recoding of a candidate without labels: the groups, covers and depths of its plan's recoding."""
        parts = []
        for segment, part in zip(self.segments, self.parts(bits), strict=True):
            group = np.concatenate([[0], np.cumsum(part)]).astype(np.int32)
            groups = group[segment.unit_of]
            covers = np.bincount(groups).astype(np.int32)
            level = 2 if len(covers) == 1 and len(groups) > 1 else 0 if len(covers) == len(groups) else 1
            values = segment.domain.values()
            shares = [] if values is None else [span_share(values, groups == g) for g in range(len(covers))]
            spans = None if values is None else np.array(shares)
            labels = tuple(map(str, range(len(covers))))
            parts.append(ColumnRecoding(labels, groups, covers, np.full(len(covers), level / 2), spans))
        return tuple(parts)

    def plan(self, bits: Bits, suppress_below: int = 0, diversity_below: int = 0) -> CutPlan:
        """Return bits as a plan with the first value of each group."""
        cuts = {}
        for segment, part in zip(self.segments, self.parts(bits), strict=True):
            starts = [0, *(np.flatnonzero(part) + 1).tolist()]
            cuts[segment.name] = tuple(segment.starts[unit] for unit in starts)
        return CutPlan(cuts, suppress_below, diversity_below)


Hashes = npt.NDArray[np.uint64]


class Layout(NamedTuple):
    """A space of cuts as arrays for the compiled loops, in the order of their arguments.

    Segment j has the gaps `gap[j]:gap[j + 1]` and the nodes `node[j]:node[j + 1]`. Node n has the units from `low[n]`
    to `high[n]`, and its children begin at `child[first[n]:first[n + 1]]`. Each gap has a random number in `marks`. The
    exclusive or of the numbers of all cuts is the hash of a candidate (Zobrist hashing).
    """

    gap: Counts64
    guarded: npt.NDArray[np.bool_]
    node: Counts64
    low: Counts64
    high: Counts64
    first: Counts64
    child: Counts64
    marks: Hashes

    @classmethod
    def of(cls, space: CutSpace) -> Layout:
        nodes = [node for segment in space.segments for node in segment.nodes]
        guarded = [s.guarded and not s.constrained and s.gaps > 1 for s in space.segments]
        return cls(
            space.first,
            np.array(guarded, dtype=np.bool_),
            np.concatenate([[0], np.cumsum([len(s.nodes) for s in space.segments])]).astype(np.int64),
            np.array([node.low for node in nodes], dtype=np.int64),
            np.array([node.high for node in nodes], dtype=np.int64),
            np.concatenate([[0], np.cumsum([len(node.children) for node in nodes])]).astype(np.int64),
            np.array([start for node in nodes for start in node.children], dtype=np.int64),
            np.random.default_rng(0).integers(1, 1 << 63, space.gaps, dtype=np.uint64),
        )

    def moves(self, bits: Bits) -> Moves:
        """Return every neighbour of a candidate."""
        return Moves(self, bits, *small_changes(bits, *self))

    def hashes(self, bits: Bits) -> Hashes:
        """Return the hash of each candidate."""
        return np.asarray(np.bitwise_xor.reduce(np.where(bits > 0, self.marks, np.uint64(0)), axis=1), dtype=np.uint64)


@dataclass(frozen=True, eq=False)
class Moves:
    """Neighbours of a candidate by column: the runs between `low` and `high` become those that end at `ends`."""

    layout: Layout
    bits: Bits
    column: Counts64
    low: Counts64
    high: Counts64
    begin: Counts64
    ends: Counts64
    hashes: Hashes

    def __len__(self) -> int:
        return len(self.column)

    def made(self, chosen: Counts64) -> Bits:
        """Return some of the neighbours as candidates."""
        result = np.repeat(self.bits[None, :], len(chosen), axis=0)
        for row, move in enumerate(chosen.tolist()):
            at = self.layout.gap[self.column[move]]
            result[row, at + self.low[move] : at + self.high[move] - 1] = 0
            result[row, at + self.ends[self.begin[move] : self.begin[move + 1]] - 1] = 1
        return result

    def kept(self, chosen: npt.NDArray[np.bool_]) -> Moves:
        """Return some of the neighbours."""
        sizes = np.diff(self.begin)
        begin = np.concatenate([[0], np.cumsum(sizes[chosen])]).astype(np.int64)
        ends = self.ends[np.repeat(chosen, sizes)]
        parts = (self.column[chosen], self.low[chosen], self.high[chosen], begin, ends, self.hashes[chosen])
        return Moves(self.layout, self.bits, *parts)


@compiled
def small_changes(
    bits: Bits,
    gap: Counts64,
    guarded: npt.NDArray[np.bool_],
    node: Counts64,
    node_low: Counts64,
    node_high: Counts64,
    first: Counts64,
    child: Counts64,
    marks: Hashes,
) -> tuple[Counts64, Counts64, Counts64, Counts64, Counts64, Hashes]:
    """Return every neighbour: its column, low, high, begin, ends and hash."""
    whole = np.uint64(0)
    for g in range(len(bits)):
        if bits[g]:
            whole ^= marks[g]
    limit = 3 * len(bits) + 2 * len(node_low) + 1
    column = np.empty(limit, np.int64)
    low, high = np.empty(limit, np.int64), np.empty(limit, np.int64)
    begin = np.zeros(limit + 1, np.int64)
    ends = np.empty(limit * 2 + len(child), np.int64)
    hashes = np.empty(limit, np.uint64)
    count, used = 0, 0
    for j in range(len(gap) - 1):
        at, units = gap[j], gap[j + 1] - gap[j] + 1
        if node[j + 1] > node[j]:
            for n in range(node[j], node[j + 1]):
                a, b = node_low[n], node_high[n]
                if (a > 0 and not bits[at + a - 1]) or (b < units and not bits[at + b - 1]) or b - a < 2:
                    continue
                parted = False
                for u in range(a, b - 1):
                    parted = parted or bits[at + u] > 0
                column[count], low[count], high[count] = j, a, b
                if not parted:
                    for c in range(first[n] + 1, first[n + 1]):
                        ends[used] = child[c]
                        used += 1
                begin[count + 1] = used
                count += 1
        else:
            last = units - 1 - (1 if guarded[j] else 0)  # the gaps that may be changed freely
            set_gaps = 0
            for u in range(last):
                set_gaps += bits[at + u]
            for u in range(last):
                a, b = u, u + 1  # the runs on both sides of the gap
                while a > 0 and not bits[at + a - 1]:
                    a -= 1
                while b < units - 1 and not bits[at + b]:
                    b += 1
                b += 1
                if bits[at + u]:
                    column[count], low[count], high[count] = j, a, b
                    if guarded[j] and set_gaps == 1:  # all units are joined now, so missing values are joined too
                        low[count], high[count] = 0, units
                    begin[count + 1] = used
                    count += 1
                    for to in (u - 1, u + 1):
                        if a <= to < b - 1 and to < last:
                            column[count], low[count], high[count] = j, a, b
                            ends[used] = to + 1
                            used += 1
                            begin[count + 1] = used
                            count += 1
                else:
                    column[count], low[count], high[count] = j, a, b
                    ends[used] = u + 1
                    used += 1
                    if guarded[j] and set_gaps == 0:
                        ends[used] = units - 1
                        used += 1
                    begin[count + 1] = used
                    count += 1
    for m in range(count):
        at = gap[column[m]]
        mark = whole
        for u in range(low[m], high[m] - 1):
            if bits[at + u]:
                mark ^= marks[at + u]
        for e in range(begin[m], begin[m + 1]):
            mark ^= marks[at + ends[e] - 1]
        hashes[m] = mark
    return column[:count], low[:count], high[:count], begin[: count + 1], ends[:used], hashes[:count]


CROSSOVER, MUTATION = 0.9, 0.1


def offspring(layout: Layout, parents: Bits, rng: np.random.Generator, mutation: float = MUTATION) -> Bits:
    """Return offspring of pairs of parents: single-point crossover in each segment, then bit flips in free segments.

    A constrained segment is crossed at a gap where both parents have a cut (Lunacek et al.), so both parts consist of
    complete nodes. Without such a gap, offspring keep the segments of their parents. Constrained segments are not
    mutated (docs/readings.md, 2.1).
    """
    pairs, columns = len(parents) // 2, len(layout.gap) - 1
    children = parents[: 2 * pairs].copy()
    crossed = rng.random(pairs) < CROSSOVER
    points = rng.random((pairs, columns))
    flips = rng.random(children.shape) < mutation if mutation else np.zeros(children.shape, dtype=np.bool_)
    cross(children, layout.gap, layout.node, layout.guarded, crossed, points, flips)
    return children


def jolted(layout: Layout, parents: Bits, rng: np.random.Generator, limit: int = 3) -> Bits:
    """Return each parent after one to `limit` random steps to a neighbour, each in a random column."""
    changes = rng.integers(1, limit + 1, len(parents))
    draws = rng.random((len(parents), limit, 2))
    result = parents.copy()
    jolt(result, changes, draws, *layout)
    return result


@compiled
def cross(
    bits: Bits, gap: Counts64, node: Counts64, guarded: Flags, crossed: Flags, points: Floats, flips: Flags
) -> None:
    """Cross rows 2p and 2p + 1 in place, and then flip bits of free segments."""
    for p in range(len(crossed)):
        one, two = bits[2 * p], bits[2 * p + 1]
        for j in range(len(gap) - 1):
            low, high = gap[j], gap[j + 1]
            constrained = node[j + 1] > node[j]
            at = -1
            if crossed[p] and high > low:
                if constrained:
                    common = 0
                    for g in range(low, high):
                        common += one[g] & two[g]
                    pick = int(points[p, j] * common)
                    for g in range(low, high):
                        if one[g] & two[g]:
                            if pick == 0:
                                at = g
                                break
                            pick -= 1
                else:
                    at = low + int(points[p, j] * (high - low))
            if at >= 0:
                for g in range(at, high):
                    one[g], two[g] = two[g], one[g]
            if not constrained:
                for row in (2 * p, 2 * p + 1):
                    parted = False
                    last = high - (1 if guarded[j] else 0)
                    for g in range(low, last):
                        if flips[row, g]:
                            bits[row, g] ^= np.uint8(1)
                        parted = parted or bits[row, g] > 0
                    if guarded[j]:
                        bits[row, last] = np.uint8(1 if parted else 0)


@compiled
def jolt(
    bits: Bits,
    changes: Counts64,
    draws: npt.NDArray[np.float64],
    gap: Counts64,
    guarded: Flags,
    node: Counts64,
    low: Counts64,
    high: Counts64,
    first: Counts64,
    child: Counts64,
    marks: npt.NDArray[np.uint64],
) -> None:
    """Apply random steps in place: draw a column, then one of its neighbours."""
    columns = len(gap) - 1
    for i in range(len(bits)):
        for c in range(changes[i]):
            column, a, b, begin, ends, _ = small_changes(bits[i], gap, guarded, node, low, high, first, child, marks)
            count = np.zeros(columns, np.int64)
            for m in range(len(column)):
                count[column[m]] += 1
            free = 0
            for j in range(columns):
                free += count[j] > 0
            if free == 0:
                continue
            pick = int(draws[i, c, 0] * free)
            j = 0
            while count[j] == 0 or pick > 0:
                pick -= count[j] > 0
                j += 1
            at = 0
            while column[at] != j:
                at += 1
            m = at + int(draws[i, c, 1] * count[j])
            for u in range(a[m], b[m] - 1):
                bits[i, gap[j] + u] = 0
            for e in range(begin[m], begin[m + 1]):
                bits[i, gap[j] + ends[e] - 1] = 1
