"""Search over cuts by NSGA-II and its memetic form, for the four problems of the paper or any objectives.

The state of the search is saved as arrays, so that an interrupted search can be resumed.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from sfumato.algorithms import memetic
from sfumato.algorithms.dominance import comparable, non_dominated
from sfumato.algorithms.evaluation import Seen
from sfumato.algorithms.memetic import Archive, Neighbours, State, Walker
from sfumato.base.arrays import Floats
from sfumato.base.formats import parse_json
from sfumato.errors import MeasureError, StudyError, UnreachableError, shortened
from sfumato.front import Front, Objective, Point, numbered
from sfumato.measures.classes import classify
from sfumato.measures.fast_paths import Form
from sfumato.measures.measure import Goal, Measure
from sfumato.measures.registry import DISTINCT_L, GENERAL_LOSS, GENERALIZATION_LOSS, OF_FORM, SUPPRESSION_LOSS, K, names
from sfumato.measures.suppression import budget
from sfumato.methods.cuts.kernels import LEAST_DIVERSITY, LEAST_SIZE, RULES, SAFE, SUPPRESSED, Table
from sfumato.methods.cuts.problem import CutProblem, FiguredCuts, MeasuredCuts, UnitCuts
from sfumato.methods.cuts.space import CutSpace, Moves, jolted, offspring
from sfumato.methods.run import Parts, Run, Searcher
from sfumato.methods.shared import KeptState
from sfumato.methods.system import check_algorithm, check_weights, demanded_size, goal_of, number
from sfumato.plans.recodings import LevelPlan
from sfumato.plans.segments import Bits
from sfumato.study import SearchSettings, Study
from sfumato.tables.frequency import FrequencyTable

COUNTED = ("generation", "evaluations", "number")  # numbers of a state


def packed(state: State) -> Parts:
    """Return the state of a search over cuts as arrays."""
    live, walkers = sorted(state.bits), state.walkers
    about = {name: getattr(state, name) for name in COUNTED} | {"rng": state.rng.bit_generator.state}
    empty = np.empty((0, state.population.shape[1]), dtype=np.uint8)
    return {
        "about": np.array(json.dumps(about)),
        "population": state.population,
        "fitness": state.fitness,
        "grid": state.archive.grid,
        "values": state.archive.values,
        "members": state.archive.members,
        "live": np.array(live, dtype=np.int64),
        "bits": np.stack([state.bits[m] for m in live]) if live else empty,
        "variants": np.array([state.variants[m] for m in live], dtype=np.int64),
        "explored": np.array(sorted(state.explored), dtype=np.int64),
        "seen": state.seen.keys,
        "walkers": np.stack([walker.bits for walker in walkers]) if walkers else empty,
        "targets": np.array([walker.target for walker in walkers]),
        "steps": np.array([walker.steps for walker in walkers], dtype=np.int64),
    }


def unpacked(parts: Parts) -> State:
    """Restore the state of a search over cuts."""
    about = parse_json(str(parts["about"]), "the state of a search")
    rng = np.random.default_rng()
    rng.bit_generator.state = about["rng"]
    archive = Archive(parts["grid"])
    archive.values, archive.members = parts["values"], parts["members"]
    live = parts["live"].tolist()
    walkers = zip(parts["walkers"], parts["targets"], parts["steps"].tolist(), strict=True)
    return State(
        **{name: about[name] for name in COUNTED},
        rng=rng,
        population=parts["population"],
        fitness=parts["fitness"],
        archive=archive,
        bits=dict(zip(live, parts["bits"], strict=True)),
        variants=dict(zip(live, parts["variants"].tolist(), strict=True)),
        explored=set(parts["explored"].tolist()),
        seen=Seen(parts["seen"]),
        walkers=[Walker(bits, target, steps) for bits, target, steps in walkers],
    )


@dataclass(frozen=True)
class Asked:
    """The problem to solve: the rule of suppression, whether it applies to diversity, and the objectives."""

    rule: str
    by_diversity: bool
    objectives: tuple[Objective, ...]

    @classmethod
    def of(cls, settings: SearchSettings) -> Asked:
        """Return a problem of the paper, its ℓ version (prefer = "l" in 1 to 3), or a problem of any objectives."""
        form = Form(settings.prefer)
        diverse = form is Form.DIVERSITY
        if settings.problem is None:
            known = names()  # unknown names raise when the goals are made
            named = tuple(Objective(known.get(o.name, o.name), o.direction or "") for o in settings.named)
            rule: str = settings.suppression or ("within" if settings.max_suppression else "none")
            if settings.suppression is None and demanded_size(settings):
                rule = "demanded"  # as in a lattice: exactly the classes that are too small are suppressed
            return cls(rule, diverse and rule != "safe", named)
        _refuse_mixed(settings)
        if settings.problem == 4:
            rule = f"printed_{settings.prefer}" if settings.reproduction else "safe"
            return cls(rule, False, _sought(K, DISTINCT_L, GENERAL_LOSS))
        least, mean = OF_FORM[form], OF_FORM[Form.MEAN_DIVERSITY if diverse else Form.MEAN_SIZE]
        if settings.problem == 1:
            return cls("none", diverse, _sought(mean, GENERAL_LOSS))
        if settings.problem == 2:
            return cls("within", diverse, _sought(least, GENERAL_LOSS))
        first = Objective(mean.name, mean.direction, "before suppression")
        return cls("below_mean", diverse, (first, *_sought(GENERALIZATION_LOSS, SUPPRESSION_LOSS)))


def _sought(*measures: Measure) -> tuple[Objective, ...]:
    return tuple(Objective(measure.name, measure.direction) for measure in measures)


def _refuse_mixed(settings: SearchSettings) -> None:
    given = settings.model_fields_set
    if "objectives" in given and settings.named != SearchSettings().named:
        raise StudyError(
            f"problem = {settings.problem} and objectives",
            expected="only one of them: a problem has its own objectives",
            remedy="leave problem out",
        )
    if settings.suppression is not None:
        raise StudyError(
            f'problem = {settings.problem} and suppression = "{settings.suppression}"',
            expected="only one of them: a problem has its own rule of suppression",
            remedy="leave suppression out, or problem",
        )
    if settings.problem == 1 and settings.max_suppression:
        raise StudyError(
            f"problem = 1 with max_suppression = {settings.max_suppression}",
            expected="no suppression: that is problem 1",
            remedy="problem = 2, or max_suppression = 0",
        )


LATTICE_LIMIT = 1_000_000  # most nodes of a lattice that is searched exactly for seeds
LATTICE_NODES = 20_000  # most nodes evaluated for seeds
FEW_NODES = 800  # the same for a single objective, which is enough for two or three descents
JOLTED = 0.7  # share of offspring with random small changes
FLIPS = 0.01
EXCHANGED = 0.4  # share of the columns that come from a mate


class CutSearch:
    """The setup of a search over cuts. It has the interface `Problem` of the evolutionary loop."""

    def __init__(self, study: Study, table: FrequencyTable | None = None) -> None:
        settings = study.search
        check_algorithm(settings, "cuts")
        self.study, self.settings = study, settings
        self.table = table = study.table() if table is None else table
        if table.removed:
            raise StudyError(
                f"{table.removed} records were removed from the table before",
                expected="the original table",
                remedy="search the table that the release was made from",
            )
        self.asked = Asked.of(settings)
        rule, by_diversity = self.asked.rule, self.asked.by_diversity
        self.space = CutSpace.of(table, study.columns)
        self.objective_goals = [goal_of(study, o.name, o.direction or None) for o in self.asked.objectives]
        self.limits = [goal_of(study, name, None, limit) for name, limit in settings.constraints.items()]
        maximum = budget(settings.max_suppression, table.persons)
        if rule == "below_mean" and maximum:  # the rule has no budget
            self.limits.append(Goal(SUPPRESSION_LOSS, SUPPRESSION_LOSS.direction, maximum / table.records))
        goals, raw = [*self.objective_goals, *self.limits], classify(table)
        diverse = [DISTINCT_L] if by_diversity or RULES.index(rule) >= SAFE else []
        for needed in [*(goal.measure for goal in goals), *diverse]:
            needed.value(raw)  # raises where it cannot be measured on the table
        check_weights(settings, table)
        least = math.ceil(settings.constraints.get(K.name, 0))
        threads = settings.threads or os.cpu_count() or 1
        self.problem = CutProblem(table, self.space, rule, maximum, by_diversity, least, settings.weights, threads)
        self.evaluator = self._evaluator(goals)
        self.fast = type(self.evaluator) is FiguredCuts
        self.objectives = len(self.objective_goals)
        self.sampled, self.hashes = self.space.sampled, self.problem.layout.hashes
        self.jolted = partial(jolted, self.problem.layout)

    def _evaluator(self, goals: Sequence[Goal]) -> FiguredCuts:
        """Return the fastest way to compute some goals, or raise if the rule of suppression permits none."""
        table, rule, by_diversity = self.table, self.asked.rule, self.asked.by_diversity
        by_class = rule in ("none", "within", "demanded")
        if table.counts_units and (by_diversity or not by_class):
            raise StudyError(
                f'suppression = "{rule}"{" by diversity" if by_diversity else ""} '
                "counts records, and the records of this table belong to units",
                expected='suppression by size in units: suppression = "within", or a constraint on k',
            )
        known = FiguredCuts.known(rule, by_diversity)
        stated = all(goal.measure.name in known and not goal.measure.parameters for goal in goals)
        if stated and not table.counts_units:
            return FiguredCuts(self.problem, goals)
        if not (by_class or rule == "below_mean"):
            raise StudyError(
                f'suppression = "{rule}" with {shortened(g.measure.name for g in goals)}',
                expected="objectives among " + ", ".join(known),
                remedy='suppression = "within"',
            )
        sizes = all(goal.measure.name in (K.name, GENERAL_LOSS.name) for goal in goals)
        units = sizes and table.units is not None and not any(domain.wildcard for domain in table.domains)
        return (UnitCuts if units else MeasuredCuts)(self.problem, goals)

    @cached_property
    def grid(self) -> Floats:
        """Return the steps in which losses are compared. Privacy with real values would have too many points."""
        if self.settings.epsilon is not None:
            return np.array(self.settings.epsilon, dtype=np.float64)
        measures = [goal.measure for goal in self.objective_goals]
        if self.fast and not any(result.kind == "privacy" and result.fold != "worst" for result in measures):
            return np.zeros(len(measures))
        raw = classify(self.table, weights=tuple(self.problem.weights.tolist()))
        return np.array(
            [result.fast.resolution * result.highest(raw) if result.fast.resolution else 0.0 for result in measures]
        )

    def offspring(self, parents: Bits, rng: np.random.Generator) -> Bits:
        layout = self.problem.layout
        if self.settings.method == "nsga2":
            return offspring(layout, parents, rng)
        children = offspring(layout, parents, rng, FLIPS)
        some = rng.random(len(children)) < JOLTED
        children[some] = self.jolted(children[some], rng)
        return children

    def mixed(self, parents: Bits, mates: Bits, rng: np.random.Generator) -> Bits:
        result = parents.copy()
        taken = rng.random((len(parents), len(self.space.segments))) < EXCHANGED
        for own, other, chosen in zip(self.space.parts(result), self.space.parts(mates), taken.T, strict=True):
            own[chosen] = other[chosen]
        return result

    def values(self, bits: Bits) -> Floats:
        return self._minimised(self.evaluator.values(bits))

    def fitness(self, values: Floats) -> Floats:
        """Return the values for selection: of several (k, ℓ), those with the highest preferred one, then the other."""
        if values.shape[1] == 1:
            return values[:, 0]
        first, second = (0, 1) if Form(self.settings.prefer) is Form.SIZE else (1, 0)
        order = np.lexsort((values[..., 2], values[..., second], values[..., first]), axis=-1)
        return values[np.arange(len(values)), order[:, 0]]

    def neighbours(self, parents: Bits, seen: Seen) -> list[tuple[Neighbours, Floats]]:
        fresh: list[Moves] = []
        for bits in parents:
            moves = self.problem.layout.moves(bits)
            fresh.append(moves.kept(seen.new(moves.hashes)))
        return [(moves, self._minimised(values)) for moves, values in self.evaluator.changes(fresh)]

    @property
    def rebuilds(self) -> bool:
        """Return whether columns can be optimised: k is an objective or a constraint, and known from the figures."""
        rule = self.asked.rule
        known = self.fast and not self.asked.by_diversity and rule in ("none", "within", "demanded")
        return known and (rule == "demanded" or K.name == self.objective_goals[0].measure.name)

    def rebuilt(self, parents: Bits, disturbed: Bits, targets: Floats, rng: np.random.Generator) -> tuple[Bits, int]:
        sizes, prices = np.full(len(parents), self.problem.least_size), np.ones(len(parents))
        changed = [np.any(part > 0, axis=1) for part in self.space.parts(parents ^ disturbed)]
        columns = np.argsort(np.stack(changed, axis=1) + rng.random((len(parents), len(changed))), axis=1)
        if self.asked.rule != "demanded":  # the rule uses the complete budget, so records in it cost less or nothing
            sizes, prices = np.abs(targets[:, 0]), rng.random(len(parents))
        return self.problem.rebuilt(disturbed, sizes.astype(np.int64), columns, prices)

    def seeds(self, run: Run, search_lattice: Searcher) -> Bits:
        """Return both extreme cuts and, for the memetic search, the front of the lattice of the same hierarchies."""
        if self.settings.method == "nsga2":  # the paper's population is random
            return self.space.ends()[:0]
        if not all(domain.declared for domain in self.table.domains):
            return self.space.ends()
        nodes = np.prod([float(domain.hierarchy.height + 1) for domain in self.table.domains])
        settings, demanded = self.settings, self.asked.rule == "demanded"
        privacy = [goal.measure.name for goal in self.objective_goals if goal.measure.kind == "privacy" and self.fast]
        objectives = [*(privacy or [K.name]), GENERAL_LOSS.name]
        if demanded:
            objectives = [objective.name for objective in self.asked.objectives]
        large = "best_first" if demanded and len(objectives) == 1 else "pbg_ea"
        search = SearchSettings.model_validate(
            settings.model_dump(include={"max_suppression", "weights", "seed", "threads"})
            | {"objectives": objectives, "constraints": settings.constraints if demanded else {}}
            | {"algorithm": "exact" if nodes <= LATTICE_LIMIT else large}
        )
        plain = self.study.replace(search=search)
        limit = FEW_NODES if plain.search.method == "best_first" else LATTICE_NODES

        def tell(done: int, total: int) -> bool:  # noqa: ARG001
            return run.tell(0, self.settings.generations) or done >= limit

        try:
            front = search_lattice(plain, self.table, Run(progress=tell))
        except UnreachableError:  # a finer recoding may be feasible even if no node is
            return self.space.ends()
        plans = [point.plan.levels for point in front.points if isinstance(point.plan, LevelPlan)]
        cuts = [self.space.at_levels([plan[name] for name in self.table.columns]) for plan in plans]
        return np.vstack([self.space.ends(), *cuts]).astype(np.uint8)

    def _minimised(self, natural: Floats) -> Floats:
        signs = np.array([goal.sign for goal in self.objective_goals])
        values = natural[..., : len(signs)] * signs
        for position, goal in enumerate(self.limits, start=len(signs)):
            worse = goal.sign * natural[..., position] > goal.sign * float(goal.limit or 0.0) + 1e-12
            values[worse] = np.nan
        return np.where(np.isnan(values), np.inf, comparable(values))

    @property
    def loop(self) -> memetic.Settings:
        """The settings of the evolutionary loop. If columns can be optimised, it has half as many sweeps."""
        search = self.settings
        local = search.local_search if search.method == "memetic" else 0
        rebuilds = local + local // 4 if self.rebuilds else 0
        usual = 100 if search.method == "memetic" else 500 if search.problem in (3, 4) else 200
        population = usual if search.population is None else search.population
        return memetic.Settings(population, search.generations, (local + 1) // 2 if rebuilds else local, rebuilds)

    def front(self, state: State, seconds: float) -> Front:
        """Return the front of a state."""
        archive, asked, table = state.archive, self.asked.objectives, self.table
        members = archive.members[np.flatnonzero(non_dominated(archive.values))].tolist()
        bits = np.stack([state.bits[member] for member in members])
        variants = [state.variants[member] for member in members]
        natural = self.evaluator.values(bits)[np.arange(len(bits)), variants]
        values = [{o.name: number(row[j]) for j, o in enumerate(asked)} for row in natural.tolist()]
        points = (self._points_in_units if table.counts_units else self._points)(bits, variants, values)
        objectives = tuple(
            Objective(o.name, o.direction or goal.direction, o.taken)
            for o, goal in zip(asked, self.objective_goals, strict=True)
        )
        return Front(
            study=self.study,
            objectives=objectives,
            points=numbered(points, objectives[0]),
            algorithm=self.settings.method,
            exact=False,
            evaluations=state.evaluations,
            space=self.space.size,
            seconds=round(seconds, 3),
            fingerprint=table.fingerprint,
            rows=table.records,
            units=None if table.units is None else table.units.number,
            certificate={
                "generations": state.generation,
                "seed": self.settings.seed,
                "columns": {s.name: "along its tree" if s.constrained else "ordered" for s in self.space.segments},
            },
            system="cuts",
        ).with_classes(table)

    def _points(self, bits: Bits, variants: Sequence[int], values: Sequence[dict[str, float]]) -> list[Point]:
        """Return candidates as points, from the compiled figures."""
        figures = self.problem.figures(bits)
        general, gone = self.problem.losses(figures)
        points = []
        for row, variant in enumerate(variants):
            shown = figures[row, variant]
            plan = self.space.plan(bits[row], *self._suppressed(shown))
            loss = float(general[row, variant] + gone[row, variant])
            points.append(Point(0, values[row], loss, int(shown[SUPPRESSED]), plan))
        return points

    def _points_in_units(self, bits: Bits, variants: Sequence[int], values: Sequence[dict[str, float]]) -> list[Point]:
        """Return candidates as points, from their class tables. The threshold of size counts units."""
        if not isinstance(self.evaluator, MeasuredCuts) or any(variants):
            raise MeasureError("figures in units of a rule that counts records", expected="class tables")
        points = []
        for one, known in zip(bits, values, strict=True):
            classes = self.evaluator.classes(one)
            below = 0 if self.asked.rule == "none" or not classes.kept.any() else int(classes.size[classes.kept].min())
            loss = GENERAL_LOSS.value(classes) / GENERAL_LOSS.highest(classes)
            units = None if self.table.units is None else classes.suppressed_units
            plan = self.space.plan(one, below, 0)
            points.append(Point(0, known, loss, classes.suppressed_rows, plan, suppressed_units=units))
        return points

    def _suppressed(self, figures: Table) -> tuple[int, int]:
        """Return the thresholds of size and diversity that describe the suppression by the rule."""
        if self.asked.rule == "none" or self.asked.rule.startswith("printed"):
            return 0, 0
        if self.asked.rule == "safe":
            return int(figures[LEAST_SIZE]), int(figures[LEAST_DIVERSITY])
        return (0, int(figures[LEAST_DIVERSITY])) if self.asked.by_diversity else (int(figures[LEAST_SIZE]), 0)

    def unreachable(self) -> UnreachableError:
        """Return the error if no candidate meets the limits, with what is reached if everything is hidden."""
        ends = self.evaluator.values(self.space.ends())
        said = [
            f"{goal.measure.name} = {ends[0, :, position].max():g} with everything hidden, instead of {goal.limit:g}"
            for position, goal in enumerate(self.limits, start=self.objectives)
        ]
        return UnreachableError(
            "no cut that was evaluated meets the limits",
            expected="limits that a recoding meets",
            remedy="; ".join(said) or "raise max_suppression",
        )


def search_cuts(study: Study, table: FrequencyTable, run: Run, search_lattice: Searcher) -> Front:
    """Find the front of a study's cuts, starting from the front of the lattice. It may be stopped early.

    The study of a front that was stopped has the number of generations, so that the same search gives the same front.
    """
    began = time.perf_counter()
    ready = CutSearch(study, table)
    settings = ready.loop
    kept = KeptState(run, study, ready.table)
    parts = kept.load()
    if parts:
        result = unpacked(parts)
    else:
        rng = np.random.default_rng(study.search.seed)
        result = memetic.start(ready, settings, ready.seeds(run, search_lattice), rng)
    begun = not run.stopped  # a search that is stopped before its first generation cannot be repeated

    def report(now: State) -> bool:
        if len(now.archive):
            run.show(lambda: ready.front(now, time.perf_counter() - began))
        kept.save(lambda: packed(now))
        return run.tell(now.generation, settings.generations)

    memetic.run(ready, settings, result, report)
    kept.end(lambda: packed(result), result.generation < settings.generations)
    if not len(result.archive):
        raise ready.unreachable()
    front = ready.front(result, time.perf_counter() - began)
    if not run.stopped:
        return front
    if begun:
        return replace(front, study=study.with_search(generations=result.generation))
    return replace(front, certificate={**front.certificate, "repeatable": False})
