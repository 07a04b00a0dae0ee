"""Every small change of a cut: join or split two neighbours, shift a boundary, collapse or open a node of a tree."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sfumato.runtime.arrays import Counts64
from sfumato.runtime.compiled import compiled
from sfumato.systems.cuts.space import CutSpace

Bits = npt.NDArray[np.uint8]
Hashes = npt.NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class Layout:
    """A space of cuts as plain arrays for the compiled loops.

    Segment j has the gaps `gap[j]:gap[j + 1]` and the nodes `node[j]:node[j + 1]`; node n spans the units from `low[n]`
    to `high[n]`, and its children begin at `child[first[n]:first[n + 1]]`. `marks` are random numbers, one a gap: the
    exclusive or of those that are set tells candidates apart.
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
        """Every small change of a candidate."""
        parts = small_changes(
            bits, self.gap, self.guarded, self.node, self.low, self.high, self.first, self.child, self.marks
        )
        return Moves(self, bits, *parts)

    def hashes(self, bits: Bits) -> Hashes:
        """A number for each candidate; equal candidates have equal ones."""
        return np.asarray(np.bitwise_xor.reduce(np.where(bits > 0, self.marks, np.uint64(0)), axis=1), dtype=np.uint64)


@dataclass(frozen=True, eq=False)
class Moves:
    """Changes of one candidate, sorted by column: the runs between `low` and `high` become those that end at `ends`."""

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
        """The candidates that some of the changes lead to."""
        result = np.repeat(self.bits[None, :], len(chosen), axis=0)
        for row, move in enumerate(chosen.tolist()):
            at = self.layout.gap[self.column[move]]
            result[row, at + self.low[move] : at + self.high[move] - 1] = 0
            result[row, at + self.ends[self.begin[move] : self.begin[move + 1]] - 1] = 1
        return result

    def kept(self, chosen: npt.NDArray[np.bool_]) -> Moves:
        """Some of the changes."""
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
    """Every small change: column, low, high, begin, ends and the hash of what it leads to."""
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
            last = units - 1 - (1 if guarded[j] else 0)  # free gaps
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
                    if guarded[j] and set_gaps == 1:  # all is joined now, and missing values with it
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
