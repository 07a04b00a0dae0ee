"""What measures say of cuts: from the compiled figures where they know them, else from class tables."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from sfumato.errors import MeasureError
from sfumato.measures.classes import ClassTable, classify
from sfumato.measures.facts import CutFigures, Form
from sfumato.measures.goal import Goal
from sfumato.measures.measure import Measure
from sfumato.measures.registry import known_measures
from sfumato.measures.standard import GENERAL_LOSS, K
from sfumato.measures.suppression import suppress_below, suppress_diversity_below, suppress_within
from sfumato.measures.unit_releases import DEMANDED, MEASURED, SOUGHT, releases_of
from sfumato.runtime.arrays import Counts64, Floats
from sfumato.systems.cuts import class_tally as tally
from sfumato.systems.cuts.moves import Bits, Moves
from sfumato.systems.cuts.problem import CutProblem

SAMPLED = 32  # small changes of a candidate that are looked at where each must be evaluated in full


class FiguredCuts:
    """Values of goals from the compiled figures: fast, and every small change of a candidate is looked at."""

    def __init__(self, problem: CutProblem, goals: Sequence[Goal]) -> None:
        self.problem, self.goals = problem, tuple(goals)

    @staticmethod
    def known(rule: str, by_diversity: bool) -> tuple[str, ...]:
        """The measures that the figures of a rule tell."""
        if rule in ("safe", "printed_k", "printed_l"):
            stated = {Form.SIZE, Form.DIVERSITY}
        else:
            stated = {Form.DIVERSITY if by_diversity else Form.SIZE}
            if rule in ("none", "below_mean"):
                stated.add(Form.MEAN_DIVERSITY if by_diversity else Form.MEAN_SIZE)
        measures = [result for result in known_measures().values() if result.tallied is not None]
        return tuple(result.name for result in measures if result.histogram is None or result.histogram in stated)

    def natural(self, figures: tally.Table) -> Floats:
        """(candidate, variant, goal) in the measures' own units; NaN where a variant cannot be had."""
        general, gone = self.problem.losses(figures)
        counted = CutFigures(
            least_size=figures[..., tally.K].astype(np.float64),
            least_distinct=figures[..., tally.L].astype(np.float64),
            mean=figures[..., tally.SUM] / self.problem.records,
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
        """Every small change of some candidates with its values."""
        return [(moves, self.natural(f)) for moves, f in zip(parents, self.problem.sweeps(list(parents)), strict=True)]


def _tallied(measure: Measure, counted: CutFigures) -> Floats:
    if measure.tallied is None:
        raise MeasureError(f"{measure.name} by the figures of cuts", expected="a measure that they tell")
    return measure.tallied(counted)


class MeasuredCuts(FiguredCuts):
    """Values of any measures: each candidate becomes a class table. Only some small changes are looked at."""

    def classes(self, bits: Bits) -> ClassTable:
        """The class table of a candidate after suppression."""
        problem = self.problem
        result = classify(problem.table, problem.space.recoding(bits), tuple(problem.weights.tolist()))
        if problem.rule == "within" and not problem.by_diversity:
            return suppress_within(result, problem.budget)
        if problem.rule == "none":
            return result
        if problem.rule == "demanded":
            return suppress_below(result, problem.floor)
        figures = problem.figures(bits[None, :])[0, 0]
        if problem.by_diversity:
            return suppress_diversity_below(result, int(figures[tally.L]))
        return suppress_below(result, int(figures[tally.K]))

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
    """The same where only sizes in units and the general loss are asked for: counted in compiled loops.

    A unit may have records in several classes, so nothing adds up and each candidate is counted from the tuples.
    """

    @staticmethod
    def answers(goals: Sequence[Goal]) -> bool:
        """Whether it knows the measures of some goals."""
        return all(goal.measure.name in (K.name, GENERAL_LOSS.name) for goal in goals)

    def values(self, bits: Bits) -> Floats:
        problem, table = self.problem, self.problem.table
        mode = {"demanded": DEMANDED, "within": SOUGHT}.get(problem.rule, MEASURED)
        rows = [
            releases_of(table, problem.space.recoding(one), mode, problem.floor, problem.budget, every=False)[0][0]
            for one in bits
        ]
        found = np.array(rows, dtype=np.int64).reshape(len(bits), 3 + len(table.domains))
        k, units, records, hidden = found[:, 0], found[:, 1], found[:, 2], found[:, 3:]
        leaves = np.maximum(np.array([domain.leaves for domain in table.domains]) - 1, 1)
        whole = np.array([self._covered(one) for one in bits]).reshape(len(bits), len(table.domains))
        lost = (whole - hidden - (table.records - records)[:, None]) / leaves @ problem.weights
        loss = lost + records * problem.weights.sum()
        known = {K.name: k.astype(np.float64), GENERAL_LOSS.name: loss}
        values = np.stack([known[goal.measure.name] for goal in self.goals], axis=1)
        values[(units > problem.budget) & (mode == DEMANDED)] = np.nan
        return values[:, None, :]

    def _covered(self, bits: Bits) -> list[int]:
        """The leaves that labels cover with nothing suppressed, for each column."""
        recoding = self.problem.space.recoding(bits)
        return [int(counts @ part.covers[part.groups]) for counts, part in zip(self._margins, recoding, strict=True)]

    @cached_property
    def _margins(self) -> list[Counts64]:
        table = self.problem.table
        return [
            np.bincount(codes, weights=table.counts, minlength=len(domain.labels)).astype(np.int64)
            for domain, codes in zip(table.domains, table.codes, strict=True)
        ]
