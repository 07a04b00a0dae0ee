"""A search over cuts made ready: what the evolutionary loop varies, evaluates, cuts anew and starts from."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np

from sfumato.algorithms import memetic
from sfumato.algorithms.dominance import comparable
from sfumato.algorithms.memetic import Bits
from sfumato.algorithms.seen import Hashes, Seen
from sfumato.errors import StudyError, UnreachableError, shortened
from sfumato.measures.classes import classify
from sfumato.measures.facts import Form
from sfumato.measures.goal import Goal
from sfumato.measures.standard import (
    DISTINCT_L,
    GENERAL_LOSS,
    SUPPRESSION_LOSS,
    K,
)
from sfumato.measures.suppression import budget
from sfumato.plans.levels import LevelPlan
from sfumato.runtime.arrays import Floats
from sfumato.study import SearchSettings, Study
from sfumato.systems.cuts import class_tally as tally
from sfumato.systems.cuts.asked import Asked
from sfumato.systems.cuts.moves import Moves
from sfumato.systems.cuts.problem import RULES, CutProblem
from sfumato.systems.cuts.space import CutSpace
from sfumato.systems.cuts.values import FiguredCuts, MeasuredCuts, UnitCuts
from sfumato.systems.cuts.variation import jolted, offspring
from sfumato.systems.goals import check_algorithm, check_weights, goal_of
from sfumato.systems.run import Run, Searcher
from sfumato.tables.frequency import FrequencyTable

LATTICE_LIMIT = 1_000_000  # nodes of a lattice that is searched exactly for seeds
LATTICE_NODES = 20_000  # nodes evaluated at most for seeds
FEW_NODES = 800  # the same where one node is sought: two or three descents
JOLTED = 0.7  # share of children that get random small changes
FLIPS = 0.01
EXCHANGED = 0.4  # share of the columns that are taken from a mate


class CutSearch:
    """A search over cuts made ready; what the evolutionary loop calls a problem."""

    def __init__(self, study: Study, table: FrequencyTable | None = None) -> None:
        settings = study.search
        check_algorithm(settings, "cuts")
        self.study, self.settings = study, settings
        self.table = study.table() if table is None else table
        if self.table.removed:
            raise StudyError(
                f"{self.table.removed} records were removed from the table before",
                expected="the original table",
                remedy="search the table that the release was made from",
            )
        self.asked = Asked.of(settings)
        along = {name: column.constrained for name, column in study.columns.items()}
        breaks = {name: column.breaks for name, column in study.columns.items()}
        self.space = CutSpace.of(self.table, along, breaks)
        self.sought = [goal_of(study, o.name, o.direction or None) for o in self.asked.objectives]
        self.limits = [goal_of(study, name, None, limit) for name, limit in settings.constraints.items()]
        maximum = budget(settings.max_suppression, self.table.persons)
        if self.asked.rule == "below_mean" and maximum:  # the rule itself knows no budget
            self.limits.append(Goal(SUPPRESSION_LOSS, SUPPRESSION_LOSS.direction, maximum / self.table.records))
        _check(self)
        self.problem = CutProblem(
            self.table,
            self.space,
            self.asked.rule,
            maximum,
            by_diversity=self.asked.by_diversity,
            floor=math.ceil(settings.constraints.get(K.name, 0)),
            weights=settings.weights,
            threads=settings.threads,
        )
        goals = [*self.sought, *self.limits]
        self.in_units = self.table.units is not None or self.table.households is not None
        if self.in_units and (self.asked.by_diversity or self.asked.rule not in ("none", "within", "demanded")):
            raise StudyError(
                f'suppression = "{self.asked.rule}"{" by diversity" if self.asked.by_diversity else ""} '
                "counts records, and the records of this table belong to units",
                expected='suppression by size in units: suppression = "within", or a constraint on k',
            )
        known = FiguredCuts.known(self.asked.rule, self.asked.by_diversity)
        self.fast = not self.in_units and all(
            goal.measure.name in known and not goal.measure.parameters for goal in goals
        )
        if not self.fast and self.asked.rule not in ("none", "within", "below_mean", "demanded"):
            raise StudyError(
                f'suppression = "{self.asked.rule}" with {shortened(g.measure.name for g in goals)}',
                expected="objectives among " + ", ".join(known),
                remedy='suppression = "within"',
            )
        units = self.table.units is not None and UnitCuts.answers(goals)
        units &= not any(domain.wildcard for domain in self.table.domains)
        evaluator = FiguredCuts if self.fast else UnitCuts if units else MeasuredCuts
        self.evaluator = evaluator(self.problem, goals)

    @property
    def objectives(self) -> int:
        return len(self.sought)

    @cached_property
    def grid(self) -> Floats:
        """Real-valued privacy has no end of points, so losses are then compared in steps."""
        if self.settings.epsilon is not None:
            return np.array(self.settings.epsilon, dtype=np.float64)
        measures = [goal.measure for goal in self.sought]
        if self.fast and not any(result.kind == "privacy" and result.fold != "worst" for result in measures):
            return np.zeros(len(measures))
        raw = classify(self.table, weights=tuple(self.problem.weights.tolist()))
        return np.array([result.resolution * result.highest(raw) if result.resolution else 0.0 for result in measures])

    def sampled(self, rng: np.random.Generator, count: int) -> Bits:
        return self.space.sampled(rng, count)

    def offspring(self, parents: Bits, rng: np.random.Generator) -> Bits:
        layout = self.problem.layout
        if self.settings.method == "nsga2":
            return offspring(layout, parents, rng)
        children = offspring(layout, parents, rng, FLIPS)
        some = rng.random(len(children)) < JOLTED
        children[some] = jolted(layout, children[some], rng)
        return children

    def jolted(self, parents: Bits, rng: np.random.Generator) -> Bits:
        return jolted(self.problem.layout, parents, rng)

    def mixed(self, parents: Bits, mates: Bits, rng: np.random.Generator) -> Bits:
        result = parents.copy()
        taken = rng.random((len(parents), len(self.space.segments))) < EXCHANGED
        for own, other, chosen in zip(self.space.parts(result), self.space.parts(mates), taken.T, strict=True):
            own[chosen] = other[chosen]
        return result

    def hashes(self, bits: Bits) -> Hashes:
        return self.problem.layout.hashes(bits)

    def values(self, bits: Bits) -> Floats:
        return self._minimised(self.evaluator.values(bits))

    def fitness(self, values: Floats) -> Floats:
        """A candidate with several (k, ℓ) is selected by the one with most of what is preferred, then of the other."""
        if values.shape[1] == 1:
            return values[:, 0]
        first, second = (0, 1) if Form(self.settings.prefer) is Form.SIZE else (1, 0)
        order = np.lexsort((values[..., 2], values[..., second], values[..., first]), axis=-1)
        return values[np.arange(len(values)), order[:, 0]]

    def neighbours(self, parents: Bits, seen: Seen) -> list[tuple[memetic.Neighbours, Floats]]:
        fresh: list[Moves] = []
        for bits in parents:
            moves = self.problem.layout.moves(bits)
            fresh.append(moves.kept(seen.new(moves.hashes)))
        return [(moves, self._minimised(values)) for moves, values in self.evaluator.changes(fresh)]

    @property
    def rebuilds(self) -> bool:
        """Whether columns can be cut anew: a smallest size is sought or demanded, and known from the figures."""
        if not self.fast or self.asked.by_diversity or self.asked.rule not in ("none", "within", "demanded"):
            return False
        return self.asked.rule == "demanded" or K.name == self.sought[0].measure.name

    def rebuilt(self, parents: Bits, disturbed: Bits, targets: Floats, rng: np.random.Generator) -> tuple[Bits, int]:
        sizes = np.full(len(parents), self.problem.floor)
        if self.asked.rule != "demanded":
            sizes = np.abs(targets[:, 0])
        changed = [np.any(part > 0, axis=1) for part in self.space.parts(parents ^ disturbed)]
        columns = np.argsort(np.stack(changed, axis=1) + rng.random((len(parents), len(changed))), axis=1)
        prices = np.ones(len(parents))
        if (
            self.asked.rule != "demanded"
        ):  # other rules spend the whole budget, so what is within it costs less or nothing
            prices = rng.random(len(parents))
        return self.problem.rebuilt(disturbed, sizes.astype(np.int64), columns, prices)

    def seeds(self, run: Run, search_lattice: Searcher) -> Bits:
        """Both extremes and, for the memetic search, the front of the lattice over the same hierarchies."""
        if self.settings.method == "nsga2":  # the paper's population is random
            return self.space.ends()[:0]
        if not all(domain.declared for domain in self.table.domains):
            return self.space.ends()
        nodes = np.prod([float(domain.hierarchy.height + 1) for domain in self.table.domains])
        large = nodes > LATTICE_LIMIT
        privacy = [goal.measure.name for goal in self.sought if goal.measure.kind == "privacy" and self.fast]
        objectives: tuple[str, ...] = (*(privacy or [K.name]), GENERAL_LOSS.name)
        demanded = self.asked.rule == "demanded"
        if demanded:
            objectives = tuple(o.name for o in self.asked.objectives)
        plain = self.study.with_search(
            SearchSettings(
                objectives=objectives,
                constraints=self.settings.constraints if demanded else {},
                max_suppression=self.settings.max_suppression,
                weights=self.settings.weights,
                seed=self.settings.seed,
                threads=self.settings.threads,
                algorithm="exact" if not large else "best_first" if demanded and len(objectives) == 1 else "pbg_ea",
            )
        )

        limit = FEW_NODES if plain.search.method == "best_first" else LATTICE_NODES

        def tell(done: int, total: int) -> bool:  # noqa: ARG001
            return run.tell(0, self.settings.generations) or done >= limit

        try:
            front = search_lattice(plain, self.table, Run(progress=tell))
        except UnreachableError:  # a finer recoding may meet what no node does
            return self.space.ends()
        plans = [point.plan.levels for point in front.points if isinstance(point.plan, LevelPlan)]
        cuts = [self.space.at_levels([plan[name] for name in self.table.columns]) for plan in plans]
        return np.vstack([self.space.ends(), *cuts]).astype(np.uint8)

    def _minimised(self, natural: Floats) -> Floats:
        signs = np.array([goal.sign for goal in self.sought])
        values = natural[..., : len(signs)] * signs
        for position, goal in enumerate(self.limits, start=len(signs)):
            worse = goal.sign * natural[..., position] > goal.sign * float(goal.limit or 0.0) + 1e-12
            values[worse] = np.nan
        return np.where(np.isnan(values), np.inf, comparable(values))


def _check(ready: CutSearch) -> None:
    """Every goal can be measured on the table, and weights are of its columns."""
    raw = classify(ready.table)
    for goal in (*ready.sought, *ready.limits):
        goal.measure.value(raw)
    if ready.asked.by_diversity or RULES[ready.asked.rule] >= tally.SAFE:
        DISTINCT_L.value(raw)
    check_weights(ready.settings, ready.table)
