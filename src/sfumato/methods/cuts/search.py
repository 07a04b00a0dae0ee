"""Search over cuts by NSGA-II and its memetic form, for the four problems of the paper or any objectives.

The state of the search is saved as arrays, so that an interrupted search can be resumed.
"""

from __future__ import annotations

import json
import math
import time
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from sfumato.algorithms import memetic
from sfumato.algorithms.dominance import comparable, non_dominated
from sfumato.algorithms.evaluation import Hashes, Seen
from sfumato.algorithms.memetic import Archive, Neighbours, State, Walker
from sfumato.base.arrays import Floats
from sfumato.base.formats import parse_json
from sfumato.errors import MeasureError, StudyError, UnreachableError, shortened
from sfumato.front import Front, Objective, Point, numbered
from sfumato.measures.classes import classify
from sfumato.measures.fast_paths import Form
from sfumato.measures.measure import Goal, Measure
from sfumato.measures.registry import (
    DISTINCT_L,
    GENERAL_LOSS,
    GENERALIZATION_LOSS,
    SUPPRESSION_LOSS,
    WEIGHTED_K,
    WEIGHTED_L,
    K,
    names,
)
from sfumato.measures.suppression import budget
from sfumato.methods.cuts.kernels import LEAST_DIVERSITY, LEAST_SIZE, SAFE, SUPPRESSED, Table
from sfumato.methods.cuts.problem import RULES, CutProblem, FiguredCuts, MeasuredCuts, UnitCuts
from sfumato.methods.cuts.space import CutSpace, Moves, jolted, offspring
from sfumato.methods.run import Parts, Run, Searcher
from sfumato.methods.system import check_algorithm, check_weights, demanded_size, goal_of, number
from sfumato.plans.recodings import LevelPlan
from sfumato.plans.segments import Bits
from sfumato.study import SearchSettings, Study
from sfumato.tables.frequency import FrequencyTable


