"""What measures say of cuts: from the compiled figures where they know them, else from class tables."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sfumato.errors import MeasureError
from sfumato.measures.classes import ClassTable, classify
from sfumato.measures.facts import CutFigures, Form
from sfumato.measures.goal import Goal
from sfumato.measures.measure import Measure
from sfumato.measures.registry import known_measures
from sfumato.measures.suppression import suppress_below, suppress_diversity_below, suppress_within
from sfumato.runtime.arrays import Floats
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
            fits = self.problem.rule != "demanded" or classes.suppressed_rows <= self.problem.budget
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
