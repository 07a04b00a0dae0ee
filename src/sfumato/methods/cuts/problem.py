"""Cuts as an optimisation problem: the values of candidates and of their neighbours under a rule of suppression.

Measures are computed from the compiled figures if possible, else from class tables.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from sfumato.base.arrays import Codes, Counts64, Floats, Index
from sfumato.errors import MeasureError, StudyError
from sfumato.measures.classes import ClassTable, Masks, bits_of, classify, no_masks, sensitive_masks
from sfumato.measures.fast_paths import CutFigures, Form
from sfumato.measures.measure import Goal, Measure
from sfumato.measures.registry import GENERAL_LOSS, K, known_measures
from sfumato.measures.suppression import suppress_below, suppress_within
from sfumato.measures.thresholds import CONSTRAINT, MEASURED, OBJECTIVE
from sfumato.measures.units import releases_of
from sfumato.methods.cuts import kernels
from sfumato.methods.cuts.kernels import LEAST_DIVERSITY, LEAST_SIZE, RULES, SAFE, Table
from sfumato.methods.cuts.rebuild import descend
from sfumato.methods.cuts.space import CutSpace, Layout, Moves
from sfumato.plans.segments import Bits
from sfumato.tables.frequency import FrequencyTable, Packed, pack

Part = TypeVar("Part")
Made = TypeVar("Made")
TALLY = 1 << 16
ROOM = 1 << 25
PASSES = 8  # of the columns of a candidate


@dataclass(frozen=True, eq=False)
class UnitTable:
    """A frequency table in units instead of values: distinct tuples, their counts, their sensitive values as bits."""

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


@dataclass(eq=False)
class CutProblem:
    """A table, a space of cuts and a rule of suppression.

    The rule is one of `RULES`. With `by_diversity` it applies to the number of sensitive values instead of the size. If
    the rule is "demanded", exactly the classes below `least_size` are suppressed, and a candidate that then exceeds the
    budget is infeasible.
    """

    table: FrequencyTable
    space: CutSpace
    rule: str
    budget: int = 0
    by_diversity: bool = False
    least_size: int = 0
    given_weights: Mapping[str, float] = field(default_factory=dict)
    threads: int = os.cpu_count() or 1

    def __post_init__(self) -> None:
        table = self.table
        self.records = table.records
        self.weights = np.array([self.given_weights.get(name, 1.0) for name in table.columns])
        self.layout = Layout.of(self.space)
        several = RULES.index(self.rule) >= SAFE  # a rule with several variants
        if self.by_diversity and table.special:
            raise StudyError(
                "the number of sensitive values decides what is suppressed, and some of them are harmless or missing",
                expected="a search with k as an objective, and distinct_l under constraints or as another objective",
            )
        self.units = UnitTable.of(table, self.space, self.by_diversity or several)
        self.levels = 1  # one more than the most sensitive values that a class can have
        if several:
            values = [bits_of(held.domain)[held.domain.counts > 0] for held in table.sensitive.values()]
            self.levels += min(len(np.unique(bits[bits >= 0])) for bits in values)

    @cached_property
    def scale(self) -> float:
        """Return the number of units of cost in a loss of 1: as many as whole numbers of 62 bits permit."""
        return float(2 ** int(60 - np.log2(max(self.weights.sum(), 1.0) * max(self.records, 1))))

    @property
    def full(self) -> float:
        """Return the highest loss, which is that of every cell of every record."""
        return float(self.weights.sum()) * self.records

    def figures(self, bits: Bits) -> Table:
        """Return the integer figures of candidates by candidate, variant and figure."""
        chunks = np.array_split(bits, max(min(self.threads, len(bits) // 8), 1))

        def some(part: Bits) -> Table:
            return kernels.evaluate(np.ascontiguousarray(part), *self._given)

        return np.concatenate(self._each(some, chunks))

    def sweeps(self, parents: list[Moves]) -> list[Table]:
        """Return the integer figures of every neighbour of some candidates."""

        def one(moves: Moves) -> Table:
            changes = (moves.column, moves.low, moves.high, moves.begin, moves.ends, ROOM)
            return kernels.sweep(*(moves.bits, *self._given, *changes))

        return self._each(one, parents)

    def rebuilt(self, parents: Bits, sizes: Counts64, columns: Counts64, prices: Floats) -> tuple[Bits, int]:
        """Optimise the columns of candidates one after the other, in the order of `columns`, until none changes.

        Each column gets the cuts of least loss whose classes have at least the candidate's size. A suppressed record
        costs at least the share `prices` of the loss of all its cells. Returns the candidates and the number of columns
        that were optimised.
        """
        packing, codes, counts, _, _, gap, unit, leaves, price = self._given[:9]
        order, start = self._by_unit
        full = float(self.weights.sum() * self.scale)
        table = (packing, codes, counts, gap, unit, leaves, price, order, start)

        def one(which: int) -> tuple[Bits, int]:
            given = (parents[which], columns[which], int(sizes[which]), self.budget, float(prices[which]) * full, full)
            parts: tuple[Any, ...] = (*given, *table, *self.layout[1:7], PASSES)
            return descend(*parts)

        result = self._each(one, list(range(len(parents))))
        return np.stack([bits for bits, _ in result]), sum(looked for _, looked in result)

    @cached_property
    def _by_unit(self) -> tuple[Index, Counts64]:
        """Return for each column its tuples sorted by unit, and the first tuple of each unit."""
        codes, segments = self.units.codes, self.space.segments
        order = np.stack([np.argsort(held, kind="stable") for held in codes]).astype(np.uint32)
        counts = [np.bincount(held, minlength=s.units) for held, s in zip(codes, segments, strict=True)]
        return order, np.concatenate([np.concatenate([[0], np.cumsum(each)]) for each in counts]).astype(np.int64)

    def losses(self, figures: Table) -> tuple[Floats, Floats]:
        """Return generalization and suppression loss as shares of d·N, infinite for infeasible variants."""
        cost, suppressed = figures[..., kernels.KEPT_COST], figures[..., kernels.SUPPRESSED]
        fits = cost >= 0
        if self.rule == "demanded":
            fits &= suppressed <= self.budget
        general = np.where(fits, cost / self.scale / self.full, np.inf)
        gone = np.where(fits, suppressed / self.records, np.inf)
        return general, gone

    @cached_property
    def _given(self) -> tuple[Any, ...]:
        """Return the arguments of the compiled loops that follow the bits of a candidate."""
        units, packed = self.units, self.units.packed
        segments = self.space.segments
        unit = np.concatenate([[0], np.cumsum([s.units for s in segments])]).astype(np.int64)
        leaves = np.concatenate([np.concatenate([[0], np.cumsum(s.leaves)]) for s in segments]).astype(np.int64)
        others = np.array([max(domain.leaves - 1, 1) for domain in self.table.domains])
        price = np.round(self.weights / others * self.scale).astype(np.int64)
        exact = self.rule == "below_mean" and not self.by_diversity
        limit = self.records if exact else min(self.records, max(self.budget + 1, self.least_size + 1, TALLY))
        packing = (packed.codes, packed.members, packed.first, packed.sizes, packed.decode)
        bound = self.least_size if self.rule == "demanded" else self.budget
        table = packing, units.codes, units.counts, units.masks, units.words
        rule = RULES.index(self.rule), self.by_diversity, bound, self.records, self.levels, limit + 1
        return (*table, self.space.first, unit, leaves, price, *rule)

    def _each(self, function: Callable[[Part], Made], parts: list[Part]) -> list[Made]:
        """Apply a function to each part with all threads, and return the results in order."""
        if self.threads == 1 or len(parts) == 1:
            return [function(part) for part in parts]
        with ThreadPoolExecutor(self.threads) as pool:
            return list(pool.map(function, parts))


SAMPLED = 32  # most neighbours of a candidate if each needs a class table


class FiguredCuts:
    """Values of goals from the compiled figures. They are fast, so every neighbour of a candidate is evaluated."""

    def __init__(self, problem: CutProblem, goals: Sequence[Goal]) -> None:
        self.problem, self.goals = problem, tuple(goals)

    @staticmethod
    def known(rule: str, by_diversity: bool) -> tuple[str, ...]:
        """Return the measures that follow from the figures of a rule."""
        if rule in ("safe", "printed_k", "printed_l"):
            stated = {Form.SIZE, Form.DIVERSITY}
        else:
            stated = {Form.DIVERSITY if by_diversity else Form.SIZE}
            if rule in ("none", "below_mean"):
                stated.add(Form.MEAN_DIVERSITY if by_diversity else Form.MEAN_SIZE)
        measures = [result for result in known_measures().values() if result.fast.cuts is not None]
        return tuple(each.name for each in measures if each.fast.histogram is None or each.fast.histogram in stated)

    def natural(self, figures: Table) -> Floats:
        """Return values by candidate, variant and goal in units of the measures, NaN for infeasible variants."""
        general, gone = self.problem.losses(figures)
        counted = CutFigures(
            least_size=figures[..., LEAST_SIZE].astype(np.float64),
            least_distinct=figures[..., LEAST_DIVERSITY].astype(np.float64),
            mean=figures[..., kernels.PROPERTY_SUM] / self.problem.records,
            generalized=general,
            suppressed=gone,
            full=self.problem.full,
        )
        result = np.stack([_tallied(goal.measure, counted) for goal in self.goals], axis=-1)
        result[~np.isfinite(general)] = np.nan
        return result

    def values(self, bits: Bits) -> Floats:
        return self.natural(self.problem.figures(bits))

    def changes(self, parents: Sequence[Moves]) -> list[tuple[Moves, Floats]]:
        """Return every neighbour of some candidates with its values."""
        return [(moves, self.natural(f)) for moves, f in zip(parents, self.problem.sweeps(list(parents)), strict=True)]


def _tallied(measure: Measure, counted: CutFigures) -> Floats:
    if measure.fast.cuts is None:
        raise MeasureError(f"{measure.name} by the figures of cuts", expected="a measure that they determine")
    return measure.fast.cuts(counted)


class MeasuredCuts(FiguredCuts):
    """Values of any measures from class tables. They are slow, so only some neighbours are evaluated."""

    def classes(self, bits: Bits) -> ClassTable:
        """Return the class table of a candidate after suppression."""
        problem = self.problem
        result = classify(problem.table, problem.space.recoding(bits), tuple(problem.weights.tolist()))
        if problem.rule == "within" and not problem.by_diversity:
            return suppress_within(result, problem.budget)
        if problem.rule == "none":
            return result
        if problem.rule == "demanded":
            return suppress_below(result, problem.least_size)
        figures = problem.figures(bits[None, :])[0, 0]
        if problem.by_diversity:
            return suppress_below(result, 0, int(figures[LEAST_DIVERSITY]))
        return suppress_below(result, int(figures[LEAST_SIZE]))

    def values(self, bits: Bits) -> Floats:
        result = []
        for classes in map(self.classes, bits):
            fits = self.problem.rule != "demanded" or classes.suppressed_units <= self.problem.budget
            result.append([goal.measure.value(classes) if fits else np.nan for goal in self.goals])
        return np.array(result, dtype=np.float64).reshape(len(bits), 1, len(self.goals))

    def changes(self, parents: Sequence[Moves]) -> list[tuple[Moves, Floats]]:
        result = []
        for moves in parents:
            some = np.zeros(len(moves), dtype=np.bool_)
            some[np.unique(np.linspace(0, len(moves) - 1, SAMPLED).astype(np.int64)) if len(moves) else []] = True
            kept = moves.kept(some)
            result.append((kept, self.values(kept.made(np.arange(len(kept))))))
        return result


class UnitCuts(MeasuredCuts):
    """Values of sizes in units and general loss, counted in compiled loops.

    A unit may have records in several classes, so sizes are no sums over tuples, and each candidate is counted anew.
    """

    def values(self, bits: Bits) -> Floats:
        problem, table = self.problem, self.problem.table
        mode = {"demanded": CONSTRAINT, "within": OBJECTIVE}.get(problem.rule, MEASURED)
        rows = [
            releases_of(table, problem.space.recoding(one), mode, problem.least_size, problem.budget, every=False)[0][0]
            for one in bits
        ]
        found = np.array(rows, dtype=np.int64).reshape(len(bits), 3 + len(table.domains))
        k, units, records, hidden = found[:, 0], found[:, 1], found[:, 2], found[:, 3:]
        leaves = np.maximum(np.array([domain.leaves for domain in table.domains]) - 1, 1)
        recodings = [zip(self._margins, problem.space.recoding(one), strict=True) for one in bits]
        covered = [[int(margin @ part.covers[part.groups]) for margin, part in recoding] for recoding in recodings]
        whole = np.array(covered).reshape(len(bits), len(table.domains))  # sums of leaves without suppression
        lost = (whole - hidden - (table.records - records)[:, None]) / leaves @ problem.weights
        loss = lost + records * problem.weights.sum()
        known = {K.name: k.astype(np.float64), GENERAL_LOSS.name: loss}
        values = np.stack([known[goal.measure.name] for goal in self.goals], axis=1)
        values[(units > problem.budget) & (mode == CONSTRAINT)] = np.nan
        return values[:, None, :]

    @cached_property
    def _margins(self) -> list[Counts64]:
        """The records with each value of each column."""
        table = self.problem.table
        return [
            np.bincount(codes, weights=table.counts, minlength=len(domain.labels)).astype(np.int64)
            for domain, codes in zip(table.domains, table.codes, strict=True)
        ]