def packed(state: State) -> Parts:
    """Return the state of a search over cuts as arrays."""
    live = sorted(state.bits)
    width = state.population.shape[1]
    about = {
        "generation": state.generation,
        "evaluations": state.evaluations,
        "number": state.number,
        "rng": state.rng.bit_generator.state,
    }
    empty = np.empty((0, width), dtype=np.uint8)
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
        "walkers": np.stack([w.bits for w in state.walkers]) if state.walkers else empty,
        "targets": np.array([w.target for w in state.walkers]),
        "steps": np.array([w.steps for w in state.walkers], dtype=np.int64),
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
        generation=about["generation"],
        rng=rng,
        population=parts["population"],
        fitness=parts["fitness"],
        archive=archive,
        bits=dict(zip(live, parts["bits"], strict=True)),
        variants=dict(zip(live, parts["variants"].tolist(), strict=True)),
        explored=set(parts["explored"].tolist()),
        seen=Seen(parts["seen"]),
        evaluations=about["evaluations"],
        number=about["number"],
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
        diverse = Form(settings.prefer) is Form.DIVERSITY
        if settings.problem is None:
            known = names()  # unknown names raise when the goals are made
            named = tuple(Objective(known.get(o.name, o.name), o.direction or "") for o in settings.named)
            usual = "within" if settings.max_suppression else "none"
            if demanded_size(settings):
                usual = "demanded"  # as in a lattice: exactly the classes that are too small are suppressed
            rule: str = settings.suppression or usual
            return cls(rule, diverse and rule != "safe", named)
        _refuse_mixed(settings)
        if settings.problem == 4:
            rule = f"printed_{settings.prefer}" if settings.reproduction else "safe"
            return cls(rule, False, _sought(K, DISTINCT_L, GENERAL_LOSS))
        mean = WEIGHTED_L if diverse else WEIGHTED_K
        if settings.problem == 1:
            return cls("none", diverse, _sought(mean, GENERAL_LOSS))
        if settings.problem == 2:
            return cls("within", diverse, _sought(DISTINCT_L if diverse else K, GENERAL_LOSS))
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
        self.objective_goals = [goal_of(study, o.name, o.direction or None) for o in self.asked.objectives]
        self.limits = [goal_of(study, name, None, limit) for name, limit in settings.constraints.items()]
        maximum = budget(settings.max_suppression, self.table.persons)
        if self.asked.rule == "below_mean" and maximum:  # the rule has no budget
            self.limits.append(Goal(SUPPRESSION_LOSS, SUPPRESSION_LOSS.direction, maximum / self.table.records))
        _check(self)
        self.problem = CutProblem(
            self.table,
            self.space,
            self.asked.rule,
            maximum,
            by_diversity=self.asked.by_diversity,
            least_size=math.ceil(settings.constraints.get(K.name, 0)),
            weights=settings.weights,
            threads=settings.threads,
        )
        goals = [*self.objective_goals, *self.limits]
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
        return len(self.objective_goals)

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
        if not self.fast or self.asked.by_diversity or self.asked.rule not in ("none", "within", "demanded"):
            return False
        return self.asked.rule == "demanded" or K.name == self.objective_goals[0].measure.name

    def rebuilt(self, parents: Bits, disturbed: Bits, targets: Floats, rng: np.random.Generator) -> tuple[Bits, int]:
        sizes = np.full(len(parents), self.problem.least_size)
        if self.asked.rule != "demanded":
            sizes = np.abs(targets[:, 0])
        changed = [np.any(part > 0, axis=1) for part in self.space.parts(parents ^ disturbed)]
        columns = np.argsort(np.stack(changed, axis=1) + rng.random((len(parents), len(changed))), axis=1)
        prices = np.ones(len(parents))
        if (
            self.asked.rule != "demanded"
        ):  # other rules use the complete budget, so records within it cost less or nothing
            prices = rng.random(len(parents))
        return self.problem.rebuilt(disturbed, sizes.astype(np.int64), columns, prices)

    def seeds(self, run: Run, search_lattice: Searcher) -> Bits:
        """Return both extreme cuts and, for the memetic search, the front of the lattice of the same hierarchies."""
        if self.settings.method == "nsga2":  # the paper's population is random
            return self.space.ends()[:0]
        if not all(domain.declared for domain in self.table.domains):
            return self.space.ends()
        nodes = np.prod([float(domain.hierarchy.height + 1) for domain in self.table.domains])
        large = nodes > LATTICE_LIMIT
        privacy = [goal.measure.name for goal in self.objective_goals if goal.measure.kind == "privacy" and self.fast]
        objectives: tuple[str, ...] = (*(privacy or [K.name]), GENERAL_LOSS.name)
        demanded = self.asked.rule == "demanded"
        if demanded:
            objectives = tuple(o.name for o in self.asked.objectives)
        plain = self.study.replace(
            search=SearchSettings(
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


def _check(ready: CutSearch) -> None:
    """Raise if a goal cannot be measured on the table, or a weight is for an unknown column."""
    raw = classify(ready.table)
    for goal in (*ready.objective_goals, *ready.limits):
        goal.measure.value(raw)
    if ready.asked.by_diversity or RULES[ready.asked.rule] >= SAFE:
        DISTINCT_L.value(raw)
    check_weights(ready.settings, ready.table)


def search_cuts(
    study: Study,
    table: FrequencyTable,
    run: Run,
    search_lattice: Searcher,
) -> Front:
    """Find the front of a study's cuts, starting from the front of the lattice. It may be stopped early.

    The study of a front that was stopped has the number of generations, so that the same search gives the same front.
    """
    began = time.perf_counter()
    ready = CutSearch(study, table)
    settings = loop_settings(ready)
    kept = run.kept(study, ready.table.fingerprint)
    parts = kept.load() if kept is not None and run.resume else None
    if parts is not None:
        result = unpacked(parts)
    else:
        rng = np.random.default_rng(study.search.seed)
        result = memetic.start(ready, settings, ready.seeds(run, search_lattice), rng)
    begun = not run.stopped  # a search that is stopped before its first generation cannot be repeated

    def report(now: State) -> bool:
        if len(now.archive):
            run.show(lambda: _front(ready, now, time.perf_counter() - began))
        if kept is not None:
            kept.save(lambda: packed(now))
        return run.tell(now.generation, settings.generations)

    memetic.run(ready, settings, result, report)
    if kept is not None:
        if result.generation < settings.generations:
            kept.save(lambda: packed(result), now=True)
        else:
            kept.remove()
    if not len(result.archive):
        raise _unreachable(ready)
    front = _front(ready, result, time.perf_counter() - began)
    if not run.stopped:
        return front
    if begun:
        return replace(front, study=study.with_search(generations=result.generation))
    return replace(front, certificate={**front.certificate, "repeatable": False})


def loop_settings(ready: CutSearch) -> memetic.Settings:
    """Return the settings of the evolutionary loop. If columns can be optimised, it has half as many sweeps."""
    search = ready.settings
    local = search.local_search if search.method == "memetic" else 0
    rebuilds = local + local // 4 if ready.rebuilds else 0
    sweeps = (local + 1) // 2 if rebuilds else local
    return memetic.Settings(_population(search), search.generations, sweeps, rebuilds)


def _front(ready: CutSearch, state: State, seconds: float) -> Front:
    archive = state.archive
    places = np.flatnonzero(non_dominated(archive.values))
    members = archive.members[places].tolist()
    bits = np.stack([state.bits[member] for member in members])
    variants = [state.variants[member] for member in members]
    natural = ready.evaluator.values(bits)
    values = [
        {o.name: number(natural[row, variant, j]) for j, o in enumerate(ready.asked.objectives)}
        for row, variant in enumerate(variants)
    ]
    points = (_points_in_units if ready.in_units else _points)(ready, bits, variants, values)
    objectives = tuple(
        Objective(o.name, o.direction or goal.direction, o.taken)
        for o, goal in zip(ready.asked.objectives, ready.objective_goals, strict=True)
    )
    return Front(
        study=ready.study,
        objectives=objectives,
        points=numbered(points, objectives[0]),
        algorithm=ready.settings.method,
        exact=False,
        evaluations=state.evaluations,
        space=ready.space.size,
        seconds=round(seconds, 3),
        fingerprint=ready.table.fingerprint,
        rows=ready.table.records,
        units=None if ready.table.units is None else ready.table.units.number,
        certificate={
            "generations": state.generation,
            "seed": ready.settings.seed,
            "columns": {s.name: "along its tree" if s.constrained else "ordered" for s in ready.space.segments},
        },
        system="cuts",
    ).with_classes(ready.table)


def _points(ready: CutSearch, bits: Bits, variants: list[int], values: list[dict[str, float]]) -> list[Point]:
    """Return candidates as points, from the compiled figures."""
    figures = ready.problem.figures(bits)
    general, gone = ready.problem.losses(figures)
    points = []
    for row, variant in enumerate(variants):
        shown = figures[row, variant]
        plan = ready.space.plan(bits[row], *_suppressed(ready.asked, shown))
        loss = float(general[row, variant] + gone[row, variant])
        points.append(Point(0, values[row], loss, int(shown[SUPPRESSED]), plan))
    return points


def _points_in_units(ready: CutSearch, bits: Bits, variants: list[int], values: list[dict[str, float]]) -> list[Point]:
    """Return candidates as points, from their class tables. The threshold of size counts units."""
    if not isinstance(ready.evaluator, MeasuredCuts) or any(variants):
        raise MeasureError("figures in units of a rule that counts records", expected="class tables")
    points = []
    for one, known in zip(bits, values, strict=True):
        classes = ready.evaluator.classes(one)
        below = 0 if ready.asked.rule == "none" or not classes.kept.any() else int(classes.size[classes.kept].min())
        loss = GENERAL_LOSS.value(classes) / GENERAL_LOSS.highest(classes)
        units = None if ready.table.units is None else classes.suppressed_units
        plan = ready.space.plan(one, below, 0)
        points.append(Point(0, known, loss, classes.suppressed_rows, plan, suppressed_units=units))
    return points


def _suppressed(asked: Asked, figures: Table) -> tuple[int, int]:
    """Return the thresholds of size and diversity that describe the suppression by a rule."""
    if asked.rule == "none" or asked.rule.startswith("printed"):
        return 0, 0
    if asked.rule == "safe":
        return int(figures[LEAST_SIZE]), int(figures[LEAST_DIVERSITY])
    return (0, int(figures[LEAST_DIVERSITY])) if asked.by_diversity else (int(figures[LEAST_SIZE]), 0)


def _population(settings: SearchSettings) -> int:
    if settings.population is not None:
        return settings.population
    if settings.method == "memetic":
        return 100
    return 500 if settings.problem in (3, 4) else 200


def _unreachable(ready: CutSearch) -> UnreachableError:
    ends = ready.evaluator.values(ready.space.ends())
    said = [
        f"{goal.measure.name} = {ends[0, :, position].max():g} with everything hidden, instead of {goal.limit:g}"
        for position, goal in enumerate(ready.limits, start=len(ready.objective_goals))
    ]
    return UnreachableError(
        "no cut that was evaluated meets the limits",
        expected="limits that a recoding meets",
        remedy="; ".join(said) or "raise max_suppression",
    )
