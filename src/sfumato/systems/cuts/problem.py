"""Cuts as a problem: which figures a candidate has under a rule of suppression, in full and for its small changes."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from sfumato.errors import StudyError
from sfumato.measures.bits import Masks, bits_of, no_masks, sensitive_masks
from sfumato.runtime.arrays import Codes, Counts64, Floats, Index
from sfumato.systems.cuts import class_tally as tally
from sfumato.systems.cuts import kernels as cut_kernels
from sfumato.systems.cuts import rebuild
from sfumato.systems.cuts.moves import Bits, Layout, Moves
from sfumato.systems.cuts.space import CutSpace
from sfumato.tables.frequency import FrequencyTable
from sfumato.tables.packing import Packed, pack

RULES = {
    "none": tally.NONE,
    "within": tally.WITHIN,
    "below_mean": tally.BELOW_MEAN,
    "demanded": tally.DEMANDED,
    "safe": tally.SAFE,
    "printed_k": tally.PRINTED_K,
    "printed_l": tally.PRINTED_L,
}
Part = TypeVar("Part")
Made = TypeVar("Made")
TALLY = 1 << 16
ROOM = 1 << 25


@dataclass(frozen=True, eq=False)
class UnitTable:
    """A frequency table in units, not values: distinct tuples, their counts, their sensitive values as bits."""

    codes: Codes
    counts: Counts64
    masks: Masks
    words: Counts64
    packed: Packed

    @classmethod
    def of(cls, table: FrequencyTable, space: CutSpace, diverse: bool) -> UnitTable:
        codes = np.stack([s.unit_of[c] for s, c in zip(space.segments, table.codes, strict=True)]).astype(np.int32)
        masks, words = sensitive_masks(table) if diverse else no_masks(table)
        order = np.lexsort(codes[::-1])
        ordered = codes[:, order]
        new = np.ones(len(order), dtype=np.bool_)
        new[1:] = np.any(ordered[:, 1:] != ordered[:, :-1], axis=0)
        start = np.flatnonzero(new)
        counts = np.add.reduceat(table.counts[order], start)
        merged = np.bitwise_or.reduceat(masks[order], start, axis=0) if masks.shape[1] else masks[: len(start)]
        distinct = np.ascontiguousarray(ordered[:, new])
        packed = pack(distinct, [segment.units for segment in space.segments])
        return cls(distinct, counts, np.ascontiguousarray(merged), words, packed)


class CutProblem:
    """A table, a space of cuts and a rule of suppression.

    `rule` is one of RULES; `by_diversity` applies it to the number of sensitive values instead of the size. With
    "demanded" exactly the classes below `floor` go, and what then exceeds the budget cannot be had.
    """

    def __init__(
        self,
        table: FrequencyTable,
        space: CutSpace,
        rule: str,
        budget: int = 0,
        *,
        by_diversity: bool = False,
        floor: int = 0,
        weights: Mapping[str, float] | None = None,
        threads: int | None = None,
    ) -> None:
        self.table, self.space, self.rule, self.budget = table, space, rule, budget
        self.by_diversity, self.floor, self.threads = by_diversity, floor, threads or os.cpu_count() or 1
        self.records = table.records
        self.weights = np.array([(weights or {}).get(name, 1.0) for name in table.columns])
        self.layout = Layout.of(space)
        diverse = by_diversity or RULES[rule] >= tally.SAFE
        if by_diversity and table.special:
            raise StudyError(
                "the number of sensitive values decides what is suppressed, and some of them are harmless or missing",
                expected="a search with k as an objective, and distinct_l under constraints or as another objective",
            )
        self.units = UnitTable.of(table, space, diverse)
        self.levels = self._levels() if RULES[rule] >= tally.SAFE else 1

    @cached_property
    def scale(self) -> float:
        """Units of cost in a loss of 1: as many as whole numbers of 62 bits allow."""
        return float(2 ** int(60 - np.log2(max(self.weights.sum(), 1.0) * max(self.records, 1))))

    @property
    def full(self) -> float:
        """The most that can be lost: every cell of every record."""
        return float(self.weights.sum()) * self.records

    def figures(self, bits: Bits) -> tally.Table:
        """Whole figures of candidates, evaluated in full: (candidate, variant, figure)."""
        chunks = np.array_split(bits, max(min(self.threads, len(bits) // 8), 1))

        def some(part: Bits) -> tally.Table:
            return cut_kernels.evaluate(np.ascontiguousarray(part), *self._given)

        return np.concatenate(self._each(some, chunks))

    def sweeps(self, parents: list[Moves]) -> list[tally.Table]:
        """Whole figures of every small change of some candidates."""

        def one(moves: Moves) -> tally.Table:
            changes = (moves.column, moves.low, moves.high, moves.begin, moves.ends, ROOM)
            return cut_kernels.sweep(*(moves.bits, *self._given, *changes))

        return self._each(one, parents)

    def rebuilt(
        self, parents: Bits, sizes: Counts64, columns: Counts64, prices: Floats, passes: int = 8
    ) -> tuple[Bits, int]:
        """Each candidate with its columns cut anew one after the other, in its row of `columns`, until none changes:
        the least loss with classes of its size, where a record that goes costs a share `prices` of all its cells or
        more; and how many columns were looked at."""
        packing, codes, counts, _, _, gap, unit, leaves, price = self._given[:9]
        order, start = self._by_unit
        layout, full = self.layout, float(self.weights.sum() * self.scale)
        nodes = (layout.node, layout.low, layout.high, layout.first, layout.child)
        table = (packing, codes, counts, gap, unit, leaves, price, order, start)

        def one(which: int) -> tuple[Bits, int]:
            given = (parents[which], columns[which], int(sizes[which]), self.budget, float(prices[which]) * full, full)
            parts: tuple[Any, ...] = (*given, *table, layout.guarded, *nodes, passes)
            return rebuild.descend(*parts)

        result = self._each(one, list(range(len(parents))))
        return np.stack([bits for bits, _ in result]), sum(looked for _, looked in result)

    @cached_property
    def _by_unit(self) -> tuple[Index, Counts64]:
        """For each column its tuples by unit, and where each unit's begin."""
        codes, segments = self.units.codes, self.space.segments
        order = np.stack([np.argsort(held, kind="stable") for held in codes]).astype(np.uint32)
        counts = [np.bincount(held, minlength=s.units) for held, s in zip(codes, segments, strict=True)]
        return order, np.concatenate([np.concatenate([[0], np.cumsum(each)]) for each in counts]).astype(np.int64)

    def losses(self, figures: tally.Table) -> tuple[Floats, Floats]:
        """Generalization and suppression loss as shares of d·N; infinite where a variant cannot be had."""
        fits = figures[..., tally.KEPT_COST] >= 0
        if self.rule == "demanded":
            fits &= figures[..., tally.SUPPRESSED] <= self.budget
        general = np.where(fits, figures[..., tally.KEPT_COST] / self.scale / self.full, np.inf)
        gone = np.where(fits, figures[..., tally.SUPPRESSED] / self.records, np.inf)
        return general, gone

    @cached_property
    def _given(self) -> tuple[Any, ...]:
        """What the compiled loops want behind a candidate's bits."""
        units, packed = self.units, self.units.packed
        segments = self.space.segments
        unit = np.concatenate([[0], np.cumsum([s.units for s in segments])]).astype(np.int64)
        leaves = np.concatenate([np.concatenate([[0], np.cumsum(s.leaves)]) for s in segments]).astype(np.int64)
        others = np.array([max(domain.leaves - 1, 1) for domain in self.table.domains])
        price = np.round(self.weights / others * self.scale).astype(np.int64)
        exact = self.rule == "below_mean" and not self.by_diversity
        limit = self.records if exact else min(self.records, max(self.budget + 1, self.floor + 1, TALLY))
        packing = (packed.codes, packed.members, packed.first, packed.sizes, packed.decode)
        return (
            packing,
            units.codes,
            units.counts,
            units.masks,
            units.words,
            self.space.first,
            unit,
            leaves,
            price,
            RULES[self.rule],
            self.by_diversity,
            self.floor if self.rule == "demanded" else self.budget,
            self.records,
            self.levels,
            limit + 1,
        )

    def _levels(self) -> int:
        """One more than the most different sensitive values a class can have."""
        return 1 + min(
            len(np.unique(places[places >= 0]))
            for values in self.table.sensitive.values()
            for places in [bits_of(values.domain)[values.domain.counts > 0]]
        )

    def _each(self, function: Callable[[Part], Made], parts: list[Part]) -> list[Made]:
        """A function of each part, on as many threads as there are; in order."""
        if self.threads == 1 or len(parts) == 1:
            return [function(part) for part in parts]
        with ThreadPoolExecutor(self.threads) as pool:
            return list(pool.map(function, parts))
