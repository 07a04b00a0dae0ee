"""The cuts system: free partitions of every attribute, four problems, searched by NSGA-II and local improvement."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from sfumato.algorithms import memetic
from sfumato.algorithms.dominance import non_dominated
from sfumato.algorithms.memetic import State
from sfumato.errors import MeasureError, UnreachableError
from sfumato.front import Front, Objective, Point, numbered
from sfumato.measures.standard import GENERAL_LOSS
from sfumato.study import SearchSettings, Study
from sfumato.systems.cuts import class_tally as tally
from sfumato.systems.cuts.asked import Asked
from sfumato.systems.cuts.moves import Bits
from sfumato.systems.cuts.prepared import CutSearch
from sfumato.systems.cuts.state import packed, unpacked
from sfumato.systems.cuts.values import MeasuredCuts
from sfumato.systems.goals import number
from sfumato.systems.run import Run, Searcher
from sfumato.tables.frequency import FrequencyTable


def search_cuts(
    study: Study,
    table: FrequencyTable,
    run: Run,
    search_lattice: Searcher,
) -> Front:
    """Find the front of a study's cuts, from the front of the lattice on. Stopped early, the best so far is kept.

    The study of a front that was stopped says after how many generations: searching it again gives the same front.
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
    begun = not run.stopped  # a search that is stopped before its first generation began cannot be asked for again

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
    """How the evolutionary loop runs: where columns can be cut anew, more of that and half of the sweeps."""
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
        for o, goal in zip(ready.asked.objectives, ready.sought, strict=True)
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
    """Candidates as points, by the compiled figures."""
    figures = ready.problem.figures(bits)
    general, gone = ready.problem.losses(figures)
    points = []
    for row, variant in enumerate(variants):
        shown = figures[row, variant]
        plan = ready.space.plan(bits[row], *_suppressed(ready.asked, shown))
        loss = float(general[row, variant] + gone[row, variant])
        points.append(Point(0, values[row], loss, int(shown[tally.SUPPRESSED]), plan))
    return points


def _points_in_units(ready: CutSearch, bits: Bits, variants: list[int], values: list[dict[str, float]]) -> list[Point]:
    """Candidates as points, by their class tables: the threshold of size counts units."""
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


def _suppressed(asked: Asked, figures: tally.Table) -> tuple[int, int]:
    """The thresholds of size and diversity that say what a rule suppressed."""
    if asked.rule == "none" or asked.rule.startswith("printed"):
        return 0, 0
    if asked.rule == "safe":
        return int(figures[tally.K]), int(figures[tally.L])
    return (0, int(figures[tally.L])) if asked.by_diversity else (int(figures[tally.K]), 0)


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
        for position, goal in enumerate(ready.limits, start=len(ready.sought))
    ]
    return UnreachableError(
        "no cut that was evaluated meets the limits",
        expected="limits that a recoding meets",
        remedy="; ".join(said) or "raise max_suppression",
    )
